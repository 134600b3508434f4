// Reads that wait for the disk, the files they read, and the windows that they fill.

import Glibc
import LarderFormat

/// A read that has to wait for the disk. Run it on any thread, then give the result to `Store.supply`.
public struct ColdRead: Sendable {
    let files: any StoreFiles
    let file: ReadFile
    let path: String
    let segment: UInt32
    /// `Segment.fileID`: whether what it brings is of use when it comes.
    let fileID: UInt64
    /// In the segment's image.
    let offset: Int
    let count: Int
    /// Where a segment has compressed blocks: what of the file holds these bytes.
    let packed: PackedStretch?

    /// Reads. Blocks.
    public func run() -> ColdResult {
        if let packed { return run(packed) }
        let window = Window(capacity: count)
        window.segment = segment
        window.fileID = fileID
        window.offset = offset
        do throws(SystemError) {
            window.count = try files.read(file.handle, at: offset, into: window.buffer(count))
            let isShort = window.count < count
            return ColdResult(
                window: window, fileID: fileID, offset: offset, failure: nil,
                shortfall: isShort ? SystemError("pread", path, code: EIO) : nil)
        } catch {
            return ColdResult(
                window: window, fileID: fileID, offset: offset, failure: SystemError(error.call, path, code: error.code)
            )
        }
    }

    private func run(_ packed: PackedStretch) -> ColdResult {
        let window = Window(capacity: packed.byteCount)
        let stored = Window(capacity: max(packed.fileByteCount, 1))
        do throws(SystemError) {
            let count = try files.read(file.handle, at: packed.fileOffset, into: stored.buffer(packed.fileByteCount))
            guard count == packed.fileByteCount else { throw SystemError("pread", path, code: EIO) }
        } catch {
            return ColdResult(
                window: window, fileID: fileID, offset: offset, failure: SystemError(error.call, path, code: error.code)
            )
        }
        window.fill(
            packed, segment, fileID, from: UnsafeRawBufferPointer(start: stored.memory, count: packed.fileByteCount))
        return ColdResult(window: window, fileID: fileID, offset: offset, failure: nil)
    }
}

/// A file of the log that is open for reading. Closed with its last reference: a read on another thread keeps it open.
final class ReadFile: Sendable {
    let files: any StoreFiles
    let handle: FileHandle

    init(_ files: any StoreFiles, _ path: String) throws(SystemError) {
        self.files = files
        handle = try files.openForReading(path)
    }

    deinit { files.close(handle) }
}

/// What a cold read brought.
public struct ColdResult: Sendable {
    let window: Window
    let fileID: UInt64
    /// That was asked for.
    let offset: Int
    public let failure: SystemError?
    /// The file ends before what the log has there; what came before its end is in the window.
    var shortfall: SystemError?
}

/// A stretch of a segment in memory. Handed from one thread to the next, never shared.
final class Window: @unchecked Sendable {
    var segment: UInt32 = 0
    var fileID: UInt64 = 0
    var offset = 0
    var count = 0
    var lastUse = 0
    private(set) var capacity: Int
    private(set) var memory: UnsafeMutableRawPointer

    init(capacity: Int) {
        self.capacity = capacity
        memory = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 4096)
    }

    deinit { memory.deallocate() }

    /// Takes a stretch of a segment's image.
    ///
    /// - Parameter stored: the stretch as it lies in the file, compressed or not.
    func fill(_ stretch: PackedStretch, _ segment: UInt32, _ fileID: UInt64, from stored: UnsafeRawBufferPointer) {
        let target = buffer(stretch.byteCount)
        if stretch.isCompressed, let base = target.baseAddress {
            stretch.unpack(stored, into: base)
        } else {
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: stored[..<min(stretch.byteCount, stored.count)]))
        }
        self.segment = segment
        self.fileID = fileID
        offset = stretch.start
        count = stretch.byteCount
    }

    func buffer(_ count: Int) -> UnsafeMutableRawBufferPointer {
        if count > capacity {
            memory.deallocate()
            memory = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 4096)
            capacity = count
        }
        return UnsafeMutableRawBufferPointer(start: memory, count: count)
    }

    @inline(__always)
    func bytes(segment: UInt32, offset: Int, needed: Int) -> UnsafeRawBufferPointer? {
        guard segment == self.segment, offset >= self.offset, offset &+ needed <= self.offset &+ count else {
            return nil
        }
        let from = offset &- self.offset
        return UnsafeRawBufferPointer(start: memory + from, count: count &- from)
    }
}

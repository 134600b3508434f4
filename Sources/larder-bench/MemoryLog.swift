// A log that costs no disk: /dev/null, but for reads.

import CLarder
import Glibc
import LarderStore

/// Files whose segments lie in memory that was touched beforehand; syncs of them do nothing.
///
/// Writes cannot just be dropped: where two keys share a fingerprint the store reads a record back to tell them apart.
final class MemoryLogFiles: StoreFiles, @unchecked Sendable {
    private let files = SystemFiles()
    private let pool: UnsafeMutableRawPointer
    private let poolByteCount: Int
    private static let segmentByteCount = 67_108_864
    /// Handles of segments begin here; the kernel's are far below.
    private static let firstHandle: Int32 = 1 << 24
    // Opened on the loop thread, written on the commit thread; a segment is opened before it is written.
    private var sizes: [Int]

    /// - Parameter byteCount: of all segments at most.
    init(byteCount: Int) throws(BenchError) {
        let segmentCount = byteCount / MemoryLogFiles.segmentByteCount + 2
        poolByteCount = segmentCount * MemoryLogFiles.segmentByteCount
        guard let memory = larder_memory_map(poolByteCount) else { throw .system("mmap", code: errno) }
        pool = memory
        sizes = Array(repeating: 0, count: segmentCount)
        // MADV_HUGEPAGE, which Glibc does not import.
        madvise(pool, poolByteCount, 14)
        memset(pool, 1, poolByteCount)
    }

    /// The segment's index, or nil for other files.
    private func index(_ path: String) -> Int? {
        guard path.hasSuffix(".seg"), let slash = path.lastIndex(of: "/") else { return nil }
        return Int(path[path.index(after: slash)...].dropLast(4)).map { $0 - 1 }
    }

    private func index(_ file: FileHandle) -> Int? {
        file.raw >= MemoryLogFiles.firstHandle ? Int(file.raw - MemoryLogFiles.firstHandle) : nil
    }

    private func open(_ path: String) throws(SystemError) -> FileHandle? {
        guard let index = index(path) else { return nil }
        guard index < sizes.count else { throw SystemError("open", path, code: ENOSPC) }
        return FileHandle(raw: MemoryLogFiles.firstHandle + Int32(index))
    }

    func openForReading(_ path: String) throws(SystemError) -> FileHandle {
        if let file = try open(path) { return file }
        return try files.openForReading(path)
    }

    func openForWriting(_ path: String) throws(SystemError) -> FileHandle {
        if let file = try open(path) { return file }
        return try files.openForWriting(path)
    }

    func close(_ file: FileHandle) { if index(file) == nil { files.close(file) } }

    func read(_ file: FileHandle, at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int
    {
        guard let index = index(file) else { return try files.read(file, at: offset, into: buffer) }
        let count = max(0, min(buffer.count, sizes[index] - offset))
        if count > 0 { buffer.baseAddress?.copyMemory(from: place(index, offset), byteCount: count) }
        return count
    }

    func readQuickly(
        _ file: FileHandle, at offset: Int, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> QuickRead {
        if index(file) == nil { return try files.readQuickly(file, at: offset, into: buffer) }
        return .bytes(try read(file, at: offset, into: buffer))
    }

    func willRead(_ file: FileHandle, at offset: Int, count: Int) {
        if index(file) == nil { files.willRead(file, at: offset, count: count) }
    }

    func write(_ file: FileHandle, at offset: Int, _ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        guard let index = index(file) else { return try files.write(file, at: offset, bytes) }
        guard offset + bytes.count <= MemoryLogFiles.segmentByteCount else {
            throw SystemError("write", "segment \(index + 1)", code: ENOSPC)
        }
        if let base = bytes.baseAddress { place(index, offset).copyMemory(from: base, byteCount: bytes.count) }
        sizes[index] = max(sizes[index], offset + bytes.count)
    }

    func sync(_ file: FileHandle) throws(SystemError) { if index(file) == nil { try files.sync(file) } }

    func truncate(_ file: FileHandle, to size: Int) throws(SystemError) {
        if let index = index(file) { sizes[index] = size } else { try files.truncate(file, to: size) }
    }

    func layOut(_ file: FileHandle, from start: Int, to end: Int) throws(SystemError) {
        if index(file) == nil { try files.layOut(file, from: start, to: end) }
    }

    func size(_ file: FileHandle) throws(SystemError) -> Int {
        if let index = index(file) { return sizes[index] }
        return try files.size(file)
    }

    private func place(_ index: Int, _ offset: Int) -> UnsafeMutableRawPointer {
        pool + index * MemoryLogFiles.segmentByteCount + offset
    }

    func syncDirectory(_ path: String) throws(SystemError) {
        if !path.hasSuffix("/log") { try files.syncDirectory(path) }
    }
    func makeDirectory(_ path: String) throws(SystemError) { try files.makeDirectory(path) }
    func list(_ path: String) throws(SystemError) -> [String]? { try files.list(path) }
    func rename(_ path: String, to newPath: String) throws(SystemError) { try files.rename(path, to: newPath) }
    func remove(_ path: String) throws(SystemError) { try files.remove(path) }
    func readWhole(_ path: String) throws(SystemError) -> [UInt8]? { try files.readWhole(path) }
    func replaceWhole(_ path: String, with bytes: [UInt8]) throws(SystemError) {
        try files.replaceWhole(path, with: bytes)
    }
    func link(_ path: String, to newPath: String) throws(SystemError) { try files.link(path, to: newPath) }
    func isSameFile(_ path: String, _ other: String) throws(SystemError) -> Bool {
        try files.isSameFile(path, other)
    }
    func lock(_ path: String) throws(SystemError) -> FileHandle? { try files.lock(path) }
    func isLocked(_ path: String) throws(SystemError) -> Bool { try files.isLocked(path) }
    func hold(_ directory: String, alone: Bool) throws(SystemError) -> FileHandle? {
        try files.hold(directory, alone: alone)
    }
}

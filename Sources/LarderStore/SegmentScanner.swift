// Reads one segment front to back in large pieces, and judges block headers.

import LarderFormat

/// Reads one segment front to back in large pieces.
struct SegmentScanner {
    let files: any StoreFiles
    let file: FileHandle
    let path: String
    let number: UInt32
    let size: Int
    private let window = Window(capacity: 2 * BlockHeader.byteCountMax)
    /// For the plain bytes of a compressed block.
    let unpacked = Window(capacity: 0)

    /// - Parameter byteCountMax: nothing at or behind it is read, however long the file is by now.
    init(
        files: any StoreFiles, path: String, number: UInt32, byteCountMax: Int = .max
    ) throws(StoreError) {
        self.files = files
        self.path = path
        self.number = number
        do throws(SystemError) {
            file = try files.openForReading(path)
            size = min(try files.size(file), byteCountMax)
        } catch { throw .system(error) }
    }

    func close() { files.close(file) }

    /// Bytes from `offset`, at least `needed` of them unless the file ends before.
    func bytes(_ offset: Int, _ needed: Int) throws(StoreError) -> UnsafeRawBufferPointer {
        let available = min(needed, size - offset)
        if let found = window.bytes(segment: number, offset: offset, needed: available) { return found }
        window.segment = 0
        do throws(SystemError) {
            window.count = try files.read(
                file, at: offset, into: window.buffer(min(window.capacity, max(size - offset, 0))))
        } catch { throw .system(error) }
        window.segment = number
        window.offset = offset
        return UnsafeRawBufferPointer(start: window.memory, count: window.count)
    }

    /// The block header at `offset` if it checks, else nil.
    func header(_ offset: Int, epoch: UInt64) throws(StoreError) -> BlockHeader? {
        let fixed = try bytes(offset, BlockHeader.fixedByteCount)
        guard let byteCount = BlockHeader.peekByteCount(fixed), byteCount <= BlockHeader.byteCountMax else {
            return nil
        }
        let head = try bytes(offset, byteCount)
        guard head.count >= byteCount, offset <= Int(UInt32.max) else { return nil }
        let header: BlockHeader
        do throws(FormatError) {
            header = try BlockHeader(head, epoch: epoch, position: LogPosition(segment: number, offset: UInt32(offset)))
        } catch {
            // The CRC holds, so a newer writer made it.
            if error == FormatError(.badStructure, at: 4) {
                throw .newerFormat(path: path, found: Int(head[4]), supported: Int(BlockHeader.formatVersion))
            }
            return nil
        }
        return offset + Int(header.blockByteCount) <= size ? header : nil
    }

    /// The history and the place that a header at `offset` says it is of, if its CRC holds.
    func claimedPlace(_ offset: Int) throws(StoreError) -> (epoch: UInt64, position: LogPosition)? {
        guard let byteCount = BlockHeader.peekByteCount(try bytes(offset, BlockHeader.fixedByteCount)) else {
            return nil
        }
        let head = try bytes(offset, byteCount)
        guard head.count >= byteCount, BlockHeader.hasChecksum(head) else { return nil }
        var reader = ByteReader(UnsafeRawBufferPointer(rebasing: head[8..<24]))
        guard let epoch = try? reader.u64(), let segment = try? reader.u32(), let at = try? reader.u32() else {
            return nil
        }
        return (epoch, LogPosition(segment: segment, offset: at))
    }

    func isZero(from offset: Int) throws(StoreError) -> Bool {
        var at = offset
        while at < size {
            let piece = try bytes(at, min(BlockHeader.byteCountMax, size - at))
            guard piece.allSatisfy({ $0 == 0 }) else { return false }
            at += piece.count
            if piece.isEmpty { return false }
        }
        return true
    }
}

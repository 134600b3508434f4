// Writes a file front to back in large aligned pieces, and reads one for its checksum.

import Glibc
import LarderFormat

/// A file that is written once, from its beginning. One thread.
struct AlignedFile {
    private static let bufferByteCount = 4_194_304

    private let files: any StoreFiles
    private let handle: FileHandle
    private let buffer = Window(capacity: AlignedFile.bufferByteCount)
    private var buffered = 0
    private var flushed = 0

    var byteCount: Int { flushed + buffered }

    /// - Parameter path: must not be there, or is written over.
    init(_ files: any StoreFiles, path: String) throws(SystemError) {
        self.files = files
        handle = try files.openForWriting(path)
        do throws(SystemError) { try files.truncate(handle, to: 0) } catch {
            files.close(handle)
            throw error
        }
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        var done = 0
        while done < bytes.count {
            let count = min(bytes.count - done, AlignedFile.bufferByteCount - buffered)
            UnsafeMutableRawBufferPointer(start: buffer.memory + buffered, count: count)
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[done..<done + count]))
            buffered += count
            done += count
            if buffered == AlignedFile.bufferByteCount { try flush() }
        }
    }

    /// The last piece is padded for the write and the file cut to its size again.
    private mutating func flush() throws(SystemError) {
        guard buffered > 0 else { return }
        let padded = (buffered + BlockHeader.alignment - 1) & ~(BlockHeader.alignment - 1)
        (buffer.memory + buffered).initializeMemory(as: UInt8.self, repeating: 0, count: padded - buffered)
        try files.write(handle, at: flushed, UnsafeRawBufferPointer(start: buffer.memory, count: padded))
        flushed += buffered
        if padded != buffered { try files.truncate(handle, to: flushed) }
        buffered = 0
    }

    /// Writes what is left and makes the file durable; its name is for the caller to make so.
    mutating func finish() throws(SystemError) {
        defer { files.close(handle) }
        try flush()
        try files.sync(handle)
    }

    /// Gives up; what was written stays.
    func abandon() { files.close(handle) }
}

/// Shows the first `byteCount` bytes of a file in pieces; throws where it has fewer.
func readPieces(
    _ files: any StoreFiles, _ path: String, byteCount: Int,
    _ show: (UnsafeRawBufferPointer) throws(SystemError) -> Void
) throws(SystemError) {
    let handle = try files.openForReading(path)
    defer { files.close(handle) }
    let piece = Window(capacity: 1_048_576)
    var offset = 0
    while offset < byteCount {
        let count = try files.read(handle, at: offset, into: piece.buffer(min(piece.capacity, byteCount - offset)))
        guard count > 0 else { throw SystemError("pread", path, code: EIO) }
        try show(UnsafeRawBufferPointer(start: piece.memory, count: count))
        offset += count
    }
}

/// The CRC-32C of a file's first `byteCount` bytes.
func checksum(_ files: any StoreFiles, _ path: String, byteCount: Int) throws(SystemError) -> UInt32 {
    var crc: UInt32 = 0
    try readPieces(files, path, byteCount: byteCount) { piece throws(SystemError) in crc = crc32c(piece, seed: crc) }
    return crc
}

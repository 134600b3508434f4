// The payload of a compressed block: pieces of the plain one, each a zstd frame. FORMAT.md section 7.

import CLarder

/// zstd, where it is installed (Debian: libzstd1). Any thread.
public enum Zstandard {
    public static var isInstalled: Bool { larder_zstd_is_there() != 0 }
}

/// Where the pieces of a compressed payload lie in its stored bytes.
public struct PayloadPieces: Equatable, Sendable {
    /// Plain bytes of every piece but the last.
    public static let byteCount = 65_536
    private static let skippableMagic: UInt32 = 0x184D_2A50
    private static let tableHeadByteCount = 8
    /// Above it a twentieth of the bytes costs twice the time (level 6, texts of films).
    private static let level: Int32 = 3

    public let plainByteCount: Int
    /// Offset of the first frame in the stored payload.
    public let start: Int
    /// Offsets behind each frame in the stored payload, ascending.
    public private(set) var ends: ContiguousArray<UInt32>

    public var count: Int { ends.count }

    /// Pieces that so many plain bytes make.
    public static func count(plainByteCount: Int) -> Int { (plainByteCount + byteCount - 1) / byteCount }

    /// Offset of the first frame in a stored payload of so many.
    public static func start(frameCount: Int) -> Int { tableHeadByteCount + 4 * frameCount }

    /// Reads the table.
    ///
    /// - Parameters:
    ///   - stored: the stored payload, whose CRC checks.
    ///   - plainByteCount: as the block's header has it.
    /// - Throws: `truncated`, `badStructure`, `outOfRange` at the offset in the stored payload.
    public init(_ stored: UnsafeRawBufferPointer, plainByteCount: Int) throws(FormatError) {
        let pieceCount = PayloadPieces.count(plainByteCount: plainByteCount)
        var reader = ByteReader(stored)
        guard try reader.u32() == PayloadPieces.skippableMagic else { throw FormatError(.badStructure, at: 0) }
        guard pieceCount > 0, try reader.u32() == UInt32(truncatingIfNeeded: 4 * pieceCount) else {
            throw FormatError(.outOfRange, at: 4)
        }
        start = PayloadPieces.start(frameCount: pieceCount)
        self.plainByteCount = plainByteCount
        ends = []
        ends.reserveCapacity(pieceCount)
        var end = start
        for at in 0..<pieceCount {
            let (next, isOver) = end.addingReportingOverflow(Int(try reader.u32()))
            guard !isOver, next > end, next <= stored.count else {
                throw FormatError(.outOfRange, at: PayloadPieces.tableHeadByteCount + 4 * at)
            }
            end = next
            ends.append(UInt32(truncatingIfNeeded: end))
        }
        guard end == stored.count else { throw FormatError(.trailing, at: end) }
    }

    /// Finds the frames of a payload whose CRC does not check, as far as that goes: by the table, else one behind the
    /// other. Nil where neither leads to as many as there must be.
    public init?(damaged stored: UnsafeRawBufferPointer, plainByteCount: Int) {
        if let found = try? PayloadPieces(stored, plainByteCount: plainByteCount) {
            self = found
            return
        }
        let pieceCount = PayloadPieces.count(plainByteCount: plainByteCount)
        start = PayloadPieces.start(frameCount: pieceCount)
        self.plainByteCount = plainByteCount
        ends = []
        var end = start
        for _ in 0..<pieceCount {
            guard end < stored.count, let base = stored.baseAddress else { return nil }
            let count = larder_zstd_frame(base + end, stored.count - end)
            guard count > 0, count <= stored.count - end else { return nil }
            end += count
            ends.append(UInt32(truncatingIfNeeded: end))
        }
    }

    /// Bounds of a piece in the stored payload.
    public func stored(_ piece: Int) -> Range<Int> {
        (piece == 0 ? start : Int(ends[piece - 1]))..<Int(ends[piece])
    }

    /// Bounds of a piece in the plain payload.
    public func plain(_ piece: Int) -> Range<Int> {
        let from = piece * PayloadPieces.byteCount
        return from..<min(from + PayloadPieces.byteCount, plainByteCount)
    }

    /// Unpacks one frame; false when it is none, or does not hold just `count` bytes.
    public static func unpack(
        _ frame: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer, count: Int
    ) -> Bool {
        guard let base = frame.baseAddress else { return false }
        return larder_zstd_unpack(target, count, base, frame.count) == count
    }

    /// Compresses a plain payload, table and all. Nil where it would take more than `byteCountMax` bytes, and without
    /// the library.
    public static func pack(_ plain: UnsafeRawBufferPointer, byteCountMax: Int) -> ContiguousArray<UInt8>? {
        guard let base = plain.baseAddress, Zstandard.isInstalled else { return nil }
        let pieceCount = count(plainByteCount: plain.count)
        let tableEnd = start(frameCount: pieceCount)
        let capacity = tableEnd + pieceCount * larder_zstd_bound(byteCount)
        var isGood = true
        let stored = ContiguousArray<UInt8>(unsafeUninitializedCapacity: capacity) { buffer, count in
            guard let target = UnsafeMutableRawBufferPointer(buffer).baseAddress else { return isGood = false }
            var table = RawWriter(target)
            table.u32(skippableMagic)
            table.u32(UInt32(truncatingIfNeeded: 4 * pieceCount))
            var end = tableEnd
            for from in stride(from: 0, to: plain.count, by: byteCount) {
                let packed = larder_zstd_pack(
                    target + end, capacity - end, base + from, min(byteCount, plain.count - from), level)
                guard packed > 0, end + packed <= byteCountMax else {
                    isGood = false
                    return
                }
                table.u32(UInt32(truncatingIfNeeded: packed))
                end += packed
            }
            count = end
        }
        return isGood && !stored.isEmpty ? stored : nil
    }
}

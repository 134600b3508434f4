// The head of a block of the log. FORMAT.md section 7 draws it.

/// One commit of a block.
public struct CommitHeader: Equatable, Sendable {
    public static let byteCount = 24

    public var firstSeq: UInt64
    /// Milliseconds since 1970.
    public var time: Int64
    public var entryCount: UInt32
    /// Bytes of its entries, uncompressed.
    public var plainByteCount: UInt32

    public init(firstSeq: UInt64, time: Int64, entryCount: UInt32, plainByteCount: UInt32) {
        self.firstSeq = firstSeq
        self.time = time
        self.entryCount = entryCount
        self.plainByteCount = plainByteCount
    }
}

/// A position of the log. Ordered.
public struct LogPosition: Comparable, Hashable, Sendable {
    public var segment: UInt32
    public var offset: UInt32

    public init(segment: UInt32, offset: UInt32) {
        self.segment = segment
        self.offset = offset
    }

    public static func < (a: LogPosition, b: LogPosition) -> Bool { (a.segment, a.offset) < (b.segment, b.offset) }
}

public struct BlockHeader: Equatable, Sendable {
    /// Fixed part, before the commit table.
    public static let fixedByteCount = 64
    public static let magic: UInt32 = 0x4244_524C  // "LRDB"
    public static let alignment = 4096
    public static let byteCountMax = 4_194_304
    public static let formatVersion: UInt8 = 1

    /// The run goes on in the next block.
    public static let continues: UInt8 = 1
    /// The run began in an earlier block.
    public static let continued: UInt8 = 2
    public static let compressed: UInt8 = 4
    /// Written by compaction.
    public static let repacked: UInt8 = 8
    /// The last block of a repacked segment.
    public static let ends: UInt8 = 16
    private static let allFlags = continues | continued | compressed | repacked | ends

    public var flags: UInt8 = 0
    public var epoch: UInt64
    public var position: LogPosition
    /// The whole block with its padding.
    public var blockByteCount: UInt32 = 0
    public var storedByteCount: UInt32 = 0
    public var plainByteCount: UInt32 = 0
    public var entryCount: UInt32 = 0
    /// Every block before this position was durable when this one was written.
    public var synced: LogPosition
    public var storedCRC: UInt32 = 0
    public var commits: [CommitHeader] = []

    public init(epoch: UInt64, position: LogPosition, synced: LogPosition) {
        self.epoch = epoch
        self.position = position
        self.synced = synced
    }

    /// Bytes of the header with its commit table: where the payload begins.
    public var byteCount: Int { BlockHeader.byteCount(commitCount: commits.count) }
    public static func byteCount(commitCount: Int) -> Int { fixedByteCount + CommitHeader.byteCount * commitCount }

    public var isCompressed: Bool { flags & BlockHeader.compressed != 0 }

    /// Bytes of the block as it is when it is not compressed, with padding: what it takes of the segment's plain image.
    public var plainBlockByteCount: Int {
        guard isCompressed else { return Int(blockByteCount) }
        return (byteCount + Int(plainByteCount) + BlockHeader.alignment - 1) & ~(BlockHeader.alignment - 1)
    }

    public var isPartOfRun: Bool { flags & (BlockHeader.continues | BlockHeader.continued) != 0 }

    /// Writes `byteCount` bytes at `base`.
    public func write(at base: UnsafeMutableRawPointer) {
        var writer = RawWriter(base)
        writer.u32(BlockHeader.magic)
        writer.u8(BlockHeader.formatVersion)
        writer.u8(flags)
        writer.u8(UInt8(truncatingIfNeeded: commits.count))
        writer.u8(UInt8(truncatingIfNeeded: commits.count >> 8))
        writer.u64(epoch)
        writer.u32(position.segment)
        writer.u32(position.offset)
        writer.u32(blockByteCount)
        writer.u32(storedByteCount)
        writer.u32(plainByteCount)
        writer.u32(entryCount)
        writer.u32(synced.segment)
        writer.u32(synced.offset)
        writer.u64(0)
        writer.u32(storedCRC)
        writer.u32(0)
        for commit in commits {
            writer.u64(commit.firstSeq)
            writer.u64(UInt64(bitPattern: commit.time))
            writer.u32(commit.entryCount)
            writer.u32(commit.plainByteCount)
        }
        let crc = BlockHeader.crc(UnsafeRawBufferPointer(start: base, count: byteCount))
        (base + 60).storeBytes(of: crc.littleEndian, as: UInt32.self)
    }

    private static func crc(_ header: UnsafeRawBufferPointer) -> UInt32 {
        let fixed = crc32c(UnsafeRawBufferPointer(rebasing: header[0..<60]))
        return crc32c(UnsafeRawBufferPointer(rebasing: header[64...]), seed: fixed)
    }

    /// What the first 64 bytes of a header say about its own size, before its CRC can be judged.
    ///
    /// - Returns: nil when the magic is not there; else the bytes of the whole header.
    public static func peekByteCount(_ bytes: UnsafeRawBufferPointer) -> Int? {
        guard bytes.count >= fixedByteCount, bytes.loadUnaligned(as: UInt32.self) == magic.littleEndian else {
            return nil
        }
        let count = Int(UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 6, as: UInt16.self)))
        return count == 0 ? nil : byteCount(commitCount: count)
    }

    /// Whether the CRC of the header that begins here holds, wherever it belongs.
    ///
    /// - Parameter bytes: at least as many as `peekByteCount` says.
    public static func hasChecksum(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let byteCount = peekByteCount(bytes), bytes.count >= byteCount else { return false }
        let stored = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 60, as: UInt32.self))
        return crc(UnsafeRawBufferPointer(rebasing: bytes[..<byteCount])) == stored
    }

    /// Reads and checks a header.
    ///
    /// - Parameters:
    ///   - bytes: from the block's first byte; more than the header may be there.
    ///   - epoch: that of the library.
    ///   - position: where the block lies.
    /// - Throws: `truncated` when `bytes` ends before the header does; `badStructure` and `outOfRange` at the field that
    ///   is wrong (a commit that does not ascend: at its row); `badChecksum`.
    public init(
        _ bytes: UnsafeRawBufferPointer, epoch expectedEpoch: UInt64, position expected: LogPosition
    ) throws(FormatError) {
        guard bytes.count >= BlockHeader.fixedByteCount else { throw FormatError(.truncated, at: 0) }
        guard bytes.loadUnaligned(as: UInt32.self) == BlockHeader.magic.littleEndian else {
            throw FormatError(.badStructure, at: 0)
        }
        let commitCount = Int(UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 6, as: UInt16.self)))
        let headerByteCount = BlockHeader.byteCount(commitCount: commitCount)
        guard bytes.count >= headerByteCount else { throw FormatError(.truncated, at: 0) }
        var reader = ByteReader(UnsafeRawBufferPointer(rebasing: bytes[..<headerByteCount]))
        reader.offset = 60
        guard try reader.u32() == BlockHeader.crc(UnsafeRawBufferPointer(rebasing: bytes[..<headerByteCount])) else {
            throw FormatError(.badChecksum, at: 60)
        }
        reader.offset = 4
        guard try reader.u8() == BlockHeader.formatVersion else { throw FormatError(.badStructure, at: 4) }
        flags = try reader.u8()
        guard flags & ~BlockHeader.allFlags == 0, flags & BlockHeader.ends == 0 || flags & BlockHeader.repacked != 0
        else {
            throw FormatError(.badStructure, at: 5)
        }
        guard try reader.u16() >= 1 else { throw FormatError(.outOfRange, at: 6) }
        epoch = try reader.u64()
        guard epoch == expectedEpoch else { throw FormatError(.badStructure, at: 8) }
        position = LogPosition(segment: try reader.u32(), offset: try reader.u32())
        guard position == expected else { throw FormatError(.badStructure, at: 16) }
        blockByteCount = try reader.u32()
        storedByteCount = try reader.u32()
        plainByteCount = try reader.u32()
        entryCount = try reader.u32()
        synced = LogPosition(segment: try reader.u32(), offset: try reader.u32())
        let reserved = try reader.u64()
        storedCRC = try reader.u32()
        try checkFixed(headerByteCount, reserved: reserved)
        reader.offset = BlockHeader.fixedByteCount
        try readCommits(commitCount, &reader)
    }

    private func checkFixed(_ headerByteCount: Int, reserved: UInt64) throws(FormatError) {
        guard blockByteCount > 0, Int(blockByteCount) <= BlockHeader.byteCountMax,
            Int(blockByteCount) % BlockHeader.alignment == 0
        else { throw FormatError(.outOfRange, at: 24) }
        guard UInt64(headerByteCount) + UInt64(storedByteCount) <= UInt64(blockByteCount) else {
            throw FormatError(.outOfRange, at: 28)
        }
        let isCompressed = flags & BlockHeader.compressed != 0
        // Unpacked it is a block like others.
        let (whole, isOver) = headerByteCount.addingReportingOverflow(Int(plainByteCount))
        guard isCompressed ? !isOver && whole <= BlockHeader.byteCountMax : plainByteCount == storedByteCount else {
            throw FormatError(.outOfRange, at: 32)
        }
        guard synced <= position else { throw FormatError(.outOfRange, at: 40) }
        guard reserved == 0 else { throw FormatError(.badStructure, at: 48) }
        guard isCompressed || storedCRC == 0 else { throw FormatError(.badStructure, at: 56) }
    }

    private mutating func readCommits(_ count: Int, _ reader: inout ByteReader) throws(FormatError) {
        var entries: UInt64 = 0
        var plain: UInt64 = 0
        commits.reserveCapacity(count)
        for _ in 0..<count {
            let row = reader.offset
            let commit = CommitHeader(
                firstSeq: try reader.u64(), time: try reader.i64(), entryCount: try reader.u32(),
                plainByteCount: try reader.u32())
            guard commit.firstSeq > (commits.last?.firstSeq ?? 0) else { throw FormatError(.outOfRange, at: row) }
            guard commit.entryCount > 0 else { throw FormatError(.outOfRange, at: row + 16) }
            entries += UInt64(commit.entryCount)
            plain += UInt64(commit.plainByteCount)
            commits.append(commit)
        }
        guard entries == UInt64(entryCount) else { throw FormatError(.outOfRange, at: 36) }
        guard plain == UInt64(plainByteCount) else { throw FormatError(.outOfRange, at: 32) }
    }
}

// The checkpoint's head and its part of small things, as bytes. FORMAT.md section 11 draws both.

import LarderFormat

/// The first 4,096 bytes of a checkpoint.
struct CheckpointHead {
    static let byteCount = 4096
    static let magic: UInt32 = 0x4344_524C  // "LRDC"
    static let version: UInt32 = 1

    /// The parts behind the head, in their order.
    enum Part: Int, CaseIterable {
        case library, commits, records, keys
    }

    var epoch: UInt64
    /// CRC of the fingerprint key: the keys' fingerprints mean nothing under another.
    var keyCRC: UInt32
    /// The log behind this position is not in the checkpoint; all before it was durable.
    var replay: LogPosition
    var lastSeq: UInt64
    var floor: UInt64
    /// Bytes of each part without its padding, and the CRC of each with it.
    var byteCounts = [0, 0, 0, 0]
    var checksums: [UInt32] = [0, 0, 0, 0]
    /// Ordinals, holes included.
    var ordinalCount: Int
    /// Records that are there.
    var recordCount: Int

    init(_ identity: Identity, replay: LogPosition, lastSeq: UInt64, floor: UInt64, ordinals: Int, records: Int) {
        epoch = identity.epoch
        keyCRC = CheckpointHead.checksum(ofKey: identity.fingerprintKey)
        self.replay = replay
        self.lastSeq = lastSeq
        self.floor = floor
        ordinalCount = ordinals
        recordCount = records
    }

    static func checksum(ofKey key: (UInt64, UInt64)) -> UInt32 {
        var writer = ByteWriter(reserving: 16)
        writer.u64(key.0)
        writer.u64(key.1)
        return writer.bytes.withUnsafeBytes { crc32c($0) }
    }

    static func padded(_ byteCount: Int) -> Int {
        (byteCount + BlockHeader.alignment - 1) & ~(BlockHeader.alignment - 1)
    }

    /// Where a part begins in the file.
    func offset(_ part: Part) -> Int {
        byteCounts[..<part.rawValue].reduce(CheckpointHead.byteCount) { $0 + CheckpointHead.padded($1) }
    }

    var fileByteCount: Int { byteCounts.reduce(CheckpointHead.byteCount) { $0 + CheckpointHead.padded($1) } }

    var encoded: [UInt8] {
        var writer = ByteWriter(reserving: CheckpointHead.byteCount)
        writer.u32(CheckpointHead.magic)
        writer.u32(CheckpointHead.version)
        writer.u64(epoch)
        writer.u32(keyCRC)
        writer.u32(0)
        writer.u32(replay.segment)
        writer.u32(replay.offset)
        writer.u64(lastSeq)
        writer.u64(floor)
        for count in byteCounts { writer.u64(UInt64(count)) }
        for checksum in checksums { writer.u32(checksum) }
        writer.u64(UInt64(ordinalCount))
        writer.u64(UInt64(recordCount))
        writer.raw([UInt8](repeating: 0, count: CheckpointHead.byteCount - 4 - writer.count))
        let crc = writer.bytes.withUnsafeBytes { crc32c($0) }
        writer.u32(crc)
        return writer.bytes
    }

    /// Nil when the bytes are no head of this version, or do not fit a file of that size.
    init?(_ bytes: UnsafeRawBufferPointer, fileByteCount: Int) {
        guard bytes.count == CheckpointHead.byteCount else { return nil }
        var reader = ByteReader(bytes)
        do throws(FormatError) {
            let whole = crc32c(UnsafeRawBufferPointer(rebasing: bytes[..<(CheckpointHead.byteCount - 4)]))
            var tail = ByteReader(UnsafeRawBufferPointer(rebasing: bytes[(CheckpointHead.byteCount - 4)...]))
            guard try tail.u32() == whole, try reader.u32() == CheckpointHead.magic,
                try reader.u32() == CheckpointHead.version
            else { return nil }
            epoch = try reader.u64()
            keyCRC = try reader.u32()
            _ = try reader.u32()
            replay = LogPosition(segment: try reader.u32(), offset: try reader.u32())
            lastSeq = try reader.u64()
            floor = try reader.u64()
            for at in byteCounts.indices {
                let count = try reader.u64()
                guard count <= UInt64(fileByteCount) else { return nil }
                byteCounts[at] = Int(count)
            }
            for at in checksums.indices { checksums[at] = try reader.u32() }
            let (ordinals, records) = (try reader.u64(), try reader.u64())
            guard ordinals < UInt64(UInt32.max), records <= ordinals else { return nil }
            (ordinalCount, recordCount) = (Int(ordinals), Int(records))
        } catch { return nil }
        let chunkCount = (ordinalCount + RecordTable.chunkCount - 1) / RecordTable.chunkCount
        guard self.fileByteCount == fileByteCount, byteCounts[Part.keys.rawValue] == recordCount * 8,
            byteCounts[Part.records.rawValue] == chunkCount * RecordTable.chunkByteCount,
            // Far from where the seqs end, so that counting on cannot overflow.
            lastSeq < UInt64(Int64.max), floor <= lastSeq + 1
        else { return nil }
    }
}

/// A segment as the checkpoint names it.
struct CheckpointSegment {
    var number: UInt32
    var byteCount: Int
    /// The last block whose header is known, to be found again in the log: where it begins and the CRC of its header.
    var lastBlock: (offset: Int, checksum: UInt32)?
    var saveCount: Int
    var liveCount: Int
    var commitCount: Int
}

/// What a checkpoint holds beside commits, records and keys.
struct CheckpointLibrary {
    var segments: [CheckpointSegment] = []
    var kinds = KindTable()
    var liveCounts: [Int] = []
    var origins = OriginTable()
    var gaps: [ClosedRange<UInt64>] = []
    var lostSpans: [LostSpan] = []

    init() {}

    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.varint(segments.count)
        for segment in segments {
            writer.varint(UInt64(segment.number))
            for count in [segment.byteCount, segment.saveCount, segment.liveCount, segment.commitCount] {
                writer.varint(count)
            }
            writer.varint(segment.lastBlock.map { $0.offset + 1 } ?? 0)
            writer.u32(segment.lastBlock?.checksum ?? 0)
        }
        writer.varint(kinds.schemas.count)
        for (schema, count) in zip(kinds.schemas, liveCounts) {
            writer.raw(schema.kind.encoded)
            writer.varint(count)
        }
        writer.varint(origins.origins.count)
        for origin in origins.origins {
            writer.byteString(origin.body)
            writer.svarint(origin.time)
        }
        writer.varint(origins.lastBatch.count)
        for (origin, batch) in origins.lastBatch.sorted(by: { $0.key < $1.key }) {
            writer.varint(origin)
            writer.varint(batch)
        }
        writer.varint(origins.openImports.count)
        for origin in origins.openImports.sorted() { writer.varint(origin) }
        writer.varint(gaps.count)
        for gap in gaps {
            writer.varint(gap.lowerBound)
            writer.varint(gap.upperBound)
        }
        writer.varint(lostSpans.count)
        for span in lostSpans {
            writer.varint(span.after)
            writer.varint(span.through)
            writer.varint(UInt64(span.segment))
            writer.varint(span.offset)
        }
        return writer.bytes
    }

    /// Nil when the bytes are not what `encoded` gives.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        do throws(FormatError) {
            guard try readSegments(&reader), try readKinds(&reader) else { return nil }
            for _ in 0..<(try reader.count(ofAtLeast: 3)) {
                let body = try reader.bytes()
                origins.declare(try Origin(body: body, time: try reader.svarint()))
            }
            for _ in 0..<(try reader.count(ofAtLeast: 2)) {
                let origin = try reader.varint()
                origins.lastBatch[origin] = try reader.varint()
            }
            for _ in 0..<(try reader.count(ofAtLeast: 1)) { origins.openImports.insert(try reader.varint()) }
            for _ in 0..<(try reader.count(ofAtLeast: 2)) {
                let (from, through) = (try reader.varint(), try reader.varint())
                guard from <= through else { return nil }
                gaps.append(from...through)
            }
            for _ in 0..<(try reader.count(ofAtLeast: 4)) {
                lostSpans.append(
                    LostSpan(
                        after: try reader.varint(), through: try reader.varint(),
                        segment: UInt32(try reader.varint(atMost: Int(UInt32.max))),
                        offset: try reader.varint(atMost: Int(UInt32.max))))
            }
            try reader.expectEnd()
        } catch { return nil }
    }

    private mutating func readSegments(_ reader: inout ByteReader) throws(FormatError) -> Bool {
        let most = Int(UInt32.max)
        for _ in 0..<(try reader.count(ofAtLeast: 10)) {
            let number = UInt32(try reader.varint(atMost: most))
            var segment = CheckpointSegment(
                number: number, byteCount: try reader.varint(atMost: most), saveCount: try reader.varint(atMost: most),
                liveCount: try reader.varint(atMost: most), commitCount: try reader.varint(atMost: most))
            let offset = try reader.varint(atMost: most)
            let checksum = try reader.u32()
            if offset > 0 { segment.lastBlock = (offset - 1, checksum) }
            guard number > segments.last?.number ?? 0 else { return false }
            segments.append(segment)
        }
        return !segments.isEmpty
    }

    private mutating func readKinds(_ reader: inout ByteReader) throws(FormatError) -> Bool {
        for _ in 0..<(try reader.count(ofAtLeast: 2)) {
            // The index of a kind is its place in the list.
            guard kinds.declare(try Kind(from: &reader)), liveCounts.count + 1 == kinds.schemas.count else {
                return false
            }
            liveCounts.append(try reader.varint(atMost: Int(UInt32.max)))
        }
        return true
    }
}

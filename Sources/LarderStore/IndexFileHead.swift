// The head that the checkpoint and the sidecars begin with: whose they are, and what lies behind it. FORMAT.md section
// 11 draws it.

import LarderFormat

/// The first 4,096 bytes of a file of the index.
struct IndexFileHead {
    enum Content: UInt32 {
        case checkpoint = 0x4344_524C  // "LRDC"
        case sidecar = 0x4944_524C  // "LRDI"
    }

    /// The parts behind the head, in their order.
    enum Part: Int {
        /// What has no fixed width.
        case small
        case commits
        /// The record table, or the changes of a segment.
        case records
        case keys
    }

    static let byteCount = 4096
    /// Of each content by itself; at present the same.
    static func version(_ content: Content) -> UInt32 {
        switch content {
        case .checkpoint: 2
        case .sidecar: 2
        }
    }

    let content: Content
    var epoch: UInt64
    /// CRC of the fingerprint key: the keys' fingerprints mean nothing under another.
    var keyCRC: UInt32
    /// Of a checkpoint where the log goes on, all before having been durable; of a sidecar where it begins.
    var position: LogPosition
    var lastSeq: UInt64
    var floor: UInt64 = 0
    /// Bytes of each part without its padding, and the CRC of each with it.
    var byteCounts = [0, 0, 0, 0]
    var checksums: [UInt32] = [0, 0, 0, 0]
    /// Ordinals of the table, holes included; in a sidecar as many as records.
    var ordinalCount = 0
    /// Records that are there; of a sidecar those that it creates, or 0: they were not counted.
    var recordCount = 0

    init(_ content: Content, of identity: Identity, position: LogPosition, lastSeq: UInt64) {
        self.content = content
        epoch = identity.epoch
        keyCRC = IndexFileHead.checksum(ofKey: identity.fingerprintKey)
        self.position = position
        self.lastSeq = lastSeq
    }

    /// Whether it is of this library and its present history.
    func isOf(_ identity: Identity) -> Bool {
        epoch == identity.epoch && keyCRC == IndexFileHead.checksum(ofKey: identity.fingerprintKey)
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
        byteCounts[..<part.rawValue].reduce(IndexFileHead.byteCount) { $0 + IndexFileHead.padded($1) }
    }

    var fileByteCount: Int { byteCounts.reduce(IndexFileHead.byteCount) { $0 + IndexFileHead.padded($1) } }

    var encoded: [UInt8] {
        var writer = ByteWriter(reserving: IndexFileHead.byteCount)
        writer.u32(content.rawValue)
        writer.u32(IndexFileHead.version(content))
        writer.u64(epoch)
        writer.u32(keyCRC)
        writer.u32(0)
        writer.u32(position.segment)
        writer.u32(position.offset)
        writer.u64(lastSeq)
        writer.u64(floor)
        for count in byteCounts { writer.u64(UInt64(count)) }
        for checksum in checksums { writer.u32(checksum) }
        writer.u64(UInt64(ordinalCount))
        writer.u64(UInt64(recordCount))
        writer.raw([UInt8](repeating: 0, count: IndexFileHead.byteCount - 4 - writer.count))
        let crc = writer.bytes.withUnsafeBytes { crc32c($0) }
        writer.u32(crc)
        return writer.bytes
    }

    /// Nil when the bytes are no head of this content and version, or do not fit a file of that size.
    init?(_ content: Content, _ bytes: UnsafeRawBufferPointer, fileByteCount: Int) {
        guard bytes.count == IndexFileHead.byteCount else { return nil }
        self.content = content
        var reader = ByteReader(bytes)
        do throws(FormatError) {
            let whole = crc32c(UnsafeRawBufferPointer(rebasing: bytes[..<(IndexFileHead.byteCount - 4)]))
            var tail = ByteReader(UnsafeRawBufferPointer(rebasing: bytes[(IndexFileHead.byteCount - 4)...]))
            guard try tail.u32() == whole, try reader.u32() == content.rawValue,
                try reader.u32() == IndexFileHead.version(content)
            else { return nil }
            epoch = try reader.u64()
            keyCRC = try reader.u32()
            _ = try reader.u32()
            position = LogPosition(segment: try reader.u32(), offset: try reader.u32())
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
        // The seq is far from where seqs end, so that counting on cannot overflow.
        guard self.fileByteCount == fileByteCount, lastSeq < UInt64(Int64.max), floor <= lastSeq + 1 else { return nil }
    }

    func byteCount(_ part: Part) -> Int { byteCounts[part.rawValue] }
}

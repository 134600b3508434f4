// 21 COMPACT and A1 COMPACTED.

import LarderFormat

public struct Compact: WireMessage {
    public static var type: MessageType { .compact }
    /// Purged keys of one COMPACT at most.
    public static let purgedCountMax = 1_000

    /// A key whose every entry goes.
    public struct PurgedKey: Hashable, Sendable {
        public var kind: Int
        /// The key fields' encoded values, one after the other.
        public var key: [UInt8]

        public init(kind: Int, key: [UInt8]) {
            self.kind = kind
            self.key = key
        }
    }

    /// Versions and deletes that were superseded at or after it are kept; ms. 0: as the host is set; `Int64.max`: none.
    public var historySince: Int64
    /// 0 … 100: a segment is rewritten when at least so much of it would go; 0: whenever anything would.
    public var deadPercent: Int
    /// The segment that is written is ended first, so that it can be rewritten too.
    public var includesLast: Bool
    /// Whether blocks are compressed.
    public var compression: Compression
    /// How long subscriptions that lag are waited for; of a purge only.
    public var waitMilliseconds: Int
    /// Bytes read and written a second at most. 0: as the host is set; `Int.max`: as fast as it goes.
    public var bytesPerSecond: Int
    /// At most 1,000.
    public var purged: [PurgedKey]

    /// The form of the blocks of segments that are written anew; other than `kept`, those in another form are too.
    public enum Compression: UInt8, Sendable {
        case kept = 0
        case zstd = 2
        case none = 4
    }

    public init(
        historySince: Int64 = 0, deadPercent: Int = 0, includesLast: Bool = false, compression: Compression = .kept,
        waitMilliseconds: Int = 0,
        bytesPerSecond: Int = 0, purged: [PurgedKey] = []
    ) {
        self.historySince = historySince
        self.deadPercent = deadPercent
        self.includesLast = includesLast
        self.compression = compression
        self.waitMilliseconds = waitMilliseconds
        self.bytesPerSecond = bytesPerSecond
        self.purged = purged
    }

    public func encode(into writer: inout ByteWriter) {
        writer.i64(historySince)
        writer.u8(UInt8(clamping: deadPercent))
        writer.u8((includesLast ? 1 : 0) | compression.rawValue)
        writer.varint(waitMilliseconds)
        writer.varint(bytesPerSecond)
        writer.varint(purged.count)
        for item in purged {
            writer.varint(item.kind)
            writer.byteString(item.key)
        }
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        historySince = try reader.i64()
        let percentAt = reader.offset
        deadPercent = Int(try reader.u8())
        guard deadPercent <= 100 else {
            reader.offset = percentAt
            throw FormatError(.outOfRange, at: percentAt)
        }
        let flagsAt = reader.offset
        let flags = try reader.flags(7)
        includesLast = flags & 1 == 1
        guard let compression = Compression(rawValue: flags & 6) else {
            reader.offset = flagsAt
            throw FormatError(.badStructure, at: flagsAt)
        }
        self.compression = compression
        waitMilliseconds = try reader.number()
        bytesPerSecond = try reader.number()
        let countAt = reader.offset
        let count = try reader.count(ofAtLeast: 1)
        guard count <= Compact.purgedCountMax else {
            reader.offset = countAt
            throw FormatError(.outOfRange, at: countAt)
        }
        purged = []
        for _ in 0..<count { purged.append(PurgedKey(kind: try reader.number(), key: try reader.byteArray())) }
        try reader.expectEnd()
    }
}

public struct Compacted: WireMessage {
    public static var type: MessageType { .compacted }

    /// Bytes of the log.
    public var byteCountBefore: Int
    /// Bytes of the log.
    public var byteCountAfter: Int
    /// Segments looked at.
    public var segmentCount: Int
    public var rewrittenCount: Int
    /// Entries that are gone.
    public var droppedCount: Int
    /// Files in the library's `aside` that held a purged key and are gone.
    public var removedAsideCount: Int
    /// Subscriptions that were not waited for any longer.
    public var endedSubscriptionCount: Int
    /// The library's.
    public var floor: UInt64
    /// What was done by, ms: COMPACT's, or the host's own; `Int64.max`: no history was kept.
    public var historySince: Int64

    public init(
        byteCountBefore: Int, byteCountAfter: Int, segmentCount: Int, rewrittenCount: Int, droppedCount: Int,
        removedAsideCount: Int = 0, endedSubscriptionCount: Int = 0, floor: UInt64, historySince: Int64
    ) {
        self.byteCountBefore = byteCountBefore
        self.byteCountAfter = byteCountAfter
        self.segmentCount = segmentCount
        self.rewrittenCount = rewrittenCount
        self.droppedCount = droppedCount
        self.removedAsideCount = removedAsideCount
        self.endedSubscriptionCount = endedSubscriptionCount
        self.floor = floor
        self.historySince = historySince
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(byteCountBefore)
        writer.varint(byteCountAfter)
        writer.varint(segmentCount)
        writer.varint(rewrittenCount)
        writer.varint(droppedCount)
        writer.varint(removedAsideCount)
        writer.varint(endedSubscriptionCount)
        writer.u64(floor)
        writer.i64(historySince)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        byteCountBefore = try reader.number()
        byteCountAfter = try reader.number()
        segmentCount = try reader.number()
        rewrittenCount = try reader.number()
        droppedCount = try reader.number()
        removedAsideCount = try reader.number()
        endedSubscriptionCount = try reader.number()
        floor = try reader.u64()
        historySince = try reader.i64()
        try reader.expectEnd()
    }
}

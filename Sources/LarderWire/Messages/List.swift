// 06 LIST and 86 PAGE.

import LarderFormat

public struct List: WireMessage {
    public static var type: MessageType { .list }
    public static let limitRange = 1...10_000

    /// 0: all.
    public var kind: Int
    /// Newest first.
    public var isReverse: Bool
    /// Records, 1 … 10,000; the host may send fewer.
    public var limit: Int
    /// Bytes of the page; 0: the host's.
    public var byteCountMax: Int
    /// Empty: the first page.
    public var token: [UInt8]
    /// Empty: every record. Not parsed.
    public var condition: String
    /// 0: saved order; else a field of the kind, which the host checks.
    public var order: Int

    public init(
        kind: Int = 0, isReverse: Bool = false, limit: Int = 1_000, byteCountMax: Int = 0, token: [UInt8] = [],
        condition: String = "", order: Int = 0
    ) {
        self.kind = kind
        self.isReverse = isReverse
        self.limit = limit
        self.byteCountMax = byteCountMax
        self.token = token
        self.condition = condition
        self.order = order
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(kind)
        writer.u8(isReverse ? 1 : 0)
        writer.varint(limit)
        writer.varint(byteCountMax)
        writer.byteString(token)
        writer.text(condition)
        writer.varint(order)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        kind = try reader.number()
        isReverse = try reader.flags(1) == 1
        limit = try reader.number(in: List.limitRange)
        byteCountMax = try reader.number()
        token = try reader.byteArray()
        condition = try reader.text()
        order = try reader.number()
        try reader.expectEnd()
    }
}

public struct Page: WireMessage {
    public static var type: MessageType { .page }

    public var isEnd: Bool
    /// For the next page; empty at the end.
    public var token: [UInt8]
    public var records: [StoredRecord]

    public init(isEnd: Bool, token: [UInt8], records: [StoredRecord]) {
        self.isEnd = isEnd
        self.token = token
        self.records = records
    }

    public func encode(into writer: inout ByteWriter) {
        Page.encodeStart(isEnd: isEnd, token: token, recordCount: records.count, into: &writer)
        for record in records { record.encode(into: &writer) }
    }

    /// The fields before the records, which the caller appends.
    public static func encodeStart(isEnd: Bool, token: [UInt8], recordCount: Int, into writer: inout ByteWriter) {
        writer.u8(isEnd ? 1 : 0)
        writer.byteString(token)
        writer.varint(recordCount)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        isEnd = try reader.flags(1) == 1
        token = try reader.byteArray()
        records = try reader.list(ofAtLeast: StoredRecordView.byteCountMin) {
            (reader: inout ByteReader) throws(FormatError) in try StoredRecord(from: &reader)
        }
        try reader.expectEnd()
    }
}

/// Iterates over the records of a PAGE without allocating. The body outlives it, unchanged.
public struct PageReader {
    public let isEnd: Bool
    /// For the next page, borrowed.
    public let token: UnsafeRawBufferPointer
    public let recordCount: Int
    private var reader: ByteReader
    private var left: Int

    public init(body: UnsafeRawBufferPointer) throws(FormatError) {
        var reader = ByteReader(body)
        isEnd = try reader.flags(1) == 1
        token = try reader.bytes()
        recordCount = try reader.count(ofAtLeast: StoredRecordView.byteCountMin)
        left = recordCount
        self.reader = reader
    }

    /// The next record, or nil when all were read and nothing is behind them.
    public mutating func next() throws(FormatError) -> StoredRecordView? {
        guard left > 0 else {
            try reader.expectEnd()
            return nil
        }
        left -= 1
        return try StoredRecordView(from: &reader)
    }
}

// 1B FIND and 9B FOUND.

import LarderFormat

public struct Find: WireMessage {
    public static var type: MessageType { .find }
    public static let limitRange = 1...1_000

    /// The host checks that it has the kind, and that the field is one of its indexed ones.
    public var kind: Int
    public var field: Int
    /// In the field's encoding. Not validated.
    public var value: [UInt8]
    /// Records, 1 … 1,000.
    public var limit: Int

    public init(kind: Int, field: Int, value: [UInt8], limit: Int = 100) {
        self.kind = kind
        self.field = field
        self.value = value
        self.limit = limit
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(kind)
        writer.varint(field)
        writer.byteString(value)
        writer.varint(limit)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        kind = try reader.number()
        field = try reader.number()
        value = try reader.byteArray()
        limit = try reader.number(in: Find.limitRange)
        try reader.expectEnd()
    }
}

public struct Found: WireMessage {
    public static var type: MessageType { .found }

    /// These are all.
    public var isEnd: Bool
    /// In saved order.
    public var records: [StoredRecord]

    public init(isEnd: Bool, records: [StoredRecord]) {
        self.isEnd = isEnd
        self.records = records
    }

    public func encode(into writer: inout ByteWriter) {
        Found.encodeStart(isEnd: isEnd, recordCount: records.count, into: &writer)
        for record in records { record.encode(into: &writer) }
    }

    /// The fields before the records, which the caller appends.
    public static func encodeStart(isEnd: Bool, recordCount: Int, into writer: inout ByteWriter) {
        writer.u8(isEnd ? 1 : 0)
        writer.varint(recordCount)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        isEnd = try reader.flags(1) == 1
        records = try reader.list(ofAtLeast: StoredRecordView.byteCountMin) {
            (reader: inout ByteReader) throws(FormatError) in try StoredRecord(from: &reader)
        }
        try reader.expectEnd()
    }
}

// 05 GET and 85 RECORD.

import LarderFormat

public struct Get: WireMessage {
    public static var type: MessageType { .get }

    public var kind: Int
    /// The key fields' encoded values, one after the other.
    public var key: [UInt8]

    public init(kind: Int, key: [UInt8]) {
        self.kind = kind
        self.key = key
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(kind)
        writer.byteString(key)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        let view = try GetView(from: &reader)
        kind = view.kind
        key = Array(view.key)
    }
}

/// A GET read where it lies: nothing is allocated, `key` borrows the body.
@frozen
public struct GetView {
    public var kind: Int
    public var key: UnsafeRawBufferPointer

    @inlinable
    public init(from reader: inout ByteReader) throws(FormatError) {
        kind = try reader.number()
        key = try reader.bytes()
        try reader.expectEnd()
    }
}

/// The answer to GET.
public struct RecordReply: WireMessage {
    public static var type: MessageType { .record }

    public var stored: StoredRecord

    public init(_ stored: StoredRecord) { self.stored = stored }

    public func encode(into writer: inout ByteWriter) { stored.encode(into: &writer) }

    public init(from reader: inout ByteReader) throws(FormatError) {
        stored = try StoredRecord(from: &reader)
        try reader.expectEnd()
    }
}

// 08 CLEAR, 9E PROGRESS and 88 CLEARED.

import LarderFormat

public struct Clear: WireMessage {
    public static var type: MessageType { .clear }

    /// 0: all.
    public var kind: Int

    public init(kind: Int) { self.kind = kind }

    public func encode(into writer: inout ByteWriter) { writer.varint(kind) }

    public init(from reader: inout ByteReader) throws(FormatError) {
        kind = try reader.number()
        try reader.expectEnd()
    }
}

/// How far a long request is. Not final.
public struct Progress: WireMessage {
    public static var type: MessageType { .progress }

    public var done: Int
    public var total: Int

    public init(done: Int, total: Int) {
        self.done = done
        self.total = total
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(done)
        writer.varint(total)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        done = try reader.number()
        total = try reader.number()
        try reader.expectEnd()
    }
}

public struct Cleared: WireMessage {
    public static var type: MessageType { .cleared }

    public var deleted: Int
    /// Of the last entry.
    public var seq: UInt64

    public init(deleted: Int, seq: UInt64) {
        self.deleted = deleted
        self.seq = seq
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(deleted)
        writer.u64(seq)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        deleted = try reader.number()
        seq = try reader.u64()
        try reader.expectEnd()
    }
}

// 07 COUNT and 87 COUNTED.

import LarderFormat

public struct Count: WireMessage {
    public static var type: MessageType { .count }

    /// 0: all.
    public var kind: Int

    public init(kind: Int = 0) { self.kind = kind }

    public func encode(into writer: inout ByteWriter) { writer.varint(kind) }

    public init(from reader: inout ByteReader) throws(FormatError) {
        kind = try reader.number()
        try reader.expectEnd()
    }
}

/// How many records of a kind there are.
public struct KindCount: Hashable, Sendable {
    /// The fewest bytes one takes.
    static let byteCountMin = 2

    public var kind: Int
    public var count: Int

    public init(kind: Int, count: Int) {
        self.kind = kind
        self.count = count
    }

    func encode(into writer: inout ByteWriter) {
        writer.varint(kind)
        writer.varint(count)
    }

    init(from reader: inout ByteReader) throws(FormatError) {
        kind = try reader.number()
        count = try reader.number()
    }
}

public struct Counted: WireMessage {
    public static var type: MessageType { .counted }

    public var counts: [KindCount]

    public init(_ counts: [KindCount]) { self.counts = counts }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(counts.count)
        for count in counts { count.encode(into: &writer) }
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        counts = try reader.list(ofAtLeast: KindCount.byteCountMin) {
            (reader: inout ByteReader) throws(FormatError) in try KindCount(from: &reader)
        }
        try reader.expectEnd()
    }
}

// 07 COUNT and 87 COUNTED.

import LarderFormat

public struct Count: WireMessage {
    public static var type: MessageType { .count }

    /// 0: all.
    public var kind: Int
    /// Empty: every record. Not parsed.
    public var condition: String
    /// 0, or a field of the kind by whose values to count, which the host checks.
    public var group: Int

    public init(kind: Int = 0, condition: String = "", group: Int = 0) {
        self.kind = kind
        self.condition = condition
        self.group = group
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(kind)
        writer.text(condition)
        writer.varint(group)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        kind = try reader.number()
        condition = try reader.text()
        group = try reader.number()
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

/// How many records have a value.
///
///     u8 present · bytes value, empty where it is not · varint records
public struct GroupCount: Hashable, Sendable {
    /// The fewest bytes one takes.
    static let byteCountMin = 3

    /// In the field's encoding; a list's texts count one by one, each as a text. Nil: records without a value.
    public var value: [UInt8]?
    public var count: Int

    public init(_ value: [UInt8]?, count: Int) {
        self.value = value
        self.count = count
    }

    func encode(into writer: inout ByteWriter) {
        writer.u8(value == nil ? 0 : 1)
        writer.byteString(value ?? [])
        writer.varint(count)
    }

    init(from reader: inout ByteReader) throws(FormatError) {
        let isPresent = try reader.flags(1) == 1
        let at = reader.offset
        let bytes = try reader.byteArray()
        guard isPresent || bytes.isEmpty else { throw FormatError(.badStructure, at: at) }
        value = isPresent ? bytes : nil
        count = try reader.number()
    }
}

public struct Counted: WireMessage {
    public static var type: MessageType { .counted }

    public var counts: [KindCount]
    /// Most records first; empty where COUNT names no group.
    public var groups: [GroupCount]

    public init(_ counts: [KindCount], groups: [GroupCount] = []) {
        self.counts = counts
        self.groups = groups
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(counts.count)
        for count in counts { count.encode(into: &writer) }
        writer.varint(groups.count)
        for group in groups { group.encode(into: &writer) }
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        counts = try reader.list(ofAtLeast: KindCount.byteCountMin) {
            (reader: inout ByteReader) throws(FormatError) in try KindCount(from: &reader)
        }
        groups = try reader.list(ofAtLeast: GroupCount.byteCountMin) {
            (reader: inout ByteReader) throws(FormatError) in try GroupCount(from: &reader)
        }
        try reader.expectEnd()
    }
}

// 13 DEFINE and 93 DEFINED.

import LarderFormat

public struct Define: WireMessage {
    public static var type: MessageType { .define }

    public var declaration: KindDraft

    public init(_ declaration: KindDraft) { self.declaration = declaration }

    public func encode(into writer: inout ByteWriter) { declaration.encode(into: &writer) }

    public init(from reader: inout ByteReader) throws(FormatError) {
        declaration = try KindDraft(from: &reader)
        try reader.expectEnd()
    }
}

public struct Defined: WireMessage {
    public static var type: MessageType { .defined }

    /// The kind's.
    public var number: Int
    /// The kind's now.
    public var version: Int
    /// False: it was so already.
    public var isChanged: Bool

    public init(number: Int, version: Int, isChanged: Bool) {
        self.number = number
        self.version = version
        self.isChanged = isChanged
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(number)
        writer.varint(version)
        writer.u8(isChanged ? 1 : 0)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        number = try reader.number()
        version = try reader.number()
        isChanged = try reader.flags(1) == 1
        try reader.expectEnd()
    }
}

// 16 BEGIN_IMPORT and 96 IMPORT_BEGUN.

import LarderFormat

public struct BeginImport: WireMessage {
    public static var type: MessageType { .beginImport }
    public static let tokenByteCountRange = 0...64

    /// What is imported, for people: a file name, "trending".
    public var source: String
    /// Names this import so that it can be continued after a lost connection; or empty.
    public var token: String

    public init(source: String, token: String = "") {
        self.source = source
        self.token = token
    }

    public func encode(into writer: inout ByteWriter) {
        writer.text(source)
        writer.text(token)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        source = try reader.text()
        token = try reader.text(of: BeginImport.tokenByteCountRange)
        try reader.expectEnd()
    }
}

public struct ImportBegun: WireMessage {
    public static var type: MessageType { .importBegun }

    /// For the WRITEs of this import.
    public var origin: UInt64
    /// The highest batch number that is durable; 0: none.
    public var lastBatch: UInt64
    /// The token was known and had not ended.
    public var isResumed: Bool

    public init(origin: UInt64, lastBatch: UInt64 = 0, isResumed: Bool = false) {
        self.origin = origin
        self.lastBatch = lastBatch
        self.isResumed = isResumed
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(origin)
        writer.varint(lastBatch)
        writer.u8(isResumed ? 1 : 0)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        origin = try reader.varint()
        lastBatch = try reader.varint()
        isResumed = try reader.flags(1) == 1
        try reader.expectEnd()
    }
}

// 12 ORIGINS and 92 ORIGIN_LIST.

import LarderFormat

public struct Origins: WireMessage {
    public static var type: MessageType { .origins }
    public static let limitRange = 1...10_000

    /// Only numbers above it.
    public var after: UInt64
    /// 1 … 10,000.
    public var limit: Int

    public init(after: UInt64 = 0, limit: Int = 1_000) {
        self.after = after
        self.limit = limit
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(after)
        writer.varint(limit)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        after = try reader.varint()
        limit = try reader.number(in: Origins.limitRange)
        try reader.expectEnd()
    }
}

public struct OriginList: WireMessage {
    public static var type: MessageType { .originList }

    /// Who made changes, in which import.
    public struct Origin: Hashable, Sendable {
        public var number: UInt64
        public var name: String
        /// The import's, or empty.
        public var token: String
        /// When it was first seen, ms.
        public var time: Int64

        public init(number: UInt64, name: String, token: String, time: Int64) {
            self.number = number
            self.name = name
            self.token = token
            self.time = time
        }
    }

    public var origins: [Origin]

    public init(_ origins: [Origin]) { self.origins = origins }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(origins.count)
        for origin in origins {
            writer.varint(origin.number)
            writer.text(origin.name)
            writer.text(origin.token)
            writer.svarint(origin.time)
        }
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        origins = try reader.list(ofAtLeast: 4) { (reader: inout ByteReader) throws(FormatError) in
            Origin(
                number: try reader.varint(), name: try reader.text(), token: try reader.text(),
                time: try reader.svarint())
        }
        try reader.expectEnd()
    }
}

// 1C SEARCH and 9C MATCHES.

import LarderFormat

public struct Search: WireMessage {
    public static var type: MessageType { .search }
    public static let limitRange = 1...1_000
    public static let queryByteCountRange = 1...256

    /// 0: all.
    public var kind: Int
    /// 1 … 256 bytes, not blank.
    public var query: String
    /// Matches, 1 … 1,000; the host may send fewer.
    public var limit: Int
    /// Empty: the first page.
    public var token: [UInt8]

    public init(kind: Int = 0, query: String, limit: Int = 50, token: [UInt8] = []) {
        self.kind = kind
        self.query = query
        self.limit = limit
        self.token = token
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(kind)
        writer.text(query)
        writer.varint(limit)
        writer.byteString(token)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        kind = try reader.number()
        let at = reader.offset
        let bytes = try reader.textBytes()
        guard Search.queryByteCountRange.contains(bytes.count), !isBlank(bytes) else {
            reader.offset = at
            throw FormatError(.outOfRange, at: at)
        }
        query = String(decoding: bytes, as: UTF8.self)
        limit = try reader.number(in: Search.limitRange)
        token = try reader.byteArray()
        try reader.expectEnd()
    }
}

public struct Matches: WireMessage {
    public static var type: MessageType { .matches }

    /// A record that was found, and how well.
    public struct Match: Hashable, Sendable {
        /// The fewest bytes one takes.
        static let byteCountMin = 1 + StoredRecordView.byteCountMin

        /// 0 is the best; later versions may have more of them.
        public var rank: Int
        public var stored: StoredRecord

        public init(rank: Int, _ stored: StoredRecord) {
            self.rank = rank
            self.stored = stored
        }

        public func encode(into writer: inout ByteWriter) {
            writer.varint(rank)
            stored.encode(into: &writer)
        }

        init(from reader: inout ByteReader) throws(FormatError) {
            rank = try reader.number()
            stored = try StoredRecord(from: &reader)
        }
    }

    public var isEnd: Bool
    /// For the next page; empty at the end.
    public var token: [UInt8]
    /// The best first.
    public var matches: [Match]

    public init(isEnd: Bool, token: [UInt8], matches: [Match]) {
        self.isEnd = isEnd
        self.token = token
        self.matches = matches
    }

    public func encode(into writer: inout ByteWriter) {
        Page.encodeStart(isEnd: isEnd, token: token, recordCount: matches.count, into: &writer)
        for match in matches { match.encode(into: &writer) }
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        isEnd = try reader.flags(1) == 1
        token = try reader.byteArray()
        matches = try reader.list(ofAtLeast: Match.byteCountMin) {
            (reader: inout ByteReader) throws(FormatError) in try Match(from: &reader)
        }
        try reader.expectEnd()
    }
}

// 17 END_IMPORT and 97 IMPORT_ENDED.

import LarderFormat

/// How an import ended.
public enum ImportOutcome: UInt8, CaseIterable, Sendable {
    case complete = 1
    case failed = 2
    case cancelled = 3
}

/// What became of what an import read: `read` is the sum of the others.
public struct ImportCounts: Hashable, Sendable {
    public var read = 0
    public var created = 0
    public var updated = 0
    public var unchanged = 0
    public var duplicate = 0
    public var alreadySaved = 0
    public var skipped = 0
    public var refused = 0

    public init() {}

    func encode(into writer: inout ByteWriter) {
        for value in [read, created, updated, unchanged, duplicate, alreadySaved, skipped, refused] {
            writer.varint(value)
        }
    }

    init(from reader: inout ByteReader) throws(FormatError) {
        read = try reader.number()
        created = try reader.number()
        updated = try reader.number()
        unchanged = try reader.number()
        duplicate = try reader.number()
        alreadySaved = try reader.number()
        skipped = try reader.number()
        refused = try reader.number()
    }
}

public struct EndImport: WireMessage {
    public static var type: MessageType { .endImport }

    public var origin: UInt64
    public var outcome: ImportOutcome
    public var counts: ImportCounts

    public init(origin: UInt64, outcome: ImportOutcome, counts: ImportCounts) {
        self.origin = origin
        self.outcome = outcome
        self.counts = counts
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(origin)
        writer.u8(outcome.rawValue)
        counts.encode(into: &writer)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        origin = try reader.varint()
        outcome = try reader.choice(ImportOutcome.self)
        counts = try ImportCounts(from: &reader)
        try reader.expectEnd()
    }
}

public struct ImportEnded: WireMessage {
    public static var type: MessageType { .importEnded }

    /// Of the entry.
    public var seq: UInt64

    public init(seq: UInt64) { self.seq = seq }

    public func encode(into writer: inout ByteWriter) { writer.u64(seq) }

    public init(from reader: inout ByteReader) throws(FormatError) {
        seq = try reader.u64()
        try reader.expectEnd()
    }
}

// 1D HISTORY with 9D HISTORY_IS, 20 ENTRIES with A0 ENTRIES_ARE: entries of the log, one by one.

import LarderFormat

public struct History: WireMessage {
    public static var type: MessageType { .history }
    public static let limitRange = 1...1_000

    public var kind: Int
    /// The key fields' encoded values, one after the other.
    public var key: [UInt8]
    /// Entries, 1 … 1,000.
    public var limit: Int

    public init(kind: Int, key: [UInt8], limit: Int = 100) {
        self.kind = kind
        self.key = key
        self.limit = limit
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(kind)
        writer.byteString(key)
        writer.varint(limit)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        kind = try reader.number()
        key = try reader.byteArray()
        limit = try reader.number(in: History.limitRange)
        try reader.expectEnd()
    }
}

public struct Entries: WireMessage {
    public static var type: MessageType { .entries }
    public static let countRange = 1...1_000

    /// 1 … 1,000, in any order.
    public var seqs: [UInt64]

    public init(_ seqs: [UInt64]) { self.seqs = seqs }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(seqs.count)
        for seq in seqs { writer.varint(seq) }
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        let at = reader.offset
        let count = try reader.count(ofAtLeast: 1)
        guard Entries.countRange.contains(count) else {
            reader.offset = at
            throw FormatError(.outOfRange, at: at)
        }
        seqs = []
        for _ in 0..<count { seqs.append(try reader.varint()) }
        try reader.expectEnd()
    }
}

/// A run of one entry: the run's header as in EVENTS, then the whole entry as it lies in the log.
public struct EntryRun: Hashable, Sendable {
    /// Of the entry's commit: the entry counts its own seq from it.
    public var firstSeq: UInt64
    /// Of the commit, ms.
    public var time: Int64
    /// Its length field included. Not decoded and not checked.
    public var entry: [UInt8]

    public init(firstSeq: UInt64, time: Int64, entry: [UInt8]) {
        self.firstSeq = firstSeq
        self.time = time
        self.entry = entry
    }

    /// The entry's own; nil where its bytes are none of an entry.
    public var seq: UInt64? {
        entry.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard (try? reader.varint()) != nil, (try? reader.u8()) != nil, let difference = try? reader.varint() else {
                return nil
            }
            let (seq, isOver) = firstSeq.addingReportingOverflow(difference)
            return isOver ? nil : seq
        }
    }

    public func encode(into writer: inout ByteWriter) {
        RunHeader(firstSeq: firstSeq, time: time, entriesByteCount: entry.count).encode(into: &writer)
        writer.raw(entry)
    }

    init(from reader: inout ByteReader) throws(FormatError) {
        let at = reader.offset
        let run = try Run(from: &reader)
        var entries = run.entryBytes
        guard let first = try? entries.next(), first.count == run.entries.count else {
            reader.offset = at
            throw FormatError(.badStructure, at: at &+ RunHeader.byteCount)
        }
        firstSeq = run.header.firstSeq
        time = run.header.time
        entry = Array(first)
    }

    static func all(from reader: inout ByteReader) throws(FormatError) -> [EntryRun] {
        var runs: [EntryRun] = []
        while !reader.isAtEnd { runs.append(try EntryRun(from: &reader)) }
        return runs
    }
}

public struct HistoryIs: WireMessage {
    public static var type: MessageType { .historyIs }

    /// Newest first.
    public var runs: [EntryRun]

    public init(_ runs: [EntryRun]) { self.runs = runs }

    public func encode(into writer: inout ByteWriter) { for run in runs { run.encode(into: &writer) } }

    public init(from reader: inout ByteReader) throws(FormatError) { runs = try EntryRun.all(from: &reader) }
}

public struct EntriesAre: WireMessage {
    public static var type: MessageType { .entriesAre }

    /// In the order that was asked for.
    public var runs: [EntryRun]

    public init(_ runs: [EntryRun]) { self.runs = runs }

    public func encode(into writer: inout ByteWriter) { for run in runs { run.encode(into: &writer) } }

    public init(from reader: inout ByteReader) throws(FormatError) { runs = try EntryRun.all(from: &reader) }
}

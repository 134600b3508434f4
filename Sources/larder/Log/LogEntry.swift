// One entry of the log, held: what a command keeps of it when the frame that brought it is gone.

import LarderClient
import LarderFormat
import LarderWire

/// An entry with its commit's time. Its payload is its own.
struct LogEntry {
    let type: UInt8
    let seq: UInt64
    /// Of its commit, ms since 1970.
    let time: Int64
    let kind: Int
    let origin: UInt64
    /// Seq that first saved the record; 0 for entries that are of no record.
    let firstSeq: UInt64
    /// When the record was first saved, ms.
    let savedAt: Int64
    /// Seq of the entry that this one supersedes, or 0.
    let previousSeq: UInt64
    let changed: FieldSet
    /// A save of a key that was not in the library before it.
    let isNew: Bool
    /// The record of a save, the key of a deleted entry, else the whole body.
    let payload: [UInt8]

    var isSave: Bool { type == EntryType.created || type == EntryType.updated }
    var isDelete: Bool { type == EntryType.deleted }

    init(_ view: EntryView, time: Int64) {
        type = view.type
        seq = view.seq
        self.time = time
        kind = view.kind
        origin = view.origin
        firstSeq = view.firstSeq
        savedAt = view.savedAt
        previousSeq = view.previousSeq
        changed = view.changed
        isNew = view.isNewToLibrary
        payload = Array(view.payload)
    }

    /// nil for bytes that are no entry.
    init?(_ run: EntryRun) {
        let view = run.entry.withUnsafeBytes { bytes -> LogEntry? in
            guard let base = bytes.baseAddress,
                let view = try? readEntry(
                    base: base, offset: 0, end: bytes.count, commitFirstSeq: run.firstSeq, commitTime: run.time,
                    isVerified: false)
            else { return nil }
            return LogEntry(view, time: run.time)
        }
        guard let view else { return nil }
        self = view
    }

    /// The record of a save; nil where this version does not know all of its fields.
    func record(_ kind: Kind) -> Record? { isSave ? try? Record(decoding: payload, kind) : nil }

    /// The key of a save or a deleted entry.
    func key(_ kind: Kind) -> RecordKey? {
        payload.withUnsafeBytes { bytes in
            if isDelete { return try? RecordKey(decoding: bytes, kind) }
            guard isSave, let range = try? RecordSchema(kind).keyRange(ofChecked: bytes) else { return nil }
            return try? RecordKey(decoding: UnsafeRawBufferPointer(rebasing: bytes[range]), kind)
        }
    }
}

extension Session {
    /// What the log holds of a key, newest first.
    func history(_ key: RecordKey, limit: Int = 1_000) throws -> [LogEntry] {
        try attempt("asking for the history of \(key.text)") {
            try client.history(kind: key.kind.number, key: key.bytes, limit: limit)
        }.compactMap { LogEntry($0) }
    }

    /// Entries by their seqs; what the log does not hold is absent. Neighbours are read in one go.
    func entries(_ seqs: [UInt64]) throws -> [UInt64: LogEntry] {
        var found: [UInt64: LogEntry] = [:]
        var single: [UInt64] = []
        for cluster in SeqClusters.of(seqs) {
            guard cluster.count >= SeqClusters.countMin, let first = cluster.first, let last = cluster.last else {
                single += cluster
                continue
            }
            let wanted = Set(cluster)
            // What comes behind the last one is not waited for: a small window keeps that small.
            let reading = LogReading(client, windowByteCount: 131_072)
            try reading.forEach(after: first - 1, through: last) { entry, time in
                if wanted.contains(entry.seq) { found[entry.seq] = LogEntry(entry, time: time) }
                return true
            }
        }
        try readSingle(single, into: &found)
        return found
    }

    private func readSingle(_ seqs: [UInt64], into found: inout [UInt64: LogEntry]) throws {
        var left = seqs[...]
        while !left.isEmpty {
            let asked = Array(left.prefix(Entries.countRange.upperBound))
            let entries = try attempt("reading the log") { try client.entries(asked) }.compactMap { LogEntry($0) }
            for entry in entries { found[entry.seq] = entry }
            // A full frame leaves out the last ones; none at all means that all of these are gone.
            let last = entries.last.flatMap { entry in left.lastIndex(of: entry.seq) }
            let isWhole = entries.count == asked.count || entries.isEmpty
            left = isWhole ? left.dropFirst(asked.count) : left[((last ?? left.startIndex) + 1)...]
        }
    }
}

/// Seqs that lie so close together that the log is read through between them.
enum SeqClusters {
    /// Fewer are asked for one by one.
    static let countMin = 16
    private static let gapMax: UInt64 = 32

    /// Ascending, each seq once, 0 left out.
    static func of(_ seqs: [UInt64]) -> [[UInt64]] {
        var clusters: [[UInt64]] = []
        var current: [UInt64] = []
        for seq in seqs.sorted() where seq > 0 && seq != current.last {
            if let last = current.last, seq - last > gapMax {
                clusters.append(current)
                current = []
            }
            current.append(seq)
        }
        return current.isEmpty ? clusters : clusters + [current]
    }
}

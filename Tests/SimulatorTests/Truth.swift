// What is known of a library from outside: every batch that was sent, every entry that anybody was told of, every answer.

import LarderFormat
import LarderWire

/// A subscription as it went: what it covered and what came.
final class Span {
    let after: UInt64
    let filter: SpanFilter
    /// Up to here only what is current comes; 0: no snapshot.
    let s0: UInt64
    var through: UInt64
    var received: [UInt64] = []

    init(after: UInt64, filter: SpanFilter, s0: UInt64) {
        self.after = after
        self.filter = filter
        self.s0 = s0
        through = after
    }
}

/// What a subscription asks for.
struct SpanFilter {
    var types: EntryTypes
    var kinds: [Int]
    var exceptOrigin: UInt64

    func passes(_ entry: LogEntry) -> Bool {
        guard types.contains(entryType: entry.type) else { return false }
        guard let key = entry.key else { return true }
        if exceptOrigin != 0 && entry.origin == exceptOrigin { return false }
        return kinds.isEmpty || kinds.contains(key.kind)
    }
}

/// Something that must have held at one place of the log behind `knownSeq`.
struct Question {
    let knownSeq: UInt64
    let text: String
    let holds: (State) -> Bool
}

/// A record that an answer showed: it was current at some place behind `knownSeq`.
struct Shown {
    let knownSeq: UInt64
    let key: Key
    let stored: Stored
}

/// A listing that came to its end: what stayed all the time is in it.
struct Listing {
    let knownSeq: UInt64
    let kind: Int
    let firstSeqs: Set<UInt64>
}

/// A history: all entries of a key, newest first, up to a place behind `knownSeq`.
struct ToldHistory {
    let knownSeq: UInt64
    let key: Key
    let seqs: [UInt64]
}

/// A client's copy of the library, exact as of a seq.
struct Copy {
    let seq: UInt64
    let kinds: [Int]
    let records: [Key: CopiedRecord]
}

struct CopiedRecord: Equatable {
    var seq: UInt64
    var content: Content
}

final class Truth {
    private(set) var entries: [UInt64: LogEntry] = [:]
    /// Their seqs, as they were first told.
    private(set) var seqs: [UInt64] = [0]
    /// The highest seq that is known to be durable.
    private(set) var knownSeq: UInt64 = 0
    var epoch: UInt64?
    /// The library's floor is not above this: everything before was told.
    var floorMax: UInt64 = 1
    var tally = Tally()
    /// Records are large: frames of events are full before the library is told.
    var isHeavy = false
    private(set) var batches: [Batch] = []
    /// By the mark of a save: the batches that may have written it; a retried batch is there twice.
    private(set) var owners: [Int: [Batch]] = [:]
    var clears: [ClearRequest] = []
    var questions: [Question] = []
    var shown: [Shown] = []
    var listings: [Listing] = []
    var histories: [ToldHistory] = []
    var spans: [Span] = []
    var copies: [Copy] = []
    private(set) var markCount = 0
    /// The last entry of a key that was told of, for guesses.
    private(set) var latest: [Key: UInt64] = [:]
    /// Records that were there once, where they stood in the order of saving.
    private(set) var deleted: [(key: Key, firstSeq: UInt64, savedAt: Int64)] = []

    func newMark() -> Int {
        markCount += 1
        return markCount
    }

    func add(_ batch: Batch) {
        batches.append(batch)
        for operation in batch.operations where !operation.isDelete {
            if let mark = operation.content.mark { owners[mark, default: []].append(batch) }
        }
    }

    /// Whether a seq is one of those that a recovery has jumped over.
    func isJumpedOver(_ seq: UInt64) -> Bool {
        entries.values.contains { entry in
            guard entry.type == EntryType.recovered else { return false }
            return entry.payload.withUnsafeBytes { body in
                var reader = ByteReader(body)
                guard let from = try? reader.varint(), let through = try? reader.varint() else { return false }
                return seq >= from && seq <= through
            }
        }
    }

    func knows(_ seq: UInt64) { knownSeq = max(knownSeq, seq) }

    /// Takes in an entry that somebody was told of: it is durable, and the same for everybody for ever.
    func told(_ entry: LogEntry) throws {
        knows(entry.seq)
        if let before = entries[entry.seq] {
            guard before == entry else {
                throw Difference("seq \(entry.seq) was told as \(before), now as \(entry)")
            }
        } else {
            entries[entry.seq] = entry
            seqs.append(entry.seq)
            guard let key = entry.key else { return }
            latest[key] = max(latest[key] ?? 0, entry.seq)
            if entry.isSave { deleted.append((key, entry.firstSeq, entry.savedAt)) }
        }
    }

    /// Splits a run into its entries, whose checksums must be right.
    static func entries(of bytes: UnsafeRawBufferPointer, firstSeq: UInt64, time: Int64) throws -> [LogEntry] {
        guard let base = bytes.baseAddress else { return [] }
        var entries: [LogEntry] = []
        var at = 0
        while at < bytes.count {
            let view: EntryView
            do throws(FormatError) {
                view = try readEntry(
                    base: base, offset: at, end: bytes.count, commitFirstSeq: firstSeq, commitTime: time)
            } catch { throw Difference("an entry that was sent is none: \(error)") }
            at += view.byteCount
            var entry = LogEntry(type: view.type, seq: view.seq, time: time, payload: [])
            if entry.isOfRecord {
                entry.origin = view.origin
                entry.firstSeq = view.firstSeq
                entry.previousSeq = view.previousSeq
                entry.savedAt = view.savedAt
                if entry.isSave {
                    guard let (key, content) = Content.read(view.payload, kind: view.kind) else {
                        throw Difference("entry \(view.seq) holds no record of ours")
                    }
                    (entry.key, entry.content) = (key, content)
                } else {
                    guard let key = Key(kind: view.kind, bytes: view.payload) else {
                        throw Difference("entry \(view.seq) holds no key of ours")
                    }
                    entry.key = key
                }
            } else {
                entry.payload = Array(view.payload)
            }
            entries.append(entry)
        }
        return entries
    }
}

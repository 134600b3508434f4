// What a library holds at one place in its log, and what a batch must come to there (SPEC.md, 04 WRITE).

import LarderFormat
import LarderWire

/// An entry of the log, as events and histories tell it.
struct LogEntry: Equatable {
    var type: UInt8
    var seq: UInt64
    var time: Int64
    var origin: UInt64 = 0
    var key: Key?
    var content = Content()
    var firstSeq: UInt64 = 0
    var previousSeq: UInt64 = 0
    var savedAt: Int64 = 0
    /// Its bytes but for the place in its commit.
    var payload: [UInt8]

    var isSave: Bool { type == EntryType.created || type == EntryType.updated }
    var isOfRecord: Bool { isSave || type == EntryType.deleted }
}

extension LogEntry: CustomStringConvertible {
    var description: String {
        let names: [UInt8: String] = [1: "created", 2: "updated", 3: "deleted"]
        return
            "\(seq) \(names[type] ?? "type \(type)") \(key.map { "\($0)" } ?? "") mark \(content.mark ?? 0), first \(firstSeq), previous \(previousSeq)"
    }
}

struct Stored: Equatable {
    var seq: UInt64
    var firstSeq: UInt64
    var savedAt: Int64
    var origin: UInt64
    var content: Content
}

struct State {
    private(set) var records: [Key: Stored] = [:]
    private(set) var counts: [Int: Int] = [:]

    mutating func apply(_ entry: LogEntry) {
        guard let key = entry.key else { return }
        if entry.isSave {
            let stored = Stored(
                seq: entry.seq, firstSeq: entry.firstSeq, savedAt: entry.savedAt, origin: entry.origin,
                content: entry.content)
            if records.updateValue(stored, forKey: key) == nil { counts[key.kind, default: 0] += 1 }
        } else if entry.type == EntryType.deleted, records.removeValue(forKey: key) != nil {
            counts[key.kind, default: 0] -= 1
        }
    }

    /// In saved order.
    func list(kind: Int) -> [(key: Key, stored: Stored)] {
        records.filter { kind == 0 || $0.key.kind == kind }.map { (key: $0.key, stored: $0.value) }
            .sorted { $0.stored.firstSeq < $1.stored.firstSeq }
    }
}

/// What a batch must come to.
struct Prediction {
    struct Outcome {
        var outcome: WriteOutcome
        /// The answer's seq is one of these; nil: any.
        var seqs: Set<UInt64>?
        /// What makes an atomic batch fail.
        var error: ErrorNumber?
    }
    var outcomes: [Outcome] = []
    var entries: [LogEntry] = []
    /// The first operation that an atomic batch may not have.
    var failure: Int?
}

/// Decides a batch on a state.
struct Decider {
    private let state: State
    private let batch: Batch
    /// What the batch has changed; nil: deleted.
    private var changes: [Key: Stored?] = [:]
    /// The entries that it may have written: they tell the seqs and times of what it wrote.
    private let actual: ArraySlice<LogEntry>
    private var prediction = Prediction()

    init(_ batch: Batch, on state: State, actual: ArraySlice<LogEntry>) {
        self.batch = batch
        self.state = state
        self.actual = actual
    }

    static func predict(_ batch: Batch, on state: State, actual: ArraySlice<LogEntry> = []) -> Prediction {
        var decider = Decider(batch, on: state, actual: actual)
        for (at, operation) in batch.operations.enumerated() {
            let outcome = decider.decide(operation)
            decider.prediction.outcomes.append(outcome)
            switch outcome.outcome {
            case .refused, .alreadySaved, .notFound, .duplicate:
                if decider.prediction.failure == nil { decider.prediction.failure = at }
            default: break
            }
        }
        if batch.isDryRun || batch.isAtomic && decider.prediction.failure != nil { decider.prediction.entries = [] }
        return decider.prediction
    }

    private func stored(_ key: Key) -> Stored? { changes[key] ?? state.records[key] }

    private var nextSeq: UInt64 {
        let at = prediction.entries.count
        return at < actual.count ? actual[actual.startIndex + at].seq : UInt64(1 << 60) + UInt64(at)
    }

    private mutating func write(
        _ type: UInt8, _ key: Key, _ old: Stored?, _ content: Content = Content(), firstSeq: UInt64? = nil,
        savedAt: Int64? = nil
    ) {
        let seq = nextSeq
        let first = firstSeq ?? old?.firstSeq ?? seq
        let at = prediction.entries.count
        let time = at < actual.count ? actual[actual.startIndex + at].time : 0
        let saved = savedAt ?? old?.savedAt ?? time
        prediction.entries.append(
            LogEntry(
                type: type, seq: seq, time: 0, origin: batch.origin, key: key, content: content, firstSeq: first,
                previousSeq: old?.seq ?? 0, savedAt: saved, payload: []))
        changes[key] = .some(
            type == EntryType.deleted
                ? nil
                : Stored(
                    seq: seq, firstSeq: first, savedAt: saved, origin: batch.origin,
                    content: content))
    }

    private func outcome(_ outcome: WriteOutcome, _ seq: UInt64?, _ error: ErrorNumber? = nil) -> Prediction.Outcome {
        Prediction.Outcome(outcome: outcome, seqs: seq.map { [$0] }, error: error)
    }

    private mutating func decide(_ operation: Operation) -> Prediction.Outcome {
        let existing = stored(operation.key)
        var isMove = false
        var own: Set<Key> = [operation.key]
        if case .move(let from) = operation.action {
            isMove = true
            own.insert(from)
        }
        if !isMove, let ifSeq = operation.ifSeq, ifSeq != existing?.seq ?? 0 {
            return outcome(.refused, existing?.seq ?? 0, .conflict)
        }
        if operation.isDelete {
            guard let existing else { return outcome(.notFound, 0, .notFound) }
            write(EntryType.deleted, operation.key, existing)
            return outcome(.deleted, prediction.entries.last?.seq)
        }
        if operation.unlessExists, let price = operation.content.price {
            let holders = holders(of: price, kind: operation.key.kind, except: own)
            if !holders.isEmpty {
                return Prediction.Outcome(outcome: .alreadySaved, seqs: holders, error: .alreadySaved)
            }
        }
        switch operation.action {
        case .delete: return outcome(.notFound, 0)
        case .save(let mode): return save(operation, mode, existing)
        case .restore(let firstSeq, let savedAt):
            if let existing { return outcome(.alreadySaved, existing.seq, .alreadySaved) }
            if firstSeq >= nextSeq || isTaken(firstSeq) { return outcome(.refused, nil, .badRecord) }
            write(EntryType.updated, operation.key, nil, operation.content, firstSeq: firstSeq, savedAt: savedAt)
            return outcome(.created, prediction.entries.last?.seq)
        case .move(let from): return move(operation, from, existing)
        }
    }

    private func holders(of price: Int, kind: Int, except own: Set<Key>) -> Set<UInt64> {
        var seqs: Set<UInt64> = []
        for (key, stored) in state.records
        where changes.index(forKey: key) == nil && key.kind == kind && !own.contains(key) {
            if stored.content.price == price { seqs.insert(stored.seq) }
        }
        for (key, stored) in changes where key.kind == kind && !own.contains(key) {
            if let stored, stored.content.price == price { seqs.insert(stored.seq) }
        }
        return seqs
    }

    private func isTaken(_ firstSeq: UInt64) -> Bool {
        state.records.contains { changes.index(forKey: $0.key) == nil && $0.value.firstSeq == firstSeq }
            || changes.contains { $0.value?.firstSeq == firstSeq }
    }

    private mutating func save(_ operation: Operation, _ mode: SaveMode, _ existing: Stored?) -> Prediction.Outcome {
        guard let existing else {
            write(EntryType.created, operation.key, nil, operation.content)
            return outcome(.created, prediction.entries.last?.seq)
        }
        if batch.origin != 0 && existing.origin == batch.origin {
            return outcome(.duplicate, existing.seq, .alreadySaved)
        }
        if mode == .insert { return outcome(.alreadySaved, existing.seq, .alreadySaved) }
        let old = existing.content
        let sent = operation.content
        var result = sent
        switch mode {
        case .merge:
            result = Content(
                title: sent.title ?? old.title, mark: sent.mark ?? old.mark, price: sent.price ?? old.price)
        case .fill:
            result = Content(
                title: old.title ?? sent.title, mark: old.mark ?? sent.mark, price: old.price ?? sent.price)
        default: break
        }
        if result == old { return outcome(.unchanged, existing.seq) }
        write(EntryType.updated, operation.key, existing, result)
        return outcome(.updated, prediction.entries.last?.seq)
    }

    private mutating func move(_ operation: Operation, _ from: Key, _ there: Stored?) -> Prediction.Outcome {
        guard let old = stored(from) else { return outcome(.notFound, 0, .notFound) }
        if let ifSeq = operation.ifSeq, ifSeq != old.seq { return outcome(.refused, old.seq, .conflict) }
        let isSame = from == operation.key
        if let there, !isSame { return outcome(.alreadySaved, there.seq, .alreadySaved) }
        if isSame && old.content == operation.content { return outcome(.unchanged, old.seq) }
        if !isSame { write(EntryType.deleted, from, old) }
        write(EntryType.updated, operation.key, old, operation.content)
        return outcome(.updated, prediction.entries.last?.seq)
    }
}

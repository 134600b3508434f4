// Holds the whole log of a library against everything that is known of it: every entry must be somebody's, whole and once,
// and everything that anybody was told must be borne out by it.

import LarderFormat
import LarderWire

struct Verifier {
    private let truth: Truth
    private let log: [LogEntry]
    /// The entries of records alone.
    private let records: [LogEntry]
    private(set) var state = State()
    private var open: [Question]
    private var copies: [Copy]
    /// Of records that are there, by first seq: since when.
    private var presentSince: [UInt64: UInt64] = [:]
    /// Of an entry: the seq of the next of its key.
    private var successor: [UInt64: UInt64] = [:]
    private var entryBySeq: [UInt64: LogEntry] = [:]
    /// Seqs that answers name as those of what they wrote, and whose answers these are.
    private var claims: [UInt64: ObjectIdentifier] = [:]
    /// Origins of programs, as the log declares them.
    private var origins: [String: UInt64] = [:]

    /// - Parameter log: everything, ascending.
    init(_ truth: Truth, log: [LogEntry]) {
        self.truth = truth
        self.log = log
        records = log.filter(\.isOfRecord)
        open = truth.questions
        copies = truth.copies.sorted { $0.seq < $1.seq }
    }

    mutating func verify() throws {
        for batch in truth.batches { batch.isInLog = false }
        for clear in truth.clears { clear.isInLog = false }
        try checkTold()
        addClaims()
        addQuestions()
        var at = 0
        while at < records.count {
            let count = try attribute(at)
            for entry in records[at..<at + count] {
                try pass(before: entry.seq)
                state.apply(entry)
            }
            note(records[at..<at + count])
            at += count
        }
        try pass(before: UInt64.max)
        if let question = open.first {
            throw Difference("at no place behind \(question.knownSeq) holds: \(question.text)")
        }
        try checkAnswers()
        try checkShown()
        try checkSpans()
    }

    // MARK: Before the walk

    private mutating func checkTold() throws {
        var lastOfKey: [Key: UInt64] = [:]
        for entry in log {
            entryBySeq[entry.seq] = entry
            noteOrigin(entry)
            guard let key = entry.key else { continue }
            if let last = lastOfKey[key] { successor[last] = entry.seq }
            lastOfKey[key] = entry.seq
        }
        for entry in truth.entries.values where entryBySeq[entry.seq] != entry {
            let now = entryBySeq[entry.seq].map { "is now \($0)" } ?? "is not in the log"
            throw Difference("an entry that was told of, \(entry), \(now)")
        }
    }

    private mutating func noteOrigin(_ entry: LogEntry) {
        guard entry.type == EntryType.origin else { return }
        entry.payload.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard let number = try? reader.varint(), let name = try? reader.text(), (try? reader.text()) == "" else {
                return
            }
            origins[name] = number
        }
    }

    private mutating func addClaims() {
        for batch in truth.batches {
            guard case .written(let written) = batch.ending, writes(written), !batch.isDryRun else { continue }
            claims[written.seq] = ObjectIdentifier(batch)
            for result in written.results ?? [] where [.created, .updated, .deleted].contains(result.outcome) {
                claims[result.seq] = ObjectIdentifier(batch)
            }
        }
        for clear in truth.clears {
            if case .cleared(let deleted, let seq) = clear.ending, deleted > 0 {
                claims[seq] = ObjectIdentifier(clear)
            }
        }
    }

    /// Whether no other's answer speaks of these entries.
    private func isFree(_ at: Int, _ count: Int, for owner: AnyObject) -> Bool {
        records[at..<at + count].allSatisfy { claims[$0.seq] ?? ObjectIdentifier(owner) == ObjectIdentifier(owner) }
    }

    /// What answers without a change say of the state that they were decided on.
    private mutating func addQuestions() {
        for batch in truth.batches {
            switch batch.ending {
            case .written(let written) where batch.isDryRun || !writes(written):
                open.append(
                    Question(knownSeq: batch.knownSeq, text: "\(batch) → \(summary(written))") { state in
                        let prediction = Decider.predict(batch, on: state)
                        return (batch.isDryRun || prediction.entries.isEmpty) && agrees(written, prediction, batch)
                    })
            case .refused(let error) where error.place > 0:
                open.append(
                    Question(knownSeq: batch.knownSeq, text: "\(batch) → \(error)") { state in
                        let prediction = Decider.predict(batch, on: state)
                        guard let failure = prediction.failure, failure == error.place - 1 else { return false }
                        return prediction.outcomes[failure].error == error.number
                    })
            default: break
            }
        }
        for clear in truth.clears {
            if case .cleared(0, _) = clear.ending {
                open.append(
                    Question(knownSeq: clear.knownSeq, text: "a clear of kind \(clear.kind) finds nothing") {
                        $0.list(kind: clear.kind).isEmpty
                    })
            }
        }
    }

    // MARK: The walk

    /// Asks what is open at the present state, which is the last before `seq`.
    private mutating func pass(before seq: UInt64) throws {
        open.removeAll { $0.knownSeq < seq && $0.holds(state) }
        while let copy = copies.first, copy.seq < seq {
            copies.removeFirst()
            let list = state.list(kind: 0).filter { copy.kinds.isEmpty || copy.kinds.contains($0.key.kind) }
            let wanted = Dictionary(
                list.map { ($0.key, CopiedRecord(seq: $0.stored.seq, content: $0.stored.content)) },
                uniquingKeysWith: { first, _ in first })
            guard copy.records == wanted else {
                let missing = wanted.filter { copy.records[$0.key] != $0.value }.keys.sorted()
                let odd = copy.records.filter { wanted[$0.key] != $0.value }.keys.sorted()
                throw Difference("a snapshot as of \(copy.seq) lacks \(missing) and has \(odd)")
            }
        }
    }

    /// Finds whose the entries from `at` are; returns how many.
    private mutating func attribute(_ at: Int) throws -> Int {
        let entry = records[at]
        var candidates: [Batch]
        if entry.isSave {
            // A record that was filled keeps the mark that it had.
            candidates = truth.owners[entry.content.mark ?? 0] ?? []
            candidates += truth.batches.filter { batch in batch.operations.contains { fills($0, entry.key) } }
        } else {
            candidates = truth.batches.filter { batch in batch.operations.contains { deletes($0, entry.key) } }
        }
        var reasons = candidates.filter { !mayBeInLog($0) || $0.isInLog }.map { batch in
            "\(batch) ended as \(batch.ending)\(batch.isInLog ? " and is in the log before" : "")"
        }
        // What was known when it was made up, it has not written.
        candidates = candidates.filter { !$0.isInLog && mayBeInLog($0) && $0.knownSeq < entry.seq }
        var best: (count: Int, batch: Batch)?
        for batch in candidates {
            let prediction = Decider.predict(batch, on: state, actual: records[at...])
            let origin = batch.origin == 0 ? origins[batch.sender] : batch.origin
            guard !prediction.entries.isEmpty, matches(prediction.entries, at), records[at].origin == origin else {
                reasons.append("\(batch) \(firstDifference(prediction.entries, at))")
                continue
            }
            let end = at + prediction.entries.count
            if case .written(let written) = batch.ending,
                !agrees(written, prediction, batch) || !ends(written.seq, before: end)
            {
                reasons.append("\(batch) was answered \(summary(written)), must be \(prediction.outcomes)")
                continue
            }
            guard isFree(at, prediction.entries.count, for: batch) else { continue }
            if best.map({ isBetter(batch, prediction.entries.count, than: $0) }) ?? true {
                best = (prediction.entries.count, batch)
            }
        }
        let clear = entry.isSave ? nil : self.clear(at)
        if let clear, best.map({ isBetter(clear, than: $0) }) ?? true {
            clear.request.isInLog = true
            return clear.count
        }
        guard let best else {
            throw Difference(
                "entry \(entry) is nobody's; \(reasons.isEmpty ? "no batch can have it" : reasons.joined(separator: "; "))"
            )
        }
        best.batch.isInLog = true
        return best.count
    }

    private func clear(_ at: Int) -> (count: Int, request: ClearRequest)? {
        var best: (count: Int, request: ClearRequest)?
        for clear in truth.clears where !clear.isInLog && clear.knownSeq < records[at].seq {
            let list = state.list(kind: clear.kind)
            switch clear.ending {
            case .unknown: break
            case .cleared(let deleted, let seq) where deleted == list.count && isLast(seq, at + deleted - 1): break
            default: continue
            }
            guard !list.isEmpty, at + list.count <= records.count else { continue }
            // One that was answered goes before one that may have been done.
            guard list.count > best?.count ?? 0 || list.count == best?.count && isAnswered(clear) else { continue }
            let isAll = zip(list, records[at...]).allSatisfy { wanted, entry in
                entry.type == EntryType.deleted && entry.key == wanted.key && entry.firstSeq == wanted.stored.firstSeq
                    && entry.previousSeq == wanted.stored.seq && entry.origin == origins[clear.sender]
            }
            if isAll, isFree(at, list.count, for: clear) { best = (list.count, clear) }
        }
        return best
    }

    /// Whether the answer's seq is that of the last entry before `end`, or of the token that follows it.
    private func ends(_ seq: UInt64, before end: Int) -> Bool {
        seq >= records[end - 1].seq && (end == records.count || seq < records[end].seq)
    }

    private func isLast(_ seq: UInt64, _ at: Int) -> Bool { records.indices.contains(at) && records[at].seq == seq }

    private func isAnswered(_ clear: ClearRequest) -> Bool {
        if case .cleared = clear.ending { return true }
        return false
    }

    private func deletes(_ operation: Operation, _ key: Key?) -> Bool {
        switch operation.action {
        case .delete: operation.key == key
        case .move(let from): from == key
        default: false
        }
    }

    private func fills(_ operation: Operation, _ key: Key?) -> Bool {
        operation.action == .save(.fill) && operation.key == key
    }

    private func mayBeInLog(_ batch: Batch) -> Bool {
        if batch.isDryRun { return false }
        switch batch.ending {
        case .unknown: return true
        case .written(let written): return writes(written)
        case .refused, .cleared: return false
        }
    }

    /// One that was answered goes before one that may have been done, then the larger.
    private func isBetter(_ batch: Batch, _ count: Int, than other: (count: Int, batch: Batch)) -> Bool {
        isAnswered(batch) == isAnswered(other.batch) ? count > other.count : isAnswered(batch)
    }

    /// The longer one goes first, then what was answered, then what was sent first.
    private func isBetter(
        _ clear: (count: Int, request: ClearRequest), than other: (count: Int, batch: Batch)
    ) -> Bool {
        if clear.count != other.count { return clear.count > other.count }
        if isAnswered(clear.request) != isAnswered(other.batch) { return isAnswered(clear.request) }
        return clear.request.batchCount < other.batch.number
    }

    private func isAnswered(_ batch: Batch) -> Bool {
        if case .written = batch.ending { return true }
        return false
    }

    private func matches(_ wanted: [LogEntry], _ at: Int) -> Bool {
        at + wanted.count <= records.count && zip(wanted, records[at...]).allSatisfy { isSame($0, $1) }
    }

    private func firstDifference(_ wanted: [LogEntry], _ at: Int) -> String {
        guard let different = zip(wanted, records[at...]).first(where: { !isSame($0, $1) }) else {
            return wanted.isEmpty ? "would write nothing" : "would write more, \(wanted.last?.description ?? "")"
        }
        return "would write \(different.0) where the log has \(different.1)"
    }

    private func isSame(_ wanted: LogEntry, _ entry: LogEntry) -> Bool {
        entry.type == wanted.type && entry.key == wanted.key && entry.content == wanted.content
            && entry.firstSeq == wanted.firstSeq && entry.previousSeq == wanted.previousSeq
            && (entry.type != EntryType.updated || entry.savedAt == wanted.savedAt)
            && (wanted.origin == 0 || wanted.origin == entry.origin)
    }

    /// Notes since when records are there, by what one batch or clear did.
    private mutating func note(_ unit: ArraySlice<LogEntry>) {
        let present = Set(unit.map(\.firstSeq)).intersection(state.records.values.map(\.firstSeq))
        for entry in unit {
            if !present.contains(entry.firstSeq) {
                presentSince[entry.firstSeq] = nil
            } else if presentSince[entry.firstSeq] == nil {
                presentSince[entry.firstSeq] = entry.seq
            }
        }
    }

    // MARK: After the walk

    private func checkAnswers() throws {
        for batch in truth.batches {
            if case .unknown = batch.ending { truth.tally.count(batch.isInLog ? .unansweredKept : .unansweredLost) }
        }
        for batch in truth.batches where !batch.isInLog {
            if case .written(let written) = batch.ending, writes(written), !batch.isDryRun {
                throw Difference("\(batch) was answered \(summary(written)) and is not in the log")
            }
        }
        for clear in truth.clears where !clear.isInLog {
            if case .cleared(let deleted, let seq) = clear.ending, deleted > 0 {
                throw Difference(
                    "a clear of kind \(clear.kind) was answered (\(deleted), seq \(seq)) and is not in the log")
            }
        }
    }

    private func checkShown() throws {
        for shown in truth.shown {
            let entry = entryBySeq[shown.stored.seq]
            guard let entry, entry.isSave, entry.key == shown.key, entry.content == shown.stored.content,
                entry.firstSeq == shown.stored.firstSeq, entry.savedAt == shown.stored.savedAt,
                entry.origin == shown.stored.origin
            else {
                throw Difference(
                    "a record \(shown.key) of seq \(shown.stored.seq) was shown; the log has \(entry.map { "\($0)" } ?? "nothing") there"
                )
            }
            if let next = successor[entry.seq], next <= shown.knownSeq {
                throw Difference(
                    "\(entry) was shown to who asked after \(shown.knownSeq), though \(next) superseded it")
            }
        }
        for listing in truth.listings {
            for stored in state.list(kind: listing.kind) {
                guard let since = presentSince[stored.stored.firstSeq], since <= listing.knownSeq else { continue }
                if !listing.firstSeqs.contains(stored.stored.firstSeq) {
                    throw Difference(
                        "a listing begun after \(listing.knownSeq) lacks \(stored.key), there since \(since)")
                }
            }
        }
        for history in truth.histories {
            let all = log.filter { $0.key == history.key }.map(\.seq)
            let told = Array(history.seqs.reversed())
            let missing = Set(all).subtracting(told)
            // What is not told came later, or may have gone.
            let isGood = missing.allSatisfy {
                $0 < truth.floorMax || $0 > history.knownSeq && $0 > told.last ?? 0
            }
            guard isGood, Set(told).isSubset(of: all) else {
                throw Difference(
                    "the history of \(history.key) was told as \(told) after \(history.knownSeq), it is \(all)")
            }
        }
    }

    private func checkSpans() throws {
        for span in truth.spans {
            let start = max(span.after, span.s0)
            let wanted = log.filter { $0.seq > start && $0.seq <= span.through && span.filter.passes($0) }.map(\.seq)
            let received = span.received.filter { $0 > start }
            guard wanted == received else {
                let missing = wanted.filter { !received.contains($0) }
                throw Difference("a subscription from \(span.after) through \(span.through) lacks \(missing)")
            }
        }
    }
}

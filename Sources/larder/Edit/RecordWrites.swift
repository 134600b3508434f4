// A few operations by hand: sent as one batch, each with what became of it.

import LarderClient
import LarderFormat
import LarderWire

/// One operation of a command.
struct RecordWrite {
    enum Action {
        case save(record: [UInt8], mode: SaveMode)
        case delete
        /// Brings a record back to its old place in the order of saving.
        case restore(record: [UInt8], firstSeq: UInt64, savedAt: Int64)
        /// Gives the record at the key another one.
        case move(record: [UInt8])
    }

    var key: RecordKey
    var action: Action
    /// The entry that was seen; nil: whatever is there.
    var ifSeq: UInt64?
    var unlessExists: Int?
    /// Fields that become absent (merge).
    var unset: [Int] = []

    init(_ key: RecordKey, _ action: Action, ifSeq: UInt64? = nil, unlessExists: Int? = nil, unset: [Int] = []) {
        self.key = key
        self.action = action
        self.ifSeq = ifSeq
        self.unlessExists = unlessExists
        self.unset = unset
    }
}

/// What became of one operation.
struct RecordOutcome {
    var key: RecordKey
    var outcome: WriteOutcome
    var seq: UInt64
    var refusal: Written.Refusal?
    /// Said instead of the host's reason.
    var note = ""

    /// Whether what was asked for holds now.
    var isDone: Bool {
        switch outcome {
        case .created, .updated, .unchanged, .deleted: true
        case .duplicate, .alreadySaved, .notFound, .refused: false
        }
    }

    var isConflict: Bool { refusal?.number == .conflict }
    /// A restore whose place in the order of saving is another record's.
    var isFirstSeqTaken: Bool { outcome == .refused && !isConflict && refusal?.field == 0 }

    /// `created`, `already_saved`, …
    var name: String {
        switch outcome {
        case .created: "created"
        case .updated: "updated"
        case .unchanged: "unchanged"
        case .duplicate: "duplicate"
        case .alreadySaved: "already_saved"
        case .notFound: "not_found"
        case .deleted: "deleted"
        case .refused: isConflict ? "conflict" : "refused"
        }
    }

    /// Why not, with the field's name; "" where there is no more to say.
    var reason: String {
        if !note.isEmpty { return note }
        guard let refusal else { return "" }
        let field = key.kind.field(refusal.field).map { $0.name + ": " } ?? ""
        let why = refusal.reason.isEmpty ? refusal.number?.name ?? "error \(refusal.rawNumber)" : refusal.reason
        return why.hasPrefix(field) ? why : field + why
    }
}

/// Sends operations and tells their outcomes.
struct RecordWrites {
    let session: Session
    var isDryRun = false
    /// All or none.
    var isAtomic = false
    /// An import of one's own, or 0.
    var origin: UInt64 = 0

    /// Performs all of them in their order, in as many batches as it takes.
    ///
    /// - Throws: what refuses a batch as a whole.
    func perform(_ writes: [RecordWrite], _ what: String) throws -> [RecordOutcome] {
        var outcomes: [RecordOutcome] = []
        var builder = WriteBuilder(targetByteCount: session.client.limits.batchByteCountMax)
        var start = 0
        for (index, write) in writes.enumerated() {
            var added = append(write, &builder)
            if added == .isFull {
                guard !isAtomic else { throw tooMuch(what) }
                outcomes += try send(writes[start..<index], &builder, what)
                start = index
                added = append(write, &builder)
            }
            guard added == .appended else { throw Failure(what, "\(write.key.text) is too large for one message") }
        }
        if !builder.isEmpty { outcomes += try send(writes[start...], &builder, what) }
        return outcomes
    }

    private func tooMuch(_ what: String) -> Failure {
        Failure(
            what, "that is more than one batch can hold, so it can't be done as a whole", "do a part of it at a time")
    }

    private func append(_ write: RecordWrite, _ builder: inout WriteBuilder) -> WriteBuilder.Outcome {
        let kind = write.key.kind
        switch write.action {
        case .save(let record, let mode):
            return record.withUnsafeBytes {
                builder.save(
                    $0, kind: kind.number, known: kind.highestFieldNumber, mode: mode, isPersonal: true,
                    ifSeq: write.ifSeq, unlessExists: write.unlessExists, unset: mode == .merge ? write.unset : [])
            }
        case .delete:
            return write.key.bytes.withUnsafeBytes { builder.delete($0, kind: kind.number, ifSeq: write.ifSeq) }
        case .restore(let record, let firstSeq, let savedAt):
            return record.withUnsafeBytes {
                builder.restore(
                    $0, kind: kind.number, firstSeq: firstSeq, savedAt: savedAt, isPersonal: true, ifSeq: write.ifSeq)
            }
        case .move(let record):
            return write.key.bytes.withUnsafeBytes { old in
                record.withUnsafeBytes {
                    builder.move(
                        from: old, to: $0, kind: kind.number, known: kind.highestFieldNumber, isPersonal: true,
                        ifSeq: write.ifSeq)
                }
            }
        }
    }

    private func send(
        _ writes: ArraySlice<RecordWrite>, _ builder: inout WriteBuilder, _ what: String
    ) throws -> [RecordOutcome] {
        var flags: WriteFlags = [.results]
        if isDryRun { flags.insert(.dryRun) }
        if isAtomic { flags.insert(.atomic) }
        let written = try attempt(what) { try session.client.write(&builder, flags: flags, origin: origin) }
        let refusals = Dictionary(written.refusals.map { ($0.position, $0) }) { first, _ in first }
        let results = written.results ?? []
        guard results.count == writes.count else {
            throw Failure(what, "the host told \(results.count) results of \(writes.count) operations")
        }
        return zip(writes, results).enumerated().map { index, pair in
            RecordOutcome(key: pair.0.key, outcome: pair.1.outcome, seq: pair.1.seq, refusal: refusals[index])
        }
    }
}

/// Prints outcomes, one a line.
enum OutcomeReport {
    static func print(_ outcome: RecordOutcome, isDryRun: Bool, _ context: Context) {
        if context.isJSON {
            context.output.json {
                $0.member("key", outcome.key.text)
                $0.member("outcome", outcome.name)
                if isDryRun { $0.member("dry_run", true) }
                if outcome.seq > 0 { $0.member("seq", outcome.seq) }
                if !outcome.reason.isEmpty { $0.member("reason", outcome.reason) }
            }
            return
        }
        let words = outcome.name.split(separator: "_").joined(separator: " ")
        let reason = outcome.reason.isEmpty ? "" : ": " + DisplayText.visible(outcome.reason)
        let tense = isDryRun ? (outcome.isDone && outcome.outcome != .unchanged ? "would be " : "would end as ") : ""
        context.output.line("\(DisplayText.visible(outcome.key.text)): \(tense)\(words)\(reason)")
    }
}

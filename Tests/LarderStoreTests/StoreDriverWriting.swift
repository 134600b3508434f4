// Batches as several writers send them: put together and resolved at one time, staged at another.

import LarderFormat

@testable import LarderStore

/// What a batch came to.
struct Answer {
    var staged: Staged
    var outcomes: [Outcome]
    var seqs: [UInt64]
    var refusals: [Refusal]
    var madeKeys: [[UInt8]?]
    /// The commit that the answer waits for.
    var commit: UInt64 {
        switch staged {
        case .staged(let commit), .failed(let commit): commit
        default: 0
        }
    }
    var isFailed: Bool {
        if case .failed = staged { true } else { false }
    }
}

/// How a batch is sent.
struct Sending {
    var origin: UInt64 = 0
    var program = "test"
    var batchNumber: UInt64 = 0
    var isDryRun = false
    var isAtomic = false
}

/// A batch that was put together and is not staged yet.
final class PreparedBatch {
    let ops: [TestOp]
    let sending: Sending
    let batch: WriteBatch
    private let bytes: UnsafeMutableRawBufferPointer

    init(_ ops: [TestOp], _ sending: Sending, _ batch: WriteBatch, _ store: Store) {
        self.ops = ops
        self.sending = sending
        self.batch = batch
        let payloads = ops.map { ($0.payload, $0.action == .move ? $0.oldKey.bytes : []) }
        bytes = .allocate(byteCount: max(1, payloads.reduce(0) { $0 + $1.0.count + $1.1.count }), alignment: 1)
        batch.begin(
            origin: sending.origin, programName: sending.program, batchNumber: sending.batchNumber,
            isDryRun: sending.isDryRun, isAtomic: sending.isAtomic)
        var at = 0
        func piece(_ content: [UInt8]) -> UnsafeRawBufferPointer {
            let piece = UnsafeMutableRawBufferPointer(rebasing: bytes[at..<at + content.count])
            piece.copyBytes(from: content)
            at += content.count
            return UnsafeRawBufferPointer(piece)
        }
        for (op, (payload, oldKey)) in zip(ops, payloads) {
            var operation = WriteOperation(
                mode: op.mode, isPersonal: op.isPersonal, ifSeq: op.ifSeq, unset: FieldSet(op.unset), kind: op.kind,
                known: op.known, payload: piece(payload))
            operation.action = op.action
            operation.unlessExists = op.unlessExists
            operation.oldKey = piece(oldKey)
            operation.firstSeq = op.firstSeq
            operation.savedAt = op.savedAt
            store.add(operation, to: batch)
        }
    }

    deinit { bytes.deallocate() }
}

extension StoreDriver {
    /// Stages a batch, making room where there is none, and compares what became of each operation.
    @discardableResult
    func write(
        _ ops: [TestOp], origin: UInt64 = 0, program: String = "test", batchNumber: UInt64 = 0,
        isDryRun: Bool = false, isAtomic: Bool = false
    ) throws -> Answer {
        let sending = Sending(
            origin: origin, program: program, batchNumber: batchNumber, isDryRun: isDryRun, isAtomic: isAtomic)
        return try stage(prepare(ops, sending))
    }

    /// Puts a batch together; its operations are checked.
    func prepare(_ ops: [TestOp], _ sending: Sending = Sending()) -> PreparedBatch {
        PreparedBatch(ops, sending, spareBatches.popLast() ?? WriteBatch(), store)
    }

    /// Looks up what there is of its keys.
    func resolve(_ prepared: PreparedBatch) throws {
        for _ in 0..<100_000 {
            switch try store.resolve(prepared.batch) {
            case .ready: return
            case .again: continue
            case .cold(let cold):
                try read(cold)
                try store.keep(for: prepared.batch)
            }
        }
        throw Mismatch("a batch is never resolved")
    }

    /// Stages it, as often as it takes, and compares.
    @discardableResult
    func stage(_ prepared: PreparedBatch) throws -> Answer {
        let batch = prepared.batch
        defer { spareBatches.append(batch) }
        for _ in 0..<100_000 {
            try resolve(prepared)
            // A program's own origin takes a seq before its first change.
            let sending = prepared.sending
            let isNew = sending.origin == 0 && store.originNumber(name: sending.program) == nil
            let nextSeq = store.core.nextSeq + (isNew ? 1 : 0)
            switch try store.stage(batch, now: now) {
            case .full:
                finish()
                take()
            case .stale: continue
            case let staged:
                let answer = Answer(
                    staged: staged, outcomes: Array(batch.outcomes), seqs: Array(batch.seqs),
                    refusals: batch.refusals, madeKeys: prepared.ops.indices.map { batch.madeKey(at: $0) })
                switch staged {
                case .staged, .failed: try compare(prepared, answer, nextSeq: nextSeq)
                default: break
                }
                return answer
            }
        }
        throw Mismatch("a batch is never staged")
    }

    private func compare(_ prepared: PreparedBatch, _ answer: Answer, nextSeq: UInt64) throws {
        let (ops, sending) = (prepared.ops, prepared.sending)
        guard answer.outcomes.count == ops.count, answer.seqs.count == ops.count else {
            throw Mismatch("\(answer.outcomes.count) outcomes for \(ops.count) operations")
        }
        operationCount += ops.count
        let isKept = !answer.isFailed && !sending.isDryRun
        var writer = Writer(
            origin: sending.origin != 0 ? sending.origin : store.originNumber(name: sending.program) ?? 0,
            isImport: sending.origin != 0, nextSeq: nextSeq)
        let mark = model.mark
        var commitMin: UInt64 = 0
        var reason = ""
        for (at, sent) in ops.enumerated() {
            var op = sent
            if let made = answer.madeKeys[at], op.fields[1] == nil { op.fields[1] = made }
            let decision = model.decide(op, op.key, writer)
            let what = "operation \(at), \(op.action) \(op.mode) of \(op.key)"
            guard decision.outcome == answer.outcomes[at] else {
                throw Mismatch("\(what): \(answer.outcomes[at]), not \(decision.outcome); \(op)".prefixed)
            }
            if decision.commit > commitMin {
                commitMin = decision.commit
                reason = "\(what), \(decision.outcome)"
            }
            if decision.events.isEmpty {
                if let seqs = decision.seqs, !seqs.contains(answer.seqs[at]) {
                    throw Mismatch("\(what), \(decision.outcome): seq \(answer.seqs[at]), not of \(seqs)")
                }
                continue
            }
            let first = answer.seqs[at] &- UInt64(decision.events.count - 1)
            guard first > model.events.last?.seq ?? 0 else { throw Mismatch("seq \(first) does not ascend") }
            writer.nextSeq = answer.seqs[at] &+ 1
            for (offset, event) in decision.events.enumerated() {
                model.append(event, seq: first + UInt64(offset), time: now, commit: isKept ? answer.commit : 0)
            }
        }
        let mayFail = answer.outcomes.contains { [.refused, .alreadySaved, .notFound, .duplicate].contains($0) }
        guard answer.isFailed == (sending.isAtomic && mayFail) else {
            throw Mismatch("an atomic batch of \(answer.outcomes) came to \(answer.staged)")
        }
        let hasWritten = model.events.count > mark.eventCount
        if isKept { model.endBatch() } else { model.rollBack(to: mark) }
        if isKept && hasWritten && answer.commit == 0 { throw Mismatch("a change waits for no commit") }
        guard answer.commit >= commitMin else {
            throw Mismatch("an answer waits for commit \(answer.commit), and depends on \(commitMin): \(reason)")
        }
        if answer.commit != 0 && answer.commit <= store.lastFinishedCommit {
            throw Mismatch("an answer waits for the finished commit \(answer.commit)")
        }
        let refused = answer.outcomes.indices.filter { answer.outcomes[$0] == .refused }
        guard answer.refusals.map(\.position).sorted() == refused else {
            throw Mismatch("refusals are not those of the outcomes")
        }
    }
}

// Taking a part of the log back, record by record.

import LarderClient
import LarderFormat
import LarderWire

/// What an undo comes to for one record.
struct UndoRow {
    let action: UndoAction
    let key: RecordKey
    let label: String
    /// Names of the fields that change.
    let fields: [String]
    /// Why it is left alone; "" where it is not.
    var refusal = ""
    var seq: UInt64 = 0
}

struct UndoCounts: Equatable {
    var done: [UndoAction: Int] = [:]
    /// As it was before already.
    var unchanged = 0
    /// Left alone: changed since, or not to be had any more.
    var refused = 0
    /// Damaged parts of the log, of which nothing is known.
    var lost = 0

    var total: Int { done.values.reduce(0, +) + unchanged + refused }
}

/// Works in passes, so that memory stays small however long the log's part is. One thread.
final class UndoRun {
    /// Entries whose records are held in one pass.
    private static let passEntryCount: UInt64 = 262_144
    /// Records of one batch; each needs two entries at most.
    private static let batchCount = 4_000

    private let session: Session
    private let kinds: Kinds
    private let target: UndoTarget
    private let isForced: Bool
    private var writes: RecordWrites
    private let show: (UndoRow) -> Void
    private let isWanted: () -> Bool
    private(set) var counts = UndoCounts()

    /// - Parameters:
    ///   - isForced: what was changed since is taken back too.
    ///   - origin: of the undo; nil: a dry run.
    ///   - isWanted: asked between batches; false ends it.
    init(
        _ session: Session, _ target: UndoTarget, isForced: Bool, origin: UInt64?, isWanted: @escaping () -> Bool,
        _ show: @escaping (UndoRow) -> Void
    ) throws {
        self.session = session
        kinds = try session.kinds()
        self.target = target
        self.isForced = isForced
        writes = RecordWrites(session: session, isDryRun: origin == nil, origin: origin ?? 0)
        self.isWanted = isWanted
        self.show = show
    }

    /// What makes room goes first: a key or a place that another record took is needed by what comes back.
    func run() throws {
        let passCount = (target.through - target.from) / UndoRun.passEntryCount + 1
        var plan = UndoPlan()
        var bringsBack = false
        for pass in 0..<passCount {
            plan = try read(pass, passCount)
            try take(plan.steps(bringingBack: false))
            bringsBack = bringsBack || !plan.steps(bringingBack: true).isEmpty
        }
        guard bringsBack else { return }
        for pass in 0..<passCount {
            if passCount > 1 { plan = try read(pass, passCount) }
            try take(plan.steps(bringingBack: true))
        }
    }

    private func read(_ pass: UInt64, _ passCount: UInt64) throws -> UndoPlan {
        var plan = UndoPlan()
        guard isWanted() else { return plan }
        let reading = LogReading(session.client)
        let target = target
        try reading.forEach(after: target.from - 1, through: target.through) { entry, _ in
            if entry.firstSeq % passCount == pass, target.contains(entry) { plan.take(entry) }
            return true
        }
        counts.lost = max(counts.lost, reading.lost.count)
        return plan
    }

    private func take(_ steps: [RecordPassage]) throws {
        for start in stride(from: 0, to: steps.count, by: UndoRun.batchCount) {
            guard isWanted() else { return }
            try takeBatch(steps[start..<min(start + UndoRun.batchCount, steps.count)])
        }
    }

    private struct Step {
        var row: UndoRow
        let write: RecordWrite
        /// The version that comes back.
        let before: LogEntry?
        let isMixed: Bool
    }

    private func takeBatch(_ passages: ArraySlice<RecordPassage>) throws {
        let entries = try session.entries(
            passages.flatMap { passage in
                (passage.beforeSeq > 0 ? [passage.beforeSeq] : []) + (passage.isGone ? [] : [passage.lastSeq])
            })
        var steps: [Step] = []
        for passage in passages {
            if let step = step(passage, entries) {
                steps.append(step)
            } else {
                counts.refused += 1
                if let row = lostRow(passage, entries) { show(row) }
            }
        }
        var sent: [Step] = []
        for step in steps {
            if step.isMixed && !isForced {
                refuse(step.row, "others changed it in between")
            } else {
                sent.append(step)
            }
        }
        for (step, outcome) in zip(sent, try writes.perform(sent.map(\.write), "undoing")) {
            try settle(step, outcome)
        }
    }

    private func step(_ passage: RecordPassage, _ entries: [UInt64: LogEntry]) -> Step? {
        let before = passage.beforeSeq > 0 ? entries[passage.beforeSeq] : nil
        let last = passage.isGone ? nil : entries[passage.lastSeq]
        guard before != nil || passage.beforeSeq == 0, last != nil || passage.isGone else { return nil }
        guard let entry = last ?? before, let kind = kinds[entry.kind], let key = entry.key(kind) else { return nil }
        let (old, new) = (before?.record(kind), last?.record(kind))
        let label = (new ?? old)?.label(kind) ?? ""
        let action: UndoAction
        let write: RecordWrite
        switch (before, last) {
        case (let before?, let last?):
            let isSameKey = before.key(kind)?.bytes == key.bytes
            action = isSameKey ? .changeBack : .moveBack
            write = RecordWrite(
                key, isSameKey ? .save(record: before.payload, mode: .replace) : .move(record: before.payload),
                ifSeq: last.seq)
        case (let before?, nil):
            action = .bringBack
            write = RecordWrite(
                key, .restore(record: before.payload, firstSeq: before.firstSeq, savedAt: before.savedAt), ifSeq: 0)
        case (nil, _):
            action = .remove
            write = RecordWrite(key, .delete, ifSeq: passage.lastSeq)
        }
        var fields: [String] = []
        if let old, let new { fields = kind.fields.filter { old[$0.number] != new[$0.number] }.map(\.name) }
        return Step(
            row: UndoRow(action: action, key: key, label: label, fields: fields), write: write, before: before,
            isMixed: passage.isMixed)
    }

    /// The row of a record one of whose versions the log does not hold any more.
    private func lostRow(_ passage: RecordPassage, _ entries: [UInt64: LogEntry]) -> UndoRow? {
        guard let entry = entries[passage.lastSeq] ?? entries[passage.beforeSeq], let kind = kinds[entry.kind],
            let key = entry.key(kind)
        else { return nil }
        return UndoRow(
            action: passage.isGone ? .bringBack : .changeBack, key: key, label: entry.record(kind)?.label(kind) ?? "",
            fields: [], refusal: "the log does not hold its version before any more")
    }

    // MARK: Outcomes

    private func settle(_ step: Step, _ outcome: RecordOutcome) throws {
        if outcome.isDone {
            finish(step.row, outcome)
        } else if writes.isDryRun, step.row.action == .bringBack, outcome.isConflict, target.origin == 0,
            (target.from...target.through).contains(outcome.seq)
        {
            // The record that has its key is of this part too, and goes before.
            finish(step.row, nil)
        } else if isForced, outcome.isConflict || outcome.outcome == .notFound || outcome.outcome == .alreadySaved {
            try force(step)
        } else if outcome.isConflict || outcome.outcome == .notFound || outcome.outcome == .alreadySaved {
            refuse(step.row, "changed since")
        } else {
            refuse(step.row, outcome.reason.isEmpty ? outcome.name : outcome.reason)
        }
    }

    /// Takes a record back that was changed since: bound to what is there now.
    private func force(_ step: Step) throws {
        let key = step.write.key
        let current = try attempt("getting \(key.text)") {
            try session.client.get(kind: key.kind.number, key: key.bytes)
        }
        var write = step.write
        write.ifSeq = current?.header.seq ?? 0
        if let before = step.before {
            if current == nil {
                write = RecordWrite(
                    before.key(key.kind) ?? key,
                    .restore(record: before.payload, firstSeq: before.firstSeq, savedAt: before.savedAt), ifSeq: 0)
            } else if step.row.action == .bringBack {
                write.action = .save(record: before.payload, mode: .replace)
            }
        } else if current == nil {
            counts.unchanged += 1
            return
        }
        let outcome = try writes.perform([write], "undoing")[0]
        if outcome.isDone {
            finish(step.row, outcome)
        } else {
            refuse(step.row, outcome.reason.isEmpty ? outcome.name : outcome.reason)
        }
    }

    private func finish(_ row: UndoRow, _ outcome: RecordOutcome?) {
        if outcome?.outcome == .unchanged {
            counts.unchanged += 1
            return
        }
        counts.done[row.action, default: 0] += 1
        var row = row
        row.seq = outcome?.seq ?? 0
        show(row)
    }

    private func refuse(_ row: UndoRow, _ why: String) {
        counts.refused += 1
        var row = row
        row.refusal = why
        show(row)
    }
}

// What each operation must come to, by the rules of SPEC.md (04 WRITE), worked out on plain dictionaries.

import LarderFormat

@testable import LarderStore

/// What an operation must come to, and the entries that it must write.
struct Decision {
    var outcome: Outcome
    var events: [ModelEvent] = []
    /// Of what writes nothing: the answer names one of these seqs. Nil: any.
    var seqs: Set<UInt64>?
    /// The pending commit that the answer depends on; 0: none.
    var commit: UInt64 = 0

    init(_ outcome: Outcome, seq: UInt64? = nil) {
        self.outcome = outcome
        seqs = seq.map { [$0] }
    }
    init(_ outcome: Outcome, _ events: [ModelEvent]) {
        self.outcome = outcome
        self.events = events
    }
}

/// Who decides, and when.
struct Writer {
    var origin: UInt64
    var isImport: Bool
    /// The next seq when the operation is decided.
    var nextSeq: UInt64
}

extension Model {
    /// - Parameter key: of the record, with what the host made of it.
    func decide(_ op: TestOp, _ key: RecordKey, _ writer: Writer) -> Decision {
        var decision = decideAlone(op, key, writer)
        // What a refusal by the bytes alone depends on is nothing; else it is the keys that were looked at.
        guard !isRefusedAtOnce(op) else { return decision }
        var keys: Set<RecordKey> = [key]
        if op.action == .move { keys.insert(op.oldKey) }
        if !isKeyEnough(op, key) {
            for wanted in values(of: op.unlessExists, op.fields, op.schema) {
                for (other, _) in holders(op.kind, op.unlessExists, wanted, in: latest) { keys.insert(other) }
                for (other, _) in holders(op.kind, op.unlessExists, wanted, in: visible) { keys.insert(other) }
            }
        }
        if op.action == .restore, decision.outcome == .refused, !isConflict(op, key) {
            for (other, record) in latest where record.firstSeq == op.firstSeq { keys.insert(other) }
        }
        decision.commit = keys.compactMap { pendingCommits[$0] }.max() ?? 0
        return decision
    }

    /// Whether the operation is decided before the values of others are looked at.
    private func isKeyEnough(_ op: TestOp, _ key: RecordKey) -> Bool {
        if op.isDelete || op.unlessExists == 0 { return true }
        return op.action != .move && isConflict(op, key)
    }

    private func isConflict(_ op: TestOp, _ key: RecordKey) -> Bool {
        op.ifSeq.map { $0 != latest[key]?.seq ?? 0 } ?? false
    }

    private func isRefusedAtOnce(_ op: TestOp) -> Bool {
        if op.bad != nil || op.payload.count > recordByteCountMax { return true }
        if op.isDelete { return false }
        let isWhole = op.action != .save || op.mode == .insert || op.mode == .replace
        if isWhole, isMissingSome(op.fields, op.schema) { return true }
        if op.unlessExists != 0, op.schema.field(op.unlessExists)?.constraints.contains(.indexed) != true {
            return true
        }
        if op.action == .restore {
            return op.firstSeq == 0 || !timeRange.contains(op.savedAt)
        }
        return false
    }

    private func decideAlone(_ op: TestOp, _ key: RecordKey, _ writer: Writer) -> Decision {
        if isRefusedAtOnce(op) { return Decision(.refused) }
        let existing = latest[key]
        if op.action != .move, let ifSeq = op.ifSeq, ifSeq != existing?.seq ?? 0 { return Decision(.refused) }
        if op.isDelete {
            guard let existing else { return Decision(.notFound) }
            return Decision(.deleted, [Model.event(EntryType.deleted, key, existing, writer.origin, key.bytes)])
        }
        if op.unlessExists != 0 {
            let own = op.action == .move ? [key, op.oldKey] : [key]
            let seqs = values(of: op.unlessExists, op.fields, op.schema).flatMap { wanted in
                holders(op.kind, op.unlessExists, wanted, in: latest).filter { !own.contains($0.0) }.map(\.1)
            }
            if !seqs.isEmpty {
                var decision = Decision(.alreadySaved)
                decision.seqs = Set(seqs)
                return decision
            }
        }
        switch op.action {
        case .save, .delete: return save(op, key, existing, writer)
        case .restore: return restore(op, key, existing, writer)
        case .move: return move(op, key, existing, writer)
        }
    }

    private func save(_ op: TestOp, _ key: RecordKey, _ existing: ModelRecord?, _ writer: Writer) -> Decision {
        let personal = personalFields(op.schema)
        let offered = op.isPersonal ? op.fields : op.fields.filter { !personal.contains($0.key) }
        guard let existing else {
            if isMissingSome(offered, op.schema) { return Decision(.refused) }
            return Decision(
                .created, [Model.event(EntryType.created, key, nil, writer.origin, Encode.record(offered))])
        }
        if writer.isImport && existing.origin == writer.origin { return Decision(.duplicate, seq: existing.seq) }
        if op.mode == .insert { return Decision(.alreadySaved, seq: existing.seq) }
        var result = existing.fields
        switch op.mode {
        case .insert, .replace: result = replaced(existing.fields, op, known: op.known)
        case .merge:
            for field in op.unset
            where field > op.schema.keyFieldCount && (op.isPersonal || !personal.contains(field)) {
                result[field] = nil
            }
            result.merge(offered) { _, new in new }
        case .fill:
            result.merge(offered) { kept, _ in kept }
        }
        let changed = settle(&result, existing.fields, op.schema)
        if changed.isEmpty { return Decision(.unchanged, seq: existing.seq) }
        if isUnfit(result, op.schema) { return Decision(.refused) }
        return Decision(
            .updated,
            [
                Model.event(
                    EntryType.updated, key, existing, writer.origin, Encode.record(result), changed: changed)
            ])
    }

    private func restore(_ op: TestOp, _ key: RecordKey, _ existing: ModelRecord?, _ writer: Writer) -> Decision {
        if let existing { return Decision(.alreadySaved, seq: existing.seq) }
        if op.firstSeq >= writer.nextSeq { return Decision(.refused) }
        if latest.values.contains(where: { $0.firstSeq == op.firstSeq }) { return Decision(.refused) }
        var event = Model.event(
            EntryType.updated, key, nil, writer.origin, Encode.record(op.fields), changed: Set(op.fields.keys))
        event.firstSeq = op.firstSeq
        event.savedAt = op.savedAt
        return Decision(.created, [event])
    }

    private func move(_ op: TestOp, _ key: RecordKey, _ there: ModelRecord?, _ writer: Writer) -> Decision {
        guard let from = latest[op.oldKey] else { return Decision(.notFound) }
        if let ifSeq = op.ifSeq, ifSeq != from.seq { return Decision(.refused) }
        let isSame = key == op.oldKey
        if let there, !isSame { return Decision(.alreadySaved, seq: there.seq) }
        var result = replaced(from.fields, op, known: max(op.known, op.schema.keyFieldCount))
        let changed = settle(&result, from.fields, op.schema)
        if isSame && changed.isEmpty { return Decision(.unchanged, seq: from.seq) }
        if isUnfit(result, op.schema) { return Decision(.refused) }
        var events: [ModelEvent] = []
        if !isSame {
            events.append(Model.event(EntryType.deleted, op.oldKey, from, writer.origin, op.oldKey.bytes))
        }
        events.append(
            Model.event(EntryType.updated, key, from, writer.origin, Encode.record(result), changed: changed))
        return Decision(.updated, events)
    }

    private func personalFields(_ kind: Kind) -> Set<Int> {
        Set(kind.fields.filter { $0.constraints.contains(.personal) }.map(\.number))
    }

    private func replaced(_ old: Fields, _ op: TestOp, known: Int) -> Fields {
        let personal = personalFields(op.schema)
        var result = old.filter { $0.key > known || (!op.isPersonal && personal.contains($0.key)) }
        result.merge(op.isPersonal ? op.fields : op.fields.filter { !personal.contains($0.key) }) { kept, _ in kept }
        return result
    }

    /// Leaves what is equal as it was; returns what changes.
    private func settle(_ result: inout Fields, _ old: Fields, _ kind: Kind) -> Set<Int> {
        var changed: Set<Int> = []
        for field in Set(result.keys).union(old.keys) {
            if isSame(old[field], result[field], kind.field(field)?.type) {
                result[field] = old[field]
            } else {
                changed.insert(field)
            }
        }
        return changed
    }

    private func isUnfit(_ fields: Fields, _ kind: Kind) -> Bool {
        isMissingSome(fields, kind) || Encode.record(fields).count > recordByteCountMax
    }

    private func isMissingSome(_ fields: Fields, _ kind: Kind) -> Bool {
        kind.fields.contains { field in
            guard field.constraints.contains(.required), fields[field.number] == nil else { return false }
            // A uuid key that is absent is made.
            return !(kind.keyIsOneUUID && field.number == 1)
        }
    }

    /// Texts are the same when their normalised forms are, which is what equality of String is.
    private func isSame(_ a: [UInt8]?, _ b: [UInt8]?, _ type: FieldType?) -> Bool {
        guard let a, let b, a != b, type == .text || type == .list else { return a == b }
        return ModelText.texts(a, isList: type == .list) == ModelText.texts(b, isList: type == .list)
    }
}

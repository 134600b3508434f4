// What a library must hold and tell: a dictionary, and the list of all that happened.

import LarderFormat

@testable import LarderStore

struct ModelRecord: Equatable {
    var seq: UInt64
    var firstSeq: UInt64
    var savedAt: Int64
    var changedAt: Int64
    var origin: UInt64
    var fields: Fields
}

/// An entry that a subscriber must be given.
struct ModelEvent: Equatable {
    var type: UInt8
    var key: RecordKey
    var seq: UInt64
    var firstSeq: UInt64
    var previousSeq: UInt64
    var savedAt: Int64
    var time: Int64
    var origin: UInt64
    var changed: Set<Int>
    /// The record, or the key of a delete.
    var payload: [UInt8]
    /// The commit that it waits for. Not compared.
    var commit: UInt64
}

/// A plain twin of the store. `latest` is what staging sees; `visible` is what is durable.
struct Model {
    private(set) var latest: [RecordKey: ModelRecord] = [:]
    private(set) var visible: [RecordKey: ModelRecord] = [:]
    private(set) var events: [ModelEvent] = []
    private(set) var visibleEventCount = 0
    /// Counts of events after which no batch is cut in two.
    private(set) var batchEnds: [Int] = [0]

    var visibleEvents: ArraySlice<ModelEvent> { events[..<visibleEventCount] }

    func visible(kind: Int) -> [(RecordKey, ModelRecord)] {
        visible.filter { kind == 0 || $0.key.kind == kind }.sorted { $0.value.firstSeq < $1.value.firstSeq }
            .map { ($0.key, $0.value) }
    }

    /// Makes visible what waits for commits up to this.
    mutating func finish(commit: UInt64) {
        while visibleEventCount < events.count, events[visibleEventCount].commit <= commit {
            Model.apply(events[visibleEventCount], to: &visible)
            visibleEventCount += 1
        }
    }

    mutating func endBatch() {
        if batchEnds.last != events.count { batchEnds.append(events.count) }
    }

    /// Takes what a reopened store holds: some of the events, at the end of a batch.
    mutating func keep(eventCount: Int) {
        while visibleEventCount < eventCount {
            Model.apply(events[visibleEventCount], to: &visible)
            visibleEventCount += 1
        }
        rollBack()
    }

    /// Forgets what is not visible: the batches that were not answered are gone.
    mutating func rollBack() {
        events.removeLast(events.count - visibleEventCount)
        batchEnds.removeAll { $0 > events.count }
        latest = visible
    }

    /// What an operation must come to, and the entry that it must write.
    func decide(_ op: TestOp, _ key: RecordKey, origin: UInt64, isImport: Bool) -> (Outcome, ModelEvent?) {
        if op.bad != nil || op.payload.count > recordByteCountMax { return (.refused, nil) }
        if !op.isDelete, op.mode == .insert || op.mode == .replace, isMissingSome(op.fields, op.schema) {
            return (.refused, nil)
        }
        let existing = latest[key]
        if let ifSeq = op.ifSeq, ifSeq != existing?.seq ?? 0 { return (.refused, nil) }
        if op.isDelete {
            guard let existing else { return (.notFound, nil) }
            return (.deleted, event(EntryType.deleted, key, existing, origin, changed: [], key.bytes))
        }
        let kind = op.schema
        let personal = Set(kind.fields.filter { $0.constraints.contains(.personal) }.map(\.number))
        let offered = op.isPersonal ? op.fields : op.fields.filter { !personal.contains($0.key) }
        guard let existing else {
            if isMissingSome(offered, kind) { return (.refused, nil) }
            return (.created, event(EntryType.created, key, nil, origin, changed: [], Encode.record(offered)))
        }
        if isImport && existing.origin == origin { return (.duplicate, nil) }
        if op.mode == .insert { return (.alreadySaved, nil) }
        var result = existing.fields
        switch op.mode {
        case .insert, .replace:
            result = result.filter { $0.key > op.known || (!op.isPersonal && personal.contains($0.key)) }
            result.merge(offered) { kept, _ in kept }
        case .merge:
            for field in op.unset where field > kind.keyFieldCount && (op.isPersonal || !personal.contains(field)) {
                result[field] = nil
            }
            result.merge(offered) { _, new in new }
        case .fill:
            result.merge(offered) { kept, _ in kept }
        }
        var changed: Set<Int> = []
        for field in Set(result.keys).union(existing.fields.keys) {
            if isSame(existing.fields[field], result[field], kind.field(field)?.type) {
                result[field] = existing.fields[field]
            } else {
                changed.insert(field)
            }
        }
        if changed.isEmpty { return (.unchanged, nil) }
        if isMissingSome(result, kind) || Encode.record(result).count > recordByteCountMax { return (.refused, nil) }
        return (.updated, event(EntryType.updated, key, existing, origin, changed: changed, Encode.record(result)))
    }

    private func isMissingSome(_ fields: Fields, _ kind: Kind) -> Bool {
        kind.fields.contains { $0.constraints.contains(.required) && fields[$0.number] == nil }
    }

    private func isSame(_ a: [UInt8]?, _ b: [UInt8]?, _ type: FieldType?) -> Bool {
        guard let a, let b, a != b, type == .text else { return a == b }
        // Equality of String is that of its normalised form. The byte counts in front differ in length alike.
        func text(_ bytes: [UInt8]) -> String {
            bytes.withUnsafeBytes { raw in
                var reader = ByteReader(raw)
                return (try? reader.text()) ?? ""
            }
        }
        return text(a) == text(b)
    }

    private func event(
        _ type: UInt8, _ key: RecordKey, _ existing: ModelRecord?, _ origin: UInt64, changed: Set<Int>,
        _ payload: [UInt8]
    ) -> ModelEvent {
        ModelEvent(
            type: type, key: key, seq: 0, firstSeq: existing?.firstSeq ?? 0, previousSeq: existing?.seq ?? 0,
            savedAt: existing?.savedAt ?? 0, time: 0, origin: origin, changed: changed, payload: payload, commit: 0)
    }

    /// Takes in an entry, with the seq, time and commit that the store gave it.
    mutating func append(_ event: ModelEvent, seq: UInt64, time: Int64, commit: UInt64) {
        var event = event
        event.seq = seq
        event.time = time
        event.commit = commit
        if event.type == EntryType.created {
            event.firstSeq = seq
            event.savedAt = time
        }
        if event.type == EntryType.deleted { event.savedAt = time }
        events.append(event)
        Model.apply(event, to: &latest)
    }

    private static func apply(_ event: ModelEvent, to records: inout [RecordKey: ModelRecord]) {
        if event.type == EntryType.deleted {
            records[event.key] = nil
        } else {
            records[event.key] = ModelRecord(
                seq: event.seq, firstSeq: event.firstSeq, savedAt: event.savedAt, changedAt: event.time,
                origin: event.origin, fields: Model.fields(event.payload, event.key.kind))
        }
    }

    /// The fields of a record, split by the schema.
    static func fields(_ record: [UInt8], _ kind: Int) -> Fields {
        guard let schema = TestKinds.schemas[kind] else { return [:] }
        var ranges: [Range<Int>] = []
        return record.withUnsafeBytes { raw in
            guard var present = try? schema.fieldRanges(ofChecked: raw, into: &ranges) else { return [:] }
            var fields: Fields = [:]
            while let field = present.popFirst() { fields[field] = Array(record[ranges[field]]) }
            return fields
        }
    }

    /// Entries of a clear, in saved order.
    func clearEvents(kind: Int, origin: UInt64) -> [ModelEvent] {
        latest.filter { kind == 0 || $0.key.kind == kind }.sorted { $0.value.firstSeq < $1.value.firstSeq }
            .map { event(EntryType.deleted, $0.key, $0.value, origin, changed: [], $0.key.bytes) }
    }
}

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
    /// Of keys with a change that is not durable: the commit of the last.
    private(set) var pendingCommits: [RecordKey: UInt64] = [:]

    /// Versions that were superseded below this may be gone.
    var historySeq: UInt64 = 0
    /// Keys whose entries up to a seq may be gone.
    var purged: [RecordKey: UInt64] = [:]
    /// What superseded an entry.
    var superseders: [UInt64: UInt64] = [:]

    func isVisible(_ at: Int) -> Bool { at < visibleEventCount }

    /// Events that compaction took, in order: who was given them before has them still.
    private(set) var gone: [ModelEvent] = []

    /// All that ever became visible behind a seq, in order.
    func told(after seq: UInt64) -> [ModelEvent] {
        let visible = Array(visibleEvents.reversed().prefix { $0.seq > seq }.reversed())
        let lost = gone.reversed().prefix { $0.seq > seq }.reversed()
        return lost.isEmpty ? visible : (lost + visible).sorted { $0.seq < $1.seq }
    }

    /// Takes the events that are left. They have to come to the same records.
    mutating func take(_ kept: [ModelEvent], _ keptBefore: [Int]) {
        visibleEventCount = keptBefore[visibleEventCount]
        batchEnds = batchEnds.map { keptBefore[$0] }
        let seqs = Set(kept.map(\.seq))
        gone = (gone + events.filter { !seqs.contains($0.seq) }).sorted { $0.seq < $1.seq }
        events = kept
    }

    /// The records that the visible events come to, read from the first.
    var replayed: [RecordKey: ModelRecord] {
        var records: [RecordKey: ModelRecord] = [:]
        for event in visibleEvents { Model.apply(event, to: &records) }
        return records
    }

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
        pendingCommits = pendingCommits.filter { $0.value > commit }
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
        pendingCommits = [:]
    }

    /// Where the model stood before a batch that leaves nothing.
    struct Mark {
        let eventCount: Int
        let latest: [RecordKey: ModelRecord]
    }

    var mark: Mark { Mark(eventCount: events.count, latest: latest) }

    mutating func rollBack(to mark: Mark) {
        events.removeLast(events.count - mark.eventCount)
        latest = mark.latest
    }

    /// Takes in an entry, with the seq, time and commit that the store gave it; commit 0: of a batch that leaves nothing.
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
        if commit != 0 { pendingCommits[event.key] = commit }
    }

    static func event(
        _ type: UInt8, _ key: RecordKey, _ existing: ModelRecord?, _ origin: UInt64, _ payload: [UInt8],
        changed: Set<Int> = []
    ) -> ModelEvent {
        ModelEvent(
            type: type, key: key, seq: 0, firstSeq: existing?.firstSeq ?? 0, previousSeq: existing?.seq ?? 0,
            savedAt: existing?.savedAt ?? 0, time: 0, origin: origin, changed: changed, payload: payload, commit: 0)
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
            .map { Model.event(EntryType.deleted, $0.key, $0.value, origin, $0.key.bytes) }
    }
}

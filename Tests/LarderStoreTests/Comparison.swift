// Holds what a store shows against its model.

import LarderFormat

@testable import LarderStore

extension StoreDriver {
    func get(_ key: RecordKey) throws -> ModelRecord? {
        while true {
            let result = try key.bytes.withUnsafeBytes { try store.get(kind: key.kind, key: $0) }
            switch result {
            case .missing: return nil
            case .cold(let cold): try read(cold)
            case .found(let record): return StoreDriver.modelRecord(record)
            }
        }
    }

    static func modelRecord(_ record: StoredRecord) -> ModelRecord {
        ModelRecord(
            seq: record.seq, firstSeq: record.firstSeq, savedAt: record.savedAt, changedAt: record.changedAt,
            origin: record.origin, fields: Model.fields(Array(record.record), record.kind))
    }

    /// Compares every key, the counts, and lists in both directions.
    func compareAll(_ keys: some Sequence<RecordKey>, pageLimit: Int = 7) throws {
        for key in Set(keys).union(model.visible.keys) {
            let found = try get(key)
            guard found == model.visible[key] else {
                throw Mismatch("\(key) is \(String(describing: found)), not \(String(describing: model.visible[key]))")
            }
        }
        for kind in [0] + TestKinds.all.map(\.number) {
            let expected = model.visible(kind: kind).map(\.1)
            let count = store.counts(kind: kind).reduce(0) { $0 + $1.count }
            guard count == expected.count else { throw Mismatch("kind \(kind): count \(count), not \(expected.count)") }
            for isReverse in [false, true] {
                let listed = try list(kind: kind, isReverse: isReverse, pageLimit: pageLimit)
                guard listed == (isReverse ? expected.reversed() : expected) else {
                    throw Mismatch(
                        "kind \(kind), reverse \(isReverse): the list has \(listed.count) of \(expected.count), or others"
                    )
                }
            }
        }
    }

    /// Compares what readers see of the keys of the operations.
    func compareVisible() throws { try compareAll(OperationSource.keys) }

    func list(kind: Int, isReverse: Bool, pageLimit: Int) throws -> [ModelRecord] {
        var all: [ModelRecord] = []
        var token: PageToken?
        for _ in 0..<1_000_000 {
            let (page, next) = try page(kind: kind, isReverse: isReverse, limit: pageLimit, after: token)
            all += page
            guard let next else { return all }
            token = next
            if all.count > 10 * model.visible.count + 100 { break }
        }
        throw Mismatch("a list does not end")
    }

    /// One page, and where the next begins; nil at the end.
    func page(kind: Int, isReverse: Bool, limit: Int, after: PageToken?) throws -> ([ModelRecord], PageToken?) {
        var cursor = PageCursor(kind: kind, isReverse: isReverse, limit: limit, byteLimit: 1 << 20, after: after)
        var page: [ModelRecord] = []
        while true {
            switch try store.page(&cursor, { page.append(StoreDriver.modelRecord($0)) }) {
            case .cold(let cold): try read(cold)
            case .done(let isEnd):
                guard !isEnd else { return (page, nil) }
                guard let last = page.last else { throw Mismatch("an empty page that is not the last") }
                return (page, PageToken(epoch: store.epoch, kind: kind, isReverse: isReverse, firstSeq: last.firstSeq))
            }
        }
    }
}

/// A subscriber, with all that it was given.
struct Subscriber {
    var cursor: LogCursor
    let filter: EntryFilter
    /// Where it began, and up to where a snapshot replaces the history.
    let startSeq: UInt64
    let snapshotSeq: UInt64
    var received: [ModelEvent] = []
    private var comparedSeq: UInt64 = 0
    private var comparedCount = 0
    var lost: [(after: UInt64, through: UInt64)] = []

    init(_ store: Store, after seq: UInt64, snapshotSeq: UInt64 = 0, _ filter: EntryFilter = EntryFilter(types: 3)) {
        cursor = store.cursor(after: seq, snapshotSeq: snapshotSeq)
        self.filter = filter
        startSeq = seq
        self.snapshotSeq = snapshotSeq
    }

    /// One that goes on in another store.
    init(_ store: Store, resuming seq: UInt64, after startSeq: UInt64, snapshotSeq: UInt64, _ filter: EntryFilter) {
        self.init(store, after: startSeq, snapshotSeq: snapshotSeq, filter)
        cursor = store.cursor(after: seq, snapshotSeq: snapshotSeq)
    }

    /// The same place in a store that was opened again.
    mutating func reconnect(_ store: Store) { cursor = store.cursor(after: cursor.seq, snapshotSeq: snapshotSeq) }

    /// From here on it has to be told everything.
    var boundSeq: UInt64 { max(cursor.seq, snapshotSeq) }

    /// One call of the store; true when the end was reached.
    mutating func step(_ driver: StoreDriver, budget: Int) throws -> Bool {
        var runs: [EventRun] = []
        let step = try driver.store.stream(&cursor, filter, byteBudget: budget, into: &runs)
        let countBefore = received.count
        for run in runs { try take(run) }
        if case .more = step, received.count == countBefore, budget <= 0 { throw Mismatch("no budget") }
        switch step {
        case .more: return false
        case .end: return true
        case .lost(let after, let through):
            lost.append((after, through))
            return false
        case .cold(let cold):
            try driver.read(cold)
            return false
        }
    }

    mutating func readToEnd(_ driver: StoreDriver, budget: Int = 50_000) throws {
        for _ in 0..<1_000_000 where try step(driver, budget: budget) { return }
        throw Mismatch("the stream does not end")
    }

    private mutating func take(_ run: EventRun) throws {
        guard let base = run.bytes.baseAddress else { return }
        var at = 0
        while at < run.bytes.count {
            let entry: EntryView
            do {
                entry = try readEntry(
                    base: base, offset: at, end: run.bytes.count, commitFirstSeq: run.firstSeq, commitTime: run.time)
            } catch {
                throw Mismatch(
                    "at \(at) of a run of \(run.bytes.count) bytes of \(run.firstSeq): \(error), cursor \(cursor)")
            }
            at += entry.byteCount
            guard entry.type <= EntryType.deleted else { continue }
            guard entry.seq > received.last?.seq ?? startSeq else { throw Mismatch("seq \(entry.seq) comes again") }
            guard let schema = driverSchema(entry.kind) else { throw Mismatch("kind \(entry.kind)") }
            let isDelete = entry.type == EntryType.deleted
            let key =
                isDelete ? Array(entry.payload) : Array(entry.payload[try schema.keyRange(ofChecked: entry.payload)])
            received.append(
                ModelEvent(
                    type: entry.type, key: RecordKey(kind: entry.kind, bytes: key), seq: entry.seq,
                    firstSeq: entry.firstSeq,
                    previousSeq: entry.previousSeq, savedAt: entry.savedAt, time: run.time, origin: entry.origin,
                    changed: entry.changed.numbers, payload: Array(entry.payload), commit: 0))
        }
    }

    private func driverSchema(_ kind: Int) -> RecordSchema? { TestKinds.schemas[kind] }

    private func isWanted(_ event: ModelEvent) -> Bool {
        let bit = event.type == EntryType.deleted ? EntryFilter.deleted : EntryFilter.downloaded
        guard filter.types & bit != 0, filter.exceptOrigin == 0 || filter.exceptOrigin != event.origin else {
            return false
        }
        return filter.kinds?.contains(event.key.kind) ?? true
    }

    /// Compares what was received since the last time with all that lies between there and the cursor.
    mutating func compare(_ model: Model, isAtEnd: Bool) throws {
        let after = max(startSeq, snapshotSeq, comparedSeq)
        let expected = model.told(after: after).filter { $0.seq <= cursor.seq && isWanted($0) }
        var got = Array(received[comparedCount...].drop { $0.seq <= after })
        for at in got.indices { got[at].commit = expected.indices.contains(at) ? expected[at].commit : 0 }
        guard got == expected else {
            let at = zip(got, expected).enumerated().first { $1.0 != $1.1 }?.offset ?? min(got.count, expected.count)
            func show(_ list: [ModelEvent]) -> String { list.indices.contains(at) ? "\(list[at])" : "nothing" }
            throw Mismatch(
                "event \(at) behind \(after), \(got.count) of \(expected.count): got \(show(got)), expected \(show(expected))"
                    .prefixed)
        }
        comparedSeq = cursor.seq
        comparedCount = received.count
        guard snapshotSeq > 0, isAtEnd, filter.types == 3, filter.exceptOrigin == 0 else { return }
        var held: [RecordKey: [UInt8]] = [:]
        for event in received { held[event.key] = event.type == EntryType.deleted ? nil : event.payload }
        let current = model.visible.filter { filter.kinds?.contains($0.key.kind) ?? true }.mapValues {
            Encode.record($0.fields)
        }
        guard held == current else {
            let keys = Set(held.keys).union(current.keys).filter { held[$0] != current[$0] }
            let shown = keys.prefix(2).map { key in
                let events = received.filter { $0.key == key }.map { "\($0.type) at \($0.seq)" }
                return "\(key): seq \(model.visible[key]?.seq ?? 0), received \(events)"
            }
            throw Mismatch(
                "a snapshot behind \(snapshotSeq) holds \(held.count) records, the library \(current.count), or others: \(shown)"
            )
        }
        let replayed = received.filter { $0.seq <= snapshotSeq }
        guard replayed.allSatisfy({ $0.type != EntryType.deleted }) else {
            throw Mismatch("a snapshot has a tombstone")
        }
    }
}

extension String {
    /// Short enough to be read.
    var prefixed: String { String(prefix(1500)) }
}

extension FieldSet {
    var numbers: Set<Int> {
        var rest = self
        var numbers: Set<Int> = []
        while let field = rest.popFirst() { numbers.insert(field) }
        return numbers
    }
}

extension TestKinds {
    static let schemas = Dictionary(uniqueKeysWithValues: all.map { ($0.number, RecordSchema($0)) })
}

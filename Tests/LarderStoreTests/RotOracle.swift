// What a damaged library must serve: everything that it does not name as lost, and nothing else.

import LarderFormat

@testable import LarderStore

/// What the entries that survived come to, by the rules of FORMAT.md section 14: the last word on a key counts, and a
/// record has one place.
struct Replay {
    private(set) var records: [RecordKey: ModelRecord] = [:]
    private var keys: [UInt64: RecordKey] = [:]

    init(_ events: some Sequence<ModelEvent>) {
        for event in events {
            if let other = keys.removeValue(forKey: event.firstSeq) { records[other] = nil }
            if let other = records.removeValue(forKey: event.key) { keys[other.firstSeq] = nil }
            guard event.type != EntryType.deleted else { continue }
            keys[event.firstSeq] = event.key
            records[event.key] = ModelRecord(
                seq: event.seq, firstSeq: event.firstSeq, savedAt: event.savedAt, changedAt: event.time,
                origin: event.origin, fields: Model.fields(event.payload, event.key.kind))
        }
    }
}

extension RotLibrary {
    /// Opens a spoilt copy and holds all that it serves against what it names.
    ///
    /// - Parameters:
    ///   - hit: blocks that were damaged; nothing outside of them may be lost.
    ///   - thorough: reads every key by itself, writes, and opens once more.
    /// - Returns: what opening said.
    @discardableResult
    func check(_ files: SimulatedFiles, hit: [Block], thorough: Bool = true) throws -> RecoveryReport {
        let driver = try StoreDriver(files, options: Self.options, model: model, now: 90_000_000)
        let report = driver.store.report
        try checkExtent(report, hit)
        let survivors = try self.survivors(driver, report)
        let replay = Replay(survivors)
        try compare(driver, replay, survivors)
        guard thorough else {
            driver.store.close()
            return report
        }
        for key in Set(model.latest.keys).union(model.events.map(\.key)).union(OperationSource.keys) {
            let found = try driver.get(key)
            guard found == replay.records[key] else {
                throw Mismatch(
                    "\(key) is \(found.map { "\($0)" } ?? "absent"), not \(replay.records[key].map { "\($0)" } ?? "absent")"
                        .prefixed)
            }
        }
        try writeAndReopen(driver, report, survivors)
        driver.store.close()
        return report
    }

    /// Opens segments of different times, each of them whole. Nothing is said to be lost, and all that is served was once
    /// in the library, under that key.
    ///
    /// - Returns: the records.
    @discardableResult
    func checkMixed(_ mixed: [[UInt8]]) throws -> [ModelRecord] {
        let driver = try StoreDriver(disk { $0 = mixed }, options: Self.options, model: model, now: 90_000_000)
        defer { driver.store.close() }
        guard driver.store.report.lostSpans.isEmpty, driver.store.report.cutByteCount == 0 else {
            throw Mismatch("it is said to be damaged: \(driver.store.report)")
        }
        var seqs: Set<UInt64> = []
        for (at, bytes) in mixed.enumerated() {
            for block in try Self.blocks(bytes, segment: UInt32(at + 1), epoch: epoch) {
                seqs.formUnion(block.entries.filter { $0.type <= EntryType.deleted }.map(\.seq))
            }
        }
        let events = allEvents.filter { seqs.contains($0.seq) }
        var reader = Subscriber(driver.store, after: 0)
        try reader.readToEnd(driver)
        guard reader.received.map(\.seq) == events.map(\.seq) else {
            throw Mismatch("the stream gives \(reader.received.count) entries, \(events.count) are there")
        }
        let listed = try driver.list(kind: 0, isReverse: false, pageLimit: 500)
        let bySeq = Dictionary(uniqueKeysWithValues: allEvents.map { ($0.seq, $0) })
        for record in listed {
            guard let event = bySeq[record.seq], event.type != EntryType.deleted,
                Model.fields(event.payload, event.key.kind) == record.fields
            else { throw Mismatch("\(record) was never in the library") }
        }
        return listed
    }

    /// Only what was hit may be lost, and only what nothing vouches for may be cut.
    private func checkExtent(_ report: RecoveryReport, _ hit: [Block]) throws {
        var allowed: [ClosedRange<UInt64>] = []
        for (at, block) in blocks.enumerated() where hit.contains(where: { $0.position == block.position }) {
            let from = at > 0 ? blocks[at - 1].lastSeq + 1 : 1
            let through = at + 1 < blocks.count ? blocks[at + 1].firstSeq - 1 : block.lastSeq
            allowed.append(from...max(from, through))
        }
        for event in model.events
        where report.lostSpans.contains(where: { $0.after < event.seq && event.seq <= $0.through }) {
            guard allowed.contains(where: { $0.contains(event.seq) }) else {
                throw Mismatch("seq \(event.seq) is said to be lost, which lies outside of \(allowed)")
            }
        }
        if report.cutByteCount > 0, !hit.contains(where: { isUnvouched($0) }) {
            throw Mismatch("\(report.cutByteCount) bytes were cut, before the synced position \(synced)")
        }
    }

    /// Whether a block, or the run that it is part of, reaches to where nothing vouches for it.
    private func isUnvouched(_ block: Block) -> Bool {
        guard var at = blocks.firstIndex(where: { $0.position == block.position }) else { return false }
        while at + 1 < blocks.count, blocks[at].header.flags & BlockHeader.continues != 0 { at += 1 }
        return blocks[at].position >= synced
    }

    private func survivors(_ driver: StoreDriver, _ report: RecoveryReport) throws -> [ModelEvent] {
        model.events.filter { event in
            if report.gapThrough > 0 && event.seq >= report.gapFrom { return false }
            return !report.lostSpans.contains { $0.after < event.seq && event.seq <= $0.through }
        }
    }

    private func compare(_ driver: StoreDriver, _ replay: Replay, _ survivors: [ModelEvent]) throws {
        var reader = Subscriber(driver.store, after: 0)
        try reader.readToEnd(driver)
        for at in 0..<max(reader.received.count, survivors.count) {
            var got = reader.received.indices.contains(at) ? reader.received[at] : nil
            let expected = survivors.indices.contains(at) ? survivors[at] : nil
            got?.commit = expected?.commit ?? 0
            guard got == expected else {
                throw Mismatch(
                    "\(driver.store.report.lostSpans): event \(at) is \(got.map { "\($0)" } ?? "absent"), not \(expected.map { "\($0)" } ?? "absent")"
                        .prefixed)
            }
        }
        let told = reader.lost.filter { $0.through > $0.after }.map(\.after)
        let named = driver.store.report.lostSpans.filter { $0.through > $0.after }.map(\.after)
        guard told == named else { throw Mismatch("the stream tells of lost seqs after \(told), the report \(named)") }
        let expected = replay.records.values.sorted { $0.firstSeq < $1.firstSeq }
        let listed = try driver.list(kind: 0, isReverse: false, pageLimit: 500)
        guard listed == expected else {
            let at =
                zip(listed, expected).enumerated().first { $1.0 != $1.1 }?.offset ?? min(listed.count, expected.count)
            func show(_ list: [ModelRecord]) -> String { list.indices.contains(at) ? "\(list[at])" : "nothing" }
            throw Mismatch("record \(at) of \(listed.count) is \(show(listed)), not \(show(expected))".prefixed)
        }
        let count = driver.store.counts(kind: 0).reduce(0) { $0 + $1.count }
        guard count == expected.count else { throw Mismatch("\(count) records are counted, of \(expected.count)") }
    }

    /// What is written behind the damage gets a seq that was never given, and the damage is told the same.
    private func writeAndReopen(_ driver: StoreDriver, _ report: RecoveryReport, _ survivors: [ModelEvent]) throws {
        let last = model.events.last?.seq ?? 0
        var op = TestOp.book(77_777, "written behind the damage")
        op.isPersonal = true
        driver.model = Model()
        let answer = try driver.write([op])
        guard let seq = answer.seqs.first, seq > last else {
            throw Mismatch("seq \(answer.seqs) is given again: \(last) was given before")
        }
        try driver.reopen()
        guard driver.store.report.lostSpans == report.lostSpans, driver.store.report.cutByteCount == 0 else {
            throw Mismatch("opened again it tells of \(driver.store.report), not \(report)")
        }
        let events = survivors + driver.model.events
        driver.model = model
        try compare(driver, Replay(events), events)
    }
}

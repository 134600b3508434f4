// What a compaction may take from the list of all that happened, and what it must leave.

import LarderFormat

@testable import LarderStore

extension Model {
    /// Takes out the events that are not found and may be gone. Throws where one is gone that must be there.
    ///
    /// - Parameters:
    ///   - found: what the whole log has, in order.
    ///   - floor: the library's.
    mutating func prune(to found: [ModelEvent], floor: UInt64) throws {
        let foundSeqs = Set(found.map(\.seq))
        for event in events where event.previousSeq != 0 { superseders[event.previousSeq] = event.seq }
        var keptBefore = [0]
        var kept: [ModelEvent] = []
        for (at, event) in events.enumerated() {
            if foundSeqs.contains(event.seq) || !isVisible(at) || event.seq >= floor && !isPurged(event) {
                kept.append(event)
            } else {
                try expectMayGo(event)
            }
            keptBefore.append(kept.count)
        }
        guard kept.count < events.count else { return }
        take(kept, keptBefore)
        guard replayed == visible else { throw Mismatch("what is left does not come to the same records") }
    }

    private func expectMayGo(_ event: ModelEvent) throws {
        if isPurged(event) { return }
        guard event.seq < historySeq else { throw Mismatch("seq \(event.seq) is gone, the history has it") }
        guard event.type != EntryType.deleted else { return }
        guard let superseder = superseders[event.seq] else { throw Mismatch("the record of seq \(event.seq) is gone") }
        guard superseder < historySeq else {
            throw Mismatch(
                "seq \(event.seq) is gone, though seq \(superseder) superseded it in the history that is kept")
        }
    }

    func isPurged(_ event: ModelEvent) -> Bool { (purged[event.key] ?? 0) >= event.seq }
}

extension StoreDriver {
    /// Begins a compaction of some kind. Nothing happens where one cannot begin now.
    func beginCompaction(_ source: inout OperationSource, _ readers: [Subscriber]) {
        guard !store.isCompacting, !store.isClearing else { return }
        var request = CompactionRequest()
        if source.chance(40) {
            request.keepsHistorySince = now - Int64(source.below(Int(max(now, 1_000_001)) - 1_000_000))
        }
        if source.chance(20) { request.historyByteCountMax = source.below(100_000) }
        if source.chance(30) { request.deadShareMin = 0.3 }
        request.includesLast = source.chance(60)
        let forms: [BlockCompression] = [.kept, .kept, .zstd, .zstd, .none]
        let form = forms[source.below(forms.count)]
        if Zstandard.isInstalled { request.compression = form }
        // Those who follow the log have everything from their place on.
        request.floorMax = readers.map { $0.boundSeq + 1 }.min() ?? UInt64.max
        let canPurge = readers.allSatisfy { $0.cursor.seq >= store.lastSeq }
        if canPurge, source.chance(25), inFlight == nil, !store.hasStaged {
            for _ in 0..<3 {
                let key = OperationSource.keys[source.below(OperationSource.keys.count)]
                guard model.latest[key] == nil else { continue }
                request.purged.insert(PurgedKey(kind: key.kind, key: key.bytes))
            }
        }
        let floor = store.floor(for: request)
        let lastSeq = store.lastSeq
        guard store.beginCompaction(request) == nil else { return }
        model.historySeq = max(model.historySeq, floor)
        for purged in request.purged { model.purged[RecordKey(kind: purged.kind, bytes: purged.key)] = lastSeq }
    }

    /// One step, or the job that is out.
    func stepCompaction() throws {
        if let job = compactionJob {
            compactionJob = nil
            store.finish(job.run())
            return
        }
        guard store.isCompacting else { return }
        switch store.stepCompaction(now: now) {
        case .commit:
            if inFlight != nil { finish() } else { take() }
        case .job(let job): compactionJob = job
        case .progress: break
        case .failed(let reason, _):
            compactionFailureCount += 1
            compactionFailure = reason
        case .finished:
            compactionCount += 1
            try checkWholeLog()
        }
    }

    /// Does a compaction to its end.
    @discardableResult
    func compact(_ request: CompactionRequest) throws -> CompactionReport {
        if let reason = store.beginCompaction(request) { throw Mismatch(reason) }
        model.historySeq = max(model.historySeq, store.floor(for: request))
        for purged in request.purged { model.purged[RecordKey(kind: purged.kind, bytes: purged.key)] = store.lastSeq }
        for _ in 0..<1_000_000 {
            switch store.stepCompaction(now: now) {
            case .commit: if inFlight != nil { finish() } else { take() }
            case .job(let job): store.finish(job.run())
            case .progress: break
            case .failed(let reason, _): throw Mismatch(reason)
            case .finished(let report):
                try checkWholeLog()
                return report
            }
        }
        throw Mismatch("a compaction does not end")
    }

    /// The log has what it must have, and nothing that is not the model's.
    func checkWholeLog() throws {
        var all = Subscriber(store, after: 0)
        try all.readToEnd(self)
        var found = all.received
        try model.prune(to: found, floor: store.floor)
        let expected = model.visibleEvents
        for (at, event) in zip(found.indices, expected) { found[at].commit = event.commit }
        guard found == Array(expected) else {
            throw Mismatch("the log is not what it was: \(found.count) of \(expected.count)")
        }
    }
}

// After a failure and a restart: every answered batch is there, every other is whole or absent.

import LarderFormat

@testable import LarderStore

extension StoreDriver {
    /// Compares what the log holds with the model of the time before, and takes in which unanswered batches survived.
    ///
    /// - Parameter clearing: the entries of a clear that was not answered.
    func takeInSurvivors(clearing: [ModelEvent], now: Int64) throws {
        var all = Subscriber(store, after: 0)
        try all.readToEnd(self)
        var found = all.received
        try model.prune(to: found, floor: store.floor)
        if !clearing.isEmpty, found.count == model.events.count + clearing.count {
            for (event, survivor) in zip(clearing, found[model.events.count...]) {
                model.append(event, seq: survivor.seq, time: now, commit: 0)
            }
            model.endBatch()
        }
        guard found.count >= model.visibleEventCount else {
            throw Mismatch("only \(found.count) of \(model.visibleEventCount) answered changes are there")
        }
        guard model.batchEnds.contains(found.count) else {
            throw Mismatch("\(found.count) changes are there, which is within a batch")
        }
        model.keep(eventCount: found.count)
        for at in found.indices { found[at].commit = model.events[at].commit }
        guard found == model.events else {
            let at = zip(found, model.events).enumerated().first { $0.1.0 != $0.1.1 }?.offset ?? 0
            throw Mismatch("change \(at) of \(found.count) is \(found[at]), not \(model.events[at])".prefixed)
        }
        try compareAll(OperationSource.keys)
    }
}

// What a peer makes of errors: which answers leave it open what was done, and which must never come.

import LarderWire

extension Peer {
    func failed(_ id: UInt32, _ error: ErrorReply) throws {
        trace.note("\(name): \(id) failed: \(error)")
        guard let number = error.number, let waits = pending.removeValue(forKey: id) else {
            throw Difference("\(name): an error about \(id): \(error)")
        }
        answerCount += 1
        switch number {
        case .deadlineExceeded: truth.tally.count(.deadlinePassed)
        case .storeFull: truth.tally.count(.storeFull)
        case .failedToSave, .failedToDelete: truth.tally.count(.writingFailed)
        case .shuttingDown: truth.tally.count(.shutDown)
        case .busy: truth.tally.count(.busyClear)
        case .cancelled: truth.tally.count(.cancelled)
        default: break
        }
        switch (number, waits) {
        case (.shuttingDown, .beginImport(let task)): task.isAsked = false
        case (.shuttingDown, .subscribe(let follower, _)): follower.disconnected()
        case (.deadlineExceeded, .beginImport(let task)), (.failedToSave, .beginImport(let task)),
            (.storeFull, .beginImport(let task)), (.cancelled, .beginImport(let task)):
            task.isAsked = false
        case (.shuttingDown, .batch(let batch, _)): batch.ending = .refused(error)
        case (.storeFull, .batch(let batch, _)):
            // Of a host that can write no more, nobody knows what survives.
            if !error.message.contains("may have survived") { batch.ending = .refused(error) }
        case (.deadlineExceeded, _), (.cancelled, _): break
        case (.shuttingDown, _), (.storeFull, _): break
        case (.failedToSave, .batch), (.failedToDelete, .batch), (.failedToSave, .endImport), (.failedToDelete, .clear):
            break
        case (.busy, .clear(let clear)): clear.ending = .refused(error)
        case (.busy, .compact), (.failedToDelete, .compact): break
        case (.cursorExpired, .subscribe(let follower, _)):
            guard follower.neededSeq + 1 < truth.floorMax else {
                throw Difference("\(name): a cursor at \(follower.neededSeq) expired: \(error)")
            }
            truth.tally.count(.cursorExpired)
            follower.disconnected()
            followers.removeAll { $0 === follower }
        case (.unknownSubscription, .sync), (.unknownSubscription, .unsubscribe): break
        case (.unknownOrigin, .batch(let batch, let task?)) where task.isEnding: batch.ending = .refused(error)
        case (.unknownOrigin, .endImport(let task)):
            // The answer to an END_IMPORT before was lost.
            if importTask === task { importTask = nil }
        case (_, .batch(let batch, _)) where batch.isAtomic && error.place > 0:
            batch.ending = .refused(error)
            truth.tally.count(.atomicFailed)
        case (.notFound, .get(let key, let knownSeq)):
            truth.questions.append(
                Question(knownSeq: knownSeq, text: "\(name): \(key) is not there") { $0.records[key] == nil })
        default: throw Difference("\(name): \(waits) failed: \(error)")
        }
    }
}

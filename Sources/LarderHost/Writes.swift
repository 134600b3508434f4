// Writes: a batch is decided at once where it can be, and its answer waits for the commit that it depends on.

import LarderFormat
import LarderLoop
import LarderStore
import LarderWire

extension Connection {
    func write(_ id: UInt32, _ body: UnsafeRawBufferPointer) throws(FormatError) {
        var operations = try OperationReader(body: body)
        let header = operations.header
        if let refusal = refusal(of: header) { return send(refusal, id: id) }
        // Room may have come back, and with it kinds that opening could not declare.
        if !hasParsedBatch { _ = host.store.fullReason(now: host.wallClock()) }
        if !hasParsedBatch {
            batch.begin(
                origin: header.origin, programName: name, batchNumber: header.batch,
                isDryRun: header.flags.contains(.dryRun), isAtomic: header.flags.contains(.atomic))
            while let operation = try operations.next() { add(operation) }
        }
        decide(id, header)
    }

    private func refusal(of header: WriteHeader) -> ErrorReply? {
        if header.origin != 0, !host.store.isOpenImport(header.origin) {
            return ErrorReply(.unknownOrigin, message: "origin \(header.origin) is no import that is under way")
        }
        if header.batch != 0 && header.origin == 0 {
            return ErrorReply(.badMessage, message: "WRITE: only batches of an import have numbers")
        }
        return nil
    }

    @inline(__always)
    private func add(_ operation: Operation) {
        var write = WriteOperation(
            isDelete: operation.isDelete, mode: operation.mode ?? .merge, kind: operation.kind, known: operation.known,
            payload: operation.payload)
        if !operation.options.isEmpty {
            write.isPersonal = operation.options.contains(.personal)
            if operation.options.contains(.ifSeq) { write.ifSeq = operation.ifSeq }
            if operation.options.contains(.unlessExists) { write.unlessExists = operation.unlessExists }
            if operation.options.contains(.unset) { write.unset = FieldSet(operation.unsetFieldNumbers) }
        }
        if operation.action.rawValue > OperationAction.delete.rawValue {
            write.action = operation.action == .move ? .move : .restore
            write.oldKey = operation.oldKey
            write.firstSeq = operation.firstSeq
            write.savedAt = operation.savedAt
        }
        host.store.add(write, to: batch)
    }

    /// Resolves and stages the batch, or pauses the connection until that can go on.
    private func decide(_ id: UInt32, _ header: WriteHeader) {
        if host.holdsWrites {
            hold()
            return host.waitsForRoom(self)
        }
        do throws(StoreError) {
            while true {
                switch try host.store.resolve(batch) {
                case .ready: break
                case .cold(let read):
                    hold()
                    return host.read(read) { [weak self] in self?.hasRead() }
                case .again:
                    hold()
                    return host.later { [weak self] in self?.retry() }
                }
                switch try host.store.stage(batch, now: host.wallClock()) {
                case .stale: continue
                case .full:
                    if host.commitNow() { continue }
                    hold()
                    host.waitsForRoom(self)
                    return
                case .clearing:
                    hold()
                    host.waitsForRoom(self)
                    return
                case .tooLarge:
                    hasParsedBatch = false
                    send(
                        ErrorReply(
                            .batchTooLarge,
                            message: "the result would be over \(batchResultByteCountMax) bytes; send smaller batches"),
                        id: id)
                case .failed(let commit):
                    hasParsedBatch = false
                    reply(atomicFailure(), id: id, commit: commit)
                case .staged(let commit):
                    hasParsedBatch = false
                    answer(id, header, commit: commit)
                }
                release()
                return
            }
        } catch {
            hasParsedBatch = false
            send(host.writeFailure(error, isDelete: batch.isOnlyDeletes), id: id)
            release()
            host.failWaitingIfStopped()
        }
    }

    /// The frame waits at the front of the input, and the batch points into it.
    private func hold() {
        hasParsedBatch = true
        pause()
    }

    private func release() { if isPaused { consumePausedFrame() } }

    private func hasRead() {
        guard !isClosed else { return }
        do throws(StoreError) { try host.store.keep(for: batch) } catch {
            guard let (header, _) = pausedFrame else { return }
            hasParsedBatch = false
            send(host.corrupt(error), id: header.id)
            release()
            process()
            return host.finishIfDrained(self)
        }
        retry()
    }

    /// Goes on with the frame that waits.
    func retry() {
        guard !isClosed, let (header, body) = pausedFrame else { return }
        resume(header, body)
        if !isPaused { process() }
        host.finishIfDrained(self)
    }

    private func resume(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) {
        switch header.messageType {
        case .write:
            if let write = try? OperationReader(body: body).header { decide(header.id, write) }
        case .beginImport:
            if let message = try? BeginImport(body: body) { begin(header.id, message) }
        case .endImport:
            if let message = try? EndImport(body: body) { end(header.id, message) }
        case .define:
            if let message = try? Define(body: body) { define(header.id, message) }
        default: consumePausedFrame()
        }
    }

    private func answer(_ id: UInt32, _ header: WriteHeader, commit: UInt64) {
        var counts = WriteCounts()
        counts.created = batch.counts[.created]
        counts.updated = batch.counts[.updated]
        counts.unchanged = batch.counts[.unchanged]
        counts.duplicate = batch.counts[.duplicate]
        counts.alreadySaved = batch.counts[.alreadySaved]
        counts.notFound = batch.counts[.notFound]
        counts.deleted = batch.counts[.deleted]
        counts.refused = batch.counts[.refused]
        var results: [Written.Result]?
        if header.flags.contains(.results) {
            // Both are made anew at each call.
            results = zip(batch.outcomes, batch.seqs).enumerated().map { at, result in
                Written.Result(
                    WriteOutcome(rawValue: result.0.rawValue) ?? .refused, seq: result.1,
                    key: batch.madeKey(at: at) ?? [])
            }
        }
        let written = Written(
            seq: batch.lastSeq, counts: counts,
            refusals: batch.refusals.sorted { $0.position < $1.position }.map { refusal(of: $0) }, results: results)
        reply(written, id: id, commit: commit, isDelete: batch.isOnlyDeletes)
    }

    /// Sends a reply once a commit is durable; 0: now.
    func reply<M: WireMessage>(_ message: M, id: UInt32, commit: UInt64, isDelete: Bool = false) {
        if commit == 0 || host.options.canary == .answersEarly { return send(message, id: id) }
        let request = session.begin(id, now: host.now)
        host.waits(
            WaitingReply(
                commit: commit, connection: self, request: request, frame: message.framed(id: id), isDelete: isDelete))
    }

    /// Why an atomic batch was not done.
    private func atomicFailure() -> ErrorReply {
        guard let (position, outcome) = batch.firstFailure else { return ErrorReply(.internal) }
        let place = position + 1
        switch outcome {
        case .notFound: return ErrorReply(.notFound, place: place, message: "operation \(place): no record has the key")
        case .alreadySaved:
            return ErrorReply(.alreadySaved, place: place, message: "operation \(place): it is saved already")
        case .duplicate:
            return ErrorReply(.alreadySaved, place: place, message: "operation \(place): this import has saved it")
        default:
            guard let reason = batch.refusals.first(where: { $0.position == position }).map({ refusal(of: $0) }) else {
                return ErrorReply(.internal, place: place)
            }
            return ErrorReply(
                reason.number ?? .internal, place: place, message: "operation \(place): \(reason.reason)",
                facts: reason.field == 0 ? [] : [ErrorReply.Fact("field", "\(reason.field)")])
        }
    }

    private func refusal(of refusal: Refusal) -> Written.Refusal {
        switch refusal.reason {
        case .notIndexed(let field):
            return Written.Refusal(
                position: refusal.position, .unknownField, field: field, reason: "field \(field) is not indexed")
        case .badPlace(let seq):
            return Written.Refusal(
                position: refusal.position, .badRecord,
                reason: "the first seq \(seq) is another record's, or none of this log")
        case .unsupported(let what):
            return Written.Refusal(position: refusal.position, .unsupported, reason: what)
        case .unknownKind(let kind):
            return Written.Refusal(
                position: refusal.position, .unknownKind, reason: "the library has no kind \(kind)")
        case .conflict(let current):
            return Written.Refusal(
                position: refusal.position, .conflict, reason: "the current entry's seq is \(current)")
        case .badKey(let error):
            return Written.Refusal(
                position: refusal.position, .badKey, field: error.field, offset: error.offset, reason: "\(error)")
        case .format(let error):
            return Written.Refusal(
                position: refusal.position, ErrorNumber(forRecord: error.code), field: error.field,
                offset: error.offset, reason: "\(error)")
        }
    }

    // MARK: Imports

    func beginImport(_ id: UInt32, _ body: UnsafeRawBufferPointer) throws(FormatError) {
        begin(id, try BeginImport(body: body))
    }

    func endImport(_ id: UInt32, _ body: UnsafeRawBufferPointer) throws(FormatError) {
        end(id, try EndImport(body: body))
    }

    private func begin(_ id: UInt32, _ message: BeginImport) {
        stageOrWait(id) { () throws(StoreError) in
            guard
                let begun = try host.store.beginImport(
                    programName: name, source: message.source, token: message.token, now: host.wallClock())
            else { return false }
            // A resumed import's beginning may be in the commit that is under way, the one before the staged.
            let store = host.store
            let commit = store.hasStaged ? store.stagedCommit : store.isCommitting ? store.stagedCommit - 1 : 0
            var lastBatch = begun.lastBatch
            if lastBatch > 0, host.options.canary == .forgetsBatch { lastBatch -= 1 }
            reply(
                ImportBegun(origin: begun.origin, lastBatch: lastBatch, isResumed: begun.isResumed), id: id,
                commit: commit)
            return true
        }
    }

    private func end(_ id: UInt32, _ message: EndImport) {
        guard host.store.isOpenImport(message.origin) else {
            send(ErrorReply(.unknownOrigin, message: "origin \(message.origin) is no import that is under way"), id: id)
            return release()
        }
        let counts = message.counts
        let values = [
            counts.read, counts.created, counts.updated, counts.unchanged, counts.duplicate, counts.alreadySaved,
            counts.skipped, counts.refused,
        ].map { UInt64(clamping: $0) }
        stageOrWait(id) { () throws(StoreError) in
            guard
                let seq = try host.store.endImport(
                    origin: message.origin, outcome: message.outcome.rawValue, counts: values, now: host.wallClock())
            else { return false }
            reply(ImportEnded(seq: seq), id: id, commit: host.store.stagedCommit)
            return true
        }
    }

    /// Runs `stage`; where it has no room, the frame waits.
    func stageOrWait(_ id: UInt32, _ stage: () throws(StoreError) -> Bool) {
        if host.holdsWrites {
            pause()
            return host.waitsForRoom(self)
        }
        do throws(StoreError) {
            while true {
                if try stage() { break }
                if !host.store.isClearing && host.commitNow() { continue }
                pause()
                host.waitsForRoom(self)
                return
            }
        } catch {
            send(host.writeFailure(error, isDelete: false), id: id)
            host.failWaitingIfStopped()
        }
        release()
    }

    // MARK: Clear

    func clear(_ id: UInt32, _ message: Clear) {
        guard message.kind == 0 || host.store.kind(message.kind) != nil else {
            return send(unknownKind(message.kind), id: id)
        }
        if let failure = host.store.failure { return send(host.failedToDelete(failure), id: id) }
        guard host.store.beginClear(kind: message.kind, programName: name) else {
            return send(ErrorReply(.busy, message: "a clear is running"), id: id)
        }
        host.startClear(for: self, session.begin(id, now: host.now))
    }
}

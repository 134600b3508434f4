// COMPACT: what is asked is checked, and a purge waits for those who follow the log.

import LarderFormat
import LarderLoop
import LarderStore
import LarderWire

/// What a purge has to do before it can begin.
final class PurgePreparation {
    let keys: [Compact.PurgedKey]
    /// Monotonic ms until which subscriptions are waited for.
    let deadline: UInt64
    /// A dry run of the keys' deletes: it says whether one of them has a record, stored or pending.
    let batch = WriteBatch()
    /// Seq that subscriptions have to pass; nil until the keys were found to have no record.
    var target: UInt64?
    /// The keys are looked up.
    var isLooking = false

    init(_ keys: [Compact.PurgedKey], deadline: UInt64) {
        self.keys = keys
        self.deadline = deadline
    }

    /// Fills the batch with deletes of the keys.
    func begin(_ store: Store) {
        batch.begin(origin: 0, programName: "", isDryRun: true)
        let bytes = keys.flatMap(\.key)
        bytes.borrowed { bytes in
            var start = 0
            for item in keys {
                let key = UnsafeRawBufferPointer(rebasing: bytes[start..<start + item.key.count])
                store.add(WriteOperation(isDelete: true, kind: item.kind, known: 0, payload: key), to: batch)
                start += item.key.count
            }
            batch.takeCopies()
        }
    }
}

extension Connection {
    func compact(_ id: UInt32, _ message: Compact) {
        if let error = refusal(of: message) { return send(error, id: id) }
        var order = CompactionRequest()
        let defaults = host.options.compaction
        order.keepsHistorySince = message.historySince
        if message.historySince == 0 {
            order.keepsHistorySince = defaults.historySince(now: host.wallClock())
            order.historyByteCountMax = defaults.historyByteCountMax
        }
        order.deadShareMin = Double(message.deadPercent) / 100
        order.includesLast = message.includesLast
        switch message.compression {
        case .kept: order.compression = .kept
        case .zstd: order.compression = .zstd
        case .none: order.compression = .none
        }
        order.purged = Set(message.purged.map { PurgedKey(kind: $0.kind, key: $0.key) })
        switch message.bytesPerSecond {
        case 0: order.bytesPerSecond = defaults.bytesPerSecond
        case .max: order.bytesPerSecond = 0
        case let rate: order.bytesPerSecond = rate
        }
        let request = session.begin(id, now: host.now)
        let task = CompactionTask(connection: self, request: request, order: order)
        if !message.purged.isEmpty {
            let wait = UInt64(message.waitMilliseconds)
            let (deadline, isOver) = host.loop.now.addingReportingOverflow(wait)
            task.purge = PurgePreparation(message.purged, deadline: isOver ? .max : deadline)
        }
        host.prepare(task)
    }

    private func refusal(of message: Compact) -> ErrorReply? {
        if let failure = host.store.failure { return host.failedToDelete(failure) }
        if host.clearTask != nil { return ErrorReply(.busy, message: "a clear is running") }
        if host.compactionTask != nil { return ErrorReply(.busy, message: "a compaction is running") }
        if message.compression == .zstd, !Zstandard.isInstalled {
            return ErrorReply(
                .unsupported, message: "the host has no zstd (libzstd.so.1; Debian: apt install libzstd1)")
        }
        for (at, item) in message.purged.enumerated() {
            guard let schema = host.store.schema(item.kind) else {
                var error = unknownKind(item.kind)
                error.place = at + 1
                return error
            }
            do throws(FormatError) {
                try item.key.borrowed { key throws(FormatError) in try schema.checkKey(key) }
            } catch {
                let field = schema.kind.field(error.field)?.name ?? ""
                return ErrorReply(.badKey, place: at + 1, field: field, message: "purged key \(at + 1): \(error)")
            }
        }
        return nil
    }
}

extension Host {
    /// Begins a compaction that was asked for, or what comes before it.
    func prepare(_ task: CompactionTask) {
        compactionTask = task
        guard let purge = task.purge else { return beginPrepared(task) }
        purge.begin(store)
        lookUpPurged(task, purge)
    }

    /// Every 250 ms, before it has begun in the store.
    func goOnWaiting(_ task: CompactionTask) {
        guard let purge = task.purge, !purge.isLooking, let target = purge.target else { return }
        if loop.now < purge.deadline, lowestPlace < target { return }
        // Somebody may have saved one of them meanwhile.
        purge.begin(store)
        lookUpPurged(task, purge)
    }

    /// Looks whether a purged key has a record, stored or pending; goes on from there.
    private func lookUpPurged(_ task: CompactionTask, _ purge: PurgePreparation) {
        guard compactionTask === task, !task.hasBegun else { return }
        purge.isLooking = true
        do throws(StoreError) {
            while true {
                switch try store.resolve(purge.batch) {
                case .ready: break
                case .cold(let read): return self.read(read) { [weak self] in self?.hasRead(task, purge) }
                case .again: return later { [weak self] in self?.lookUpPurged(task, purge) }
                }
                switch try store.stage(purge.batch, now: wallClock()) {
                case .stale: continue
                case .staged(let commit), .failed(let commit): return lookedUp(task, purge, commit)
                case .full:
                    if commitNow() { continue }
                    return later { [weak self] in self?.lookUpPurged(task, purge) }
                case .clearing: return refuse(task, ErrorReply(.busy, message: "a clear is running"))
                case .tooLarge:
                    return refuse(
                        task, ErrorReply(.batchTooLarge, message: "the keys are too large; purge fewer at a time"))
                }
            }
        } catch { refuse(task, writeFailure(error, isDelete: true)) }
    }

    private func hasRead(_ task: CompactionTask, _ purge: PurgePreparation) {
        do throws(StoreError) { try store.keep(for: purge.batch) } catch {
            return refuse(task, corrupt(error))
        }
        lookUpPurged(task, purge)
    }

    private func lookedUp(_ task: CompactionTask, _ purge: PurgePreparation, _ commit: UInt64) {
        if let at = purge.batch.outcomes.firstIndex(where: { $0 != .notFound }) {
            return refuse(
                task,
                ErrorReply(
                    .conflict, place: at + 1,
                    message: "purged key \(at + 1) of kind \(purge.keys[at].kind) has a record; delete it first"))
        }
        if commit > store.lastFinishedCommit {
            // A delete of one of them is on its way to the disk.
            return later { [weak self] in
                guard let self else { return }
                purge.begin(store)
                lookUpPurged(task, purge)
            }
        }
        purge.isLooking = false
        let target = purge.target ?? store.lastSeq
        purge.target = target
        if lowestPlace < target {
            if loop.now < purge.deadline { return }
            endLagging(task, target)
        }
        beginPrepared(task)
    }

    private func beginPrepared(_ task: CompactionTask) {
        guard let reason = begin(task) else { return }
        let isBusy = store.failure == nil && (store.isCompacting || store.isClearing)
        refuse(
            task,
            isBusy
                ? ErrorReply(.busy, message: reason)
                : ErrorReply(.failedToDelete, message: "no compaction can be begun: \(reason)"))
    }

    private func refuse(_ task: CompactionTask, _ error: ErrorReply) {
        guard compactionTask === task else { return }
        finishCompaction(task, report: task.report, error)
    }

    // MARK: Those who follow the log

    /// The lowest seq up to which every subscription was sent what it asked for; the last seq where there is none.
    var lowestPlace: UInt64 {
        allConnections.lazy.flatMap(\.subscriptions).map(\.place).min() ?? store.lastSeq
    }

    private func endLagging(_ task: CompactionTask, _ target: UInt64) {
        task.endedSubscriptionCount += endSubscriptions(
            below: target, floor: target.addingReportingOverflow(1).partialValue)
    }

    /// Ends the subscriptions that came while the floor was on its way, and need what may go. Those that were there need
    /// nothing below `floorMax`, though a purge raises the floor above what was written while it began.
    func endExpiredSubscriptions(_ task: CompactionTask) {
        let needed = min(store.floor, task.order.floorMax)
        if needed > 1 { _ = endSubscriptions(below: needed - 1, floor: store.floor) }
    }

    /// Ends the subscriptions whose place is below a seq; returns how many.
    private func endSubscriptions(below seq: UInt64, floor: UInt64) -> Int {
        var count = 0
        for connection in allConnections {
            let lagging = connection.subscriptions.filter { $0.place < seq }
            for subscription in lagging {
                let cursor = Cursor(epoch: store.epoch, seq: subscription.sentThrough)
                end(subscription, of: connection, expired(cursor, floor: floor))
                count += 1
            }
            if !lagging.isEmpty {
                connection.flush()
                finishIfDrained(connection)
            }
        }
        return count
    }

    /// The answer to a cursor that can't be gone on from.
    func expired(_ cursor: Cursor, floor: UInt64) -> ErrorReply {
        ErrorReply(
            .cursorExpired,
            message: "the cursor \(cursor) cannot be gone on from: the library's history is "
                + "\(Cursor(epoch: store.epoch, seq: floor)) to \(store.lastSeq)",
            facts: [
                ErrorReply.Fact("epoch", String(Cursor(epoch: store.epoch, seq: 0).description.prefix(16))),
                ErrorReply.Fact("floor", "\(floor)"), ErrorReply.Fact("last", "\(store.lastSeq)"),
            ])
    }
}

extension Subscription {
    /// Seq up to which nothing of the log is needed for it any more: of a snapshot, its entries up to S0 are looked up as
    /// they are now.
    var place: UInt64 { max(cursor.seq, snapshotSeq ?? 0) }
}

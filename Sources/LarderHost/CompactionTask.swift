// A compaction, driven step by step between the other work of the loop; what takes long runs on a thread of its own.

import LarderLoop
import LarderStore
import LarderWire

/// The compaction under way, and who asked for it.
final class CompactionTask {
    /// Nil: nobody, or somebody who has left.
    weak var connection: Connection?
    /// Nil: the host began it of its own accord.
    let request: OpenRequest?
    var order: CompactionRequest
    /// What comes before a purge.
    var purge: PurgePreparation?
    /// It has begun in the store; before that a purge waits for subscriptions.
    var hasBegun = false
    /// A job is on the thread.
    var isWorking = false
    /// It goes on when the commit under way is finished.
    var awaitsCommit = false
    /// It goes on once nothing is staged: meanwhile writes wait, else that might never be. At its beginning nobody may
    /// save what a purge was just told has no record.
    var wantsQuiet = true
    /// The host is stopping.
    var isStopped = false
    var report = CompactionReport()
    var lastProgressAt: UInt64 = 0
    var endedSubscriptionCount = 0

    init(connection: Connection?, request: OpenRequest?, order: CompactionRequest) {
        self.connection = connection
        self.request = request
        self.order = order
    }
}

extension Host {
    /// PROGRESS is sent at most this often, and at least this often.
    private static let progressMilliseconds: UInt64 = 100
    private static let signOfLifeMilliseconds: UInt64 = 1_000

    /// Begins it in the store.
    ///
    /// - Returns: why it can't be begun, or nil.
    func begin(_ task: CompactionTask) -> String? {
        if compactionWorker == nil {
            do throws(LoopError) {
                compactionWorker = try WorkerThread(loop: loop, name: "larder-compact", givesWay: true)
            } catch { return "no thread could be made for it: \(error)" }
        }
        task.order.floorMax = lowestPlace.addingReportingOverflow(1).partialValue
        if let reason = store.beginCompaction(task.order) { return reason }
        task.hasBegun = true
        compactionTask = task
        options.log("compacting: \(mebibytes(store.reclaimableByteCount)) of \(mebibytes(store.logByteCount)) may go")
        continueCompaction()
        return nil
    }

    /// Whether what would be staged waits for a compaction's step.
    var holdsWrites: Bool { compactionTask.map { $0.hasBegun && $0.wantsQuiet } ?? false }

    /// Takes one step; more follow by themselves until it ends.
    func stepCompaction() {
        wantsCompactionStep = false
        guard let task = compactionTask, task.hasBegun, !task.isWorking, !task.awaitsCommit else { return }
        let step = store.stepCompaction(now: wallClock())
        let wantedQuiet = task.wantsQuiet
        if case .commit = step { task.wantsQuiet = true } else { task.wantsQuiet = false }
        switch step {
        case .commit:
            if !store.isCommitting { _ = commitNow() }
            if store.isCommitting { task.awaitsCommit = true } else { continueCompaction() }
        case .job(let job): work(task, job)
        case .progress(let report):
            task.report = report
            if let damage = report.damage { tellDamage(damage) }
            tellProgress(task, after: Host.progressMilliseconds)
            continueCompaction()
        case .finished(let report):
            if let damage = report.damage { tellDamage(damage) }
            options.log(
                "compacted: \(mebibytes(report.byteCountBefore)) are \(mebibytes(report.byteCountAfter)) now, "
                    + "\(report.droppedCount) entries gone")
            finishCompaction(task, report: report, nil)
        case .failed(let reason, let isFull):
            options.log("the compaction ended early: \(reason)")
            finishCompaction(task, report: task.report, failure(task, reason, isFull: isFull))
        }
        endExpiredSubscriptions(task)
        if wantedQuiet, !task.wantsQuiet { wakeWaiting() }
    }

    /// After a commit: a compaction that waited for it goes on.
    func compactionCommitted() {
        guard let task = compactionTask, task.awaitsCommit else { return }
        task.awaitsCommit = false
        stepCompaction()
    }

    /// Has it end soon; what was rewritten is.
    func cancelCompaction() {
        guard let task = compactionTask else { return }
        if task.hasBegun {
            store.cancelCompaction()
            continueCompaction()
        } else {
            finishCompaction(task, report: task.report, failure(task, "it was stopped", isFull: false))
        }
    }

    /// The host is stopping.
    func stopCompaction() {
        compactionTask?.isStopped = true
        cancelCompaction()
    }

    /// Every 250 ms: waits, signs of life, and whether it is time for one.
    func tickCompaction() {
        if let task = compactionTask {
            if !task.hasBegun { goOnWaiting(task) }
            return tellProgress(task, after: Host.signOfLifeMilliseconds)
        }
        guard options.compaction.isAutomatic, !options.isTransient, !isStopping, clearTask == nil,
            store.failure == nil, compactionSchedule.looks(now: loop.now)
        else { return }
        var order = CompactionRequest()
        if let until = options.compaction.compressesUntil(now: wallClock()) {
            (order.compression, order.compressesUntil) = (.zstd, until)
        }
        guard
            compactionSchedule.isDue(
                reclaimable: store.reclaimableByteCount, compressible: store.compressibleByteCount(order),
                log: store.logByteCount, now: loop.now)
        else { return }
        order.keepsHistorySince = options.compaction.historySince(now: wallClock())
        order.historyByteCountMax = options.compaction.historyByteCountMax
        order.deadShareMin = options.compaction.deadShareMin
        order.bytesPerSecond = options.compaction.bytesPerSecond
        if let reason = begin(CompactionTask(connection: nil, request: nil, order: order)) {
            options.log("no compaction could be begun: \(reason)")
            compactionEnded(hasFailed: true)
        }
    }

    private func continueCompaction() {
        wantsCompactionStep = true
        wakeNextTurn()
    }

    private func work(_ task: CompactionTask, _ job: CompactionJob) {
        task.isWorking = true
        let isSubmitted = compactionWorker?.submit({ job.run() }) { [weak self] result in
            guard let self else { return }
            task.isWorking = false
            store.finish(result)
            continueCompaction()
        }
        if isSubmitted != true {
            task.isWorking = false
            store.finish(job.run())
            continueCompaction()
        }
    }

    private func tellProgress(_ task: CompactionTask, after milliseconds: UInt64) {
        guard let connection = task.connection, let request = task.request, !connection.isClosed,
            connection.session.isOpen(request), loop.now &- task.lastProgressAt >= milliseconds
        else { return }
        task.lastProgressAt = loop.now
        let report = task.report
        let progress = Progress(
            done: report.doneCount + report.indexedCount, total: report.totalCount + report.toIndexCount)
        connection.send(progress, id: request.id)
        connection.flush()
    }

    /// - Parameter failure: nil: it was done.
    func finishCompaction(_ task: CompactionTask, report: CompactionReport, _ failure: ErrorReply?) {
        compactionTask = nil
        if task.hasBegun { compactionEnded(hasFailed: failure != nil) }
        // Segments are other files now, and the floor may be another.
        servesAll = true
        if let connection = task.connection, let request = task.request, !connection.isClosed,
            connection.session.end(request)
        {
            if let failure {
                connection.send(failure, id: request.id)
            } else {
                connection.send(Compacted(report, task), id: request.id)
            }
            connection.flush()
            finishIfDrained(connection)
        }
        if options.isTransient { staysAwake() }
        wakeNextTurn()
        finishStop()
    }

    private func compactionEnded(hasFailed: Bool) {
        compactionSchedule.ended(
            hasFailed: hasFailed, reclaimable: store.reclaimableByteCount, log: store.logByteCount, now: loop.now)
    }

    private func failure(_ task: CompactionTask, _ reason: String, isFull: Bool) -> ErrorReply {
        if task.isStopped { return ErrorReply(.shuttingDown, message: "the host is stopping") }
        if isFull { return ErrorReply(.storeFull, message: "there is no room on the disk to go on: \(reason)") }
        if clearTask != nil, store.failure == nil {
            return ErrorReply(.busy, message: "a clear has ended the compaction")
        }
        return ErrorReply(.failedToDelete, message: "the compaction ended early: \(reason)")
    }

    private func mebibytes(_ byteCount: Int) -> String { "\((byteCount + 524_288) / 1_048_576) MiB" }
}

extension Compacted {
    init(_ report: CompactionReport, _ task: CompactionTask) {
        self.init(
            byteCountBefore: report.byteCountBefore, byteCountAfter: report.byteCountAfter,
            segmentCount: report.totalCount, rewrittenCount: report.rewrittenCount, droppedCount: report.droppedCount,
            removedAsideCount: report.removedAsideCount, endedSubscriptionCount: task.endedSubscriptionCount,
            floor: report.floor, historySince: task.order.keepsHistorySince)
    }
}

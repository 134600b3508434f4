// Commits: what came while the last sync ran goes out together; then come the acks, the events, and those who waited.

import Glibc
import LarderFormat
import LarderLoop
import LarderStore
import LarderWire

/// A reply that is owed once a commit is durable.
struct WaitingReply {
    let commit: UInt64
    unowned(unsafe) let connectionReference: Connection
    let request: OpenRequest
    let frame: [UInt8]
    let isDelete: Bool
    /// Keeps the connection for as long as it is owed something.
    private let owner: Connection

    init(commit: UInt64, connection: Connection, request: OpenRequest, frame: [UInt8], isDelete: Bool) {
        self.commit = commit
        connectionReference = connection
        owner = connection
        self.request = request
        self.frame = frame
        self.isDelete = isDelete
    }

    var connection: Connection { owner }
}

extension Host {
    /// Below this, and while syncs are quick, the loop writes by itself: handing over costs two wake-ups.
    static let inlineByteCountMax = 65_536
    static let inlineNanosecondsMax: UInt64 = 2_000_000

    /// At the end of a turn of the loop: commits what was staged in it.
    func commitStaged() {
        if clearTask != nil { return }
        _ = commitNow()
    }

    /// Takes the staged commit if none is under way. True if it is finished already.
    func commitNow() -> Bool {
        guard clearTask == nil || !store.isClearing, let job = store.takeCommit() else { return false }
        return run(job)
    }

    /// True if the job is finished on return.
    func run(_ job: CommitJob) -> Bool {
        if options.canary == .publishesEarly {
            finished(job.number, nil)
            for connection in allConnections { serve(connection) }
        }
        let started = loop.nanoseconds
        if job.byteCount < Host.inlineByteCountMax && lastSyncNanoseconds < Host.inlineNanosecondsMax {
            let failure = job.run()
            lastSyncNanoseconds = loop.nanoseconds &- started
            finished(job.number, failure)
            return true
        }
        let submitted = worker.submit({ job.run() }) { [unowned self] failure in
            lastSyncNanoseconds = loop.nanoseconds &- started
            finished(job.number, failure)
            stepClear()
            compactionCommitted()
            commitStaged()
            finishStop()
        }
        if !submitted {
            finished(job.number, job.run())
            return true
        }
        return false
    }

    private func finished(_ commit: UInt64, _ failure: SystemError?) {
        store.finish(failure)
        if let failure {
            options.log(
                "the library can no longer be written: \(failure); it is read on, and a restart decides what survived")
            failWaiting()
        } else {
            answerWaiting(through: commit)
        }
        wakeWaiting()
        servesAll = true
    }

    private func answerWaiting(through commit: UInt64) {
        var count = 0
        while count < waiting.count, waiting[count].commit <= commit {
            let reply = waiting[count]
            count += 1
            guard !reply.connection.isClosed, reply.connection.session.end(reply.request) else { continue }
            reply.connection.output.append(reply.frame)
            touched.append(reply.connection)
        }
        waiting.removeFirst(count)
        flushTouched()
    }

    /// After an error of the store: if it was the end of writing, no commit will bring the answers that wait.
    func failWaitingIfStopped() {
        guard store.failure != nil, !waiting.isEmpty, !store.isCommitting else { return }
        failWaiting()
    }

    /// Every answer that waits fails with the commit that it depends on.
    private func failWaiting() {
        let failed = waiting
        waiting = []
        for reply in failed where !reply.connection.isClosed && reply.connection.session.end(reply.request) {
            reply.connection.send(
                writeFailure(.readOnly(reason: store.failure ?? ""), isDelete: reply.isDelete), id: reply.request.id)
            touched.append(reply.connection)
        }
        flushTouched()
    }

    private func flushTouched() {
        let connections = touched
        touched = []
        for connection in connections {
            connection.flush()
            finishIfDrained(connection)
        }
    }

    /// The connections whose frames waited go on, in the order in which they came to wait.
    func wakeWaiting() {
        let connections = roomWaiters
        roomWaiters = []
        for connection in connections { connection.retry() }
    }

    func waitsForRoom(_ connection: Connection) {
        if !roomWaiters.contains(where: { $0 === connection }) { roomWaiters.append(connection) }
    }

    func waits(_ reply: WaitingReply) { waiting.append(reply) }

    func writeFailure(_ error: StoreError, isDelete: Bool) -> ErrorReply {
        if case .damaged = error { return corrupt(error) }
        if case .full = error {
            let advice = isDelete ? "send fewer at a time, or make room" : "deletes are still taken"
            return ErrorReply(.storeFull, message: "\(error); nothing of the batch was done, \(advice)")
        }
        let isFull = store.failureCode == ENOSPC || store.failureCode == EDQUOT
        let number: ErrorNumber = isFull ? .storeFull : isDelete ? .failedToDelete : .failedToSave
        return ErrorReply(
            number,
            message: "\(error); what was under way may have survived: after a restart the library shows it or not")
    }

    /// The answer where something of the log cannot be read. The first damage is told, and the next opening is made to
    /// read the whole log: it names what is lost, and serves the rest.
    func corrupt(_ error: StoreError) -> ErrorReply {
        if damage == nil, error.isOfDamage {
            store.distrustIndexFiles()
            tellDamage("\(error)")
        }
        return ErrorReply(.corrupt, message: "\(error)")
    }

    /// The store trusts its index files no more.
    func tellDamage(_ reason: String) {
        guard damage == nil else { return }
        damage = reason
        options.log("\(reason); started again, the host reads the whole log, says what is lost and serves the rest")
    }

    func failedToDelete(_ reason: String) -> ErrorReply {
        ErrorReply(.failedToDelete, message: "the store only reads: \(reason)")
    }

    // MARK: Cold reads

    /// Reads from the disk off the loop, gives the result to the store, then calls back.
    func read(_ read: ColdRead, then: @escaping () -> Void) {
        do throws(LoopError) {
            coldReadCount += 1
            try loop.queueWork({ read.run() }) { [weak self] result in
                guard let self else { return }
                coldReadCount -= 1
                if let failure = result.failure { options.log("\(failure)") }
                store.supply(result)
                then()
                finishStop()
            }
        } catch {
            coldReadCount -= 1
            store.supply(read.run())
            then()
        }
    }
}

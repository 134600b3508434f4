// CLEAR, driven step by step between the other work of the loop.

import LarderLoop
import LarderStore
import LarderWire

/// The clear under way and who asked for it.
final class ClearTask {
    weak var connection: Connection?
    let request: OpenRequest
    var lastProgressAt: UInt64 = 0

    init(connection: Connection, request: OpenRequest) {
        self.connection = connection
        self.request = request
    }
}

extension Host {
    /// PROGRESS is sent at most this often.
    private static let progressMilliseconds: UInt64 = 100

    func startClear(for connection: Connection, _ request: OpenRequest) {
        clearTask = ClearTask(connection: connection, request: request)
        wantsClearStep = true
        wakeNextTurn()
    }

    /// Takes one step; more follow by themselves until the clear ends.
    func stepClear() {
        guard let task = clearTask, !isClearReading else { return }
        wantsClearStep = false
        let step: ClearStep
        do throws(StoreError) { step = try store.stepClear(now: wallClock()) } catch {
            step = .failed(reason: "\(error)")
        }
        switch step {
        case .commit:
            if store.isCommitting { return }
            if let job = store.takeCommit() {
                if run(job) { continueClear() }
            } else {
                continueClear()
            }
        case .cold(let read):
            isClearReading = true
            self.read(read) { [weak self] in
                self?.isClearReading = false
                self?.stepClear()
            }
        case .progress(let done, let total):
            if loop.now &- task.lastProgressAt >= Host.progressMilliseconds, let connection = task.connection,
                !connection.isClosed
            {
                task.lastProgressAt = loop.now
                connection.send(Progress(done: done, total: total), id: task.request.id)
                connection.flush()
            }
            continueClear()
        case .finished(let deleted, let lastSeq):
            finishClear(task) { connection in
                connection.send(Cleared(deleted: deleted, seq: lastSeq), id: task.request.id)
            }
        case .full(let reason):
            finishClear(task) { connection in
                let message = "there is no room on the disk for the deletes: \(reason); nothing was cleared"
                connection.send(ErrorReply(.storeFull, message: message), id: task.request.id)
            }
        case .failed(let reason):
            finishClear(task) { [self] connection in connection.send(failedToDelete(reason), id: task.request.id) }
            failWaitingIfStopped()
        }
    }

    private func continueClear() {
        wantsClearStep = true
        wakeNextTurn()
    }

    private func finishClear(_ task: ClearTask, _ answer: (Connection) -> Void) {
        clearTask = nil
        servesAll = true
        if let connection = task.connection, !connection.isClosed, connection.session.end(task.request) {
            answer(connection)
            connection.flush()
            finishIfDrained(connection)
        }
        wakeWaiting()
        finishStop()
    }
}

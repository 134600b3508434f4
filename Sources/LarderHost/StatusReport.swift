// STATUS: what a person or a program may want to know of the host.

import Glibc
import LarderStore
import LarderWire

extension Host {
    /// Records of all kinds. Loop thread.
    public var recordCount: Int { store.counts(kind: 0).reduce(0) { $0 + $1.count } }

    func status() -> StatusIs {
        var status = StatusIs()
        if isStopping {
            status.state = "stopping"
        } else if let failure = store.failure {
            status.state = "read_only"
            status.reason = failure
        } else if let full = store.fullReason(now: wallClock()) {
            status.state = "full"
            status.reason = full
        } else if let damage {
            status.reason = "\(damage); start the host again to have the rest served"
        } else if let task = compactionTask {
            let report = task.report
            status.reason =
                !task.hasBegun
                ? "a purge waits for those who follow the log"
                : report.toIndexCount > 0
                    ? "compacted; indexing, \(report.indexedCount) of \(report.toIndexCount) segments"
                    : "compacting, \(report.doneCount) of \(report.totalCount) segments"
        }
        status.mode = options.isTransient ? .transient : .serve
        status.pid = Int(getpid())
        status.version = options.version
        status.library = options.library
        status.socket = options.socket
        status.epoch = store.epoch
        status.lastSeq = store.lastSeq
        status.floor = store.comingFloor
        status.started = startedAt
        status.segments = store.segmentCount
        status.logByteCount = store.logByteCount
        status.records = store.counts(kind: 0).map { KindCount(kind: $0.kind, count: $0.count) }
        status.sessions = allConnections.filter { $0.session.state == .open || $0.session.state == .draining }.map(row)
        status.plugins = (plugins?.statusRows() ?? []).map {
            StatusIs.Plugin(
                name: $0.name, state: $0.state, pid: Int($0.processID), restarts: $0.restartCount,
                lastError: $0.lastError)
        }
        status.reclaimableByteCount = store.reclaimableByteCount
        return status
    }

    private func row(_ connection: Connection) -> StatusIs.Session {
        let slowest = connection.subscriptions.map(\.sentThrough).min() ?? store.lastSeq
        return StatusIs.Session(
            id: Int(connection.number), name: connection.name, version: connection.version,
            roles: connection.register?.roles ?? [], events: connection.register?.events ?? [],
            pid: Int(connection.processID), subscriptions: connection.subscriptions.count,
            lag: store.lastSeq - min(slowest, store.lastSeq))
    }
}

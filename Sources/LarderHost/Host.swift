// The host: one loop thread that owns the library and everything about it.

import CLarder
import Glibc
import LarderFormat
import LarderLoop
import LarderStore
import LarderWire

/// A running host. Made, run and ended on one thread.
public final class Host {
    let options: HostOptions
    let loop: Loop
    let store: Store
    let worker: WorkerThread
    private var listener: Listener?
    /// Who came while the library was opened, until the host begins.
    private var opening: WaitingRoom.Left?
    private var signals: [SignalWatcher] = []
    private var endOfTurn: LoopPhase?
    private var spin: LoopPhase?
    private var ticker: Timer?
    /// In the order in which they came.
    private(set) var allConnections: [Connection] = []
    private var lastConnectionNumber: UInt64 = 0
    let startedAt: Int64
    private var idleSince: UInt64 = 0
    private var exitCode: Int32 = 0

    // What the pieces of the host share. Their own files say more.
    var waiting: [WaitingReply] = []
    var roomWaiters: [Connection] = []
    var touched: [Connection] = []
    var turnWaiters: [Connection] = []
    var servesAll = false
    private var laterTasks: [() -> Void] = []
    private var budget = TurnBudget()
    var scratch = FrameScratch()
    var lastSyncNanoseconds: UInt64 = 0
    var coldReadCount = 0
    var clearTask: ClearTask?
    var wantsClearStep = false
    var isClearReading = false
    var compactionTask: CompactionTask?
    /// What of the log was found to be damaged since it was opened; nil: nothing.
    var damage: String?
    var wantsCompactionStep = false
    var compactionSchedule: CompactionSchedule
    /// Made when it is first needed.
    var compactionWorker: WorkerThread?
    private(set) var isStopping = false
    var plugins: PluginHost?
    var pluginsAreStopped = true
    private var stopDeadline: UInt64 = 0
    private var isTearingDown = false

    static let pageByteCount = 262_144
    static let pageByteCountMax = 2_097_152
    private static let stopMilliseconds: UInt64 = 5_000

    /// Opens the library, takes the socket. Nothing is served before `run`.
    public init(options: HostOptions) throws(HostError) {
        self.options = options
        compactionSchedule = CompactionSchedule(options.compaction)
        do throws(LoopError) {
            loop = if let simulation = options.simulation { Loop(simulation: simulation) } else { try Loop() }
            worker = try WorkerThread(loop: loop, name: "larder-commit")
        } catch { throw .loop(error) }
        startedAt = loop.wallClock
        do throws(HostError) {
            (store, opening) = try Host.open(options, startedAt: startedAt)
        } catch {
            worker.close()
            loop.run()
            loop.close()
            throw error
        }
        do throws(HostError) { try listen() } catch {
            if let opening {
                unlink(options.socket)
                opening.close()
                Host.unblockSignals()
            }
            store.close()
            worker.close()
            loop.run()
            loop.close()
            throw error
        }
    }

    deinit { scratch.heads.deallocate() }

    // MARK: Running

    /// Serves until it is stopped by a signal, by GIVE_WAY, or by being idle. Returns the exit code.
    public func run() -> Int32 {
        guard begin() else { return 1 }
        loop.run()
        return end()
    }

    /// All of `run` before the loop's first turn. False if it cannot.
    func begin() -> Bool {
        // Opening may have taken longer than a host is idle: the loop's time is still that of before.
        loop.updateTime()
        do throws(LoopError) {
            endOfTurn = try LoopPhase(loop: loop, place: .check) { [unowned self] in turnEnds() }
            try endOfTurn?.start()
            spin = try LoopPhase(loop: loop, place: .idle) {}
            for number in [SIGTERM, SIGINT] {
                let watcher = try SignalWatcher(loop: loop) { [unowned self] _ in stop(reason: "it was told to") }
                try watcher.start(number)
                signals.append(watcher)
            }
            // Only now: one that came since the waiting room was left is heard as all others are.
            Host.unblockSignals()
            ticker = try Timer(loop: loop) { [unowned self] in tick() }
            try ticker?.start(afterMilliseconds: 250, repeatMilliseconds: 250)
        } catch {
            options.log("the event loop could not be set up: \(error)")
            return false
        }
        idleSince = loop.now
        reportRecovery()
        noticeCopy()
        startPlugins()
        takeOver()
        options.onReady?()
        return true
    }

    /// All of `run` behind the loop's last turn.
    func end() -> Int32 {
        // Replies of connections that are gone hold them, and they hold the host.
        waiting = []
        store.close()
        loop.close()
        return exitCode
    }

    /// A transient host, which nobody reads, leaves it to one that is heard.
    private func noticeCopy() {
        guard !options.isTransient else { return }
        let epoch = String(Cursor(epoch: store.epoch, seq: 0).description.prefix(16))
        let notice = CopyNotice(library: options.library, epoch: epoch, files: store.files)
        if let warning = notice?.warning() { options.log(warning) }
    }

    private func reportRecovery() {
        let report = store.report
        if report.cutByteCount > 0 {
            options.log(
                "\(report.cutByteCount) bytes at the end of the log were unfinished; they were put into \(report.asidePath)"
            )
        }
        for span in report.lostSpans {
            options.log(
                "entries \(span.after + 1) to \(span.through) are damaged (segment \(span.segment), offset \(span.offset)); the rest is served"
            )
        }
        for (kind, count) in report.undeclaredKinds.sorted(by: { $0.key < $1.key }) {
            options.log("\(count) entries are of kind \(kind), whose declaration is lost; they are not served")
        }
    }

    /// Monotonic milliseconds.
    var now: Int64 { Int64(loop.now) }
    func wallClock() -> Int64 { loop.wallClock }

    // MARK: Turns

    /// After all reads of a turn: commit, then send what subscribers can take.
    private func turnEnds() {
        runLaterTasks()
        if wantsClearStep { stepClear() }
        if wantsCompactionStep { stepCompaction() }
        commitStaged()
        if servesAll {
            servesAll = false
            turnWaiters = []
            for connection in allConnections where !connection.subscriptions.isEmpty { serve(connection) }
        } else if !turnWaiters.isEmpty {
            let waiters = turnWaiters
            turnWaiters = []
            for connection in waiters where !connection.isClosed { serve(connection) }
        }
        // The loop must not sleep while there is work.
        if wantsClearStep || wantsCompactionStep || servesAll || !turnWaiters.isEmpty || !laterTasks.isEmpty {
            wakeNextTurn()
        } else {
            spin?.stop()
        }
    }

    /// Runs what waits, as far as the turn's time goes and until there is something new; what it does not come to is first
    /// in the next turn.
    private func runLaterTasks() {
        // New requests had their own time, and must not take that of those that wait.
        budget.turnEnds()
        let tasks = laterTasks
        laterTasks = []
        for (at, task) in tasks.enumerated() {
            guard budget.sliceEnd(at: loop.nanoseconds) != nil, at == 0 || !loop.hasEvents else {
                laterTasks.insert(contentsOf: tasks[at...], at: 0)
                break
            }
            task()
        }
        budget.turnEnds()
    }

    /// Until when work that can wait may go on in this turn, by the monotonic clock; nil: no longer.
    func sliceEnd() -> UInt64? { budget.sliceEnd(at: loop.nanoseconds) }

    /// Runs something at the end of the next turn of the loop: how long work lets the rest have its turn.
    func later(_ task: @escaping () -> Void) {
        laterTasks.append(task)
        wakeNextTurn()
    }

    func wakeNextTurn() { try? spin?.start() }

    /// Has a connection's subscriptions served at the end of this turn.
    func wantsAnotherTurn(_ connection: Connection) {
        if !turnWaiters.contains(where: { $0 === connection }) { turnWaiters.append(connection) }
        wakeNextTurn()
    }

    private func tick() {
        for connection in allConnections {
            while let request = connection.session.expiredRequest(now: now) {
                guard connection.session.end(request) else { break }
                connection.send(
                    ErrorReply(.deadlineExceeded, message: "no answer within the deadline; its work may still be done"),
                    id: request.id)
            }
            connection.flush()
            finishIfDrained(connection)
            if !connection.subscriptions.isEmpty { serve(connection) }
        }
        tickCompaction()
        if options.isTransient && allConnections.isEmpty && compactionTask == nil && !isStopping {
            if loop.now &- idleSince >= UInt64(max(options.idleMilliseconds, 0)) { stop(reason: "it was idle") }
        }
        if isStopping && loop.now >= stopDeadline { closeAll() }
    }

    // MARK: Connections

    private func listen() throws(HostError) {
        let path = options.socket
        let accept: (Stream) -> Void = { [unowned self] stream in accepted(stream) }
        let refuse: (LoopError) -> Void = { [unowned self] error in
            options.log("a connection could not be accepted: \(error)")
        }
        if opening == nil { try HostSocket.prepare(path, files: options.files) }
        do throws(LoopError) {
            listener =
                if let opening {
                    try Listener(
                        loop: loop, adopting: opening.listening, boundPath: path, onConnection: accept, onError: refuse)
                } else {
                    try Listener(loop: loop, path: path, onConnection: accept, onError: refuse)
                }
        } catch { throw .badSocket(path: path, reason: "\(error)") }
    }

    /// Makes those who came while the library was opened connections like all others.
    private func takeOver() {
        guard let opening else { return }
        self.opening = nil
        for _ in 0..<opening.refusedCount { options.log(Host.refusal) }
        for client in opening.clients {
            do throws(LoopError) {
                let stream = try Stream(loop: loop, adopting: client.descriptor)
                adopt(stream, pluginName: "", processID: client.processID, waited: client)
            } catch {
                closeDescriptor(client.descriptor)
                options.log("a connection could not be taken over: \(error)")
            }
        }
    }

    private static let refusal = "a connection of another user was refused"

    private func accepted(_ stream: Stream) {
        guard !isStopping, let peer = try? stream.peerCredentials, HostSocket.admits(peer) else {
            options.log(Host.refusal)
            return stream.close()
        }
        adopt(stream, pluginName: "", processID: peer.processID)
    }

    /// - Parameter waited: what it said and was owed before the library was open.
    func adopt(_ stream: Stream, pluginName: String, processID: Int32, waited: WaitingClient? = nil) {
        lastConnectionNumber += 1
        let connection = Connection(host: self, stream: stream, number: lastConnectionNumber)
        connection.pluginName = pluginName
        connection.processID = processID
        allConnections.append(connection)
        connection.start(after: waited)
    }

    func connectionCloses(_ connection: Connection) {
        allConnections.removeAll { $0 === connection }
        roomWaiters.removeAll { $0 === connection }
        turnWaiters.removeAll { $0 === connection }
        if allConnections.isEmpty { idleSince = loop.now }
        pluginConnectionLost(connection)
        finishStop()
    }

    /// Whether a connection sends large batches, so that its memory is kept.
    func isBulk(_ connection: Connection) -> Bool { store.isOpenImport(connection.batch.originForHost) }

    func finishIfDrained(_ connection: Connection) {
        guard connection.session.isDrained, !connection.isClosed, !connection.closesWhenWritten else { return }
        // Where the host ends it, its GOODBYE came first.
        if !connection.session.isStopping { connection.send(HostGoodbye(), id: 0) }
        connection.closeWhenWritten()
    }

    /// A host without a connection begins to be idle now.
    func staysAwake() { if allConnections.isEmpty { idleSince = loop.now } }

    /// True if the request can still be stopped. What was staged cannot.
    func cancel(_ request: OpenRequest, of connection: Connection) -> Bool {
        if waiting.contains(where: { $0.connection === connection && $0.request == request }) { return false }
        if let task = clearTask, task.connection === connection, task.request == request { return false }
        if let task = compactionTask, task.connection === connection, task.request == request {
            task.connection = nil
            cancelCompaction()
        }
        for subscription in connection.subscriptions { subscription.syncs.removeAll { $0.request == request } }
        return true
    }

    // MARK: The end

    /// No new work; what is owed is finished, then the host ends.
    public func stop(reason: String) {
        guard !isStopping else { return }
        isStopping = true
        options.log("stopping: \(reason)")
        stopDeadline = loop.now &+ Host.stopMilliseconds
        unlink(options.socket)
        listener?.close()
        stopPlugins()
        stopCompaction()
        for connection in allConnections where connection.pluginName.isEmpty { drain(connection) }
        finishStop()
    }

    private func closeAll() {
        for connection in allConnections { connection.close() }
    }

    /// Ends the loop once nothing is under way.
    func finishStop() {
        guard isStopping, !isTearingDown, allConnections.isEmpty, clearTask == nil, compactionTask == nil,
            coldReadCount == 0
        else { return }
        guard !store.isCommitting, pluginsAreStopped else { return }
        if store.hasStaged, store.failure == nil {
            if let job = store.takeCommit() { store.finish(job.run()) }
        }
        isTearingDown = true
        for watcher in signals { watcher.close() }
        ticker?.close()
        endOfTurn?.close()
        spin?.close()
        worker.close()
        compactionWorker?.close()
    }
}

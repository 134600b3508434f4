// A loop without a system under it: time, sockets and threads that a seed drives. For tests and rehearsals.

/// What runs a simulated `Loop`. Everything happens on one thread, in turns that `Loop.run` takes; between them a test
/// plays the peers. Whatever the system would be free to choose (how much a read brings, when a job runs, what comes
/// first) is chosen by the generator, so that a seed always gives the same course.
///
/// A turn is: timers, idle, jobs and sockets, check, close callbacks, as libuv's.
public final class SimulatedLoop {
    /// How the system behaves; percentages are of a turn.
    public struct Habits: Sendable {
        /// A readable socket is read, an accepted connection told of, a write that waits goes on.
        public var socketPercent = 80
        /// The next job of a thread runs; a finished one is told of.
        public var jobPercent = 50
        /// A read brings less than there is, a write takes less than there is room for.
        public var shortPercent = 30
        /// Bytes that a socket holds in each direction.
        public var socketByteCount = 65_536
        /// The clock's step at each look at it, at most.
        public var stepNanosecondsMax: UInt64 = 400_000
        /// Where nothing happens the clock goes on at once to the next timer.
        public var skipsIdleTime = true

        public init() {}
    }

    public var habits = Habits()
    /// While it says no, the machine is dead: nothing that is written leaves it.
    public var hasPower: () -> Bool = { true }
    /// Milliseconds since 1970 at nanosecond 0 of the clock.
    public var wallClockOrigin: Int64 = 1_767_225_600_000

    private var generator: any RandomNumberGenerator
    private var nanoseconds: UInt64
    /// Of the turn, in milliseconds.
    private(set) var now: UInt64
    private var handles: [Handle] = []
    private var timers: [(timer: Timer, due: UInt64)] = []
    private var phases: [LoopPhase] = []
    private var streams: [Stream] = []
    private var workers: [SimulatedWorker] = []
    private var pool: [SimulatedWorker] = []
    private var listeners: [(path: String, listener: Listener, waiting: [SimulatedSocket])] = []
    private var closing: [Handle] = []
    private var isStopped = false
    /// Jobs that ran so far: on threads of their own, and in the pool.
    public private(set) var threadJobCount = 0
    public private(set) var poolJobCount = 0

    /// - Parameter nanoseconds: where its clock begins.
    public init(nanoseconds: UInt64 = 1_000_000_000, generator: some RandomNumberGenerator) {
        self.generator = generator
        self.nanoseconds = nanoseconds
        now = nanoseconds / 1_000_000
    }

    // MARK: Time and chance

    /// The clock; it goes on by a little at each look.
    public func look() -> UInt64 {
        nanoseconds &+= UInt64.random(in: 0...habits.stepNanosecondsMax, using: &generator)
        return nanoseconds
    }

    public var clock: UInt64 { nanoseconds }
    public func advance(nanoseconds count: UInt64) { nanoseconds &+= count }
    var wallClock: Int64 { wallClockOrigin &+ Int64(clamping: nanoseconds / 1_000_000) }

    func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }

    /// How many of `count` bytes go at once.
    func portion(of count: Int) -> Int {
        guard count > 1, chance(habits.shortPercent) else { return count }
        return Int.random(in: 1...count, using: &generator)
    }

    // MARK: Turns

    /// Whether anything is left that a turn could come to.
    var isAlive: Bool {
        !closing.isEmpty || !pool.isEmpty || handles.contains { $0.keepsLoopAlive } || !workers.isEmpty
    }

    func stop() { isStopped = true }

    /// True if work is left.
    func run(_ mode: Loop.RunMode) -> Bool {
        isStopped = false
        repeat {
            if case .untilDone = mode, !isAlive { break }
            turn()
        } while mode == .untilDone && !isStopped
        return isAlive
    }

    private func turn() {
        updateTime()
        runTimers()
        runPhases(.idle)
        runPhases(.prepare)
        let didSomething = runEvents()
        if !didSomething, habits.skipsIdleTime, closing.isEmpty, !hasIdlePhase, let due = timers.map(\.due).min() {
            nanoseconds = max(nanoseconds, due &* 1_000_000)
        }
        runPhases(.check)
        let ended = closing
        closing = []
        for handle in ended {
            handles.removeAll { $0 === handle }
            handle.finishClosing()
        }
    }

    func updateTime() { now = look() / 1_000_000 }

    private var hasIdlePhase: Bool { phases.contains { $0.place == .idle } }

    private func runTimers() {
        let due = timers.filter { $0.due <= now }.sorted { $0.due < $1.due }
        for (timer, at) in due where timers.contains(where: { $0.timer === timer && $0.due == at }) {
            timers.removeAll { $0.timer === timer }
            if timer.repeatMilliseconds > 0 { timers.append((timer, now &+ timer.repeatMilliseconds)) }
            timer.fire()
        }
    }

    private func runPhases(_ place: LoopPhase.Place) {
        for phase in phases where phase.place == place && phases.contains(where: { $0 === phase }) { phase.fire() }
    }

    /// Jobs, connections, reads and writes, each or not, in any order. True if there was one, taken or not.
    private func runEvents() -> Bool {
        var events: [() -> Void] = []
        for worker in workers where worker.hasWork {
            events.append { [self] in if chance(habits.jobPercent), worker.step() { threadJobCount += 1 } }
        }
        for worker in pool where worker.hasWork {
            events.append { [self] in if chance(habits.jobPercent), worker.step() { poolJobCount += 1 } }
        }
        for at in listeners.indices where !listeners[at].waiting.isEmpty {
            let listener = listeners[at].listener
            events.append { [self] in if chance(habits.socketPercent) { accept(listener) } }
        }
        for stream in streams where stream.hasSimulatedEvent {
            events.append { [self] in if chance(habits.socketPercent) { stream.takeSimulatedEvents() } }
        }
        let any = !events.isEmpty
        events.shuffle(using: &generator)
        for event in events { event() }
        pool.removeAll { !$0.hasWork }
        return any
    }

    /// Whether something waits for the next turn.
    var hasEvents: Bool { streams.contains { $0.hasSimulatedEvent } || listeners.contains { !$0.waiting.isEmpty } }

    // MARK: Handles

    var handleCount: Int { handles.count }
    func opened(_ handle: Handle) { handles.append(handle) }

    func closes(_ handle: Handle) {
        timers.removeAll { $0.timer === handle }
        phases.removeAll { $0 === handle }
        streams.removeAll { $0 === handle }
        for entry in listeners where entry.listener === handle { for socket in entry.waiting { socket.closeByHost() } }
        listeners.removeAll { $0.listener === handle }
        closing.append(handle)
    }

    func start(_ timer: Timer, after milliseconds: UInt64) {
        timers.removeAll { $0.timer === timer }
        timers.append((timer, now &+ milliseconds))
    }

    func stop(_ timer: Timer) { timers.removeAll { $0.timer === timer } }
    func isActive(_ timer: Timer) -> Bool { timers.contains { $0.timer === timer } }

    func start(_ phase: LoopPhase) { if !isActive(phase) { phases.append(phase) } }
    func stop(_ phase: LoopPhase) { phases.removeAll { $0 === phase } }
    func isActive(_ phase: LoopPhase) -> Bool { phases.contains { $0 === phase } }

    func opened(_ stream: Stream) { streams.append(stream) }

    // MARK: Threads

    /// A thread of its own that runs jobs in order.
    func openWorker() -> SimulatedWorker {
        let worker = SimulatedWorker()
        workers.append(worker)
        return worker
    }

    func ends(_ worker: SimulatedWorker) { workers.removeAll { $0 === worker } }

    /// A job of the pool.
    func queue(_ job: Job) {
        let worker = SimulatedWorker()
        worker.append(job)
        pool.append(worker)
    }

    // MARK: Connections

    func listen(_ listener: Listener, path: String) -> Bool {
        if listeners.contains(where: { $0.path == path }) { return false }
        listeners.append((path, listener, []))
        return true
    }

    /// Connects a peer; nil where nobody listens.
    public func connect(_ path: String) -> SimulatedSocket? {
        guard let at = listeners.firstIndex(where: { $0.path == path }) else { return nil }
        let socket = SimulatedSocket(byteCountMax: habits.socketByteCount)
        listeners[at].waiting.append(socket)
        return socket
    }

    private func accept(_ listener: Listener) {
        guard let at = listeners.firstIndex(where: { $0.listener === listener }) else { return }
        let waiting = listeners[at].waiting
        listeners[at].waiting = []
        for socket in waiting {
            if listener.isClosing { socket.closeByHost() } else { listener.deliver(socket) }
        }
    }
}

/// A thread of a simulated loop: a job runs in one step and is told of in another.
final class SimulatedWorker {
    private var waiting: [Job] = []
    private var done: [Job] = []
    private var onEnd: (() -> Void)?

    var hasWork: Bool { !waiting.isEmpty || !done.isEmpty || onEnd != nil }

    func append(_ job: Job) { waiting.append(job) }

    /// Calls `onEnd` behind the jobs that are there.
    func end(_ onEnd: @escaping () -> Void) { self.onEnd = onEnd }

    /// True if a job ran.
    func step() -> Bool {
        if !done.isEmpty {
            done.removeFirst().finish()
        } else if !waiting.isEmpty {
            let job = waiting.removeFirst()
            job.run()
            done.append(job)
            return true
        } else if let onEnd {
            self.onEnd = nil
            onEnd()
        }
        return false
    }
}

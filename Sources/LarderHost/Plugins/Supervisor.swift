// Decides when a plugin's process starts, how long it may take, how it is ended, and whether it starts again.

/// The life of one plugin, as a value without I/O: events and the time go in, actions come out, and the caller performs
/// them in order. Times are milliseconds from any origin that stays the same.
///
/// ```
///             enable            ready
///   stopped ─────────▶ starting ──────▶ ready
///      ▲                  │ ╲             │  stop, lost connection, refused, not ready in time
///      │            crash │   ╲───────────┤
///      │  finished,       ▼               ▼
///      ├─────────── backingOff ◀────── draining ──▶ stopped
///      │                  │ the fifth crash in three minutes
///      └── enable ── quarantined
/// ```
/// Only the end of the process (`exited`, or `spawnFailed` where there was none) ends a plugin; the end of its
/// connection merely limits the time that it has left.
public struct Supervisor: Sendable {
    public let limits: SupervisorLimits
    /// Started for an import only: it never starts again by itself.
    public var isOnDemand: Bool

    public private(set) var state = SupervisorState.stopped(.notStarted)
    /// Of the plugin's process; 0 while there is none, or before it is told.
    public private(set) var processID: Int32 = 0
    /// How often it was started again after it had ended by itself.
    public private(set) var restartCount = 0
    /// What went wrong last, for people; empty if nothing did. `enable` clears it.
    public private(set) var lastError = ""

    private var backOff: BackOff
    /// Times of the crashes within the window, oldest first, at most `crashCountMax`.
    private var crashes: [UInt64] = []
    private var readySince: UInt64?
    private var hasSaidGoodbye = false

    /// `seed`: of the jitter.
    public init(isOnDemand: Bool = false, limits: SupervisorLimits = SupervisorLimits(), seed: UInt64) {
        self.isOnDemand = isOnDemand
        self.limits = limits
        backOff = BackOff(limits: limits, seed: seed)
    }

    /// Takes what happened. An event that means nothing in this state is ignored.
    public mutating func handle(_ event: SupervisorEvent, now: UInt64) -> [SupervisorAction] {
        switch event {
        case .enable: return enable(now)
        case .stopRequested: return stop(now)
        case .restartRequested: return restart(now)
        case .spawned(let processID):
            if isRunning { self.processID = processID }
            return []
        case .ready:
            guard case .starting = state else { return [] }
            state = .ready
            readySince = now
            return [.cancelTimer, .log("ready")]
        case .saidGoodbye:
            if isRunning { hasSaidGoodbye = true }
            return []
        case .refused(let reason):
            guard state.isUp else { return [] }
            lastError = "refused: \(reason)"
            return [.log(lastError)] + drain(.refused(reason), .goodbye, now)
        case .connectionLost:
            guard state.isUp else { return [] }
            return drain(.lostConnection, .exiting, now)
        case .exited(let exit): return ended(exit, now)
        case .spawnFailed(let reason, let isPermanent): return spawnFailed(reason, isPermanent, now)
        case .tick: return tick(now)
        }
    }

    /// Whether there is a process, or about to be one.
    public var isRunning: Bool {
        if case .draining = state { return true }
        return state.isUp
    }

    // MARK: What is asked for

    private mutating func enable(_ now: UInt64) -> [SupervisorAction] {
        switch state {
        case .stopped, .backingOff, .quarantined:
            crashes = []
            backOff.reset()
            lastError = ""
            return start(now)
        case .draining(.stop, let stage, let deadline), .draining(.refused, let stage, let deadline):
            state = .draining(.restart, stage, deadline: deadline)
            return []
        case .starting, .ready, .draining: return []
        }
    }

    private mutating func stop(_ now: UInt64) -> [SupervisorAction] {
        switch state {
        case .stopped: return []
        case .backingOff, .quarantined:
            state = .stopped(.requested)
            return [.cancelTimer]
        case .starting, .ready: return drain(.stop, .goodbye, now)
        case .draining(_, let stage, let deadline):
            state = .draining(.stop, stage, deadline: deadline)
            return []
        }
    }

    private mutating func restart(_ now: UInt64) -> [SupervisorAction] {
        switch state {
        case .stopped, .quarantined: return []
        case .backingOff: return start(now)
        case .starting, .ready: return drain(.restart, .goodbye, now)
        case .draining(.stop, _, _), .draining(.refused, _, _): return []
        case .draining(_, let stage, let deadline):
            state = .draining(.restart, stage, deadline: deadline)
            return []
        }
    }

    private mutating func start(_ now: UInt64) -> [SupervisorAction] {
        let deadline = now + limits.readyMilliseconds
        state = .starting(deadline: deadline)
        processID = 0
        readySince = nil
        hasSaidGoodbye = false
        return [.spawn, .setTimer(deadline)]
    }

    // MARK: Draining

    private mutating func drain(_ intent: DrainIntent, _ stage: DrainStage, _ now: UInt64) -> [SupervisorAction] {
        let wait: UInt64 =
            switch stage {
            case .exiting, .goodbye: limits.goodbyeMilliseconds
            case .terminating: limits.terminateMilliseconds
            case .killing: limits.killRepeatMilliseconds
            }
        state = .draining(intent, stage, deadline: now + wait)
        let timer = SupervisorAction.setTimer(now + wait)
        return switch stage {
        case .exiting: [timer]
        case .goodbye: [.sendGoodbye, timer]
        case .terminating: [.terminate, timer]
        case .killing: [.kill, timer]
        }
    }

    private mutating func tick(_ now: UInt64) -> [SupervisorAction] {
        guard let deadline = state.deadline else { return [] }
        if now < deadline { return [.setTimer(deadline)] }
        switch state {
        case .stopped, .ready, .quarantined: return []
        case .backingOff:
            restartCount += 1
            return start(now)
        case .starting:
            return [.log("not ready after \(limits.readyMilliseconds) ms: killed")] + drain(.notReady, .killing, now)
        case .draining(let intent, .exiting, _), .draining(let intent, .goodbye, _):
            return [.log("did not end by itself: SIGTERM")] + drain(intent, .terminating, now)
        case .draining(let intent, .terminating, _):
            return [.log("did not end on SIGTERM: SIGKILL")] + drain(intent, .killing, now)
        case .draining(let intent, .killing, _): return drain(intent, .killing, now)
        }
    }

    // MARK: Ends

    private mutating func ended(_ exit: PluginExit, _ now: UInt64) -> [SupervisorAction] {
        let intent: DrainIntent?
        var isForced = false
        switch state {
        case .starting, .ready: intent = nil
        case .draining(let found, let stage, _):
            intent = found
            isForced = stage == .terminating || stage == .killing
        case .stopped, .backingOff, .quarantined: return []
        }
        processID = 0
        switch intent {
        case .stop: return halt(.requested, "stopped: \(exit)")
        case .refused(let reason): return halt(.refused(reason), "stopped, since it was refused: \(exit)")
        case .restart: return wait(limits.restartMilliseconds, now, "ended for a restart: \(exit)")
        case .notReady: return crashed("was not ready within \(limits.readyMilliseconds) ms", now)
        case .lostConnection where isForced: return crashed("closed its connection and did not end", now)
        case .lostConnection, nil: return endedByItself(exit, now)
        }
    }

    private mutating func endedByItself(_ exit: PluginExit, _ now: UInt64) -> [SupervisorAction] {
        if exit == .status(0) {
            if hasSaidGoodbye || isOnDemand { return halt(.finished, "finished") }
            return wait(nextBackOff(now), now, "ended without a goodbye: \(exit)")
        }
        if exit.isBadConfiguration {
            lastError = "bad configuration: \(exit)"
            return halt(.badConfiguration(exit.description), "\(lastError); not started again until it is enabled")
        }
        return crashed(exit.description, now)
    }

    private mutating func spawnFailed(_ reason: String, _ isPermanent: Bool, _ now: UInt64) -> [SupervisorAction] {
        guard isRunning else { return [] }
        processID = 0
        lastError = "can't be started: \(reason)"
        switch state {
        case .draining(.stop, _, _): return halt(.requested, lastError)
        case .draining(.restart, _, _): return wait(limits.restartMilliseconds, now, lastError)
        case .draining(.refused(let why), _, _): return halt(.refused(why), lastError)
        default: break
        }
        if isPermanent { return halt(.badConfiguration(reason), lastError) }
        return isOnDemand ? halt(.failed(reason), lastError) : wait(nextBackOff(now), now, lastError)
    }

    private mutating func crashed(_ reason: String, _ now: UInt64) -> [SupervisorAction] {
        lastError = "crashed: \(reason)"
        crashes.removeAll { now >= limits.crashWindowMilliseconds && $0 <= now - limits.crashWindowMilliseconds }
        crashes.append(now)
        if crashes.count >= limits.crashCountMax {
            state = .quarantined
            let window = limits.crashWindowMilliseconds / 1000
            return [
                .cancelTimer,
                .log("\(lastError), \(crashes.count) times in \(window) s: not started again until it is enabled"),
            ]
        }
        if isOnDemand { return halt(.failed(reason), lastError) }
        return wait(nextBackOff(now), now, lastError)
    }

    private mutating func nextBackOff(_ now: UInt64) -> UInt64 {
        if let readySince, now >= readySince + limits.healthyMilliseconds { backOff.reset() }
        return backOff.next()
    }

    private mutating func wait(_ milliseconds: UInt64, _ now: UInt64, _ reason: String) -> [SupervisorAction] {
        state = .backingOff(until: now + milliseconds)
        return [.log("\(reason); starts again in \(milliseconds) ms"), .setTimer(now + milliseconds)]
    }

    private mutating func halt(_ reason: StopReason, _ line: String) -> [SupervisorAction] {
        state = .stopped(reason)
        return [.log(line), .cancelTimer]
    }
}

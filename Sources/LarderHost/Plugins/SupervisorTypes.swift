// The words of the supervisor: its states, what it is told, and what it answers.

/// Where a plugin is in its life.
public enum SupervisorState: Equatable, Sendable {
    case stopped(StopReason)
    /// It has until `deadline` to say READY.
    case starting(deadline: UInt64)
    case ready
    /// It is being ended, or has lost its connection; `deadline` is when the next stage begins.
    case draining(DrainIntent, DrainStage, deadline: UInt64)
    case backingOff(until: UInt64)
    /// Crashed too often; only `enable` starts it again.
    case quarantined

    /// As STATUS says it.
    public var name: String {
        switch self {
        case .stopped(.notStarted), .stopped(.requested): "stopped"
        case .stopped(.finished): "finished"
        case .stopped(.refused): "refused"
        case .stopped(.badConfiguration): "bad configuration"
        case .stopped(.failed): "failed"
        case .starting: "starting"
        case .ready: "ready"
        case .draining: "draining"
        case .backingOff: "backing off"
        case .quarantined: "quarantined"
        }
    }

    /// When a `tick` is due, if ever.
    public var deadline: UInt64? {
        switch self {
        case .starting(let deadline), .draining(_, _, let deadline), .backingOff(let deadline): deadline
        case .stopped, .ready, .quarantined: nil
        }
    }

    /// Starting or ready.
    var isUp: Bool {
        switch self {
        case .starting, .ready: true
        case .stopped, .draining, .backingOff, .quarantined: false
        }
    }
}

/// Why a plugin is stopped.
public enum StopReason: Equatable, Sendable {
    case notStarted
    case requested
    /// It said goodbye, or was started on demand, and exited with 0.
    case finished
    /// The host refused it: its token, its registration, its grants.
    case refused(String)
    /// Its program can't be executed, or said by its exit status that it is set up wrongly.
    case badConfiguration(String)
    /// Started on demand, and crashed.
    case failed(String)
}

/// What follows when a draining plugin has ended.
public enum DrainIntent: Equatable, Sendable {
    case stop
    case restart
    case refused(String)
    /// It said no READY in time: a crash.
    case notReady
    /// How it ends says what follows.
    case lostConnection
}

/// How hard a draining plugin is pressed.
public enum DrainStage: Equatable, Sendable {
    /// It can hear nothing any more, and gets time to end by itself.
    case exiting
    case goodbye
    case terminating
    case killing
}

/// How a plugin's process ended.
public enum PluginExit: Equatable, Sendable, CustomStringConvertible {
    case status(Int32)
    case signal(Int32)

    /// The statuses of sysexits.h (64 EX_USAGE … 78 EX_CONFIG) that another try does not change. Not among them:
    /// 69 EX_UNAVAILABLE, 70 EX_SOFTWARE, 71 EX_OSERR, 74 EX_IOERR and 75 EX_TEMPFAIL.
    public var isBadConfiguration: Bool {
        guard case .status(let status) = self else { return false }
        return (64...78).contains(status) && ![69, 70, 71, 74, 75].contains(status)
    }

    public var description: String {
        switch self {
        case .status(let status): "exit status \(status)"
        case .signal(let signal): "killed by signal \(signal)"
        }
    }
}

/// What happened.
public enum SupervisorEvent: Equatable, Sendable {
    /// Someone wants it to run: starts it whatever stopped it before.
    case enable
    case stopRequested
    /// Ends it and starts it again if it runs, as after a change of its manifest.
    case restartRequested
    /// The process is there.
    case spawned(Int32)
    /// There is none, and no `exited` follows. Permanent: another try would fail alike.
    case spawnFailed(reason: String, isPermanent: Bool)
    /// READY was received.
    case ready
    /// Its GOODBYE was received.
    case saidGoodbye
    /// The host won't have it.
    case refused(String)
    case connectionLost
    /// The process was reaped, and nothing that it started is left.
    case exited(PluginExit)
    /// The time that `setTimer` named has come.
    case tick
}

/// What the caller has to do.
public enum SupervisorAction: Equatable, Sendable {
    /// Start the process, then tell `spawned` or `spawnFailed`.
    case spawn
    case sendGoodbye
    /// SIGTERM to the plugin.
    case terminate
    /// SIGKILL to the plugin and all that it started.
    case kill
    /// Send `tick` at that time, instead of any earlier one set.
    case setTimer(UInt64)
    case cancelTimer
    case log(String)
}

/// The times of a supervisor, in milliseconds.
public struct SupervisorLimits: Equatable, Sendable {
    /// From the start to READY.
    public var readyMilliseconds: UInt64 = 10_000
    /// From GOODBYE, or the end of the connection, to SIGTERM.
    public var goodbyeMilliseconds: UInt64 = 2_000
    /// From SIGTERM to SIGKILL.
    public var terminateMilliseconds: UInt64 = 3_000
    public var killRepeatMilliseconds: UInt64 = 1_000
    public var backOffMinMilliseconds: UInt64 = 1_000
    public var backOffMaxMilliseconds: UInt64 = 60_000
    /// Ready for so long, and the back-off begins anew.
    public var healthyMilliseconds: UInt64 = 60_000
    public var crashCountMax = 5
    public var crashWindowMilliseconds: UInt64 = 180_000
    /// Between the end and the new start of a restart that was asked for: what the old process left behind on the
    /// loop, such as the end of its connection, is seen before the new one is there.
    public var restartMilliseconds: UInt64 = 100
    /// For all plugins together when the host stops: GOODBYE, SIGTERM and SIGKILL take 5 s, and what has not ended
    /// then is left to the kernel.
    public var stopAllMilliseconds: UInt64 = 5_800

    public init() {}
}

/// Waiting times that double, each with a jitter of a fifth up or down, so that plugins which fell together do not
/// rise together.
struct BackOff: Sendable {
    private let min: UInt64
    private let max: UInt64
    private var doublings = 0
    private var generator: SplitMix64

    init(limits: SupervisorLimits, seed: UInt64) {
        min = limits.backOffMinMilliseconds
        max = limits.backOffMaxMilliseconds
        generator = SplitMix64(seed: seed)
    }

    mutating func reset() { doublings = 0 }

    /// In milliseconds; never above the limit.
    mutating func next() -> UInt64 {
        let base = Swift.min(min << UInt64(doublings), max)
        if base < max { doublings += 1 }
        let jittered = base - base / 5 + UInt64.random(in: 0...(base / 5 * 2), using: &generator)
        return Swift.min(jittered, max)
    }
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014). Not for secrets.
struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}

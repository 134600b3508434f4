import CLibuv
import Glibc

/// One libuv loop, and the thread that everything on it is confined to: the one that made it.
///
/// Nothing here is `Sendable`; other threads enter by a `Mailbox` only. Making a loop ignores SIGPIPE in the whole
/// process, so that writing to a peer that has gone is an error (`EPIPE`); children get the default back.
public final class Loop {
    /// How long `run` goes on.
    public enum RunMode: Sendable {
        /// Until `stop()`, or until nothing that keeps the loop alive is left.
        case untilDone
        /// Waits for something to happen and handles it.
        case once
        /// Handles what has happened already.
        case noWait

        fileprivate var raw: uv_run_mode {
            switch self {
            case .untilDone: UV_RUN_DEFAULT
            case .once: UV_RUN_ONCE
            case .noWait: UV_RUN_NOWAIT
            }
        }
    }

    /// Valid until `close()`.
    let raw: UnsafeMutablePointer<uv_loop_t>
    /// What runs this loop in libuv's place; nil: libuv does. Then nothing of `raw` is used.
    public let simulation: SimulatedLoop?
    private let thread: pthread_t
    private var isClosed = false

    /// Throws what `uv_loop_init` does, such as `EMFILE`: a loop needs about five descriptors.
    public init() throws(LoopError) {
        signal(SIGPIPE, SIG_IGN)
        let raw = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
        let code = uv_loop_init(raw)
        if code < 0 {
            raw.deallocate()
            throw LoopError(code: code, operation: "uv_loop_init")
        }
        self.raw = raw
        simulation = nil
        thread = pthread_self()
    }

    /// A loop without a system under it, for tests.
    public init(simulation: SimulatedLoop) {
        raw = .allocate(capacity: 1)
        self.simulation = simulation
        thread = pthread_self()
    }

    deinit {
        // Handles and requests retain their loop, so that none can be left here.
        close()
    }

    /// Runs callbacks on this thread. True if `stop()` ended it, or the mode did, with work left.
    @discardableResult
    public func run(_ mode: RunMode = .untilDone) -> Bool {
        preconditionOnThread()
        if let simulation { return simulation.run(mode) }
        return uv_run(raw, mode.raw) != 0
    }

    /// Makes `run` return at the end of this turn; what is open stays open.
    public func stop() { if let simulation { simulation.stop() } else { uv_stop(raw) } }

    /// Milliseconds from an arbitrary origin, as of the start of this turn of the loop. Timers count from here.
    public var now: UInt64 { simulation?.now ?? uv_now(raw) }

    /// Brings `now` up to date, after work that took long.
    public func updateTime() { if let simulation { simulation.updateTime() } else { uv_update_time(raw) } }

    /// Nanoseconds from an arbitrary origin (CLOCK_MONOTONIC). From any thread.
    public static var monotonicNanoseconds: UInt64 { uv_hrtime() }

    /// The same, by this loop's own clock. Loop thread only.
    public var nanoseconds: UInt64 { simulation?.look() ?? uv_hrtime() }

    /// Milliseconds since 1970 (CLOCK_REALTIME).
    public var wallClock: Int64 {
        if let simulation { return simulation.wallClock }
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Whether something waits for the next turn already. One system call; for work that is willing to give way.
    public var hasEvents: Bool {
        if let simulation { return simulation.hasEvents }
        var descriptor = pollfd(fd: uv_backend_fd(raw), events: Int16(POLLIN), revents: 0)
        return poll(&descriptor, 1, 0) > 0
    }

    /// Whether the caller is on the loop's thread.
    public var isOnThread: Bool { pthread_equal(pthread_self(), thread) != 0 }

    /// Stops the process if the caller is on another thread.
    public func preconditionOnThread() {
        precondition(isOnThread, "a loop is confined to the thread that made it")
    }

    /// How many handles are open or still closing. O(n).
    public var openHandleCount: Int {
        if isClosed { return 0 }
        if let simulation { return simulation.handleCount }
        var count = 0
        withUnsafeMutablePointer(to: &count) { uv_walk(raw, onWalk, $0) }
        return count
    }

    /// Gives back what the loop holds. Every handle must be closed, and its close callback must have run; anything
    /// else is a leak of ours and stops the process. Closing twice is harmless.
    public func close() {
        if isClosed { return }
        let open = openHandleCount
        let code = simulation == nil ? uv_loop_close(raw) : 0
        precondition(
            code == 0 && (simulation == nil || open == 0),
            "the loop was closed with \(open) handles open, or with requests under way")
        isClosed = true
        raw.deallocate()
    }

    var threadIdentity: pthread_t { thread }
}

private let onWalk: uv_walk_cb = { _, count in
    count!.assumingMemoryBound(to: Int.self).pointee += 1
}

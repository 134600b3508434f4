// The guard: the process between the host and a plugin, which outlives both for long enough to leave nothing behind.

import CLarder
import Glibc

/// The body of `larder guard`, with what stands behind those words. Only for a process that has started no thread.
///
/// Runs the plugin's program as its child until it has ended, and then ends whatever the plugin left, in any process
/// group or session: orphans come to the guard, since it is a subreaper. When the host's end of the life line closes,
/// as it does however the host dies, everything gets SIGTERM, and SIGKILL 2 s later; SIGTERM to the guard is passed on.
/// - Returns: what to exit with: the plugin's status, 128 + n if signal n killed it, 127 or 126 if it could not be
///   executed, 64 if the arguments are none.
public func runGuard(_ arguments: [String]) -> Int32 {
    guard let arguments = GuardArguments(arguments) else {
        let line = "larder guard is started by the host, as: larder guard --life-line N [--status N] -- program …\n"
        _ = line.withCString { write(larder_stderr(), $0, strlen($0)) }
        return 64
    }
    return Guard(arguments).run()
}

/// A guard's process. Its only thread.
private final class Guard {
    private enum Phase {
        case running
        /// SIGTERM was sent because the host has gone.
        case ending(deadline: UInt64)
        /// SIGKILL goes to every child until there is none.
        case killing(deadline: UInt64)
    }

    private static let endMilliseconds: UInt64 = 2_000
    /// For processes that SIGKILL does not end: another user's, or stuck in the kernel.
    private static let giveUpMilliseconds: UInt64 = 5_000

    private let arguments: GuardArguments
    private var lifeLine: Int32
    private var signals: Int32 = -1
    /// The plugin's process, and its process group for as long as it is not reaped.
    private var plugin: pid_t = 0
    private var end: GuardReport?
    private var phase = Phase.running

    init(_ arguments: GuardArguments) {
        self.arguments = arguments
        lifeLine = arguments.lifeLine
    }

    func run() -> Int32 {
        signal(SIGPIPE, SIG_IGN)
        _ = larder_set_cloexec(lifeLine, 1)
        if arguments.status >= 0 { _ = larder_set_cloexec(arguments.status, 1) }
        _ = larder_set_subreaper()
        _ = setsid()
        limitResources()
        signals = larder_signal_descriptor([SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT], 5)
        let code = signals < 0 ? signals : spawn()
        // The host sees the end of the connection when the plugin closes it, not when the guard ends.
        if arguments.inherited >= 3 { close(arguments.inherited) }
        if code < 0 {
            tell(.notSpawned(errorCode: -code))
            return code == -ENOENT ? 127 : 126
        }
        tell(.spawned(processID: plugin))
        while true {
            wait()
            if !reap() { break }
            if end != nil, case .killing = phase {} else if end != nil { startKilling() }
            if !advance() {
                tell(.gaveUp)
                break
            }
        }
        guard let end else { return 1 }
        tell(end)
        switch end {
        case .exited(let status): return status
        case .killed(let signal): return 128 + signal
        case .spawned, .notSpawned, .gaveUp: return 1
        }
    }

    // MARK: Start

    private func limitResources() {
        // A crash of the plugin leaves no core file, which might hold what it knows.
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        if arguments.openFilesMax > 0 {
            var files = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
            files.rlim_cur = min(files.rlim_max, rlim_t(arguments.openFilesMax))
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
        }
    }

    /// 0 or -errno.
    private func spawn() -> Int32 {
        var words = arguments.command.map { strdup($0) }
        words.append(nil)
        defer { for word in words { free(word) } }
        return larder_spawn_guarded(words, arguments.inherited, &plugin)
    }

    private func tell(_ report: GuardReport) {
        if arguments.status < 0 { return }
        withUnsafeBytes(of: report.word) { bytes in
            while write(arguments.status, bytes.baseAddress, bytes.count) < 0 && errno == EINTR {}
        }
    }

    // MARK: Turns

    /// Waits for the life line, a signal, or the next deadline, and takes what came.
    private func wait() {
        var ready = [
            pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
            pollfd(fd: lifeLine, events: Int16(POLLIN), revents: 0),
        ]
        // A closed life line is -1, which poll passes over.
        if poll(&ready, 2, timeout) <= 0 { return }
        if ready[0].revents != 0 { takeSignals() }
        if ready[1].revents != 0 { takeLifeLine() }
    }

    private var timeout: Int32 {
        switch phase {
        case .running: -1
        case .ending(let deadline): Int32(clamping: deadline - min(deadline, now))
        // Orphans come without a signal.
        case .killing: 10
        }
    }

    private func takeSignals() {
        while true {
            let signal = larder_signal_next(signals)
            if signal == 0 { return }
            if signal != SIGCHLD && end == nil { kill(-plugin, signal) }
        }
    }

    private func takeLifeLine() {
        var byte: UInt8 = 0
        let n = read(lifeLine, &byte, 1)
        if n < 0 && (errno == EINTR || errno == EAGAIN) { return }
        if n == 1 {
            startKilling()
            return
        }
        lifeLine = -1
        guard case .running = phase else { return }
        phase = .ending(deadline: now + Guard.endMilliseconds)
        if end == nil { kill(-plugin, SIGTERM) }
        for process in ProcessTable.descendants(of: getpid()) where process != plugin { kill(process, SIGTERM) }
    }

    /// Takes all children that have ended. False: there are none left, and so no descendants.
    private func reap() -> Bool {
        while true {
            var status: Int32 = 0
            let process = waitpid(-1, &status, WNOHANG)
            if process == 0 { return true }
            if process < 0 {
                if errno == EINTR { continue }
                return false
            }
            if process == plugin && end == nil {
                let signal = status & 0x7F
                end = signal == 0 ? .exited(status: status >> 8 & 0xFF) : .killed(signal: signal)
            }
        }
    }

    private func startKilling() {
        if case .killing = phase { return }
        phase = .killing(deadline: now + Guard.giveUpMilliseconds)
    }

    /// Does what is due. False: some process can't be ended.
    private func advance() -> Bool {
        if case .ending(let deadline) = phase, now >= deadline { startKilling() }
        guard case .killing(let deadline) = phase else { return true }
        // Only children are killed, whose numbers nobody else can have before they are reaped. Theirs become ours.
        if end == nil { kill(-plugin, SIGKILL) }
        for process in ProcessTable.children(of: getpid()) { kill(process, SIGKILL) }
        return now < deadline
    }

    private var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1000 + UInt64(time.tv_nsec) / 1_000_000
    }
}

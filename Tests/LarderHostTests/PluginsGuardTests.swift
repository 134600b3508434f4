import Glibc
import LarderLoop
import Testing

@testable import LarderHost

@Suite("Guard")
struct PluginsGuardTests {
    /// A process that left the plugin's session and group, ignores SIGTERM, and has a child.
    private let daemon = "setsid sh -c 'trap \"\" TERM; echo $$ > $T/daemon; sleep 1000 & wait; sleep 1000' &"
    private let waitForDaemon = "while [ ! -s $T/daemon ]; do sleep 0.01; done"

    @Test("the exit status is passed through and told")
    func status() throws {
        let loop = try Loop()
        let guarded = try GuardHarness(loop, script: "exit 7")
        try guarded.finish()
        #expect(guarded.exit == ChildProcess.Exit(status: 7, signal: 0))
        #expect(guarded.reports.last == .exited(status: 7))
        #expect(guarded.reports.count == 2)
        loop.close()
    }

    @Test("a death by signal is told as that signal, and is 128 + n as a status")
    func signal() throws {
        let loop = try Loop()
        let guarded = try GuardHarness(loop, script: "kill -SEGV $$")
        try guarded.finish()
        #expect(guarded.exit == ChildProcess.Exit(status: 139, signal: 0))
        #expect(guarded.reports.last == .killed(signal: SIGSEGV))
        loop.close()
    }

    @Test("a program that is missing is told with its errno")
    func missing() throws {
        let loop = try Loop()
        let guarded = try GuardHarness(loop, ["/nonexistent/program"])
        try guarded.finish()
        #expect(guarded.exit?.status == 127)
        #expect(guarded.reports == [.notSpawned(errorCode: ENOENT)])
        loop.close()
    }

    @Test("the program leads a group of its own, has no core file, default signals and three descriptors")
    func surroundings() throws {
        let loop = try Loop()
        let directory = PluginsDirectory()
        let script = """
            T=\(directory.path); ulimit -c > $T/core; ls /proc/$$/fd > $T/fds
            grep SigIgn /proc/$$/status > $T/ignored; cut -d' ' -f5 /proc/$$/stat > $T/group; echo $$ > $T/self
            """
        try GuardHarness(loop, script: script).finish()
        #expect(directory.read("core") == "0\n")
        // From 10 on the shell has some of its own.
        let descriptors = directory.read("fds").split(separator: "\n").compactMap { Int($0) }.filter { $0 < 10 }
            .sorted()
        #expect(descriptors == [0, 1, 2] || descriptors == [0, 1, 2, 3])
        // Of the signals 1 to 31; the C library keeps 32 and 33 for itself.
        let ignored = UInt64(directory.read("ignored").split(whereSeparator: \.isWhitespace).last ?? "", radix: 16)
        #expect((try #require(ignored)) & 0x7FFF_FFFF == 0)
        #expect(directory.read("group") == directory.read("self"))
        loop.close()
    }

    @Test("SIGTERM to the guard reaches the plugin and what is in its group")
    func terminate() throws {
        let loop = try Loop()
        let directory = PluginsDirectory()
        let guarded = try GuardHarness(
            loop, script: "trap 'exit 5' TERM; sleep 1000 & echo $! > \(directory.path)/child; wait")
        try loop.run(until: { directory.processID("child") != nil })
        try guarded.process.kill(SIGTERM)
        try guarded.finish()
        #expect(guarded.reports.last == .exited(status: 5))
        #expect(!isThere(try #require(directory.processID("child"))))
        loop.close()
    }

    @Test("a plugin that ignores SIGTERM is killed on request, and all that it started with it")
    func killed() throws {
        let loop = try Loop()
        let directory = PluginsDirectory()
        let guarded = try GuardHarness(
            loop, script: "T=\(directory.path); export T; \(daemon) trap '' TERM; sleep 1000; sleep 1000")
        try loop.run(until: { directory.processID("daemon") != nil })
        try guarded.process.kill(SIGTERM)
        let byte: [UInt8] = [guardKillByte]
        #expect(try byte.withUnsafeBytes { try guarded.lifeLine.stream.tryWrite($0) } == 1)
        try guarded.finish()
        #expect(guarded.reports.last == .killed(signal: SIGKILL))
        #expect(!isThere(try #require(directory.processID("daemon"))))
        loop.close()
    }

    @Test("when the host's end closes everything gets SIGTERM, and SIGKILL after 2 s")
    func hostGone() throws {
        let loop = try Loop()
        let directory = PluginsDirectory()
        let script = """
            T=\(directory.path); export T; \(daemon) \(waitForDaemon)
            trap 'echo asked > $T/asked' TERM; echo $$ > $T/up; while :; do sleep 0.05; done
            """
        let guarded = try GuardHarness(loop, script: script)
        try loop.run(until: { directory.processID("up") != nil })
        let closedAt = Loop.monotonicNanoseconds
        guarded.lifeLine.close()
        try guarded.finish()
        let milliseconds = (Loop.monotonicNanoseconds - closedAt) / 1_000_000
        #expect((1_900...10_000).contains(milliseconds))
        #expect(directory.read("asked") == "asked\n")
        #expect(!isThere(try #require(directory.processID("up"))))
        #expect(!isThere(try #require(directory.processID("daemon"))))
        loop.close()
    }

    @Test("a plugin that heeds SIGTERM ends at once when the host's end closes")
    func hostGoneHeeded() throws {
        let loop = try Loop()
        let guarded = try GuardHarness(loop, script: "exec sleep 1000")
        try loop.run(until: { guarded.processID != nil })
        guarded.lifeLine.close()
        try guarded.finish(seconds: 15)
        #expect(guarded.reports.last == .killed(signal: SIGTERM))
        loop.close()
    }

    @Test("kill -9 of the process that holds the life line is the end of the plugin")
    func hostKilled() throws {
        let loop = try Loop()
        let guarded = try GuardHarness(loop, script: "exec sleep 1000")
        try loop.run(until: { guarded.processID != nil })
        var hasEnded = false
        let holder = try ChildProcess(
            loop: loop,
            options: ChildOptions(
                program: "/bin/sleep", arguments: ["1000"],
                descriptors: [.null, .null, .null, .inherited(guarded.lifeLine.stream.fileDescriptor)])
        ) { _ in hasEnded = true }
        guarded.lifeLine.close()
        loop.run(.noWait)
        #expect(guarded.exit == nil)
        try holder.kill(SIGKILL)
        try guarded.finish()
        try loop.run(until: { hasEnded })
        holder.close()
        loop.run()
        #expect(guarded.reports.last == .killed(signal: SIGTERM))
        loop.close()
    }

    @Test("what a plugin leaves behind, daemons too, ends with it")
    func leftovers() throws {
        let loop = try Loop()
        let directory = PluginsDirectory()
        // The subshell ends at once, so that the daemon is an orphan: a double fork.
        let guarded = try GuardHarness(
            loop, script: "T=\(directory.path); export T; ( \(daemon) ); \(waitForDaemon); exit 3")
        try guarded.finish()
        #expect(guarded.exit?.status == 3)
        #expect(!isThere(try #require(directory.processID("daemon"))))
        loop.close()
    }

    @Test("a guard that is killed takes the plugin with it")
    func guardKilled() throws {
        let loop = try Loop()
        let guarded = try GuardHarness(loop, script: "trap '' TERM; exec sleep 1000")
        try loop.run(until: { guarded.processID != nil })
        let plugin = try #require(guarded.processID)
        try guarded.process.kill(SIGKILL)
        try loop.run(until: { hasEnded(plugin) })
        try guarded.finish()
        loop.close()
    }

    @Test("reports and arguments come back as they went out")
    func roundTrips() {
        let reports: [GuardReport] = [
            .spawned(processID: 12_345), .notSpawned(errorCode: 2), .exited(status: 255), .killed(signal: 9), .gaveUp,
        ]
        for report in reports {
            #expect(withUnsafeBytes(of: report.word) { GuardReport(Array($0)) } == report)
        }
        #expect(GuardReport([9, 0, 0, 0, 0, 0, 0, 0]) == nil)
        let arguments = GuardArguments(
            lifeLine: 4, status: 5, inherited: 3, openFilesMax: 256, command: ["./run", "--", "-x"])
        #expect(GuardArguments(arguments.arguments) == arguments)
        for wrong in [[], ["--"], ["--life-line", "4"], ["--life-line", "x", "--", "a"], ["--else", "4", "--", "a"]] {
            #expect(GuardArguments(wrong) == nil)
        }
    }

    @Test("the parent in /proc/N/stat is found whatever the process calls itself")
    func statLine() {
        #expect(ProcessTable.parent(inLine: Array("12 (sh) S 7 12 12".utf8)) == 7)
        #expect(ProcessTable.parent(inLine: Array("12 (a) S 1 (b) R 9 12".utf8)) == 9)
        #expect(ProcessTable.parent(inLine: Array("12 (a".utf8)) == nil)
        #expect(ProcessTable.parent(inLine: Array("12 (a)".utf8)) == nil)
    }
}

import Glibc
import LarderLoop
import Testing

@testable import LarderHost

/// A host core in little: a plugin that writes R is ready, B is its goodbye, F means that it is refused; GOODBYE goes
/// to it as the line `bye`.
private final class TestCore {
    let loop: Loop
    let directory = PluginsDirectory()
    let registry: PluginRegistry
    private(set) var host: PluginHost!
    private(set) var received: [String: String] = [:]
    private(set) var states: [String: [String]] = [:]
    private var streams: [String: LarderLoop.Stream] = [:]

    init(limits: (inout SupervisorLimits) -> Void = { _ in }) throws {
        loop = try Loop()
        let library = directory.path + "/library"
        registry = PluginRegistry(library: library)
        var surroundings = PluginSurroundings(
            library: library, socket: library + "/socket", larderProgram: try larderProgram())
        surroundings.limits.backOffMinMilliseconds = 20
        limits(&surroundings.limits)
        host = PluginHost(
            loop: loop, registry: registry, surroundings: surroundings,
            hooks: PluginHooks(
                adoptConnection: { [unowned self] in adopt($0, $1) },
                sendGoodbye: { [unowned self] name in
                    _ = try? Array("bye\n".utf8).withUnsafeBytes { try streams[name]?.tryWrite($0) }
                },
                stateChanged: { [unowned self] name, state in states[name, default: []].append(state.name) }))
    }

    func add(_ name: String, _ script: String, more: String = "") throws {
        try registry.add(path: directory.plugin(name, script: script, more: more))
    }

    func state(_ name: String) -> String { host.statusRows().first { $0.name == name }?.state ?? "unknown" }
    func row(_ name: String) throws -> PluginHost.StatusRow {
        try #require(host.statusRows().first { $0.name == name })
    }

    /// Ready, and the process told: READY may be quicker than the guard.
    func isReady(_ name: String) -> Bool {
        host.statusRows().contains { $0.name == name && $0.state == "ready" && $0.processID > 0 }
    }

    func run(until condition: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation) throws {
        try loop.run(until: condition, "\(host.statusRows())", sourceLocation: sourceLocation)
    }

    /// Stops all, and closes the loop, which fails if anything is left on it.
    func finish() throws {
        var completions = 0
        let start = Loop.monotonicNanoseconds
        host.stopAll { completions += 1 }
        try loop.run(until: { completions > 0 }, "stopAll did not complete")
        #expect(Loop.monotonicNanoseconds - start < 6_500_000_000)
        for stream in streams.values { stream.close() }
        loop.run()
        #expect(completions == 1)
        loop.close()
    }

    private func adopt(_ descriptor: Int32, _ name: String) {
        do {
            let stream = try Stream(loop: loop, adopting: descriptor)
            streams[name] = stream
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256, alignment: 1)
            try stream.startReading(allocate: { _ in buffer }) { [unowned self] event in
                switch event {
                case .bytes(let count):
                    for byte in buffer[..<count] { take(byte, name) }
                case .end, .failed:
                    buffer.deallocate()
                    stream.close()
                    if streams[name] === stream { streams[name] = nil }
                    host.connectionLost(name)
                }
            }
        } catch { Issue.record(error) }
    }

    private func take(_ byte: UInt8, _ name: String) {
        received[name, default: ""].append(Character(Unicode.Scalar(byte)))
        switch byte {
        case UInt8(ascii: "R"): host.pluginReady(name)
        case UInt8(ascii: "B"): host.saidGoodbye(name)
        case UInt8(ascii: "F"): host.refused(name, reason: "unknown kind")
        default: break
        }
    }
}

@Suite("PluginHost")
struct PluginsRunnerTests {
    /// Says READY and ends when it is told goodbye.
    private let polite = "echo $$ > $T/self; printf R >&3; read line <&3; exit 0"

    @Test("a plugin starts, is ready with its own environment, and ends on GOODBYE")
    func life() throws {
        let core = try TestCore()
        try core.add(
            "polite", "env > $T/env; pwd > $T/pwd; echo out; echo trouble >&2; " + polite,
            more: ", \"settings\": {\"sound\": {\"default\": true}}")
        core.host.start()
        #expect(core.state("polite") == "starting")
        try core.run(until: { core.isReady("polite") })
        let row = try core.row("polite")
        #expect(row.processID == core.directory.processID("self"))
        #expect(row.restartCount == 0 && row.lastError == "")
        let environment = core.directory.read("env").split(separator: "\n")
        #expect(environment.contains("LARDER_FD=3"))
        #expect(environment.contains("LARDER_PLUGIN_NAME=polite"))
        #expect(environment.contains("LARDER_PLUGIN_DATA=\(core.directory.path)/library/plugins/polite/data"))
        #expect(!environment.contains { $0.hasPrefix("LARDER_TOKEN") })
        #expect(core.directory.read("pwd") == core.directory.path + "/polite\n")
        #expect(core.host.settings(of: "polite").map(\.jsonText) == ["true"])

        try core.finish()
        #expect(!isThere(row.processID))
        let log = core.directory.read("library/plugins/polite/log")
        #expect(log.contains(" out  out\n") && log.contains(" err  trouble\n"))
        #expect(log.contains(" host stopped: exit status 0\n") && !log.contains("SIGTERM"))
    }

    @Test("one that hears nothing is killed with all that it started, daemons too")
    func stubborn() throws {
        let core = try TestCore {
            $0.goodbyeMilliseconds = 50
            $0.terminateMilliseconds = 50
        }
        try core.add(
            "stubborn",
            """
            export T
            setsid sh -c 'trap "" TERM; echo $$ > $T/daemon; sleep 1000; sleep 1000' &
            trap '' TERM
            while [ ! -s $T/daemon ]; do sleep 0.01; done
            printf R >&3; sleep 1000; sleep 1000
            """)
        core.host.start()
        try core.run(until: { core.isReady("stubborn") })
        let processID = try core.row("stubborn").processID
        let daemon = try #require(core.directory.processID("daemon"))
        #expect(try core.host.disable("stubborn") == "draining")
        try core.run(until: { core.state("stubborn") == "disabled" })
        #expect(!isThere(processID) && !isThere(daemon))
        let log = core.directory.read("library/plugins/stubborn/log")
        #expect(log.contains("SIGTERM\n") && log.contains("SIGKILL\n") && log.contains("killed by signal 9\n"))
        try core.finish()
    }

    @Test("READY that never comes is a crash")
    func neverReady() throws {
        let core = try TestCore {
            $0.readyMilliseconds = 100
            $0.backOffMinMilliseconds = 60_000
        }
        try core.add("mute", "trap '' TERM; echo still thinking >&2; sleep 1000; sleep 1000")
        core.host.start()
        try core.run(until: { core.state("mute") == "backing off" })
        #expect(try core.row("mute").lastError == "crashed: was not ready within 100 ms: still thinking")
        #expect(core.states["mute"] == ["starting", "draining", "backing off"])
        try core.finish()
    }

    @Test("crashes are restarted after a while, and end in quarantine with the last line of the errors")
    func quarantine() throws {
        let core = try TestCore()
        try core.add("crash", "echo no such page >&2; exit 3")
        core.host.start()
        try core.run(until: { core.state("crash") == "quarantined" })
        let row = try core.row("crash")
        #expect(row.restartCount == 4)
        #expect(row.lastError == "crashed: exit status 3: no such page")
        #expect(core.host.lastErrorLines(of: "crash").count == 5)
        #expect(try core.host.startOnDemand("crash") == "quarantined")
        #expect(try core.host.enable("crash") == "starting")
        try core.finish()
    }

    @Test("bad configuration, a refusal and a goodbye are not started again")
    func ends() throws {
        let core = try TestCore()
        try core.add("config", "exit 78")
        try core.add("refused", "printf F >&3; read line <&3; exit 1")
        try core.add("done", "printf RB >&3; exit 0")
        try core.add("signal", "kill -ABRT $$")
        try core.add("gone", "exit 0")
        unlink(core.directory.path + "/gone/run.sh")
        core.host.start()
        try core.run(until: {
            core.state("config") == "bad configuration" && core.state("refused") == "refused"
                && core.state("done") == "finished" && core.state("signal") == "quarantined"
                && core.state("gone") == "bad configuration"
        })
        #expect(try core.row("signal").lastError == "crashed: killed by signal 6")
        #expect(try core.row("refused").lastError == "refused: unknown kind")
        #expect(try core.row("gone").lastError.contains("No such file or directory"))
        try core.finish()
    }

    @Test("twenty restarts leave no zombie and no second process")
    func restarts() throws {
        let core = try TestCore { $0.restartMilliseconds = 1 }
        try core.add("polite", "sleep 1000 & echo $! >> $T/children; " + polite)
        core.host.start()
        var seen: Set<pid_t> = []
        var guards: Set<pid_t> = []
        for round in 1...20 {
            try core.run(until: { core.isReady("polite") })
            seen.insert(try core.row("polite").processID)
            guards.insert(try #require(guardProcess(of: try core.row("polite").processID)))
            if round < 20 { #expect(try core.host.reload("polite") == "draining") }
        }
        #expect(seen.count == 20)
        #expect(try core.row("polite").restartCount == 19)
        try core.finish()
        let children = core.directory.read("children").split(separator: "\n").compactMap { pid_t($0) }
        #expect(children.count == 20)
        #expect(guards.count == 20)
        // One that had ended and was not reaped would still be there.
        #expect(seen.union(children).union(guards).filter(isThere) == [])
    }

    @Test("a plugin that connects by itself gets a token that is good once")
    func token() throws {
        let core = try TestCore { $0.readyMilliseconds = 60_000 }
        try core.add(
            "caller", "env > $T/env.new; mv $T/env.new $T/env; trap 'exit 0' TERM; while :; do sleep 0.05; done",
            more: ", \"connect\": \"socket\"")
        core.host.start()
        try core.run(until: { !core.directory.read("env").isEmpty })
        let environment = core.directory.read("env").split(separator: "\n")
        #expect(environment.contains("LARDER_SOCKET=\(core.directory.path)/library/socket"))
        #expect(!environment.contains { $0.hasPrefix("LARDER_FD") })
        let token = try #require(environment.first { $0.hasPrefix("LARDER_TOKEN=") }).dropFirst(13)
        #expect(core.host.plugin(forToken: Array(token.utf8)) == "caller")
        #expect(core.host.plugin(forToken: Array(token.utf8)) == nil)
        let processID = try core.row("caller").processID
        let arguments = try PluginFiles.readWhole("/proc/\(processID)/cmdline", byteCountMax: 65_536)
        #expect(!String(decoding: arguments, as: UTF8.self).contains(token))
        core.host.stop("caller")
        try core.run(until: { core.state("caller") == "stopped" })
        try core.finish()
    }

    @Test("one on demand waits for its import, and is finished when it exits with 0")
    func onDemand() throws {
        let core = try TestCore()
        try core.add("importer", "printf R >&3; exit 0", more: ", \"on_demand\": true")
        try core.add("broken", "exit 0")
        core.directory.write("broken/larder-plugin.json", "{\"name\": \"broken\", \"colour\": 1}")
        core.host.start()
        #expect(core.state("importer") == "stopped")
        #expect(core.state("broken") == "bad manifest")
        #expect(try core.row("broken").lastError.contains("unknown key \"colour\""))
        #expect(try core.host.startOnDemand("importer") == "starting")
        try core.run(until: { core.state("importer") == "finished" })
        #expect(throws: PluginError.unknownPlugin(name: "none")) { _ = try core.host.startOnDemand("none") }
        #expect(try core.host.forget("importer") == "forgotten")
        #expect(core.state("importer") == "unknown")
        try core.finish()
        #expect(throws: PluginError.stopping) { _ = try core.host.enable("broken") }
    }

    @Test("a plugin that floods its log is slowed down, and is stopped like any other")
    func flood() throws {
        let core = try TestCore {
            $0.goodbyeMilliseconds = 50
            $0.terminateMilliseconds = 200
        }
        try core.add("flood", "printf R >&3; exec cat /dev/zero")
        core.host.start()
        try core.run(until: { !core.directory.read("library/plugins/flood/log.1").isEmpty })
        core.host.stop("flood")
        try core.run(until: { core.state("flood") == "stopped" })
        try core.finish()
    }

    @Test("a guard that does not answer is let go of within the time that stopping may take")
    func stuckGuard() throws {
        let core = try TestCore {
            $0.goodbyeMilliseconds = 50
            $0.terminateMilliseconds = 50
            $0.stopAllMilliseconds = 300
        }
        try core.add("stuck", "sleep 1000 & echo $! > $T/child; printf R >&3; trap '' TERM; wait; sleep 1000")
        core.host.start()
        try core.run(until: { core.isReady("stuck") && core.directory.processID("child") != nil })
        let processID = try core.row("stuck").processID
        let child = try #require(core.directory.processID("child"))
        let guardID = try #require(guardProcess(of: processID))
        #expect(kill(guardID, SIGSTOP) == 0)
        try core.finish()
        // The handle of the guard was given up, so that it is reaped here.
        #expect(waitpid(guardID, nil, 0) == guardID)
        let loop = try Loop()
        try loop.run(until: { hasEnded(processID) && hasEnded(child) })
        loop.close()
    }

    @Test("a guard program that is missing is told, and nothing is left")
    func noGuard() throws {
        let loop = try Loop()
        let directory = PluginsDirectory()
        let registry = PluginRegistry(library: directory.path + "/library")
        try registry.add(path: directory.plugin("a", script: "exit 0"))
        let host = PluginHost(
            loop: loop, registry: registry,
            surroundings: PluginSurroundings(
                library: directory.path + "/library", socket: "/s", larderProgram: "/nonexistent/larder"),
            hooks: PluginHooks(adoptConnection: { _, _ in Issue.record("adopted") }, sendGoodbye: { _ in }))
        host.start()
        #expect(host.statusRows().first?.state == "bad configuration")
        var completions = 0
        host.stopAll { completions += 1 }
        loop.run()
        #expect(completions == 1)
        loop.close()
    }
}

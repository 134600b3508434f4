import Testing

@testable import LarderHost

/// Every state against every event. What a row does not name leaves the state as it is and asks for nothing.
@Suite("Supervisor")
struct PluginsSupervisorTests {
    typealias Step = (event: SupervisorEvent, now: UInt64)

    struct Row: CustomTestStringConvertible, Sendable {
        let state: String
        let setup: [Step]
        /// Event → "state" or "state | actions".
        let changes: [String: String]
        var testDescription: String { state }
    }

    static let events: [(name: String, event: SupervisorEvent)] = [
        ("enable", .enable), ("stop", .stopRequested), ("restart", .restartRequested), ("spawned", .spawned(8)),
        ("spawn failed", .spawnFailed(reason: "no memory", isPermanent: false)),
        ("no program", .spawnFailed(reason: "no such file", isPermanent: true)), ("ready", .ready),
        ("goodbye", .saidGoodbye), ("refused", .refused("unknown kind")), ("lost", .connectionLost),
        ("exit 0", .exited(.status(0))), ("exit 1", .exited(.status(1))), ("exit 78", .exited(.status(78))),
        ("signal 9", .exited(.signal(9))), ("tick", .tick),
    ]
    static let ends = ["spawn failed", "no program", "exit 0", "exit 1", "exit 78", "signal 9"]

    private static let starting: [Step] = [(.enable, 0), (.spawned(7), 0)]
    private static let ready = starting + [(.ready, 0)]
    private static let stopped = ["enable": "starting | spawn setTimer"]
    private static let up = [
        "stop": "draining.stop.goodbye | sendGoodbye setTimer",
        "restart": "draining.restart.goodbye | sendGoodbye setTimer",
        "refused": "draining.refused.goodbye | sendGoodbye setTimer",
        "lost": "draining.lostConnection.exiting | setTimer",
        "spawn failed": "backingOff | setTimer", "no program": "stopped.badConfiguration | cancelTimer",
        "exit 0": "backingOff | setTimer", "exit 1": "backingOff | setTimer",
        "exit 78": "stopped.badConfiguration | cancelTimer", "signal 9": "backingOff | setTimer",
    ]
    private static func all(_ outcome: String) -> [String: String] {
        Dictionary(uniqueKeysWithValues: ends.map { ($0, outcome) })
    }

    static let rows: [Row] = [
        Row(state: "stopped.notStarted", setup: [], changes: stopped),
        Row(
            state: "stopped.finished", setup: ready + [(.saidGoodbye, 0), (.exited(.status(0)), 0)], changes: stopped),
        Row(state: "stopped.badConfiguration", setup: ready + [(.exited(.status(64)), 0)], changes: stopped),
        Row(
            state: "stopped.refused", setup: ready + [(.refused("no"), 0), (.exited(.status(1)), 0)], changes: stopped),
        Row(
            state: "starting", setup: starting,
            changes: up.merging(["ready": "ready | cancelTimer", "tick": "draining.notReady.killing | kill setTimer"]) {
                $1
            }),
        Row(state: "ready", setup: ready, changes: up),
        Row(
            state: "draining.stop.goodbye", setup: ready + [(.stopRequested, 0)],
            changes: all("stopped.requested | cancelTimer").merging([
                "enable": "draining.restart.goodbye", "tick": "draining.stop.terminating | terminate setTimer",
            ]) { $1 }),
        Row(
            state: "draining.stop.terminating", setup: ready + [(.stopRequested, 0), (.tick, 2000)],
            changes: all("stopped.requested | cancelTimer").merging([
                "enable": "draining.restart.terminating", "tick": "draining.stop.killing | kill setTimer",
            ]) { $1 }),
        Row(
            state: "draining.stop.killing", setup: ready + [(.stopRequested, 0), (.tick, 2000), (.tick, 5000)],
            changes: all("stopped.requested | cancelTimer").merging([
                "enable": "draining.restart.killing", "tick": "draining.stop.killing | kill setTimer",
            ]) { $1 }),
        Row(
            state: "draining.restart.goodbye", setup: ready + [(.restartRequested, 0)],
            changes: all("backingOff | setTimer").merging([
                "stop": "draining.stop.goodbye", "tick": "draining.restart.terminating | terminate setTimer",
            ]) { $1 }),
        Row(
            state: "draining.refused.goodbye", setup: ready + [(.refused("no"), 0)],
            changes: all("stopped.refused | cancelTimer").merging([
                "enable": "draining.restart.goodbye", "stop": "draining.stop.goodbye",
                "tick": "draining.refused.terminating | terminate setTimer",
            ]) { $1 }),
        Row(
            state: "draining.notReady.killing", setup: starting + [(.tick, 10_000)],
            changes: all("backingOff | setTimer").merging([
                "no program": "stopped.badConfiguration | cancelTimer", "stop": "draining.stop.killing",
                "restart": "draining.restart.killing", "tick": "draining.notReady.killing | kill setTimer",
            ]) { $1 }),
        Row(
            state: "draining.lostConnection.exiting", setup: ready + [(.connectionLost, 0)],
            changes: all("backingOff | setTimer").merging([
                "no program": "stopped.badConfiguration | cancelTimer",
                "exit 78": "stopped.badConfiguration | cancelTimer", "stop": "draining.stop.exiting",
                "restart": "draining.restart.exiting",
                "tick": "draining.lostConnection.terminating | terminate setTimer",
            ]) { $1 }),
        Row(
            state: "draining.lostConnection.terminating", setup: ready + [(.connectionLost, 0), (.tick, 2000)],
            changes: all("backingOff | setTimer").merging([
                "no program": "stopped.badConfiguration | cancelTimer", "stop": "draining.stop.terminating",
                "restart": "draining.restart.terminating", "tick": "draining.lostConnection.killing | kill setTimer",
            ]) { $1 }),
        Row(
            state: "backingOff", setup: ready + [(.exited(.status(1)), 0)],
            changes: [
                "enable": "starting | spawn setTimer", "restart": "starting | spawn setTimer",
                "tick": "starting | spawn setTimer", "stop": "stopped.requested | cancelTimer",
            ]),
        Row(
            state: "quarantined", setup: crashes(5),
            changes: ["enable": "starting | spawn setTimer", "stop": "stopped.requested | cancelTimer"]),
    ]

    /// So many crashes, one a second, each after a start that came when it was due.
    static func crashes(_ count: Int) -> [Step] {
        var steps: [Step] = [(.enable, 0), (.exited(.status(1)), 0)]
        for crash in 1..<count {
            // Due by then: the longest of these waits is 9.6 s.
            steps += [(.tick, UInt64(crash) * 10_000), (.exited(.status(1)), UInt64(crash) * 10_000)]
        }
        return steps
    }

    @Test("every event in every state", arguments: rows)
    func table(row: Row) {
        for (name, event) in Self.events {
            var supervisor = Supervisor(seed: 1)
            var now: UInt64 = 0
            for step in row.setup {
                now = step.now
                _ = supervisor.handle(step.event, now: now)
            }
            #expect(described(supervisor.state) == row.state)
            if event == .tick, let deadline = supervisor.state.deadline { now = deadline }
            let before = supervisor.state
            let actions = supervisor.handle(event, now: now).compactMap(described)
            let expected = row.changes[name]?.split(separator: "|").map { $0.trimmed }
            if let expected {
                #expect(described(supervisor.state) == expected[0], "\(name)")
                #expect(actions.joined(separator: " ") == (expected.count > 1 ? expected[1] : ""), "\(name)")
            } else {
                #expect(supervisor.state == before, "\(name)")
                #expect(actions == [], "\(name)")
            }
            #expect(supervisor.isRunning || supervisor.processID == 0)
        }
    }

    @Test("a tick that comes early asks for the same time again")
    func earlyTick() {
        var supervisor = Supervisor(seed: 1)
        _ = supervisor.handle(.enable, now: 500)
        #expect(supervisor.handle(.tick, now: 10_499) == [.setTimer(10_500)])
        #expect(supervisor.state == .starting(deadline: 10_500))
    }

    @Test("a stop is GOODBYE, after 2 s SIGTERM, after 3 s more SIGKILL, and once a second again")
    func stop() {
        var supervisor = Supervisor(seed: 1)
        for (event, now) in Self.ready { _ = supervisor.handle(event, now: now) }
        #expect(supervisor.handle(.stopRequested, now: 100) == [.sendGoodbye, .setTimer(2_100)])
        #expect(supervisor.handle(.tick, now: 2_100).filter(isAct) == [.terminate, .setTimer(5_100)])
        #expect(supervisor.handle(.tick, now: 5_100).filter(isAct) == [.kill, .setTimer(6_100)])
        #expect(supervisor.handle(.tick, now: 6_100).filter(isAct) == [.kill, .setTimer(7_100)])
        _ = supervisor.handle(.exited(.signal(9)), now: 6_200)
        #expect(supervisor.state == .stopped(.requested))
        #expect(supervisor.lastError == "")
    }

    @Test("waiting times double from 1 s to 60 s with a fifth of jitter, the same for a seed")
    func backOff() {
        var first = BackOff(limits: SupervisorLimits(), seed: 42)
        var second = BackOff(limits: SupervisorLimits(), seed: 42)
        for base: UInt64 in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            let wait = first.next()
            #expect(wait == second.next())
            #expect((base * 800...min(base * 1_200, 60_000)).contains(wait))
        }
        first.reset()
        #expect((800...1_200).contains(first.next()))
    }

    @Test("60 s of health reset the back-off, and less does not")
    func health() {
        for (health, range) in [(59_999, 1_600...2_400), (60_000, 800...1_200)] as [(UInt64, ClosedRange<UInt64>)] {
            var supervisor = Supervisor(seed: 3)
            for (event, now) in Self.ready { _ = supervisor.handle(event, now: now) }
            _ = supervisor.handle(.exited(.status(1)), now: 0)
            _ = supervisor.handle(.tick, now: 2_000)
            _ = supervisor.handle(.ready, now: 2_000)
            _ = supervisor.handle(.exited(.status(1)), now: 2_000 + health)
            guard case .backingOff(let until) = supervisor.state else {
                Issue.record("\(supervisor.state)")
                continue
            }
            #expect(range.contains(until - 2_000 - health))
            #expect(supervisor.restartCount == 1)
        }
    }

    @Test("crashes further apart than three minutes don't add up")
    func slowCrashes() {
        var supervisor = Supervisor(seed: 3)
        var now: UInt64 = 0
        _ = supervisor.handle(.enable, now: now)
        for _ in 0..<20 {
            _ = supervisor.handle(.exited(.signal(11)), now: now)
            #expect(supervisor.state.name == "backing off")
            now += 46_000  // four in three minutes
            _ = supervisor.handle(.tick, now: max(now, supervisor.state.deadline ?? 0))
            now = max(now, supervisor.state.deadline.map { $0 - 10_000 } ?? 0)
        }
        #expect(supervisor.lastError == "crashed: killed by signal 11")
    }

    @Test("refused, bad configuration and crashed are told apart")
    func reasons() {
        func end(_ events: [SupervisorEvent], isOnDemand: Bool = false) -> SupervisorState {
            var supervisor = Supervisor(isOnDemand: isOnDemand, seed: 1)
            for event in [.enable, .spawned(9)] + events { _ = supervisor.handle(event, now: 0) }
            return supervisor.state
        }
        #expect(end([.refused("bad token"), .exited(.status(1))]) == .stopped(.refused("bad token")))
        #expect(end([.exited(.status(78))]) == .stopped(.badConfiguration("exit status 78")))
        #expect(end([.exited(.status(75))]).name == "backing off")
        #expect(end([.exited(.status(0))]).name == "backing off")
        #expect(end([.saidGoodbye, .connectionLost, .exited(.status(0))]) == .stopped(.finished))
        #expect(end([.saidGoodbye, .exited(.status(1))]).name == "backing off")
        #expect(end([.exited(.status(0))], isOnDemand: true) == .stopped(.finished))
        #expect(end([.exited(.status(1))], isOnDemand: true) == .stopped(.failed("exit status 1")))
    }

    private func described(_ state: SupervisorState) -> String {
        switch state {
        case .stopped(let reason): "stopped.\(caseName(reason))"
        case .starting: "starting"
        case .ready: "ready"
        case .draining(let intent, let stage, _): "draining.\(caseName(intent)).\(stage)"
        case .backingOff: "backingOff"
        case .quarantined: "quarantined"
        }
    }

    private func described(_ action: SupervisorAction) -> String? {
        if case .log = action { return nil }
        return caseName(action)
    }

    private func isAct(_ action: SupervisorAction) -> Bool { described(action) != nil }

    private func caseName(_ value: Any) -> String { String("\(value)".prefix { $0 != "(" }) }
}

extension Substring {
    fileprivate var trimmed: String { String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()) }
}

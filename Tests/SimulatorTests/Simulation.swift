// One life of a library: a host on a disk that loses power, peers that come and go, and at the end the reckoning.

import LarderFormat
@testable import LarderLoop
import LarderWire

@testable import LarderHost
@testable import LarderStore

/// What a run is to do.
struct Scenario {
    var seed: UInt64
    var steps = 120
    var isTraced = false
    /// A bug of the host or of the store to be found.
    var hostCanary: HostCanary?
    var configureStore: (inout StoreOptions) -> Void = { _ in }
}

/// What a run came to.
struct Course: Equatable {
    var digest: UInt64
    var stepCount = 0
    var answerCount = 0
    var entryCount = 0
    var cutCount = 0
    var restartCount = 0
    var tally = Tally()
}

final class Simulation {
    static let library = "/library"
    /// Below a file: the system has no such path, so nothing outside the simulation is touched.
    static let socket = "/dev/null/larder"

    let scenario: Scenario
    let dice: Dice
    let trace: Trace
    let truth = Truth()
    let peers: [Peer]
    /// Who asked for a compaction, and holds the floor while it lasts.
    var anchor: Peer?
    private(set) var files: SimulatedFiles
    private(set) var loop: SimulatedLoop
    private(set) var host: Host?
    private var habits = SimulatedLoop.Habits()
    private var storeOptions = StoreOptions()
    private(set) var step = 0
    private var course = Course(digest: 0)

    init(_ scenario: Scenario) {
        self.scenario = scenario
        dice = Dice(seed: scenario.seed)
        trace = Trace(isOn: scenario.isTraced)
        files = SimulatedFiles(seed: dice.next())
        loop = SimulatedLoop(generator: dice.another())
        let (truth, dice, trace) = (truth, dice, trace)
        peers = (0...1 + dice.below(3)).map { Peer(name: "p\($0)", truth: truth, dice: dice, trace: trace) }
        truth.isHeavy = dice.chance(15)
        habits.jobPercent = dice.pick([10, 50, 90])
        habits.socketPercent = dice.pick([30, 80, 100])
        habits.shortPercent = dice.pick([0, 30, 70])
        habits.socketByteCount = dice.pick([200, 4_096, 65_536, 262_144])
        habits.stepNanosecondsMax = dice.pick([20_000, 400_000, 4_000_000])
        storeOptions.kinds = Films.kinds
        storeOptions.identitySeed = dice.next()
        storeOptions.segmentByteCountMax = dice.pick([8_192, 16_384, 65_536, 67_108_864])
        storeOptions.commitByteCountTarget = dice.pick([400, 8_192, 2_097_152])
        storeOptions.replayByteCountMax = dice.pick([0, 4_194_304])
        storeOptions.reserveByteCount = dice.pick([0, 8_192, 65_536])
        scenario.configureStore(&storeOptions)
        files.setBlockingReads(percent: dice.pick([0, 0, 30, 70]))
    }

    /// Lives through all steps, then compares everything. Throws a `Difference`.
    func run() throws -> Course {
        try start()
        for at in 0..<scenario.steps {
            step = at
            try take(dice.weighted(StepKind.weights))
            try go(turns: dice.below(3))
        }
        step = scenario.steps
        try settle()
        guard try audit() else { throw Difference("the library changes while nobody writes") }
        try stop()
        course.digest = trace.digest
        course.stepCount = scenario.steps
        course.answerCount = peers.reduce(0) { $0 + $1.answerCount }
        course.entryCount = truth.entries.count
        course.tally = truth.tally
        return course
    }

    // MARK: The machine

    /// Starts a host on what the disk holds; the power may go meanwhile, again and again.
    func start() throws {
        while true {
            if dice.chance(20) { files.cutPower(afterMutations: dice.below(step == 0 ? 40 : 10)) }
            let isFaulty = dice.chance(4)
            if isFaulty { fault() }
            loop = SimulatedLoop(
                nanoseconds: loop.clock + 1_000_000_000, generator: dice.another())
            loop.habits = habits
            // A clock that was put right may go back.
            loop.wallClockOrigin += Int64(dice.below(200_000)) - 50_000
            loop.hasPower = { [files] in files.hasPower }
            var options = HostOptions(library: Simulation.library, socket: Simulation.socket)
            options.isTransient = true
            options.idleMilliseconds = 1_000_000_000
            options.files = files
            options.simulation = loop
            options.store = storeOptions
            options.canary = scenario.hostCanary
            options.log = { [trace] in trace.note("host: \($0)") }
            do throws(HostError) { host = try Host(options: options) } catch {
                guard files.openFileCount == 0 else { throw Difference("files are open after \(error)") }
                guard isFaulty || !files.hasPower else { throw Difference("the library cannot be opened: \(error)") }
            }
            if host != nil {
                guard host?.begin() == true else { throw Difference("the host cannot begin") }
                // On a full disk it may start without its kinds, which is not played through here.
                if files.hasPower, host?.store.kinds.count == Films.kinds.count {
                    files.cutPower(afterMutations: Int.max)
                    trace.note("the host has started, last seq \(host?.store.lastSeq ?? 0)")
                    return
                }
                try bury()
            }
            trace.note("the host does not come to start")
            truth.tally.count(files.hasPower ? .faultInStart : .powerFailedInStart)
            if files.hasPower || dice.chance(25) {
                files.processDies()
                files.clearFaults()
            } else {
                course.cutCount += 1
                files = dice.cut(files, nil)
            }
        }
    }

    /// Ends a host whose machine is dead, so that its memory is given back. Nobody hears of it.
    private func bury() throws {
        for peer in peers + (anchor.map { [$0] } ?? []) {
            // What had left the machine may still arrive, to any byte.
            peer.mayBeCut = true
            if dice.chance(70) { try peer.receive(Int.max) }
            peer.disconnect()
        }
        anchor = nil
        try end()
    }

    private func end() throws {
        host?.stop(reason: "its machine is gone")
        var turns = 0
        while let host, host.loop.run(.noWait) {
            turns += 1
            if turns > 100_000 { throw Difference("a host whose machine is gone does not end") }
        }
        try giveUpHost()
    }

    /// Lets a host go whose loop has ended: nothing of it may be left.
    private func giveUpHost() throws {
        _ = host?.end()
        weak let ghost = host
        host = nil
        guard ghost == nil else { throw Difference("a host that has ended is held by somebody") }
        guard files.openFileCount == 0 else { throw Difference("\(files.openFileCount) files are still open") }
        truth.tally.count(.commitOffLoop, loop.threadJobCount)
        truth.tally.count(.readOffLoop, loop.poolJobCount)
    }

    /// The process dies in the midst of whatever it does. What it wrote is there, and still not durable.
    func kill() throws {
        trace.note("the process dies")
        loop.hasPower = { false }
        try bury()
        files.processDies()
        files.clearFaults()
        truth.tally.count(.processDied)
        try start()
    }

    /// The power is off: what is not durable may be gone.
    func crash(_ mode: PowerCutMode?) throws {
        trace.note("the power is off, \(mode.map { "\($0)" } ?? "anything lost")")
        course.cutCount += 1
        files.cutPower(afterMutations: 0)
        loop.hasPower = { false }
        try bury()
        files = dice.cut(files, mode)
        try start()
    }

    /// Ends the host in good order and starts it again.
    func restart() throws {
        trace.note("the host is told to stop")
        course.restartCount += 1
        host?.stop(reason: "the scenario wants it")
        for peer in peers { peer.mayBeCut = true }
        anchor?.mayBeCut = true
        var turns = 0
        while host?.loop.run(.noWait) == true {
            try moveBytes()
            if !files.hasPower { return try crash(nil) }
            turns += 1
            if turns > 100_000 { throw Difference("the host does not stop") }
        }
        try giveUpHost()
        for peer in peers + (anchor.map { [$0] } ?? []) {
            try peer.receive(Int.max)
            peer.disconnect()
        }
        anchor = nil
        files.clearFaults()
        files.setRoom(byteCountMax: nil)
        try start()
    }

    /// Takes turns of the host's loop, with what peers send and receive between them.
    func go(turns: Int) throws {
        for _ in 0...turns {
            try moveBytes()
            host?.loop.run(.noWait)
            if !files.hasPower { try dice.chance(25) ? kill() : crash(nil) }
        }
    }

    private func moveBytes() throws {
        if let anchor {
            anchor.send(Int.max)
            try anchor.receive(Int.max)
            if anchor.pending.isEmpty { anchor.disconnect() }
            if !anchor.isConnected { self.anchor = nil }
        }
        for peer in peers where peer.isConnected {
            if dice.chance(peer.sendPercent) { peer.send(dice.pick([1, 20, 1_000, 1_000_000])) }
            if dice.chance(peer.receivePercent) { try peer.receive(dice.pick([1, 30, 2_000, 1_000_000])) }
        }
    }

    // MARK: The end

    /// Ends faults and all connections, and lets the host finish what it has.
    private func settle() throws {
        files.cutPower(afterMutations: Int.max)
        for follower in peers.flatMap(\.followers) { follower.keepCopy(truth) }
        if host?.store.failure != nil || dice.chance(50) { try crash(.keepsAll) } else { files.clearFaults() }
        files.setRoom(byteCountMax: nil)
        for peer in peers { peer.disconnect() }
        anchor?.disconnect()
        anchor = nil
        for _ in 0..<100_000 where isAtRest(turns: 1) {
            if host?.allConnections.isEmpty != false { return }
        }
        throw Difference("the host does not come to rest")
    }

    private func stop() throws {
        host?.stop(reason: "the end")
        var turns = 0
        while let host, host.loop.run(.noWait) {
            turns += 1
            if turns > 100_000 { throw Difference("the host does not stop at the end") }
        }
        try giveUpHost()
    }
}

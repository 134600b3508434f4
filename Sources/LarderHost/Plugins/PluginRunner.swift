// Performs what the supervisor of one plugin decides.

import LarderLoop

/// What the host core does for its plugins, and hears from them. Loop thread.
public struct PluginHooks {
    /// Takes over the host's end of a plugin's connection.
    public var adoptConnection: (_ descriptor: Int32, _ plugin: String) -> Void
    /// Sends GOODBYE to the plugin's session, if it has one.
    public var sendGoodbye: (_ plugin: String) -> Void
    /// A line for the log of the host.
    public var log: (_ line: String) -> Void
    /// Called after every change of state.
    public var stateChanged: (_ plugin: String, _ state: SupervisorState) -> Void

    public init(
        adoptConnection: @escaping (Int32, String) -> Void, sendGoodbye: @escaping (String) -> Void,
        log: @escaping (String) -> Void = { _ in },
        stateChanged: @escaping (String, SupervisorState) -> Void = { _, _ in }
    ) {
        self.adoptConnection = adoptConnection
        self.sendGoodbye = sendGoodbye
        self.log = log
        self.stateChanged = stateChanged
    }
}

/// Where plugins find the library, and the host its own program.
public struct PluginSurroundings {
    /// The library's directory, absolute.
    public var library: String
    /// The library's socket.
    public var socket: String
    /// The `larder` program, absolute; it is started again as guard.
    public var larderProgram: String
    /// The host's variables.
    public var variable: (String) -> String?
    public var limits = SupervisorLimits()

    public init(
        library: String, socket: String, larderProgram: String,
        variable: @escaping (String) -> String? = PluginFiles.variable
    ) {
        self.library = library
        self.socket = socket
        self.larderProgram = larderProgram
        self.variable = variable
    }
}

/// One plugin on the loop. Loop thread; has to be closed.
final class PluginRunner {
    let name: String
    /// As of the last start or reload.
    var manifest: Manifest {
        didSet { supervisor.isOnDemand = manifest.isOnDemand }
    }
    /// Whether the registry says so.
    var isEnabled = true
    private(set) var supervisor: Supervisor
    let log: PluginLog

    private let loop: Loop
    private let surroundings: PluginSurroundings
    private let registry: PluginRegistry
    private let hooks: PluginHooks
    private let tokens: PluginTokenBox
    private var timer: Timer!
    private var process: PluginProcess?
    private var pending: [SupervisorEvent] = []
    private var isHandling = false

    init(
        loop: Loop, manifest: Manifest, surroundings: PluginSurroundings, registry: PluginRegistry, hooks: PluginHooks,
        tokens: PluginTokenBox
    ) throws(LoopError) {
        name = manifest.name
        self.loop = loop
        self.manifest = manifest
        self.surroundings = surroundings
        self.registry = registry
        self.hooks = hooks
        self.tokens = tokens
        log = PluginLog(path: registry.logPath(of: name), clock: { PluginFiles.wallMilliseconds })
        supervisor = PluginRunner.supervisor(manifest, surroundings)
        timer = try Timer(loop: loop) { [weak self] in self?.handle(.tick) }
    }

    /// Tells the supervisor, and does what it answers. From inside an action too: the event then waits its turn.
    func handle(_ event: SupervisorEvent) {
        pending.append(event)
        if isHandling { return }
        isHandling = true
        let before = supervisor.state
        while !pending.isEmpty {
            for action in supervisor.handle(pending.removeFirst(), now: loop.now) { perform(action) }
        }
        isHandling = false
        if supervisor.state != before { hooks.stateChanged(name, supervisor.state) }
    }

    /// Forgets crashes and errors of a plugin that does not run.
    func reset() {
        if supervisor.isRunning { return }
        handle(.stopRequested)
        supervisor = PluginRunner.supervisor(manifest, surroundings)
        log.forgetErrorLines()
    }

    var stateName: String {
        if !isEnabled, case .stopped = supervisor.state { return "disabled" }
        return supervisor.state.name
    }

    /// What went wrong last, with the last line of its error output; empty if nothing did.
    var lastError: String {
        let error = supervisor.lastError
        guard !error.isEmpty, let line = log.lastErrorLines.last(where: { !$0.isEmpty }) else { return error }
        return "\(error): \(line)"
    }

    /// Gives up a process that does not end.
    func abandon() { process?.abandon() }

    /// Only when nothing runs.
    func close(onClosed: @escaping () -> Void) {
        log.close()
        timer.close(onClosed: onClosed)
    }

    // MARK: Actions

    private func perform(_ action: SupervisorAction) {
        switch action {
        case .spawn: spawn()
        case .sendGoodbye: hooks.sendGoodbye(name)
        case .terminate: process?.terminate()
        case .kill: process?.kill()
        case .setTimer(let deadline):
            let now = loop.now
            do throws(LoopError) { try timer.start(afterMilliseconds: deadline > now ? deadline - now : 0) } catch {
                log.note("\(error)")
            }
        case .cancelTimer: timer.stop()
        case .log(let line):
            log.note(line)
            hooks.log("plugin \(name): \(line)")
        }
    }

    private func spawn() {
        do throws(PluginError) { try registry.makeDataDirectory(of: name) } catch {
            handle(.spawnFailed(reason: "\(error)", isPermanent: false))
            return
        }
        var ours: Int32?
        var theirs: Int32?
        do throws(LoopError) {
            let connection: PluginEnvironment.Connection
            switch manifest.connect {
            case .descriptor:
                let ends = try socketPair()
                (ours, theirs) = ends
                connection = .descriptor(PluginLaunch.inheritedDescriptor)
            case .socket:
                connection = .socket(path: surroundings.socket, token: tokens.value.issue(to: name))
            }
            process = try PluginProcess(
                loop: loop, launch: launch(connection, theirs), log: log,
                onSpawned: { [weak self] in self?.handle(.spawned($0)) },
                onEnd: { [weak self] in self?.processEnded($0) })
        } catch {
            for descriptor in [ours, theirs] { if let descriptor { closeDescriptor(descriptor) } }
            let isPermanent = [LoopError.ENOENT, LoopError.EINVAL].contains(error.code)
            handle(.spawnFailed(reason: "\(error)", isPermanent: isPermanent))
            return
        }
        if let theirs { closeDescriptor(theirs) }
        if let ours { hooks.adoptConnection(ours, name) }
    }

    private func launch(_ connection: PluginEnvironment.Connection, _ descriptor: Int32?) -> PluginLaunch {
        let environment = PluginEnvironment(
            connection: connection, name: name, dataDirectory: registry.dataDirectory(of: name),
            library: surroundings.library)
        return PluginLaunch(
            larderProgram: surroundings.larderProgram, program: manifest.program, arguments: manifest.arguments,
            directory: manifest.directory,
            environment: environment.variables(listed: manifest.environment, from: surroundings.variable),
            connection: descriptor)
    }

    private func processEnded(_ end: PluginEnd) {
        process = nil
        tokens.value.revoke(name)
        switch end {
        case .exited(let exit): handle(.exited(exit))
        case .notSpawned(let reason, let isPermanent):
            handle(.spawnFailed(reason: "\(manifest.program): \(reason)", isPermanent: isPermanent))
        }
    }

    private static func supervisor(_ manifest: Manifest, _ surroundings: PluginSurroundings) -> Supervisor {
        Supervisor(
            isOnDemand: manifest.isOnDemand, limits: surroundings.limits, seed: UInt64.random(in: 0...UInt64.max))
    }
}

/// The tokens of all plugins, shared by their runners.
final class PluginTokenBox {
    var value = PluginTokens()
}

// All plugins of a library that is served.

import LarderLoop

/// Starts, watches and stops plugins. Loop thread. Never keeps the host from starting: what is wrong with a plugin is
/// in its row of `statusRows`.
public final class PluginHost {
    /// As STATUS shows it.
    public struct StatusRow: Equatable, Sendable {
        public let name: String
        public let state: String
        /// 0 if there is none.
        public let processID: Int32
        public let restartCount: Int
        public let lastError: String
    }

    public let registry: PluginRegistry
    private let loop: Loop
    private let surroundings: PluginSurroundings
    private var hooks: PluginHooks
    private let tokens = PluginTokenBox()
    private var runners: [String: PluginRunner] = [:]
    /// Registered, but not to be used.
    private var faults: [String: PluginError] = [:]
    private var forgotten: Set<String> = []
    private var stopping: (timer: Timer?, completion: () -> Void)?
    private var isStopping = false
    private var openRunnerCount = 0

    public init(loop: Loop, registry: PluginRegistry, surroundings: PluginSurroundings, hooks: PluginHooks) {
        self.loop = loop
        self.registry = registry
        self.surroundings = surroundings
        self.hooks = hooks
        let report = hooks.stateChanged
        self.hooks.stateChanged = { [weak self] name, state in
            report(name, state)
            self?.stateChanged(name)
        }
    }

    // MARK: What is asked for

    /// Starts every plugin that is enabled and not on demand. What is wrong with one is logged.
    public func start() {
        let names: [String]
        do throws(PluginError) { names = try registry.names() } catch {
            hooks.log("plugins: \(error)")
            return
        }
        for name in names {
            do throws(PluginError) {
                let runner = try load(name)
                if runner.isEnabled && !runner.manifest.isOnDemand { runner.handle(.enable) }
            } catch {
                faults[name] = error
                hooks.log("plugin \(name): \(error)")
            }
        }
    }

    /// Enables it in the registry, forgets its crashes, and starts it unless it is on demand. Returns its state.
    public func enable(_ name: String) throws(PluginError) -> String {
        if isStopping { throw .stopping }
        try registry.enable(name)
        let runner = try load(name)
        if runner.manifest.isOnDemand {
            runner.reset()
        } else {
            if !runner.supervisor.isRunning { runner.log.forgetErrorLines() }
            runner.handle(.enable)
        }
        return runner.stateName
    }

    /// Disables it in the registry, and stops it. Returns its state, which is `draining` at first if it runs.
    public func disable(_ name: String) throws(PluginError) -> String {
        try registry.disable(name)
        guard let runner = runners[name] else { return "disabled" }
        runner.isEnabled = false
        runner.handle(.stopRequested)
        return runner.stateName
    }

    /// Reads its manifest again, and starts it again with it if it runs. A bad manifest changes nothing.
    public func reload(_ name: String) throws(PluginError) -> String {
        if isStopping { throw .stopping }
        let runner = try load(name)
        runner.handle(.restartRequested)
        return runner.stateName
    }

    /// Removes it from the registry, and stops it. Its data and log stay.
    public func forget(_ name: String) throws(PluginError) -> String {
        try registry.remove(name)
        faults[name] = nil
        guard let runner = runners[name] else { return "forgotten" }
        forgotten.insert(name)
        runner.isEnabled = false
        runner.handle(.stopRequested)
        removeIfForgotten(name)
        return "forgotten"
    }

    /// Starts an enabled plugin for an import, on demand or not; one that runs already is left alone. Returns its
    /// state. One in quarantine is not started: `enable` releases it.
    public func startOnDemand(_ name: String) throws(PluginError) -> String {
        if isStopping { throw .stopping }
        let runner = try load(name)
        if runner.isEnabled && runner.supervisor.state != .quarantined { runner.handle(.enable) }
        return runner.stateName
    }

    /// Stops a plugin and leaves it enabled, as after an import.
    public func stop(_ name: String) { runners[name]?.handle(.stopRequested) }

    /// Stops all plugins. `completion` runs once, within `SupervisorLimits.stopAllMilliseconds`, when their processes have ended and
    /// every handle of theirs is closed; the host may then close the loop. Nothing is started any more.
    public func stopAll(completion: @escaping () -> Void) {
        if isStopping { return }
        isStopping = true
        // Without a timer there is no bound, but stopping goes on.
        let timer = try? Timer(loop: loop) { [weak self] in
            self?.runners.values.filter(\.supervisor.isRunning).forEach { $0.abandon() }
        }
        try? timer?.start(afterMilliseconds: surroundings.limits.stopAllMilliseconds)
        stopping = (timer, completion)
        for runner in runners.values { runner.handle(.stopRequested) }
        finishStopping()
    }

    // MARK: What the host core hears

    /// READY came.
    public func pluginReady(_ name: String) { runners[name]?.handle(.ready) }

    /// Its GOODBYE came.
    public func saidGoodbye(_ name: String) { runners[name]?.handle(.saidGoodbye) }

    /// The session of a plugin has ended.
    public func connectionLost(_ name: String) { runners[name]?.handle(.connectionLost) }

    /// The host answered its HELLO or REGISTER with an error; it is stopped, and not started again until it is enabled.
    public func refused(_ name: String, reason: String) { runners[name]?.handle(.refused(reason)) }

    /// The plugin whose token a HELLO brought, which is good for this once. nil: `bad_token`.
    public func plugin(forToken bytes: some Collection<UInt8>) -> String? { tokens.value.redeem(bytes) }

    // MARK: What it tells

    /// As of the last start or reload; nil if there is none of that name, or its manifest is bad.
    public func manifest(of name: String) -> Manifest? { runners[name]?.manifest }

    /// For REGISTERED: what the manifest declares, with the registry's values or else the defaults, as JSON text.
    public func settings(of name: String) -> [(name: String, jsonText: String)] {
        guard let runner = runners[name], let record = try? registry.record(of: name) else { return [] }
        return registry.settings(of: record, runner.manifest)
    }

    /// In the order of their names.
    public func statusRows() -> [StatusRow] {
        var rows = runners.values.map { runner in
            StatusRow(
                name: runner.name, state: runner.stateName, processID: runner.supervisor.processID,
                restartCount: runner.supervisor.restartCount, lastError: runner.lastError)
        }
        for (name, fault) in faults where runners[name] == nil {
            rows.append(
                StatusRow(name: name, state: "bad manifest", processID: 0, restartCount: 0, lastError: "\(fault)"))
        }
        return rows.sorted { $0.name < $1.name }
    }

    /// The last lines that a plugin wrote to its error output, oldest first, at most 20.
    public func lastErrorLines(of name: String) -> [String] { runners[name]?.log.lastErrorLines ?? [] }

    // MARK: Private

    /// The runner of a registered plugin, with its record and manifest as they are now.
    private func load(_ name: String) throws(PluginError) -> PluginRunner {
        let record = try registry.record(of: name)
        let manifest = try registry.manifest(of: name)
        let runner: PluginRunner
        if let present = runners[name] {
            runner = present
            runner.manifest = manifest
        } else {
            do throws(LoopError) {
                runner = try PluginRunner(
                    loop: loop, manifest: manifest, surroundings: surroundings, registry: registry, hooks: hooks,
                    tokens: tokens)
            } catch {
                throw .loop(error)
            }
            runners[name] = runner
        }
        runner.isEnabled = record.isEnabled
        faults[name] = nil
        forgotten.remove(name)
        return runner
    }

    private func stateChanged(_ name: String) {
        removeIfForgotten(name)
        finishStopping()
    }

    private func removeIfForgotten(_ name: String) {
        guard forgotten.contains(name), let runner = runners[name], !runner.supervisor.isRunning else { return }
        forgotten.remove(name)
        runners[name] = nil
        close(runner)
    }

    private func finishStopping() {
        guard isStopping, !runners.values.contains(where: \.supervisor.isRunning) else { return }
        let all = runners.values
        runners = [:]
        for runner in all { close(runner) }
        completeIfClosed()
    }

    private func close(_ runner: PluginRunner) {
        openRunnerCount += 1
        runner.close { [self] in
            openRunnerCount -= 1
            completeIfClosed()
        }
    }

    private func completeIfClosed() {
        guard let stopping, runners.isEmpty, openRunnerCount == 0 else { return }
        self.stopping = nil
        guard let timer = stopping.timer else { return stopping.completion() }
        timer.close(onClosed: stopping.completion)
    }
}

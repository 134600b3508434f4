// Between the host and its plugins: connections, GOODBYE, settings, and what PLUGIN asks.

import LarderFormat
import LarderLoop
import LarderWire

extension Host {
    /// Makes the plugin host and starts what is enabled; a transient host starts nothing of its own accord.
    func startPlugins() {
        let hooks = PluginHooks(
            adoptConnection: { [unowned self] descriptor, plugin in adopt(descriptor, plugin: plugin) },
            sendGoodbye: { [unowned self] plugin in sayGoodbye(to: plugin) },
            log: { [unowned self] line in options.log(line) })
        let plugins = PluginHost(
            loop: loop, registry: PluginRegistry(library: options.library),
            surroundings: PluginSurroundings(
                library: options.library, socket: options.socket, larderProgram: options.programPath),
            hooks: hooks)
        self.plugins = plugins
        if !options.isTransient { plugins.start() }
    }

    private func adopt(_ descriptor: Int32, plugin: String) {
        do throws(LoopError) {
            adopt(try Stream(loop: loop, adopting: descriptor), pluginName: plugin, processID: 0)
        } catch {
            closeDescriptor(descriptor)
            options.log("plugin \(plugin): its connection could not be set up: \(error)")
        }
    }

    private func sayGoodbye(to plugin: String) {
        for connection in allConnections where connection.pluginName == plugin { drain(connection) }
    }

    /// Ends a connection in the orderly way: no new requests, what is owed, GOODBYE.
    func drain(_ connection: Connection) {
        switch connection.session.stop() {
        case .drain:
            connection.send(HostGoodbye(.shuttingDown, reason: isStopping ? "the host is stopping" : "stopping"), id: 0)
            for subscription in connection.subscriptions { remove(subscription, of: connection) }
            finishIfDrained(connection)
        case .close: connection.close()
        case .nothing: finishIfDrained(connection)
        }
        connection.flush()
    }

    func greeted(_ connection: Connection) {
        guard connection.processID == 0, !connection.pluginName.isEmpty else { return }
        let row = plugins?.statusRows().first { $0.name == connection.pluginName }
        connection.processID = row?.processID ?? 0
    }

    func pluginReady(_ connection: Connection) {
        if !connection.pluginName.isEmpty { plugins?.pluginReady(connection.pluginName) }
    }

    func pluginSaidGoodbye(_ connection: Connection) {
        if !connection.pluginName.isEmpty { plugins?.saidGoodbye(connection.pluginName) }
    }

    func pluginConnectionLost(_ connection: Connection) {
        if !connection.pluginName.isEmpty { plugins?.connectionLost(connection.pluginName) }
    }

    func plugin(forToken token: [UInt8]) -> String? { plugins?.plugin(forToken: token) }

    func settings(of plugin: String) -> [(name: String, json: String)] {
        guard !plugin.isEmpty, let plugins else { return [] }
        return plugins.settings(of: plugin).map { ($0.name, $0.jsonText) }
    }

    enum PluginAnswer {
        case success(String)
        case failure(ErrorReply)
    }

    func perform(_ request: Plugin) -> PluginAnswer {
        guard let plugins, !isStopping else {
            return .failure(ErrorReply(.shuttingDown, message: "the host is stopping"))
        }
        do throws(PluginError) {
            switch request.action {
            case .enable: return .success(try plugins.enable(request.name))
            case .disable: return .success(try plugins.disable(request.name))
            case .reload: return .success(try plugins.reload(request.name))
            case .forget: return .success(try plugins.forget(request.name))
            }
        } catch {
            let number: ErrorNumber =
                switch error {
                case .unknownPlugin: .unknownPlugin
                case .stopping: .shuttingDown
                case .system, .loop: .internal
                default: .badManifest
                }
            return .failure(ErrorReply(number, message: "\(error)"))
        }
    }

    func stopPlugins() {
        guard let plugins else { return }
        pluginsAreStopped = false
        plugins.stopAll { [unowned self] in
            pluginsAreStopped = true
            finishStop()
        }
    }
}

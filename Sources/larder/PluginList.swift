// The table of plugins.

import LarderFormat
import LarderHost
import LarderWire

enum PluginList {
    private struct Row {
        var name: String
        var version = ""
        var roles: [String] = []
        var state: String
        var pid = 0
        var restarts = 0
        var path = ""
        var about = ""
        var fault = ""
    }

    static func print(_ plugins: PluginDesk, _ context: Context) throws {
        let registered: [(name: String, record: Result<PluginRecord, PluginError>)]
        do throws(PluginError) { registered = try plugins.registry.list() } catch {
            throw Failure("listing the plugins", "\(error)")
        }
        let states = plugins.host?.status.plugins ?? []
        let rows = registered.map {
            row($0.name, $0.record, states.first { [name = $0.name] in $0.name == name }, plugins.registry)
        }
        if context.isJSON {
            for row in rows { context.output.json { write(row, into: &$0) } }
            return
        }
        guard !rows.isEmpty else {
            return context.note("no plugins are registered; larder plugin add DIR registers one")
        }
        var table = Table(
            [
                .init("PLUGIN"), .init("VERSION"), .init("ROLES"), .init("STATE"), .init("PROCESS", .trailing),
                .init("RESTARTS", .trailing), .init("REMARKS", flexible: true),
            ], width: context.output.width)
        for row in rows {
            table.add([
                row.name, row.version, row.roles.joined(separator: ", "), row.state, row.pid > 0 ? "\(row.pid)" : "",
                row.restarts > 0 ? "\(row.restarts)" : "", row.fault.isEmpty ? row.about : row.fault,
            ])
        }
        table.print(to: context.output, withHeading: true)
    }

    private static func row(
        _ name: String, _ record: Result<PluginRecord, PluginError>, _ status: StatusIs.Plugin?,
        _ registry: PluginRegistry
    ) -> Row {
        var row = Row(name: name, state: "broken")
        do throws(PluginError) {
            let record = try record.get()
            row.path = record.path
            row.state = record.isEnabled ? "enabled" : "disabled"
            let manifest = try registry.manifest(of: name)
            row.version = manifest.version
            row.about = manifest.about
            row.roles = [(Manifest.Roles.importer, "importer"), (.exporter, "exporter"), (.notifier, "notifier")]
                .filter { manifest.roles.contains($0.0) }.map { $0.1 }
            if manifest.isOnDemand, record.isEnabled { row.state = "on demand" }
        } catch {
            row.fault = "\(error)"
        }
        guard let status else { return row }
        row.state = status.state
        row.pid = status.pid
        row.restarts = status.restarts
        if !status.lastError.isEmpty { row.fault = status.lastError }
        return row
    }

    private static func write(_ row: Row, into json: inout JSONWriter) {
        json.member("plugin", row.name)
        json.member("version", row.version)
        json.name("roles")
        json.beginArray()
        for role in row.roles { json.string(role) }
        json.endArray()
        json.member("state", row.state)
        json.member("pid", row.pid)
        json.member("restarts", row.restarts)
        json.member("path", row.path)
        json.member("about", row.about)
        json.member("last_error", row.fault)
    }
}

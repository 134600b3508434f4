// `larder plugin`: which plugins a library has.

import Glibc
import LarderClient
import LarderFormat
import LarderHost
import LarderWire

enum PluginCommand: Command {
    static let name = "plugin"
    static let purpose = "add, remove, list, enable and disable plugins, and read their logs"
    static let synopsis = [
        "plugin list", "plugin add DIR [--disabled]", "plugin remove NAME", "plugin enable NAME", "plugin disable NAME",
        "plugin set NAME SETTING=VALUE…", "plugin log NAME [--lines N] [--follow]",
    ]
    static let options = [
        OptionSpec("disabled", "with add: register it, and leave it for later"),
        OptionSpec("lines", short: "n", "N", "with log: so many of the last lines; 50 unless said"),
        OptionSpec("follow", short: "f", "with log: go on with what is written until Ctrl-C"),
    ]
    static let details = """
        A plugin is a directory with a larder-plugin.json that says what program it is. Registered plugins belong to the
        library; larder serve starts those that are enabled, and a running one follows these commands at once. remove
        forgets a plugin; its data, its log and its directory stay. A setting's value is JSON; text that is none is taken
        as it is; SETTING= goes back to the default.
        """
    static let examples = [
        (
            line: "larder plugin add Plugins/desktop-notify",
            does: "registers a plugin, and starts it if larder serve runs"
        ),
        (line: "larder plugin list --json", does: "prints the plugins with their states"),
        (line: "larder plugin log desktop-notify --follow", does: "shows what the plugin writes"),
    ]

    static let actions = ["list", "add", "remove", "enable", "disable", "set", "log"]

    static func run(_ context: Context) throws -> Int32 {
        guard let action = context.options.arguments.first else {
            throw misused("needs one of \(actions.joined(separator: ", "))")
        }
        let rest = Array(context.options.arguments.dropFirst())
        let plugins = PluginDesk(context, try context.place())
        switch action {
        case "list":
            if let word = rest.first { throw misused("list takes no argument such as “\(word)”") }
            try PluginList.print(plugins, context)
        case "add":
            guard !rest.isEmpty else { throw misused("add needs the plugin's directory") }
            for path in rest { try plugins.add(path, isEnabled: !context.options.has("disabled")) }
        case "remove", "enable", "disable":
            guard !rest.isEmpty else { throw misused("\(action) needs a plugin's NAME") }
            for name in rest { try plugins.change(name, action) }
        case "set":
            guard rest.count > 1 else { throw misused("set needs a NAME and SETTING=VALUE") }
            for word in rest.dropFirst() { try plugins.set(rest[0], word) }
        case "log":
            guard rest.count == 1 else { throw misused("log needs one NAME") }
            let lines = try context.options.number("lines", in: 0...Int.max, command: name) ?? 50
            return try PluginLogView(context, plugins, rest[0]).run(
                lines: lines, isFollowing: context.options.has("follow"))
        default:
            let near = Suggestion.nearest(to: action, in: actions).map { ", did you mean \($0)?" } ?? ""
            throw misused("has no “\(action)”\(near)")
        }
        return 0
    }
}

/// Changes to a library's plugins: by the host where one serves, else in the registry alone.
final class PluginDesk {
    let context: Context
    let registry: PluginRegistry
    /// Of a `larder serve`; a host that a command started runs no plugins of its own accord.
    private(set) lazy var host: (client: LarderClient, status: StatusIs)? = {
        let notes = RecoveryNotes(say: context.note)
        let connected = try? Session.connect(place) { status in
            notes.recovering(status)
            return status.mode == .serve
        }
        guard let client = connected, let status = try? client.status(), status.mode == .serve else { return nil }
        return (client, status)
    }()
    private let place: Place

    init(_ context: Context, _ place: Place) {
        self.context = context
        self.place = place
        registry = PluginRegistry(library: place.library)
    }

    func add(_ path: String, isEnabled: Bool) throws {
        let manifest = try attempt("adding \(path)") { () throws(PluginError) in
            try registry.add(path: path, isEnabled: isEnabled)
        }
        let action: Plugin.Action = isEnabled ? .enable : .disable
        try tell(manifest.name, try command(manifest.name, action) ?? (isEnabled ? "enabled" : "disabled"), "added")
    }

    func change(_ name: String, _ action: String) throws {
        let request: Plugin.Action = action == "remove" ? .forget : action == "enable" ? .enable : .disable
        if let state = try command(name, request) { return try tell(name, state, action + "d") }
        try attempt("\(action) \(name)") { () throws(PluginError) in
            switch request {
            case .forget: try registry.remove(name)
            case .enable: try registry.enable(name)
            case .disable, .reload: try registry.disable(name)
            }
        }
        try tell(name, request == .forget ? "forgotten" : action + "d", action + "d")
    }

    func set(_ name: String, _ word: String) throws {
        guard let equals = word.firstIndex(of: "="), equals != word.startIndex else {
            throw PluginCommand.misused("set takes SETTING=VALUE, not “\(word)”")
        }
        let setting = String(word[..<equals])
        var value: String? = String(word[word.index(after: equals)...])
        if value?.isEmpty == true { value = nil }
        if let text = value, (try? JSONValue(parsing: text)) == nil {
            var json = JSONWriter()
            json.string(text)
            value = json.text
        }
        try attempt("setting \(setting) of \(name)") { () throws(PluginError) in
            try registry.setSetting(name, setting, to: value)
        }
        try tell(name, try command(name, .reload) ?? "set", "set")
    }

    /// Asks the host, if one serves; nil: there is none.
    private func command(_ name: String, _ action: Plugin.Action) throws -> String? {
        guard let host else { return nil }
        do throws(ClientError) { return try host.client.plugin(name, action) } catch {
            throw Failure("plugin \(name)", error)
        }
    }

    private func tell(_ name: String, _ state: String, _ did: String) throws {
        if context.isJSON {
            context.output.json {
                $0.member("plugin", name)
                $0.member("done", did)
                $0.member("state", state)
            }
        } else {
            context.output.line("\(name): \(did)" + (state == did || state == "forgotten" ? "" : ", now \(state)"))
        }
    }

    private func attempt<Result>(
        _ what: String, _ body: () throws(PluginError) -> Result
    ) throws(Failure) -> Result {
        do throws(PluginError) { return try body() } catch {
            var advice = ""
            if case .unknownPlugin = error { advice = "larder plugin list shows the plugins" }
            throw Failure(what, "\(error)", advice)
        }
    }
}

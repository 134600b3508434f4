// The variables that a plugin's process gets, and no others.

/// What tells a plugin about its library; the rest of its environment comes from the host's.
struct PluginEnvironment {
    /// Passed on where the host has them; besides these only what the manifest lists.
    static let passedOn = [
        "PATH", "HOME", "LANG", "LC_ALL", "TZ", "DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR",
    ]

    enum Connection {
        case descriptor(Int32)
        case socket(path: String, token: String)
    }

    let connection: Connection
    let name: String
    let dataDirectory: String
    let library: String

    /// `NAME=value` each.
    func variables(listed: [String], from host: (String) -> String?) -> [String] {
        var variables: [String] = []
        var names = Self.passedOn
        for name in listed where !names.contains(name) { names.append(name) }
        for name in names {
            if let value = host(name) { variables.append("\(name)=\(value)") }
        }
        switch connection {
        case .descriptor(let number): variables.append("LARDER_FD=\(number)")
        case .socket(let path, let token): variables += ["LARDER_SOCKET=\(path)", "LARDER_TOKEN=\(token)"]
        }
        return variables + [
            "LARDER_PLUGIN_NAME=\(name)", "LARDER_PLUGIN_DATA=\(dataDirectory)", "LARDER_LIBRARY=\(library)",
        ]
    }
}

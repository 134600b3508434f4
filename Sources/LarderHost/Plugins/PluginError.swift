// What can go wrong with a plugin's manifest, its registration and its start.

import LarderFormat
import LarderLoop
import LarderStore

/// Errors of plugins, all of them for people to read. Paths are absolute; lines count from 1.
public enum PluginError: Error, Equatable, Sendable {
    /// A file call failed.
    case system(SystemError)
    /// A call of the loop failed.
    case loop(LoopError)
    /// There is no such file.
    case missingFile(path: String)
    /// Not a regular file, or above the limit.
    case badFile(path: String, reason: String)
    /// The file is not JSON.
    case badJSON(path: String, fault: JSONError)
    /// A name that the format does not have. `place`: the object that it stands in, such as "the manifest".
    case unknownKey(path: String, line: Int, key: String, place: String, allowed: [String])
    /// A name that has to be there.
    case missingKey(path: String, line: Int, key: String, place: String)
    /// A value that can't be used. `key` is written as a path, such as `settings.token.about`.
    case badValue(path: String, line: Int, key: String, found: String, allowed: String)
    /// The program that a manifest names can't be executed.
    case badProgram(path: String, program: String, reason: String)
    /// No plugin of that name is registered in this library.
    case unknownPlugin(name: String)
    /// Another directory is registered under that name.
    case nameTaken(name: String, path: String)
    /// The plugin has no such setting.
    case unknownSetting(plugin: String, setting: String, allowed: [String])
    /// The text given for a setting is not the JSON that it has to be.
    case badSetting(plugin: String, setting: String, found: String, allowed: String)
    /// The host is about to stop and starts nothing any more.
    case stopping

    /// Whether the manifest or the record is to blame, rather than the caller or the system.
    public var isBadManifest: Bool {
        switch self {
        case .missingFile, .badFile, .badJSON, .unknownKey, .missingKey, .badValue, .badProgram: true
        case .system, .loop, .unknownPlugin, .nameTaken, .unknownSetting, .badSetting, .stopping: false
        }
    }
}

extension PluginError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .system(let error): error.description
        case .loop(let error): error.description
        case .missingFile(let path): "there is no file \(path)"
        case .badFile(let path, let reason): "\(path) \(reason)"
        case .badJSON(let path, let fault): "\(path):\(fault.line): \(fault.reason) (column \(fault.column))"
        case .unknownKey(let path, let line, let key, let place, let allowed):
            "\(path):\(line): unknown key \"\(key)\" in \(place); it may have \(listed(allowed))"
        case .missingKey(let path, let line, let key, let place):
            "\(path):\(line): \(place) has no \"\(key)\", which is required"
        case .badValue(let path, let line, let key, let found, let allowed):
            "\(path):\(line): \(key) is \(found); it has to be \(allowed)"
        case .badProgram(let path, let program, let reason): "\(path): the program \(program) \(reason)"
        case .unknownPlugin(let name): "no plugin \"\(name)\" is registered in this library"
        case .nameTaken(let name, let path): "a plugin \"\(name)\" is registered already, from \(path)"
        case .unknownSetting(let plugin, let setting, let allowed):
            allowed.isEmpty
                ? "the plugin \(plugin) has no settings, so none called \"\(setting)\""
                : "the plugin \(plugin) has no setting \"\(setting)\"; it has \(listed(allowed))"
        case .badSetting(let plugin, let setting, let found, let allowed):
            "the setting \(setting) of \(plugin) can't be \(found); it has to be \(allowed)"
        case .stopping: "the host is stopping"
        }
    }

    private func listed(_ names: [String]) -> String { names.joined(separator: ", ") }
}

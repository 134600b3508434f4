// Which plugins a library has: one small file a plugin in its directory `plugins`.
//
//     plugins/<name>.json   {"path": "/home/ada/plugins/toast", "enabled": true, "settings": {"sound": false}}
//     plugins/<name>/data/  the plugin's own files
//     plugins/<name>/log    what it wrote to its outputs, and log.1 before that

import LarderFormat
import LarderStore

/// A plugin as it is registered. A value.
public struct PluginRecord: Equatable, Sendable {
    public struct Setting: Equatable, Sendable {
        public let name: String
        public let value: JSONValue
    }

    public let name: String
    /// The plugin's directory, absolute.
    public var path: String
    public var isEnabled: Bool
    /// Only those that were set, in the order of their names.
    public var settings: [Setting]
}

/// The directory `plugins` of a library. Each call reads or writes the files afresh, so that the command line can use
/// it beside a running host; of two who change one plugin at a time the later wins. Any thread; may wait for the disk.
public struct PluginRegistry: Sendable {
    /// Of a record's file.
    static let byteCountMax = 1_048_576

    /// Absolute.
    public let directory: String
    private let files: any StoreFiles

    /// `library`: the library's directory, absolute.
    public init(library: String, files: any StoreFiles = SystemFiles()) {
        directory = library + "/plugins"
        self.files = files
    }

    public func dataDirectory(of name: String) -> String { "\(directory)/\(name)/data" }
    public func logPath(of name: String) -> String { "\(directory)/\(name)/log" }

    /// Registers the plugin in the directory `path`, under the name that its manifest says. Registering the same
    /// directory again keeps the settings; another with that name is `nameTaken`.
    @discardableResult
    public func add(path: String, isEnabled: Bool = true) throws(PluginError) -> Manifest {
        let manifest = try Manifest(directory: try PluginFiles.resolve(path))
        try PluginFiles.checkProgram(of: manifest)
        var record = PluginRecord(name: manifest.name, path: manifest.directory, isEnabled: isEnabled, settings: [])
        do throws(PluginError) {
            let present = try self.record(of: manifest.name)
            if present.path != manifest.directory { throw .nameTaken(name: manifest.name, path: present.path) }
            record.settings = present.settings
        } catch .unknownPlugin {}
        try write(record)
        return manifest
    }

    /// Forgets the plugin; its data and log stay.
    public func remove(_ name: String) throws(PluginError) {
        _ = try require(name)
        try system { () throws(SystemError) in
            try files.remove(recordPath(name))
            try files.syncDirectory(directory)
        }
    }

    /// The names that are registered, in order; their records may still be unreadable.
    public func names() throws(PluginError) -> [String] {
        let found = try system { () throws(SystemError) in try files.list(directory) } ?? []
        return found.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.filter(Manifest.isName).sorted()
    }

    /// All records in the order of their names; one that can't be read does not hide the others.
    public func list() throws(PluginError) -> [(name: String, record: Result<PluginRecord, PluginError>)] {
        try names().map { name in
            do throws(PluginError) {
                return (name, .success(try record(of: name)))
            } catch {
                return (name, .failure(error))
            }
        }
    }

    /// - Throws: `unknownPlugin` if there is none.
    public func record(of name: String) throws(PluginError) -> PluginRecord {
        let path = try require(name)
        let bytes: [UInt8]
        do throws(PluginError) {
            bytes = try PluginFiles.readWhole(path, byteCountMax: PluginRegistry.byteCountMax)
        } catch .missingFile {
            throw .unknownPlugin(name: name)
        }
        let file = try PlacedFile(path: path, bytes: bytes)
        var record = PluginRecord(name: name, path: "", isEnabled: false, settings: [])
        for member in try file.members(file.root, "the record", allowed: ["path", "enabled", "settings"]) {
            switch member.name {
            case "path": record.path = try file.string(member.value, "path")
            case "enabled": record.isEnabled = try file.bool(member.value, "enabled")
            default:
                for setting in try file.members(member.value, "settings", allowed: nil) {
                    record.settings.append(
                        PluginRecord.Setting(name: setting.name, value: try file.value(of: setting.value)))
                }
            }
        }
        if !record.path.hasPrefix("/") {
            throw .badValue(
                path: path, line: 1, key: "path", found: "\"\(record.path)\"", allowed: "an absolute path")
        }
        return record
    }

    /// The manifest as it is now.
    public func manifest(of name: String) throws(PluginError) -> Manifest {
        let record = try record(of: name)
        let manifest = try Manifest(directory: record.path)
        if manifest.name != name {
            throw .badValue(
                path: record.path + "/" + Manifest.fileName, line: 1, key: "name", found: "\"\(manifest.name)\"",
                allowed: "\"\(name)\", under which it was registered; remove that and add it again")
        }
        return manifest
    }

    public func enable(_ name: String) throws(PluginError) { try setEnabled(name, true) }
    public func disable(_ name: String) throws(PluginError) { try setEnabled(name, false) }

    /// Sets one of the settings that the manifest declares, to JSON text of the default's type (`null` allows any).
    /// nil goes back to the default.
    public func setSetting(_ name: String, _ setting: String, to jsonText: String?) throws(PluginError) {
        var record = try record(of: name)
        let manifest = try manifest(of: name)
        guard let declared = manifest.settings.first(where: { $0.name == setting }) else {
            throw .unknownSetting(plugin: name, setting: setting, allowed: manifest.settingNames)
        }
        record.settings.removeAll { $0.name == setting }
        if let jsonText {
            let value: JSONValue
            do throws(JSONError) { value = try JSONValue(parsing: jsonText) } catch {
                throw .badSetting(plugin: name, setting: setting, found: jsonText, allowed: "JSON: \(error.reason)")
            }
            if !declared.defaultValue.isNull && value.typeName != declared.defaultValue.typeName {
                throw .badSetting(
                    plugin: name, setting: setting, found: jsonText,
                    allowed: "\(declared.defaultValue.typeName), as its default is")
            }
            record.settings.append(PluginRecord.Setting(name: setting, value: value))
        }
        try write(record)
    }

    /// Every setting that the manifest declares, with the value set here or else the default, as JSON text.
    public func settings(
        of record: PluginRecord, _ manifest: Manifest
    ) -> [(name: String, jsonText: String)] {
        manifest.settings.map { setting in
            var writer = JSONWriter()
            writer.value(record.settings.first { $0.name == setting.name }?.value ?? setting.defaultValue)
            return (setting.name, writer.text)
        }
    }

    /// Makes the directory of a plugin's data, mode 0700.
    func makeDataDirectory(of name: String) throws(PluginError) {
        try system { () throws(SystemError) in try files.makeDirectory(dataDirectory(of: name)) }
    }

    // MARK: Private

    private func recordPath(_ name: String) -> String { "\(directory)/\(name).json" }

    /// The path of a record that is there.
    private func require(_ name: String) throws(PluginError) -> String {
        guard Manifest.isName(name), try names().contains(name) else { throw .unknownPlugin(name: name) }
        return recordPath(name)
    }

    private func setEnabled(_ name: String, _ isEnabled: Bool) throws(PluginError) {
        var record = try record(of: name)
        if record.isEnabled == isEnabled { return }
        record.isEnabled = isEnabled
        try write(record)
    }

    private func write(_ record: PluginRecord) throws(PluginError) {
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("path")
        writer.string(record.path)
        writer.name("enabled")
        writer.bool(record.isEnabled)
        writer.name("settings")
        writer.beginObject()
        for setting in record.settings.sorted(by: { $0.name < $1.name }) {
            writer.name(setting.name)
            writer.value(setting.value)
        }
        writer.endObject()
        writer.endObject()
        writer.newline()
        let bytes = writer.out.bytes
        try system { () throws(SystemError) in
            try files.makeDirectory(directory)
            try files.replaceWhole(recordPath(record.name), with: bytes)
        }
    }

    private func system<Value>(_ body: () throws(SystemError) -> Value) throws(PluginError) -> Value {
        do throws(SystemError) { return try body() } catch { throw .system(error) }
    }
}

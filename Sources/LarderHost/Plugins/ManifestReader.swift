// Reads larder-plugin.json. What it does not know it refuses: a mistyped key must not look like a default.

import LarderFormat

/// The fields of a manifest while it is read, with the defaults.
struct ManifestDraft {
    let directory: String
    var name = ""
    var version = ""
    var about = ""
    var program = ""
    var arguments: [String] = []
    var roles: Manifest.Roles = []
    var events: Manifest.Events = []
    var kinds: [String] = []
    var connect = Manifest.Connect.descriptor
    var isOnDemand = false
    var recognises: [RecognitionRule] = []
    var settings: [Manifest.Setting] = []
    var environment: [String] = []
    var grants = Manifest.Grants()
}

extension Manifest {
    static let keys = [
        "name", "version", "about", "program", "roles", "events", "kinds", "connect", "on_demand", "recognises",
        "settings", "environment", "grants",
    ]

    /// Reads the manifest in `directory`, an absolute path. The program is not looked for: see
    /// `PluginFiles.checkProgram`.
    public init(directory: String) throws(PluginError) {
        let path = directory + "/" + Manifest.fileName
        try self.init(
            directory: directory, path: path,
            bytes: try PluginFiles.readWhole(path, byteCountMax: Manifest.byteCountMax))
    }

    /// Reads `bytes` as the manifest of `directory`; `path` is for errors.
    public init(directory: String, path: String, bytes: [UInt8]) throws(PluginError) {
        let file = try PlacedFile(path: path, bytes: bytes)
        var draft = ManifestDraft(directory: directory)
        let members = try file.members(file.root, "the manifest", allowed: Manifest.keys)
        for key in ["name", "version", "program", "roles"] where !members.contains(where: { $0.name == key }) {
            throw .missingKey(path: path, line: file.line(of: file.root), key: key, place: "the manifest")
        }
        for member in members { try draft.take(member, file) }
        if let member = members.first(where: { $0.name == "recognises" }), !draft.roles.contains(.importer) {
            throw .badValue(
                path: path, line: file.line(at: member.offset), key: "recognises", found: "there",
                allowed: "left out unless \"importer\" is among the roles")
        }
        self.init(draft)
    }
}

extension ManifestDraft {
    mutating func take(_ member: PlacedJSON.Member, _ file: PlacedFile) throws(PluginError) {
        let key = member.name
        let value = member.value
        switch key {
        case "name":
            name = try file.string(value, key)
            if !Manifest.isName(name) { throw file.wrong(value, key, allowed: "1 to 64 of a–z, 0–9 and -") }
        case "version":
            version = try file.string(value, key)
            if version.isEmpty || version.utf8.count > 64 { throw file.wrong(value, key, allowed: "1 to 64 bytes") }
        case "about": about = try file.string(value, key)
        case "program": try takeProgram(value, file)
        case "roles":
            let names: [(String, Manifest.Roles)] = [
                ("importer", .importer), ("exporter", .exporter), ("notifier", .notifier),
            ]
            roles = Manifest.Roles(try Self.choices(value, key, file, names))
            if roles.isEmpty { throw file.wrong(value, key, allowed: "a list of importer, exporter, notifier") }
        case "events":
            let names: [(String, Manifest.Events)] = [("downloaded", .downloaded), ("deleted", .deleted)]
            events = Manifest.Events(try Self.choices(value, key, file, names))
        case "kinds": kinds = try Self.kinds(value, key, file)
        case "connect":
            guard let found = Manifest.Connect(rawValue: try file.string(value, key)) else {
                throw file.wrong(value, key, allowed: "\"descriptor\" or \"socket\"")
            }
            connect = found
        case "on_demand": isOnDemand = try file.bool(value, key)
        case "recognises":
            for element in try file.elements(value, key) {
                recognises.append(try Self.rule(element, "\(key)[\(recognises.count)]", file))
            }
        case "settings": try takeSettings(value, file)
        case "environment":
            environment = try file.strings(
                value, key, allowed: "a variable's name that does not begin with LARDER_", where: Self.isVariable)
        default: try takeGrants(value, file)
        }
    }

    private mutating func takeProgram(_ value: PlacedJSON, _ file: PlacedFile) throws(PluginError) {
        var words: [String] = []
        for element in try file.elements(value, "program") {
            words.append(try file.string(element, "program[\(words.count)]"))
        }
        guard let first = words.first, !first.isEmpty else {
            throw file.wrong(value, "program", allowed: "an array of the program and its arguments")
        }
        program = first.utf8.contains(0x2F) && !first.hasPrefix("/") ? directory + "/" + first : first
        arguments = Array(words.dropFirst())
    }

    private mutating func takeSettings(_ value: PlacedJSON, _ file: PlacedFile) throws(PluginError) {
        for member in try file.members(value, "settings", allowed: nil) {
            let key = "settings." + member.name
            if !Self.isSettingName(member.name) {
                throw .badValue(
                    path: file.path, line: file.line(at: member.offset), key: "a setting's name",
                    found: "\"\(member.name)\"", allowed: "1 to 64 of a–z, A–Z, 0–9, - and _")
            }
            var defaultValue = JSONValue.null
            var about = ""
            for part in try file.members(member.value, key, allowed: ["default", "about"]) {
                if part.name == "default" {
                    defaultValue = try file.value(of: part.value)
                } else {
                    about = try file.string(part.value, key + ".about")
                }
            }
            settings.append(Manifest.Setting(name: member.name, defaultValue: defaultValue, about: about))
        }
    }

    private mutating func takeGrants(_ value: PlacedJSON, _ file: PlacedFile) throws(PluginError) {
        for member in try file.members(value, "grants", allowed: ["read", "save", "delete"]) {
            let kinds = try Self.kinds(member.value, "grants." + member.name, file)
            switch member.name {
            case "read": grants.read = kinds
            case "save": grants.save = kinds
            default: grants.delete = kinds
            }
        }
    }

    private static func choices<Set: OptionSet>(
        _ value: PlacedJSON, _ key: String, _ file: PlacedFile, _ names: [(String, Set)]
    ) throws(PluginError) -> [Set] where Set.Element == Set {
        let allowed = names.map(\.0)
        let found = try file.strings(
            value, key, allowed: allowed.map { "\"\($0)\"" }.joined(separator: " or "), where: allowed.contains)
        return names.filter { found.contains($0.0) }.map(\.1)
    }

    private static func kinds(
        _ value: PlacedJSON, _ key: String, _ file: PlacedFile
    ) throws(PluginError) -> [String] {
        try file.strings(value, key, allowed: "a kind's name, 1 to \(Kind.nameByteCountMax) bytes") {
            (1...Kind.nameByteCountMax).contains($0.utf8.count) && !$0.utf8.contains(0)
        }
    }

    private static func rule(
        _ value: PlacedJSON, _ key: String, _ file: PlacedFile
    ) throws(PluginError) -> RecognitionRule {
        var suffix: String?
        var keys: [String] = []
        var lineKeys: [String] = []
        let members = try file.members(value, key, allowed: ["suffix", "keys", "line_keys"])
        if members.isEmpty { throw file.wrong(value, key, allowed: "an object with suffix, keys or line_keys") }
        for member in members {
            let memberKey = key + "." + member.name
            switch member.name {
            case "suffix":
                let text = try file.string(member.value, memberKey)
                if text.isEmpty { throw file.wrong(member.value, memberKey, allowed: "the end of a file's name") }
                suffix = text
            case "keys": keys = try file.strings(member.value, memberKey, allowed: "a string", where: { _ in true })
            default: lineKeys = try file.strings(member.value, memberKey, allowed: "a string", where: { _ in true })
            }
        }
        return RecognitionRule(suffix: suffix, keys: keys, lineKeys: lineKeys)
    }

    private static func isVariable(_ text: String) -> Bool {
        guard let first = text.utf8.first, !(0x30...0x39).contains(first), !text.hasPrefix("LARDER_") else {
            return false
        }
        return text.utf8.allSatisfy(isWordByte)
    }

    private static func isSettingName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { isWordByte($0) || $0 == 0x2D }
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        (0x61...0x7A).contains(byte | 0x20) || (0x30...0x39).contains(byte) || byte == 0x5F
    }
}

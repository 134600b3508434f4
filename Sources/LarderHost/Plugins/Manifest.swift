// What a plugin says of itself: the file larder-plugin.json in its directory.

import LarderFormat

/// A plugin's manifest. A value; any thread.
public struct Manifest: Sendable {
    public static let fileName = "larder-plugin.json"
    /// Of the file.
    public static let byteCountMax = 262_144

    /// As REGISTER numbers them.
    public struct Roles: OptionSet, Hashable, Sendable {
        public let rawValue: UInt64
        public init(rawValue: UInt64) { self.rawValue = rawValue }
        public static let importer = Roles(rawValue: 1)
        public static let exporter = Roles(rawValue: 2)
        public static let notifier = Roles(rawValue: 4)
    }

    /// As REGISTER numbers them.
    public struct Events: OptionSet, Hashable, Sendable {
        public let rawValue: UInt64
        public init(rawValue: UInt64) { self.rawValue = rawValue }
        public static let downloaded = Events(rawValue: 1)
        public static let deleted = Events(rawValue: 2)
    }

    /// How it gets its connection.
    public enum Connect: String, CaseIterable, Sendable {
        /// It inherits one; LARDER_FD has the number.
        case descriptor
        /// It connects to LARDER_SOCKET and shows LARDER_TOKEN.
        case socket
    }

    public struct Setting: Sendable {
        public let name: String
        /// `null` where the plugin needs a value that only its user knows.
        public let defaultValue: JSONValue
        public let about: String
    }

    /// Kinds that it may read, save and delete.
    public struct Grants: Equatable, Sendable {
        public var read: [String] = []
        public var save: [String] = []
        public var delete: [String] = []
        public init() {}
    }

    /// The plugin's directory, absolute.
    public let directory: String
    public let name: String
    public let version: String
    public let about: String
    /// A path with a slash is absolute here; a bare name is looked up in PATH.
    public let program: String
    public let arguments: [String]
    public let roles: Roles
    public let events: Events
    /// Names of kinds; empty: all.
    public let kinds: [String]
    public let connect: Connect
    /// Started for an import only, not with the host.
    public let isOnDemand: Bool
    /// Which files it can import.
    public let recognises: [RecognitionRule]
    /// In the order of the file.
    public let settings: [Setting]
    /// Names of variables that are passed through.
    public let environment: [String]
    /// Kept, and not enforced yet.
    public let grants: Grants

    init(_ draft: ManifestDraft) {
        directory = draft.directory
        name = draft.name
        version = draft.version
        about = draft.about
        program = draft.program
        arguments = draft.arguments
        roles = draft.roles
        events = draft.events
        kinds = draft.kinds
        connect = draft.connect
        isOnDemand = draft.isOnDemand
        recognises = draft.recognises
        settings = draft.settings
        environment = draft.environment
        grants = draft.grants
    }

    public var settingNames: [String] { settings.map(\.name) }

    /// 1 to 64 of a–z, 0–9 and hyphen, which is also safe as a file's name.
    public static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D }
    }
}

/// What a file looks like that an importer can read. All that is said has to hold.
public struct RecognitionRule: Equatable, Sendable {
    /// The end of the file's name, compared without regard to ASCII case; nil: any.
    public let suffix: String?
    /// Names that the object which is the file has.
    public let keys: [String]
    /// Names that the object in the first line has.
    public let lineKeys: [String]

    /// `objectKeys`: the top-level names if the file is one JSON object; `lineKeys`: those of its first line if that
    /// is one. Either is nil if it is not.
    public func matches(fileName: String, objectKeys: [String]?, lineKeys firstLineKeys: [String]?) -> Bool {
        if let suffix, !fileName.lowercased().hasSuffix(suffix.lowercased()) { return false }
        return Self.has(keys, in: objectKeys) && Self.has(lineKeys, in: firstLineKeys)
    }

    private static func has(_ wanted: [String], in found: [String]?) -> Bool {
        if wanted.isEmpty { return true }
        guard let found else { return false }
        return wanted.allSatisfy(found.contains)
    }
}

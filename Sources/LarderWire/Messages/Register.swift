// 02 REGISTER, 82 REGISTERED and 03 READY: what a plugin does.

import LarderFormat

/// What a program is to the library; bits.
public struct Roles: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let importer = Roles(rawValue: 1)
    public static let exporter = Roles(rawValue: 2)
    public static let notifier = Roles(rawValue: 4)
    static let all: UInt64 = 7
}

/// The two events that plugins are about; bits.
public struct EventKinds: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let downloaded = EventKinds(rawValue: 1)
    public static let deleted = EventKinds(rawValue: 2)
    static let all: UInt64 = 3
}

public struct Register: WireMessage {
    public static var type: MessageType { .register }

    public var roles: Roles
    public var events: EventKinds
    /// Names; empty: all.
    public var kinds: [String]
    /// Empty in draft 1.
    public var condition: String
    public var commands: [String]

    public init(
        roles: Roles, events: EventKinds = [], kinds: [String] = [], condition: String = "", commands: [String] = []
    ) {
        self.roles = roles
        self.events = events
        self.kinds = kinds
        self.condition = condition
        self.commands = commands
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(Int(roles.rawValue))
        writer.varint(Int(events.rawValue))
        writer.texts(kinds)
        writer.text(condition)
        writer.texts(commands)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        roles = Roles(rawValue: UInt8(truncatingIfNeeded: try reader.bits(Roles.all)))
        events = EventKinds(rawValue: UInt8(truncatingIfNeeded: try reader.bits(EventKinds.all)))
        kinds = try reader.texts()
        condition = try reader.text()
        commands = try reader.texts()
        try reader.expectEnd()
    }
}

public struct Registered: WireMessage {
    public static var type: MessageType { .registered }

    public struct Setting: Hashable, Sendable {
        public var name: String
        /// A value in JSON.
        public var json: String
        public init(name: String, json: String) {
            self.name = name
            self.json = json
        }
    }

    /// The plugin's name in this library, or the client's own.
    public var name: String
    public var settings: [Setting]

    public init(name: String, settings: [Setting] = []) {
        self.name = name
        self.settings = settings
    }

    public func encode(into writer: inout ByteWriter) {
        writer.text(name)
        writer.varint(settings.count)
        for setting in settings {
            writer.text(setting.name)
            writer.text(setting.json)
        }
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        name = try reader.text()
        settings = try reader.list(ofAtLeast: 2) { (reader: inout ByteReader) throws(FormatError) in
            Setting(name: try reader.text(), json: try reader.text())
        }
        try reader.expectEnd()
    }
}

/// A plugin that the host started sends it within 10 s.
public struct Ready: EmptyMessage {
    public static var type: MessageType { .ready }
    public init() {}
}

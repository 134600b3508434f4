// 14 PLUGIN and 94 PLUGIN_DONE; 15 GIVE_WAY and 95 GIVING_WAY.

import LarderFormat

public struct Plugin: WireMessage {
    public static var type: MessageType { .plugin }

    public enum Action: UInt8, CaseIterable, Sendable {
        /// And start.
        case enable = 1
        /// And stop.
        case disable = 2
        /// Read its manifest again.
        case reload = 3
        case forget = 4
    }

    public var name: String
    public var action: Action

    public init(name: String, action: Action) {
        self.name = name
        self.action = action
    }

    public func encode(into writer: inout ByteWriter) {
        writer.text(name)
        writer.u8(action.rawValue)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        name = try reader.text()
        action = try reader.choice(Action.self)
        try reader.expectEnd()
    }
}

public struct PluginDone: WireMessage {
    public static var type: MessageType { .pluginDone }

    public var state: String

    public init(state: String) { self.state = state }

    public func encode(into writer: inout ByteWriter) { writer.text(state) }

    public init(from reader: inout ByteReader) throws(FormatError) {
        state = try reader.text()
        try reader.expectEnd()
    }
}

/// A transient host finishes, answers, and stops; another refuses with `not_permitted`.
public struct GiveWay: EmptyMessage {
    public static var type: MessageType { .giveWay }
    public init() {}
}

public struct GivingWay: EmptyMessage {
    public static var type: MessageType { .givingWay }
    public init() {}
}

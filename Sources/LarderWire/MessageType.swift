// The message types of SPEC.md section 5 and what each may be.

/// Type of a message, the fifth byte of a frame. 01 to 7F are sent by clients, 81 to FF by the host; PING and PONG by both.
public enum MessageType: UInt8, CaseIterable, Sendable {
    case hello = 0x01
    case register = 0x02
    case ready = 0x03
    case write = 0x04
    case get = 0x05
    case list = 0x06
    case count = 0x07
    case clear = 0x08
    case kinds = 0x09
    case subscribe = 0x0A
    case credit = 0x0B
    case sync = 0x0C
    case unsubscribe = 0x0D
    case ping = 0x0E
    case cancel = 0x0F
    case status = 0x10
    case goodbye = 0x11
    case origins = 0x12
    case define = 0x13
    case plugin = 0x14
    case giveWay = 0x15
    case beginImport = 0x16
    case endImport = 0x17
    case find = 0x1B
    case search = 0x1C
    case history = 0x1D
    case entries = 0x20
    case compact = 0x21

    case welcome = 0x81
    case registered = 0x82
    case written = 0x84
    case record = 0x85
    case page = 0x86
    case counted = 0x87
    case cleared = 0x88
    case kindList = 0x89
    case subscribed = 0x8A
    case events = 0x8B
    case synced = 0x8C
    case unsubscribed = 0x8D
    case pong = 0x8E
    case statusIs = 0x90
    case hostGoodbye = 0x91
    case originList = 0x92
    case defined = 0x93
    case pluginDone = 0x94
    case givingWay = 0x95
    case importBegun = 0x96
    case importEnded = 0x97
    case snapshotEnd = 0x98
    case lost = 0x99
    case found = 0x9B
    case matches = 0x9C
    case historyIs = 0x9D
    case progress = 0x9E
    case error = 0x9F
    case entriesAre = 0xA0
    case compacted = 0xA1
}

extension MessageType {
    /// What a message asks of its receiver.
    public enum Role: UInt8, Sendable {
        /// Carries an id of its own, and gets exactly one final reply.
        case request
        /// Gets no reply.
        case notice
        /// Answers a request, as its final reply.
        case reply
        /// Comes before or beside the final reply, any number of times.
        case part
    }

    @inlinable
    public var role: Role {
        switch self {
        case .ready, .credit, .cancel, .goodbye, .hostGoodbye: .notice
        case .events, .snapshotEnd, .lost, .progress: .part
        default: rawValue < 0x80 ? .request : .reply
        }
    }

    /// May be sent by a client. PONG may: it answers the host's PING.
    @inlinable public var isClients: Bool { rawValue < 0x80 || self == .pong }
    /// May be sent by the host.
    @inlinable public var isHosts: Bool { rawValue >= 0x80 || self == .ping }

    /// The type that answers a request, where it is not ERROR; nil for what is no request.
    public var finalReply: MessageType? {
        role == .request ? MessageType(rawValue: rawValue | 0x80) : nil
    }

    /// As SPEC.md spells it.
    public var name: String {
        switch self {
        case .hello: "HELLO"
        case .register: "REGISTER"
        case .ready: "READY"
        case .write: "WRITE"
        case .get: "GET"
        case .list: "LIST"
        case .count: "COUNT"
        case .clear: "CLEAR"
        case .kinds: "KINDS"
        case .subscribe: "SUBSCRIBE"
        case .credit: "CREDIT"
        case .sync: "SYNC"
        case .unsubscribe: "UNSUBSCRIBE"
        case .ping: "PING"
        case .cancel: "CANCEL"
        case .status: "STATUS"
        case .goodbye, .hostGoodbye: "GOODBYE"
        case .origins: "ORIGINS"
        case .define: "DEFINE"
        case .plugin: "PLUGIN"
        case .giveWay: "GIVE_WAY"
        case .beginImport: "BEGIN_IMPORT"
        case .endImport: "END_IMPORT"
        case .find: "FIND"
        case .search: "SEARCH"
        case .history: "HISTORY"
        case .entries: "ENTRIES"
        case .compact: "COMPACT"
        case .welcome: "WELCOME"
        case .registered: "REGISTERED"
        case .written: "WRITTEN"
        case .record: "RECORD"
        case .page: "PAGE"
        case .counted: "COUNTED"
        case .cleared: "CLEARED"
        case .kindList: "KIND_LIST"
        case .subscribed: "SUBSCRIBED"
        case .events: "EVENTS"
        case .synced: "SYNCED"
        case .unsubscribed: "UNSUBSCRIBED"
        case .pong: "PONG"
        case .statusIs: "STATUS_IS"
        case .originList: "ORIGIN_LIST"
        case .defined: "DEFINED"
        case .pluginDone: "PLUGIN_DONE"
        case .givingWay: "GIVING_WAY"
        case .importBegun: "IMPORT_BEGUN"
        case .importEnded: "IMPORT_ENDED"
        case .snapshotEnd: "SNAPSHOT_END"
        case .lost: "LOST"
        case .found: "FOUND"
        case .matches: "MATCHES"
        case .historyIs: "HISTORY_IS"
        case .progress: "PROGRESS"
        case .error: "ERROR"
        case .entriesAre: "ENTRIES_ARE"
        case .compacted: "COMPACTED"
        }
    }
}

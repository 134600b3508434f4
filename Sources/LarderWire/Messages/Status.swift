// 10 STATUS and 90 STATUS_IS.

import LarderFormat

public struct Status: EmptyMessage {
    public static var type: MessageType { .status }
    public init() {}
}

public struct StatusIs: WireMessage {
    public static var type: MessageType { .statusIs }

    public enum Mode: UInt8, CaseIterable, Sendable {
        case serve = 1
        /// Started by a command that found no host; stops when idle.
        case transient = 2
    }

    /// A connection.
    public struct Session: Hashable, Sendable {
        public var id: Int
        public var name: String
        public var version: String
        public var roles: Roles
        public var events: EventKinds
        public var pid: Int
        public var subscriptions: Int
        /// In seqs, of the slowest subscription.
        public var lag: UInt64

        public init(
            id: Int, name: String, version: String, roles: Roles, events: EventKinds, pid: Int, subscriptions: Int,
            lag: UInt64
        ) {
            self.id = id
            self.name = name
            self.version = version
            self.roles = roles
            self.events = events
            self.pid = pid
            self.subscriptions = subscriptions
            self.lag = lag
        }
    }

    public struct Plugin: Hashable, Sendable {
        public var name: String
        public var state: String
        /// 0: none.
        public var pid: Int
        public var restarts: Int
        public var lastError: String

        public init(name: String, state: String, pid: Int, restarts: Int, lastError: String) {
            self.name = name
            self.state = state
            self.pid = pid
            self.restarts = restarts
            self.lastError = lastError
        }
    }

    /// `serving`, `full`, `read_only`, `recovering` or `stopping`.
    public var state = "serving"
    public var reason = ""
    public var mode = Mode.serve
    public var pid = 0
    public var version = ""
    /// Path.
    public var library = ""
    /// Path.
    public var socket = ""
    public var epoch: UInt64 = 0
    public var lastSeq: UInt64 = 0
    public var floor: UInt64 = 0
    /// ms.
    public var started: Int64 = 0
    public var segments = 0
    public var logByteCount = 0
    public var records: [KindCount] = []
    public var sessions: [Session] = []
    public var plugins: [Plugin] = []
    /// Bytes of the log that a compaction would free at most.
    public var reclaimableByteCount = 0

    public init() {}

    public func encode(into writer: inout ByteWriter) {
        writer.text(state)
        writer.text(reason)
        writer.u8(mode.rawValue)
        writer.varint(pid)
        writer.text(version)
        writer.text(library)
        writer.text(socket)
        writer.u64(epoch)
        writer.u64(lastSeq)
        writer.u64(floor)
        writer.svarint(started)
        writer.varint(segments)
        writer.varint(logByteCount)
        writer.varint(records.count)
        for record in records { record.encode(into: &writer) }
        writer.varint(sessions.count)
        for session in sessions { session.encode(into: &writer) }
        writer.varint(plugins.count)
        for plugin in plugins { plugin.encode(into: &writer) }
        writer.varint(reclaimableByteCount)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        state = try reader.text()
        reason = try reader.text()
        mode = try reader.choice(Mode.self)
        pid = try reader.number()
        version = try reader.text()
        library = try reader.text()
        socket = try reader.text()
        epoch = try reader.u64()
        lastSeq = try reader.u64()
        floor = try reader.u64()
        started = try reader.svarint()
        segments = try reader.number()
        logByteCount = try reader.number()
        records = try reader.list(ofAtLeast: KindCount.byteCountMin) {
            (reader: inout ByteReader) throws(FormatError) in try KindCount(from: &reader)
        }
        sessions = try reader.list(ofAtLeast: 8) { (reader: inout ByteReader) throws(FormatError) in
            try Session(from: &reader)
        }
        plugins = try reader.list(ofAtLeast: 5) { (reader: inout ByteReader) throws(FormatError) in
            try Plugin(from: &reader)
        }
        reclaimableByteCount = try reader.number()
        try reader.expectEnd()
    }
}

extension StatusIs.Session {
    func encode(into writer: inout ByteWriter) {
        writer.varint(id)
        writer.text(name)
        writer.text(version)
        writer.varint(Int(roles.rawValue))
        writer.varint(Int(events.rawValue))
        writer.varint(pid)
        writer.varint(subscriptions)
        writer.varint(lag)
    }

    init(from reader: inout ByteReader) throws(FormatError) {
        id = try reader.number()
        name = try reader.text()
        version = try reader.text()
        roles = Roles(rawValue: UInt8(truncatingIfNeeded: try reader.bits(Roles.all)))
        events = EventKinds(rawValue: UInt8(truncatingIfNeeded: try reader.bits(EventKinds.all)))
        pid = try reader.number()
        subscriptions = try reader.number()
        lag = try reader.varint()
    }
}

extension StatusIs.Plugin {
    func encode(into writer: inout ByteWriter) {
        writer.text(name)
        writer.text(state)
        writer.varint(pid)
        writer.varint(restarts)
        writer.text(lastError)
    }

    init(from reader: inout ByteReader) throws(FormatError) {
        name = try reader.text()
        state = try reader.text()
        pid = try reader.number()
        restarts = try reader.number()
        lastError = try reader.text()
    }
}

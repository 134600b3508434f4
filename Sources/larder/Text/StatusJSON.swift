// STATUS as a JSON object.

import LarderFormat
import LarderWire

enum StatusJSON {
    static func roleNames(_ roles: Roles) -> [String] {
        [(Roles.importer, "importer"), (.exporter, "exporter"), (.notifier, "notifier")]
            .filter { roles.contains($0.0) }.map { $0.1 }
    }

    static func write(_ status: StatusIs, _ kinds: Kinds, into json: inout JSONWriter) {
        json.member("state", status.state)
        json.member("reason", status.reason)
        json.member("mode", status.mode == .serve ? "serve" : "transient")
        json.member("pid", status.pid)
        json.member("version", status.version)
        json.member("library", status.library)
        json.member("socket", status.socket)
        json.member("cursor", "\(Cursor(epoch: status.epoch, seq: status.lastSeq))")
        json.member("last_seq", status.lastSeq)
        json.member("floor", status.floor)
        json.member("started", TimeText.text(milliseconds: status.started))
        json.member("segments", status.segments)
        json.member("log_bytes", status.logByteCount)
        json.member("reclaimable_bytes", status.reclaimableByteCount)
        json.name("records")
        json.beginObject()
        for count in status.records { json.member(kinds[count.kind]?.name ?? "\(count.kind)", count.count) }
        json.endObject()
        json.name("sessions")
        json.beginArray()
        for session in status.sessions {
            json.beginObject()
            json.member("id", session.id)
            json.member("name", session.name)
            json.member("version", session.version)
            json.name("roles")
            json.beginArray()
            for role in roleNames(session.roles) { json.string(role) }
            json.endArray()
            json.member("pid", session.pid)
            json.member("subscriptions", session.subscriptions)
            json.member("lag", session.lag)
            json.endObject()
        }
        json.endArray()
        json.name("plugins")
        json.beginArray()
        for plugin in status.plugins {
            json.beginObject()
            json.member("name", plugin.name)
            json.member("state", plugin.state)
            json.member("pid", plugin.pid)
            json.member("restarts", plugin.restarts)
            json.member("last_error", plugin.lastError)
            json.endObject()
        }
        json.endArray()
    }
}

extension JSONWriter {
    mutating func member(_ name: String, _ value: String) {
        self.name(name)
        string(value)
    }

    mutating func member(_ name: String, _ value: some FixedWidthInteger) {
        self.name(name)
        integer(value)
    }

    mutating func member(_ name: String, _ value: Bool) {
        self.name(name)
        bool(value)
    }
}

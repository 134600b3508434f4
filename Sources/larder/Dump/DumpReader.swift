// Reads the lines of a dump.

import LarderFormat

/// A line of a dump.
enum DumpLine {
    case head(epoch: String, kinds: [JSONValue])
    case record(DumpedRecord)
    case end(recordCount: Int)
}

/// A record with what a dump says of it.
struct DumpedRecord {
    var kind: Kind
    /// Encoded and checked.
    var record: [UInt8]
    /// nil: not told.
    var firstSeq: UInt64?
    var savedAt: Int64?
    var origin: String?
}

/// Takes the lines apart, against the kinds as the library has them. One thread.
final class DumpReader {
    private var reader = JSONReader(UnsafeRawBufferPointer(start: nil, count: 0))
    private var inner = JSONReader(UnsafeRawBufferPointer(start: nil, count: 0))
    private var byName: [String: DumpRecord] = [:]
    /// Kinds of which bytes can be taken as they are: their fields have the same numbers here and there.
    private var alikeNames: Set<String> = []
    /// Kinds that the head named and that can't be had here, with the reason.
    private var refusedNames: [String: String] = [:]

    func set(_ kind: Kind, isAlike: Bool) {
        byName[kind.name] = DumpRecord(kind)
        if isAlike { alikeNames.insert(kind.name) } else { alikeNames.remove(kind.name) }
    }

    func refuse(_ kind: String, _ reason: String) { refusedNames[kind] = reason }

    func key(_ record: DumpedRecord) -> [UInt8] { byName[record.kind.name]?.key(record.record) ?? [] }

    /// What the members of a line came to.
    private struct Members {
        var kind = ""
        var kindNumber: Int64?
        var record: Range<Int>?
        var bytes: String?
        var firstSeq: UInt64?
        var savedAt: Int64?
        var origin: String?
        var head: Int64?
        var end: Int64?
        var epoch = ""
        var kinds: [JSONValue] = []
        var recordCount: Int64 = 0
    }

    func read(_ line: UnsafeRawBufferPointer) throws(DumpFault) -> DumpLine {
        var members = Members()
        reader.restart(line)
        guard try next() == .beginObject else { throw DumpFault("not-an-object", "", "a line is one JSON object, {…}") }
        while try next() == .name { try member(reader.text.string, &members) }
        do throws(JSONError) { try reader.finish() } catch { throw DumpFault(error) }
        if let version = members.head {
            try expect(version)
            return .head(epoch: members.epoch, kinds: members.kinds)
        }
        if let version = members.end {
            try expect(version)
            return .end(recordCount: Int(clamping: members.recordCount))
        }
        return .record(try record(members, line))
    }

    private func expect(_ version: Int64) throws(DumpFault) {
        guard version == Int64(DumpForm.version) else {
            throw DumpFault(
                "bad-version", DumpForm.headName,
                "a dump of form \(version); this larder reads form \(DumpForm.version)")
        }
    }

    // MARK: Members

    private func member(_ name: String, _ members: inout Members) throws(DumpFault) {
        switch name {
        case "kind":
            switch try value(name) {
            case .string(let kind): members.kind = kind
            case .integer(let number): members.kindNumber = number
            default: throw DumpFault("bad-kind", name, "expected the kind's name")
            }
        case "record":
            guard try next() == .beginObject else { throw DumpFault("bad-record", name, "expected an object") }
            let start = reader.tokenOffset
            do throws(JSONError) { try reader.skip(toDepth: 1) } catch { throw DumpFault(error) }
            members.record = start..<reader.offset
        case "bytes": members.bytes = try string(name)
        case "seq", "changed": _ = try value(name)
        case "first_seq":
            guard let number = try integer(name), number > 0 else {
                throw DumpFault("bad-first_seq", name, "expected a whole number from 1")
            }
            members.firstSeq = UInt64(number)
        case "saved": members.savedAt = try time(name)
        case "origin":
            let origin = try string(name)
            guard (1...64).contains(origin.utf8.count), !origin.utf8.contains(0) else {
                throw DumpFault("bad-origin", name, "a program's name has 1 to 64 bytes")
            }
            members.origin = origin
        case DumpForm.headName: members.head = try integer(name) ?? 0
        case DumpForm.endName: members.end = try integer(name) ?? 0
        case "epoch": members.epoch = try string(name)
        case "kinds":
            guard let kinds = try value(name).array else { throw DumpFault("bad-kinds", name, "expected an array") }
            members.kinds = kinds
        case "records": members.recordCount = try integer(name) ?? -1
        default: throw DumpFault("unknown-member", name, "a line of a dump has no such member")
        }
    }

    private func next() throws(DumpFault) -> JSONToken {
        do throws(JSONError) { return try reader.next() } catch { throw DumpFault(error) }
    }

    private func value(_ name: String) throws(DumpFault) -> JSONValue {
        do throws(JSONError) { return try JSONValue(from: &reader) } catch { throw DumpFault(error) }
    }

    private func string(_ name: String) throws(DumpFault) -> String {
        guard try next() == .string else { throw DumpFault("bad-" + name, name, "expected a string") }
        return reader.text.string
    }

    private func integer(_ name: String) throws(DumpFault) -> Int64? { try value(name).int64 }

    private func time(_ name: String) throws(DumpFault) -> Int64 {
        let found: Int64? =
            switch try value(name) {
            case .string(let text): TimeText.milliseconds(text)
            case .integer(let milliseconds): milliseconds
            default: nil
            }
        guard let found, timeRange.contains(found) else {
            throw DumpFault("bad-" + name, name, "expected a time such as \"2026-01-31T08:00:00.000Z\"")
        }
        return found
    }

    // MARK: The record

    private func record(_ members: Members, _ line: UnsafeRawBufferPointer) throws(DumpFault) -> DumpedRecord {
        if let number = members.kindNumber {
            throw DumpFault("unknown-kind", "kind", "kind \(number) was declared nowhere when this was written")
        }
        guard !members.kind.isEmpty else { throw DumpFault("missing-kind", "kind", "missing") }
        guard let shape = byName[members.kind] else {
            let reason =
                refusedNames[members.kind]
                ?? "neither the dump's first line nor the library has a kind “\(members.kind)”"
            throw DumpFault("unknown-kind", "kind", reason)
        }
        var record: [UInt8]
        switch (members.record, members.bytes) {
        case (let range?, nil):
            inner.restart(UnsafeRawBufferPointer(rebasing: line[range]))
            do throws(JSONError) { _ = try inner.next() } catch { throw DumpFault(error) }
            record = try shape.read(&inner)
        case (nil, let text?):
            guard let bytes = Base64.bytes(text) else { throw DumpFault("bad-bytes", "bytes", "expected base64") }
            guard alikeNames.contains(members.kind) else {
                throw DumpFault("bad-bytes", "bytes", "the kind \(members.kind) has other field numbers here")
            }
            if let error = shape.fault(bytes) { throw DumpFault("bad-bytes", "bytes", "\(error)") }
            record = bytes
        case (nil, nil): throw DumpFault("missing-record", "record", "missing")
        case (_?, _?): throw DumpFault("bad-record", "record", "a line has “record” or “bytes”, not both")
        }
        return DumpedRecord(
            kind: shape.kind, record: record, firstSeq: members.firstSeq, savedAt: members.savedAt,
            origin: members.origin)
    }
}

// Records and events as JSON objects, in the form that every program of Larder prints.

import LarderFormat
import LarderWire

/// The stated forms of records and events.
enum RecordJSON {
    /// `{"kind":"title","key":…,"seq":…,"saved_seq":…,"saved_at":…,"changed_at":…,"origin":…,"record":{…}}`
    static func write(
        _ header: StoredRecordHeader, _ record: UnsafeRawBufferPointer, _ kinds: Kinds, into json: inout JSONWriter
    ) {
        guard let kind = kinds[header.kind] else {
            json.name("kind")
            json.integer(header.kind)
            writeTimes(header, into: &json)
            return writeOpaque(record, into: &json)
        }
        let decoded = try? Record(decoding: record, kind)
        json.name("kind")
        json.string(kind.name)
        writeKey(record, decoded, kind, into: &json)
        writeTimes(header, into: &json)
        writeRecord(record, decoded, kind, into: &json)
    }

    private static func writeTimes(_ header: StoredRecordHeader, into json: inout JSONWriter) {
        json.name("seq")
        json.integer(header.seq)
        json.name("saved_seq")
        json.integer(header.firstSeq)
        json.name("saved_at")
        json.string(TimeText.text(milliseconds: header.savedAt))
        json.name("changed_at")
        json.string(TimeText.text(milliseconds: header.changedAt))
        json.name("origin")
        json.integer(header.origin)
    }

    private static func writeKey(
        _ record: UnsafeRawBufferPointer, _ decoded: Record?, _ kind: Kind, into json: inout JSONWriter
    ) {
        guard let text = keyText(record, decoded, kind) else { return }
        json.name("key")
        json.string(text)
    }

    /// The key's text, also of a record with fields that this version does not know.
    static func keyText(_ record: UnsafeRawBufferPointer, _ decoded: Record?, _ kind: Kind) -> String? {
        if let decoded { return (try? RecordKey(of: decoded, kind))?.text }
        guard let range = try? RecordSchema(kind).keyRange(ofChecked: record) else { return nil }
        return (try? RecordKey(decoding: UnsafeRawBufferPointer(rebasing: record[range]), kind))?.text
    }

    private static func writeRecord(
        _ record: UnsafeRawBufferPointer, _ decoded: Record?, _ kind: Kind, into json: inout JSONWriter
    ) {
        guard let decoded else { return writeOpaque(record, into: &json) }
        json.name("record")
        decoded.writeJSON(kind, into: &json)
    }

    /// What can't be taken apart, as hexadecimal digits.
    private static func writeOpaque(_ bytes: UnsafeRawBufferPointer, into json: inout JSONWriter) {
        json.name("opaque")
        json.string(Hex.text(bytes))
    }

    /// `{"cursor":…,"event":"downloaded",…}` or `{"cursor":…,"event":"deleted",…}`.
    static func writeEvent(
        _ entry: EntryView, commitTime: Int64, _ cursor: Cursor, _ kinds: Kinds, into json: inout JSONWriter
    ) {
        json.name("cursor")
        json.string("\(cursor)")
        json.name("event")
        json.string(entry.isSave ? "downloaded" : "deleted")
        if entry.isSave {
            json.name("created")
            json.bool(entry.isNewToLibrary)
        }
        let kind = kinds[entry.kind]
        json.name("kind")
        if let kind { json.string(kind.name) } else { json.integer(entry.kind) }
        let decoded = entry.isSave ? kind.flatMap { try? Record(decoding: entry.payload, $0) } : nil
        if let kind {
            if entry.isSave {
                writeKey(entry.payload, decoded, kind, into: &json)
            } else if let key = try? RecordKey(decoding: entry.payload, kind) {
                json.name("key")
                json.string(key.text)
            }
        }
        json.name("seq")
        json.integer(entry.seq)
        json.name("time")
        json.string(TimeText.text(milliseconds: commitTime))
        guard entry.isSave else { return }
        json.name("origin")
        json.integer(entry.origin)
        json.name("changed")
        json.beginArray()
        for name in entry.changed.names(kind) { json.string(name) }
        json.endArray()
        if let kind {
            writeRecord(entry.payload, decoded, kind, into: &json)
        } else {
            writeOpaque(entry.payload, into: &json)
        }
    }
}

/// Bytes as hexadecimal digits.
enum Hex {
    private static let digits = Array("0123456789abcdef".utf8)

    static func text(_ bytes: some Sequence<UInt8>) -> String {
        var out: [UInt8] = []
        for byte in bytes {
            out.append(digits[Int(byte >> 4)])
            out.append(digits[Int(byte & 15)])
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// nil for an odd count of digits or anything else between them.
    static func bytes(_ text: String) -> [UInt8]? {
        let found = text.utf8.map { byte -> UInt8? in
            switch byte {
            case 0x30...0x39: byte - 0x30
            case 0x61...0x66: byte - 0x57
            case 0x41...0x46: byte - 0x37
            default: nil
            }
        }
        guard found.count % 2 == 0, !found.contains(nil) else { return nil }
        let digits = found.compactMap { $0 }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}

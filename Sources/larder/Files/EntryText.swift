// An entry of the log in the words of FORMAT.md.

import LarderFormat
import LarderStore
import LarderWire

/// Shows entries with what is known of their kinds.
struct EntryText {
    private let kinds: [Int: Kind]

    init(_ kinds: [Kind]) { self.kinds = Dictionary(kinds.map { ($0.number, $0) }) { $1 } }

    static func name(_ type: UInt8) -> String {
        switch type {
        case EntryType.created: "created"
        case EntryType.updated: "updated"
        case EntryType.deleted: "deleted"
        case EntryType.kind: "kind"
        case EntryType.origin: "origin"
        case EntryType.importBegan: "import_began"
        case EntryType.importEnded: "import_ended"
        case EntryType.token: "token"
        case EntryType.recovered: "recovered"
        case EntryType.floor: "floor"
        default: "type \(type)"
        }
    }

    private func isRecord(_ entry: InspectedEntry) -> Bool { (1...3).contains(entry.type) }

    /// `offset 152  seq 3  created  item:7, origin 1, 17 bytes`
    func line(_ entry: InspectedEntry) -> String {
        var text = "offset \(entry.offset)  seq \(entry.seq)  \(EntryText.name(entry.type))"
        if isRecord(entry) {
            text += "  \(keyText(entry) ?? "kind \(entry.kind)"), origin \(entry.origin)"
            if entry.type != EntryType.created {
                text += ", first seq \(entry.firstSeq), previous seq \(entry.previousSeq)"
            }
        } else if let facts = facts(entry) {
            text += "  " + DisplayText.visible(facts)
        }
        return text + ", \(Formats.count(entry.byteCount, "byte"))"
    }

    private func keyText(_ entry: InspectedEntry) -> String? {
        guard let kind = kinds[entry.kind] else { return nil }
        let text = entry.payload.withUnsafeBytes { payload in
            entry.type == EntryType.deleted
                ? (try? RecordKey(decoding: payload, kind))?.text
                : RecordJSON.keyText(payload, try? Record(decoding: entry.payload, kind), kind)
        }
        return text.map { DisplayText.visible($0) }
    }

    /// What an entry that is of no record says.
    private func facts(_ entry: InspectedEntry) -> String? {
        entry.payload.withUnsafeBytes { payload in
            var reader = ByteReader(payload)
            return try? facts(entry.type, &reader)
        }
    }

    private func facts(_ type: UInt8, _ reader: inout ByteReader) throws(FormatError) -> String? {
        switch type {
        case EntryType.kind:
            let kind = try Kind(from: &reader)
            return "\(kind.name), number \(kind.number), version \(kind.version), \(kind.fields.count) fields"
        case EntryType.origin:
            let (number, name, token) = (try reader.varint(), try reader.text(), try reader.text())
            return "number \(number), \(name)" + (token.isEmpty ? "" : ", import token \(token)")
        case EntryType.importBegan: return "origin \(try reader.varint()), \(try reader.text())"
        case EntryType.importEnded: return "origin \(try reader.varint()), outcome \(try reader.u8())"
        case EntryType.token: return "origin \(try reader.varint()), batch \(try reader.varint())"
        case EntryType.recovered: return "seqs \(try reader.varint()) to \(try reader.varint()) have no entry"
        case 22: return "every change from seq \(try reader.varint()) on is there"
        case 23: return "segments \(try reader.varint()) to \(try reader.varint())"
        default: return nil
        }
    }

    func write(_ entry: InspectedEntry, into json: inout JSONWriter) {
        json.member("offset", entry.offset)
        json.member("bytes", entry.byteCount)
        json.member("type", EntryText.name(entry.type))
        json.member("seq", entry.seq)
        json.member("time", TimeText.text(milliseconds: entry.time))
        guard isRecord(entry) else {
            json.member("body", Hex.text(entry.payload))
            if let facts = facts(entry) { json.member("facts", facts) }
            return
        }
        if entry.type != EntryType.created {
            json.member("flags", entry.flags)
            json.member("first_seq", entry.firstSeq)
            json.member("previous_seq", entry.previousSeq)
        }
        json.member("origin", entry.origin)
        if let kind = kinds[entry.kind] { json.member("kind", kind.name) } else { json.member("kind", entry.kind) }
        if let key = keyText(entry) { json.member("key", key) }
        if entry.type == EntryType.deleted {
            json.member("key_bytes", Hex.text(entry.payload))
        } else if let kind = kinds[entry.kind], let record = try? Record(decoding: entry.payload, kind) {
            json.name("record")
            record.writeJSON(kind, into: &json)
        } else {
            json.member("opaque", Hex.text(entry.payload))
        }
    }
}

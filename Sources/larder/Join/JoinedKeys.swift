// Keys of records that were joined with others: the field `also`.

import LarderClient
import LarderFormat
import LarderWire

enum JoinedKeys {
    static let fieldName = "also"

    /// The field of a kind, if it has one.
    static func field(_ kind: Kind) -> Field? {
        guard let field = kind.field(named: fieldName), field.type == .list, field.constraints.contains(.indexed) else {
            return nil
        }
        return field
    }

    /// Keys in text that a record has beside its own.
    static func texts(_ record: Record, _ kind: Kind) -> [String] {
        guard let field = field(kind), case .list(let texts)? = record[field.number] else { return [] }
        return texts
    }
}

extension Session {
    /// The record of a key, or else the one that the key's record was joined with.
    func stored(_ key: RecordKey) throws -> (key: RecordKey, record: StoredRecord)? {
        let found = try attempt("getting \(key.text)") { try client.get(kind: key.kind.number, key: key.bytes) }
        if let found { return (key, found) }
        return try joined(key)
    }

    /// The record that the key's record was joined with.
    func joined(_ key: RecordKey) throws -> (key: RecordKey, record: StoredRecord)? {
        guard let field = JoinedKeys.field(key.kind) else { return nil }
        var value = ByteWriter()
        value.text(key.text)
        let found = try attempt("looking for \(key.text)") {
            try client.find(Find(kind: key.kind.number, field: field.number, value: value.bytes))
        }
        // What is found is equal when folded; a key is equal by its bytes.
        for stored in found.records {
            guard let record = try? Record(decoding: stored.record, key.kind),
                JoinedKeys.texts(record, key.kind).contains(where: { $0.utf8.elementsEqual(key.text.utf8) }),
                let other = try? RecordKey(of: record, key.kind)
            else { continue }
            return (other, stored)
        }
        return nil
    }
}

extension Context {
    /// As `Session.stored`; says so where it is another record than the key says.
    func stored(_ key: RecordKey) throws -> (key: RecordKey, record: StoredRecord)? {
        guard let found = try session().stored(key) else { return nil }
        if found.key.bytes != key.bytes { noteJoined(key, found.key) }
        return found
    }

    func noteJoined(_ key: RecordKey, _ other: RecordKey) {
        output.flush()
        note(DisplayText.visible("\(key.text) is joined with \(other.text)"))
    }
}

// Reads the object of a record exactly as it was written: every value in its one JSON form, nothing forgiven.

import LarderFormat

/// Makes records of one kind out of JSON. Keeps its memory from record to record; one thread.
final class DumpRecord {
    let kind: Kind
    let schema: RecordSchema
    private let fields: [String: Field]
    private var values: [(field: Int, value: Value)] = []

    init(_ kind: Kind) {
        self.kind = kind
        schema = RecordSchema(kind)
        fields = Dictionary(kind.fields.map { ($0.name, $0) }) { first, _ in first }
    }

    /// Reads the object that the reader has just begun, and encodes it.
    func read(_ reader: inout JSONReader) throws(DumpFault) -> [UInt8] {
        values.removeAll(keepingCapacity: true)
        var fault: DumpFault?
        do throws(JSONError) {
            while try reader.next() == .name {
                let name = reader.text.string
                guard let field = fields[name] else {
                    fault = fault ?? DumpFault("unknown-field", name, "the kind \(kind.name) has no such field here")
                    try reader.skipValue()
                    continue
                }
                let value = try JSONValue(from: &reader)
                do throws(RecordTextError) {
                    values.append((field.number, try Value(json: value, field)))
                } catch {
                    fault = fault ?? DumpFault("bad-" + name, error.field, error.reason)
                }
            }
        } catch { throw DumpFault(error) }
        if let fault { throw fault }
        return try encoded()
    }

    private func encoded() throws(DumpFault) -> [UInt8] {
        if !zip(values, values.dropFirst()).allSatisfy({ $0.field < $1.field }) { values.sort { $0.field < $1.field } }
        var writer = ByteWriter(reserving: 512)
        FieldSet(values.map(\.field)).encode(into: &writer)
        for (_, value) in values { value.encode(into: &writer) }
        let record = writer.bytes
        if let error = fault(record) {
            let name = kind.field(error.field)?.name ?? ""
            throw DumpFault(error.code == .missingField ? "missing-" + name : "bad-record", name, "\(error)")
        }
        return record
    }

    /// Why the bytes are no record of the kind, or nil.
    func fault(_ record: [UInt8]) -> FormatError? {
        record.withUnsafeBytes { bytes in
            do throws(FormatError) {
                _ = try schema.scan(bytes)
                return nil
            } catch { return error }
        }
    }

    /// The key of a record that was checked.
    func key(_ record: [UInt8]) -> [UInt8] {
        record.withUnsafeBytes { bytes in
            guard let range = try? schema.keyRange(ofChecked: bytes) else { return [] }
            return Array(bytes[range])
        }
    }
}

/// Why a line of a dump is not taken.
struct DumpFault: Error, Equatable {
    /// A word for programs, such as `bad-json`.
    let code: String
    /// Name of the member or field, or "".
    let field: String
    let reason: String

    init(_ code: String, _ field: String = "", _ reason: String) {
        self.code = code
        self.field = field
        self.reason = reason
    }

    init(_ error: JSONError) {
        self.init(
            error.code == .badUnicode ? "bad-unicode" : "bad-json", "", "\(error.reason), at column \(error.column)")
    }
}

// Keys as people and commands write them: `title:tmdb/movie/603` (SPEC.md section 4).

/// A kind and the values of its key fields.
public struct RecordKey: Sendable {
    public let kind: Kind
    /// In the order of the key fields.
    public let values: [Value]
    /// Their encodings, one after the other.
    public let bytes: [UInt8]

    /// The key of a record.
    public init(of record: Record, _ kind: Kind) throws(FormatError) {
        bytes = try record.key(kind)
        values = kind.keyFields.compactMap { record[$0.number] }
        self.kind = kind
    }

    /// Reads encoded key values and nothing behind them.
    public init(decoding bytes: UnsafeRawBufferPointer, _ kind: Kind) throws(FormatError) {
        var reader = ByteReader(bytes)
        var values: [Value] = []
        for field in kind.keyFields {
            let start = reader.offset
            do throws(FormatError) {
                let value = try Value(from: &reader, field)
                try value.check(field, isKey: true, at: start)
                values.append(value)
            } catch {
                throw FormatError(error.code, at: error.offset, field: field.number)
            }
        }
        try reader.expectEnd()
        self.kind = kind
        self.values = values
        self.bytes = Array(bytes)
    }

    /// Reads `title:tmdb/movie/603`.
    ///
    /// - Parameter kindNamed: finds a kind by its name.
    public init(text: String, kindNamed: (String) -> Kind?) throws(RecordTextError) {
        // By bytes: as characters, a separator and a combining mark behind it are one.
        guard let colon = text.utf8.firstIndex(of: 0x3A) else {
            throw RecordTextError("", "a key is written kind:value/value, such as title:tmdb/movie/603")
        }
        let name = String(text[..<colon])
        guard let kind = kindNamed(name) else { throw RecordTextError("", "no kind is named \(name)") }
        let parts = text.utf8[text.utf8.index(after: colon)...].split(separator: 0x2F, omittingEmptySubsequences: false)
        guard parts.count == kind.keyFieldCount else {
            let form = kind.keyFields.map(\.name).joined(separator: "/")
            throw RecordTextError("", "a key of \(kind.name) is written \(kind.name):\(form)")
        }
        var record = Record()
        for (field, part) in zip(kind.keyFields, parts) {
            record[field.number] = try Value(plainText: try RecordKey.unescaped(Array(part), field), field)
        }
        do throws(FormatError) { try self.init(of: record, kind) } catch {
            let field = kind.field(error.field)?.name ?? ""
            throw RecordTextError(field, error.code == .keyNotNormalised ? "not in normalisation form C" : "\(error)")
        }
    }

    /// `title:tmdb/movie/603`; `%` and `/` inside a value are written `%25` and `%2F`.
    public var text: String {
        let parts = zip(kind.keyFields, values).map { field, value in RecordKey.escaped(value.plainText(field)) }
        return kind.name + ":" + parts.joined(separator: "/")
    }

    private static func escaped(_ text: String) -> String {
        var out: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x25: out.append(contentsOf: "%25".utf8)
            case 0x2F: out.append(contentsOf: "%2F".utf8)
            default: out.append(byte)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    private static func unescaped(_ text: [UInt8], _ field: Field) throws(RecordTextError) -> String {
        var out: [UInt8] = []
        var rest = text[...]
        while let byte = rest.popFirst() {
            guard byte == 0x25 else {
                out.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            if digits.elementsEqual("25".utf8) {
                out.append(0x25)
            } else if digits.elementsEqual("2F".utf8) || digits.elementsEqual("2f".utf8) {
                out.append(0x2F)
            } else {
                throw RecordTextError(field.name, "% is written %25 in a key")
            }
            rest = rest.dropFirst(2)
        }
        return String(decoding: out, as: UTF8.self)
    }
}

extension RecordKey: CustomStringConvertible {
    public var description: String { text }
}

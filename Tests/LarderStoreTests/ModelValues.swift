// Who has which value, found by looking at every record; text folded by another way than the store's.

import LarderFormat

@testable import LarderStore

/// A value of an indexed field as it is compared.
enum ModelValue: Hashable {
    /// Equality of String is that of its normalised form.
    case text(String)
    case other([UInt8])
}

enum ModelText {
    static func texts(_ value: [UInt8], isList: Bool) -> [String] {
        value.withUnsafeBytes { raw in
            var reader = ByteReader(raw)
            let count = isList ? (try? reader.varint()) ?? 0 : 1
            return (0..<count).map { _ in (try? reader.text()) ?? "" }
        }
    }

    /// Right for the characters that the tests use: one-to-one lower case, and full-width forms of ASCII.
    static func folded(_ text: String) -> ModelValue {
        var narrow = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            let isWide = (0xFF01...0xFF5E).contains(scalar.value)
            narrow.append(isWide ? Unicode.Scalar(scalar.value - 0xFEE0) ?? scalar : scalar)
        }
        return .text(String(narrow).lowercased())
    }
}

extension Model {
    /// The values that a record has in a field.
    func values(of field: Int, _ fields: Fields, _ kind: Kind) -> [ModelValue] {
        guard field != 0, let value = fields[field], let type = kind.field(field)?.type else { return [] }
        switch type {
        case .text: return [ModelText.folded(ModelText.texts(value, isList: false).first ?? "")]
        case .list: return ModelText.texts(value, isList: true).map { ModelText.folded($0) }
        case .identifier:
            return value.withUnsafeBytes { raw in
                var reader = ByteReader(raw)
                guard let head = try? reader.varint(), head & 1 == 1, let text = try? reader.slice(reader.remaining)
                else { return [.other(value)] }
                return [ModelText.folded(String(decoding: text, as: UTF8.self))]
            }
        default: return [.other(value)]
        }
    }

    /// Keys and seqs of the records with a value, in saved order.
    func holders(
        _ kind: Int, _ field: Int, _ wanted: ModelValue, in records: [RecordKey: ModelRecord]
    ) -> [(RecordKey, UInt64)] {
        guard let schema = TestKinds.all.first(where: { $0.number == kind }) else { return [] }
        return records.filter { $0.key.kind == kind && values(of: field, $0.value.fields, schema).contains(wanted) }
            .sorted { $0.value.firstSeq < $1.value.firstSeq }.map { ($0.key, $0.value.seq) }
    }
}

// What a record is to a person: what to call it, when it is from, and what else is worth a cell.

import LarderFormat
import LarderWire

/// The cells of a record on a downloads screen. Fields are found by name, so that any kind with the same fields shows
/// as much.
struct RecordCells {
    static let unknownLabel = "Unknown"

    var label = RecordCells.unknownLabel
    /// `movie`, `tv`, …; else the kind's name.
    var kind = ""
    /// As much of a date as is known, or "".
    var date = ""
    var authors = ""
    var price = ""
    var key = ""

    init(_ header: StoredRecordHeader, _ bytes: UnsafeRawBufferPointer, _ kinds: Kinds) {
        if let kind = kinds[header.kind] {
            self.init(try? Record(decoding: bytes, kind), bytes, kind)
        } else {
            self.init(unknownKind: header.kind)
        }
    }

    private init(unknownKind number: Int) { kind = "kind \(number)" }

    init(_ record: Record?, _ bytes: UnsafeRawBufferPointer, _ kind: Kind) {
        self.kind = kind.name
        key = RecordJSON.keyText(bytes, record, kind) ?? ""
        guard let record else { return }
        if let label = record.label(kind) { self.label = label }
        func text(_ name: String, _ type: FieldType) -> String? {
            guard let field = kind.field(named: name), field.type == type else { return nil }
            return record[field.number]?.plainText(field)
        }
        if let mediaType = text("media_type", .choice) { self.kind = mediaType }
        date = text("release_date", .date) ?? text("published", .date) ?? ""
        authors = text("authors", .list) ?? ""
        price = text("price", .number).map(RecordCells.grouped) ?? ""
    }

    /// `13,500`; the digits behind a point stay as they are.
    private static func grouped(_ number: String) -> String {
        let parts = number.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first.flatMap({ Int($0) }) else { return number }
        return Formats.count(whole) + (parts.count > 1 ? "." + parts[1] : "")
    }
}

// Records as comma-separated values (RFC 4180).

import LarderFormat
import LarderWire

/// Writes a row a record, a column a field. Values are exact: nothing is added to what a spreadsheet could take for a
/// formula.
struct CSVWriter {
    /// What stands in a column.
    enum Column {
        case field(Field)
        case saved, changed, seq

        var name: String {
            switch self {
            case .field(let field): field.name
            case .saved: "@saved"
            case .changed: "@changed"
            case .seq: "@seq"
            }
        }
    }

    let kind: Kind
    let columns: [Column]
    private let output: Output
    /// Records that could not be taken apart.
    private(set) var opaqueCount = 0

    /// - Parameter names: separated by commas; nil: all fields of the kind.
    init(_ kind: Kind, fields names: String?, _ output: Output) throws(Failure) {
        self.kind = kind
        self.output = output
        guard let names else {
            columns = kind.fields.map(Column.field)
            return
        }
        var columns: [Column] = []
        for name in names.split(separator: ",", omittingEmptySubsequences: false) {
            switch name {
            case "@saved": columns.append(.saved)
            case "@changed": columns.append(.changed)
            case "@seq": columns.append(.seq)
            default: columns.append(.field(try FieldNames.field(String(name), kind)))
            }
        }
        self.columns = columns
    }

    func writeHead() { output.raw(CSVWriter.row(columns.map(\.name))) }

    mutating func write(_ stored: StoredRecord) {
        guard let record = try? Record(decoding: stored.record, kind) else {
            opaqueCount += 1
            return
        }
        output.raw(
            CSVWriter.row(
                columns.map { column in
                    switch column {
                    case .field(let field): record[field.number].map { CSVWriter.text($0, field) } ?? ""
                    case .saved: TimeText.text(milliseconds: stored.header.savedAt)
                    case .changed: TimeText.text(milliseconds: stored.header.changedAt)
                    case .seq: String(stored.header.seq)
                    }
                }))
    }

    private static func text(_ value: Value, _ field: Field) -> String {
        if case .list(let texts) = value { return texts.joined(separator: "; ") }
        return value.plainText(field)
    }

    /// One row with its line's end.
    static func row(_ cells: [String]) -> String { cells.map(cell).joined(separator: ",") + "\r\n" }

    /// In quotes where it has to be.
    static func cell(_ text: String) -> String {
        let needsQuotes = text.utf8.contains { $0 == 0x22 || $0 == 0x2C || $0 == 0x0D || $0 == 0x0A }
        let isPadded = text.utf8.first == 0x20 || text.utf8.last == 0x20
        guard needsQuotes || isPadded else { return text }
        // By bytes: a carriage return and a line feed are one character.
        var out: [UInt8] = [0x22]
        for byte in text.utf8 {
            if byte == 0x22 { out.append(0x22) }
            out.append(byte)
        }
        out.append(0x22)
        return String(decoding: out, as: UTF8.self)
    }
}

/// Fields as commands name them.
enum FieldNames {
    static func field(_ name: String, _ kind: Kind) throws(Failure) -> Field {
        if let field = kind.field(named: name) { return field }
        let near = Suggestion.nearest(to: name, in: kind.fields.map(\.name)).map { "did you mean \($0)? " } ?? ""
        throw .usage(
            "“\(name)”", "the kind \(kind.name) has no such field", near + "larder kinds \(kind.name) lists its fields")
    }
}

// All of one record for a person.

import LarderFormat
import LarderWire

/// Prints a record with what the library knows of it.
struct RecordView {
    let context: Context
    let origins: OriginNames

    func print(_ found: StoredRecord, _ key: RecordKey, showsAbsent: Bool) throws {
        let kind = key.kind
        let header = found.header
        let record = try? Record(decoding: found.record, kind)
        let output = context.output
        let label = record?.label(kind) ?? RecordCells.unknownLabel
        output.line(output.styled(DisplayText.visible(label), .bold))
        let origin = try origins.name(header.origin)
        var library = [
            ("key", key.text), ("kind", "\(kind.name), version \(kind.version)"),
            ("saved", "\(Formats.localTime(milliseconds: header.savedAt, withSeconds: true)), seq \(header.firstSeq)"),
        ]
        if header.seq == header.firstSeq {
            library.append(("by", origin))
        } else {
            let time = Formats.localTime(milliseconds: header.changedAt, withSeconds: true)
            library.append(("changed", "\(time), seq \(header.seq), by \(origin)"))
        }
        guard let record else {
            rows(library + [("opaque", Hex.text(found.record))], output)
            return
        }
        var own: [(String, String)] = []
        var others: [(String, String)] = []
        for field in kind.fields.dropFirst(kind.keyFieldCount) {
            let cell: (String, String)
            if let value = record[field.number] {
                cell = (field.name, RecordView.text(value, field))
            } else if showsAbsent {
                cell = (field.name, "–")
            } else {
                continue
            }
            if field.constraints.contains(.personal) { own.append(cell) } else { others.append(cell) }
        }
        let width = (library + others + own).map { $0.0.utf8.count }.max() ?? 0
        rows(library, output, width: width)
        for (title, group) in [("", others), ("own", own)] where !group.isEmpty {
            output.line(title.isEmpty ? "" : output.styled(title, .dim))
            rows(group, output, width: width)
        }
    }

    /// Lists and texts of several lines as lines.
    static func text(_ value: Value, _ field: Field) -> String {
        switch value {
        case .list(let texts): texts.isEmpty ? "[]" : texts.joined(separator: "\n")
        case .text(""): "\"\""
        default: value.plainText(field)
        }
    }

    private func rows(_ rows: [(String, String)], _ output: Output, width: Int? = nil) {
        let width = width ?? rows.map { $0.0.utf8.count }.max() ?? 0
        for (name, value) in rows {
            let lines = value.utf8.split(separator: 0x0A, omittingEmptySubsequences: false)
            for (index, line) in lines.enumerated() {
                let gap = String(repeating: " ", count: width + 2 - (index == 0 ? name.utf8.count : 0))
                let shown = DisplayText.visible(String(Substring(line)))
                let head = index == 0 ? output.styled(name, .dim) : ""
                output.line(shown.isEmpty ? "" : "  " + head + gap + shown)
            }
        }
    }
}

/// Names of origins, asked for when needed.
final class OriginNames {
    private let session: Session
    private var known: [UInt64: OriginList.Origin] = [:]

    init(_ session: Session) { self.session = session }

    /// Its program's name; of an import with the import's token.
    func name(_ number: UInt64) throws -> String {
        guard number > 0 else { return "the host" }
        guard let origin = try origin(number) else { return "origin \(number)" }
        return origin.name + (origin.token.isEmpty ? "" : " (import \(origin.token))")
    }

    /// nil for one that is none.
    func origin(_ number: UInt64) throws -> OriginList.Origin? {
        if let origin = known[number] { return origin }
        guard number > 0 else { return nil }
        let found = try attempt("asking who wrote") {
            try session.client.origins(after: number - 1, limit: 1)
        }
        for origin in found { known[origin.number] = origin }
        return known[number]
    }
}

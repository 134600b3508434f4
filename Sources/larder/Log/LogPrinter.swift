// Rows of the log as lines.

import LarderFormat
import LarderWire

/// Prints rows, newest or oldest first as they come. One thread.
final class LogPrinter {
    private let context: Context
    private let session: Session
    private let kinds: Kinds
    private let origins: OriginNames
    /// The rows are all of one record.
    private let isOfOneRecord: Bool
    private var table: Table?
    private(set) var count = 0

    init(_ context: Context, _ session: Session, isOfOneRecord: Bool = false) throws {
        self.context = context
        self.session = session
        self.isOfOneRecord = isOfOneRecord
        kinds = try session.kinds()
        origins = OriginNames(session)
    }

    func print(_ rows: [LogRow]) throws {
        let rows = try isOfOneRecord ? rows : labelled(rows)
        count += rows.count
        if context.isJSON {
            for row in rows { try printJSON(row) }
            return
        }
        guard !rows.isEmpty else { return }
        let isFirst = table == nil
        var table =
            self.table
            ?? Table(
                [.init("TIME"), .init("CHANGE", flexible: true)]
                    + (isOfOneRecord ? [] : [.init("RECORD", flexible: true)]) + [
                        .init("BY", flexible: true), .init("SEQ"),
                    ],
                width: context.output.width)
        for row in rows {
            let time = Formats.localTime(milliseconds: row.time, withSeconds: true)
            let by = row.origin == 0 ? "" : try origins.shortName(row.origin)
            table.add([time, row.words] + (isOfOneRecord ? [] : [subject(row)]) + [by, row.seqs])
        }
        table.print(to: context.output, withHeading: isFirst)
        self.table = table
        context.output.flush()
    }

    /// A deleted entry has no label: the entry before it has.
    private func labelled(_ rows: [LogRow]) throws -> [LogRow] {
        var wanted: [UInt64] = []
        for row in rows where row.previousSeq > 0 {
            if case .deleted = row.change { wanted.append(row.previousSeq) }
        }
        guard !wanted.isEmpty else { return rows }
        let found = try session.entries(wanted)
        return rows.map { row in
            guard case .deleted = row.change, let kind = kinds[row.kind],
                let label = found[row.previousSeq]?.record(kind)?.label(kind)
            else { return row }
            var row = row
            row.label = label
            return row
        }
    }

    private func subject(_ row: LogRow) -> String {
        if case .importBegan(let source) = row.change { return source }
        if row.kind == 0 { return "" }
        if case .deletedMany = row.change { return "" }
        return row.label.isEmpty ? row.key : "\(row.label)  \(row.key)"
    }

    private func printJSON(_ row: LogRow) throws {
        let by = try origins.name(row.origin)
        context.output.json { json in
            json.member("seq", row.seq)
            json.member("time", TimeText.text(milliseconds: row.time))
            json.member("change", row.name)
            if row.kind > 0 {
                json.member("kind", kinds[row.kind]?.name ?? "\(row.kind)")
                json.member("key", row.key)
            }
            if !row.label.isEmpty { json.member("label", row.label) }
            switch row.change {
            case .updated(let fields):
                json.name("fields")
                json.beginArray()
                for field in fields { json.string(field) }
                json.endArray()
            case .importBegan(let source): json.member("source", source)
            case .importEnded(let outcome, let counts): LogPrinter.write(outcome, counts, into: &json)
            case .kindDeclared(let name, let version):
                json.member("name", name)
                json.member("version", version)
            case .recovered(let from, let through):
                json.member("from", from)
                json.member("through", through)
            case .created, .broughtBack, .deleted, .deletedMany: break
            }
            if row.origin > 0 {
                json.member("origin", row.origin)
                json.member("origin_name", by)
            }
        }
    }

    private static func write(_ outcome: ImportOutcome?, _ counts: ImportCounts, into json: inout JSONWriter) {
        json.member("outcome", outcome.map { "\($0)" } ?? "unknown")
        for (name, count) in [
            ("read", counts.read), ("created", counts.created), ("updated", counts.updated),
            ("unchanged", counts.unchanged), ("duplicate", counts.duplicate), ("already_saved", counts.alreadySaved),
            ("skipped", counts.skipped), ("refused", counts.refused),
        ] { json.member(name, count) }
    }
}

extension OriginNames {
    /// Its program's name; of an import `import:5` behind it, which undo takes.
    func shortName(_ number: UInt64) throws -> String {
        guard number > 0, let origin = try origin(number) else { return try name(number) }
        return origin.name + (origin.token.isEmpty ? "" : " import:\(number)")
    }
}

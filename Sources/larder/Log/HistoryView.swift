// The versions of one record, and what changed in each.

import LarderFormat

/// What one entry made of a record.
struct RecordVersion {
    let entry: LogEntry
    /// nil of a deleted entry, and where this version does not know all of its fields.
    let record: Record?
    /// Fields that differ from the version before, ascending; of a new record all but its key.
    let changes: [(field: Field, before: Value?, after: Value?)]

    /// The versions of a history, newest first as it is.
    static func all(_ history: [LogEntry], _ kind: Kind) -> [RecordVersion] {
        history.indices.map { at in
            let entry = history[at]
            let record = entry.record(kind)
            let older = entry.isNew ? nil : history[(at + 1)...].first { $0.isSave }?.record(kind)
            guard let record else { return RecordVersion(entry: entry, record: nil, changes: []) }
            let changes = kind.fields.dropFirst(kind.keyFieldCount).compactMap {
                field -> (field: Field, before: Value?, after: Value?)? in
                let (before, after) = (older?[field.number], record[field.number])
                return before == after ? nil : (field, before, after)
            }
            return RecordVersion(entry: entry, record: record, changes: changes)
        }
    }

    /// What the entry did.
    func words(_ kinds: Kinds) -> String {
        guard let row = LogRow(entry, kinds) else { return "" }
        if case .updated = row.change { return "updated" }
        return row.words
    }
}

/// Prints the versions of a record.
struct HistoryView {
    let context: Context
    let kinds: Kinds
    let origins: OriginNames

    func print(_ versions: [RecordVersion], _ key: RecordKey) throws {
        for version in versions {
            let by = try origins.name(version.entry.origin)
            context.isJSON ? printJSON(version, key, by) : print(version, by)
        }
    }

    private func print(_ version: RecordVersion, _ by: String) {
        let output = context.output
        let time = Formats.localTime(milliseconds: version.entry.time, withSeconds: true)
        output.line("")
        output.line(
            output.styled(version.words(kinds), .bold)
                + "  \(time), seq \(version.entry.seq), by \(DisplayText.visible(by))")
        for change in version.changes {
            let after = HistoryView.text(change.after, change.field)
            let text =
                version.entry.isNew ? after : "\(HistoryView.text(change.before, change.field)) → \(after)"
            output.line("  " + output.styled(change.field.name, .dim) + ": " + DisplayText.visible(text))
        }
    }

    /// On one line.
    private static func text(_ value: Value?, _ field: Field) -> String {
        guard let value else { return "absent" }
        if case .list(let texts) = value { return texts.isEmpty ? "[]" : texts.joined(separator: ", ") }
        return RecordView.text(value, field)
    }

    private func printJSON(_ version: RecordVersion, _ key: RecordKey, _ by: String) {
        let kind = key.kind
        context.output.json { json in
            json.member("key", key.text)
            json.member("seq", version.entry.seq)
            json.member("time", TimeText.text(milliseconds: version.entry.time))
            json.member("change", LogRow(version.entry, kinds)?.name ?? "")
            json.member("origin", version.entry.origin)
            json.member("origin_name", by)
            guard let record = version.record else { return }
            json.name("before")
            Record(version.changes.compactMap { change in change.before.map { (change.field.number, $0) } })
                .writeJSON(kind, into: &json)
            json.name("after")
            Record(version.changes.compactMap { change in change.after.map { (change.field.number, $0) } })
                .writeJSON(kind, into: &json)
            json.name("record")
            record.writeJSON(kind, into: &json)
        }
    }
}

// What an undo says.

import LarderFormat

/// Prints rows and sums. One thread.
final class UndoReport {
    private static let shownCount = 10
    /// Rows of --all that are laid out together.
    private static let pageCount = 500
    /// Left-alone records that are named without --all.
    private static let refusalCount = 20

    private let context: Context
    private let showsAll: Bool
    private var table: Table?
    private var shown = 0
    private var hidden = 0
    private var refusalsShown = 0
    private var refusalsHidden = 0

    init(_ context: Context, showsAll: Bool) {
        self.context = context
        self.showsAll = showsAll
    }

    /// A record of a plan.
    func plan(_ row: UndoRow) {
        if context.isJSON { return printJSON(row, isDryRun: true) }
        if !row.refusal.isEmpty { return refuse(row) }
        guard showsAll || shown < UndoReport.shownCount else {
            hidden += 1
            return
        }
        shown += 1
        var table =
            self.table
            ?? Table(
                [.init("TO DO", flexible: true), .init("RECORD", flexible: true), .init("KEY")],
                width: context.output.width)
        let fields = row.fields.isEmpty || row.action != .changeBack ? "" : " " + row.fields.joined(separator: ", ")
        table.add([row.action.words + fields, row.label, row.key.text])
        self.table = table
        if table.rows.count == UndoReport.pageCount { printRows() }
    }

    /// Prints the rows that were laid out together.
    private func printRows() {
        table?.print(to: context.output, withHeading: shown <= UndoReport.pageCount)
    }

    /// A record that was dealt with.
    func done(_ row: UndoRow) {
        if context.isJSON { return printJSON(row, isDryRun: false) }
        if !row.refusal.isEmpty { refuse(row) }
    }

    private func refuse(_ row: UndoRow) {
        guard showsAll || refusalsShown < UndoReport.refusalCount else {
            refusalsHidden += 1
            return
        }
        refusalsShown += 1
        context.output.flush()
        let label = row.label.isEmpty ? "" : " ‘\(row.label)’"
        context.warn(DisplayText.visible("\(row.key.text)\(label): \(row.refusal); left alone"))
    }

    private func printJSON(_ row: UndoRow, isDryRun: Bool) {
        context.output.json { json in
            json.member("key", row.key.text)
            json.member("outcome", row.refusal.isEmpty ? row.action.outcome : "refused")
            if isDryRun { json.member("dry_run", true) }
            if !row.refusal.isEmpty { json.member("reason", row.refusal) }
            if row.seq > 0, !isDryRun { json.member("seq", row.seq) }
            if !row.label.isEmpty { json.member("label", row.label) }
        }
    }

    /// What was not shown.
    func finishRows() {
        if let table, !table.rows.isEmpty { printRows() }
        context.output.flush()
        if hidden > 0 { context.note("and \(Formats.count(hidden, "more record")); --all shows them") }
        if refusalsHidden > 0 {
            context.warn("\(Formats.count(refusalsHidden, "more record")) left alone; --all names them")
        }
        (hidden, refusalsHidden) = (0, 0)
        table = nil
        shown = 0
        refusalsShown = 0
    }

    /// `2 records deleted, 1 changed back`.
    static func sum(_ counts: UndoCounts, future: Bool) -> String {
        let words: [(UndoAction, String)] =
            future
            ? [
                (.remove, "to delete"), (.changeBack, "to change back"), (.moveBack, "to give the old key back"),
                (.bringBack, "to bring back"),
            ]
            : [
                (.remove, "deleted"), (.changeBack, "changed back"), (.moveBack, "under the old key again"),
                (.bringBack, "brought back"),
            ]
        var parts = words.compactMap { action, word in
            counts.done[action].map { "\(Formats.count($0, "record")) \(word)" }
        }
        if counts.unchanged > 0 { parts.append("\(Formats.count(counts.unchanged)) as before already") }
        if counts.refused > 0 { parts.append("\(Formats.count(counts.refused)) left alone") }
        return parts.isEmpty ? "nothing" : parts.joined(separator: ", ")
    }
}

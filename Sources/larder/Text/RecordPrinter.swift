// Records as a table or as JSON.

import LarderWire

/// Prints records page by page.
final class RecordPrinter {
    private let context: Context
    private let kinds: Kinds
    private let hasKeys: Bool
    private var pending: [(cells: RecordCells, savedAt: Int64)] = []
    private var table: Table?
    private var hasAuthors = false

    init(_ context: Context, _ kinds: Kinds, hasKeys: Bool) {
        self.context = context
        self.kinds = kinds
        self.hasKeys = hasKeys
    }

    func add(_ record: StoredRecord) {
        record.record.withUnsafeBytes { bytes in
            if context.isJSON {
                context.output.json { RecordJSON.write(record.header, bytes, kinds, into: &$0) }
            } else {
                pending.append((RecordCells(record.header, bytes, kinds), record.header.savedAt))
            }
        }
    }

    /// Prints the rows since the last call. The columns are those that the first page needs, and stay.
    func flush() {
        defer { pending = [] }
        guard !pending.isEmpty else { return }
        let isFirst = table == nil
        var table = self.table ?? makeTable()
        for (cells, savedAt) in pending {
            var row = [cells.label, cells.kind, cells.date, Formats.localTime(milliseconds: savedAt)]
            if hasAuthors { row += [cells.authors, cells.price] }
            if hasKeys { row.append(cells.key) }
            table.add(row)
        }
        table.print(to: context.output, withHeading: isFirst)
        self.table = table
    }

    private func makeTable() -> Table {
        hasAuthors = pending.contains { !$0.cells.authors.isEmpty || !$0.cells.price.isEmpty }
        var columns: [Table.Column] = [.init("LABEL", flexible: true), .init("KIND"), .init("DATE"), .init("SAVED")]
        if hasAuthors { columns += [.init("AUTHORS", flexible: true), .init("PRICE", .trailing)] }
        if hasKeys { columns.append(.init("KEY")) }
        return Table(columns, width: context.output.width)
    }
}

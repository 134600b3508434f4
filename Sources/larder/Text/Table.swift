// Tables that line up whatever script the cells are in.

import LarderFormat

/// Lays out rows in columns by the cells that they take on a terminal.
struct Table {
    struct Column {
        let title: String
        let alignment: DisplayText.Alignment
        /// Gives way when the table is wider than the terminal.
        let isFlexible: Bool

        init(_ title: String, _ alignment: DisplayText.Alignment = .leading, flexible isFlexible: Bool = false) {
            self.title = title
            self.alignment = alignment
            self.isFlexible = isFlexible
        }
    }

    /// A column that gives way has at least so many cells, and its title's.
    static let columnWidthMin = 8
    private static let gap = "  "

    let columns: [Column]
    /// Columns of the terminal; nil: nothing is cut.
    let width: Int?
    private(set) var rows: [[String]] = []
    /// Widest so far, kept from page to page, so that pages line up unless a later one needs more.
    private var widths: [Int]

    init(_ columns: [Column], width: Int?) {
        self.columns = columns
        self.width = width
        widths = columns.map { DisplayText.width($0.title) }
    }

    /// Cells by column; missing ones are empty.
    mutating func add(_ cells: [String]) {
        let row = columns.indices.map { $0 < cells.count ? DisplayText.visible(cells[$0]) : "" }
        for (index, cell) in row.enumerated() { widths[index] = max(widths[index], DisplayText.width(cell)) }
        rows.append(row)
    }

    /// The lines of the rows that were added since the last call, the last column without spaces behind it.
    mutating func takeLines() -> [String] {
        let fitted = fittedWidths()
        defer { rows = [] }
        return rows.map { Table.line($0, fitted, columns) }
    }

    /// The line with the titles.
    func heading() -> String { Table.line(columns.map(\.title), fittedWidths(), columns) }

    private static func line(_ cells: [String], _ widths: [Int], _ columns: [Column]) -> String {
        var line = ""
        let last = cells.lastIndex { !$0.isEmpty } ?? 0
        for index in 0...last {
            if index > 0 { line += gap }
            // Nothing is put behind the last cell: spaces there only make lines wrap.
            line +=
                index == last && columns[index].alignment == .leading
                ? DisplayText.truncated(cells[index], to: widths[index])
                : DisplayText.padded(cells[index], to: widths[index], columns[index].alignment)
        }
        return line
    }

    /// Takes from the widest flexible column until the line fits. The others are whole or useless: a line that is too
    /// long with them is wrapped by the terminal.
    private func fittedWidths() -> [Int] {
        guard let width else { return widths }
        var fitted = widths
        var excess = fitted.reduce(0, +) + Table.gap.count * (columns.count - 1) - width
        while excess > 0 {
            let candidates = columns.indices.filter {
                columns[$0].isFlexible && fitted[$0] > max(Table.columnWidthMin, DisplayText.width(columns[$0].title))
            }
            guard let widest = candidates.max(by: { fitted[$0] < fitted[$1] }) else { break }
            fitted[widest] -= 1
            excess -= 1
        }
        return fitted
    }
}

extension Table {
    /// Prints the rows that were added since the last call.
    mutating func print(to output: Output, withHeading hasHeading: Bool) {
        if hasHeading { output.line(output.styled(heading(), .bold)) }
        for line in takeLines() { output.line(line) }
    }
}

// What one line of the log says.

import LarderFormat
import LarderWire

/// A change as a person reads it. Deletes that follow one another can be one row.
struct LogRow {
    enum Change {
        case created
        case updated(fields: [String])
        /// It was deleted before, or had another key.
        case broughtBack
        case deleted
        /// So many records, one behind the other, down to an earlier seq.
        case deletedMany(count: Int, fromSeq: UInt64)
        case importBegan(source: String)
        case importEnded(ImportOutcome?, ImportCounts)
        case kindDeclared(name: String, version: Int)
        case recovered(from: UInt64, through: UInt64)
    }

    var seq: UInt64
    var time: Int64
    var change: Change
    /// Number of the kind; 0 for what is of no record.
    var kind = 0
    var key = ""
    /// What to call the record, or "".
    var label = ""
    var origin: UInt64 = 0
    var previousSeq: UInt64 = 0

    /// nil for entries that are no change for a person: origins, numbers of batches.
    init?(_ entry: EntryView, time: Int64, _ kinds: Kinds) {
        seq = entry.seq
        self.time = time
        change = .created
        switch entry.type {
        case EntryType.created, EntryType.updated, EntryType.deleted: readRecord(entry, kinds)
        default:
            guard let other = try? readOther(entry) else { return nil }
            change = other
        }
    }

    init?(_ entry: LogEntry, _ kinds: Kinds) {
        let row = entry.payload.withUnsafeBytes { payload -> LogRow? in
            var view = EntryView()
            view.type = entry.type
            view.flags = entry.type == EntryType.updated && entry.isNew ? 1 : 0
            view.kind = entry.kind
            view.origin = entry.origin
            view.seq = entry.seq
            view.previousSeq = entry.previousSeq
            view.changed = entry.changed
            view.payload = payload
            return LogRow(view, time: entry.time, kinds)
        }
        guard let row else { return nil }
        self = row
    }

    private mutating func readRecord(_ entry: EntryView, _ kinds: Kinds) {
        kind = entry.kind
        origin = entry.origin
        previousSeq = entry.previousSeq
        let known = kinds[entry.kind]
        if entry.isSave {
            if entry.type == EntryType.updated {
                change = entry.isNewToLibrary ? .broughtBack : .updated(fields: entry.changed.names(known))
            }
            guard let known else { return }
            let record = try? Record(decoding: entry.payload, known)
            key = RecordJSON.keyText(entry.payload, record, known) ?? ""
            label = record?.label(known) ?? ""
        } else {
            change = .deleted
            if let known { key = (try? RecordKey(decoding: entry.payload, known))?.text ?? "" }
        }
    }

    private mutating func readOther(_ entry: EntryView) throws(FormatError) -> Change? {
        var reader = ByteReader(entry.payload)
        switch entry.type {
        case EntryType.kind:
            let declared = try Kind(from: &reader)
            return .kindDeclared(name: declared.name, version: declared.version)
        case EntryType.importBegan:
            origin = try reader.varint()
            return .importBegan(source: try reader.text())
        case EntryType.importEnded:
            origin = try reader.varint()
            let outcome = ImportOutcome(rawValue: try reader.u8())
            return .importEnded(outcome, try LogRow.counts(&reader))
        case EntryType.recovered: return .recovered(from: try reader.varint(), through: try reader.varint())
        default: return nil
        }
    }

    private static func counts(_ reader: inout ByteReader) throws(FormatError) -> ImportCounts {
        var counts = ImportCounts()
        for field in [
            \ImportCounts.read, \.created, \.updated, \.unchanged, \.duplicate, \.alreadySaved, \.skipped, \.refused,
        ] { counts[keyPath: field] = Int(clamping: try reader.varint()) }
        return counts
    }

    /// `updated`, `import_ended`, … as JSON has it.
    var name: String {
        switch change {
        case .created: "created"
        case .updated: "updated"
        case .broughtBack: previousSeq == 0 ? "brought_back" : "moved_here"
        case .deleted, .deletedMany: "deleted"
        case .importBegan: "import_began"
        case .importEnded: "import_ended"
        case .kindDeclared: "kind_declared"
        case .recovered: "recovered"
        }
    }

    /// The same for people, with what there is to say of it.
    var words: String {
        switch change {
        case .created, .deleted: return name
        case .updated(let fields): return fields.isEmpty ? "updated" : "updated " + fields.joined(separator: ", ")
        case .broughtBack: return previousSeq == 0 ? "brought back" : "moved here"
        case .deletedMany(let count, _): return "deleted " + Formats.count(count, "record")
        case .importBegan: return "import began"
        case .importEnded(let outcome, let counts):
            let how =
                switch outcome {
                case .complete, nil: "import ended"
                case .failed: "import failed"
                case .cancelled: "import cancelled"
                }
            return how + ": " + LogRow.words(counts)
        case .kindDeclared(let name, let version): return "kind \(name) declared, version \(version)"
        case .recovered(let from, let through): return "opened after a crash; no entry has seqs \(from)–\(through)"
        }
    }

    private static func words(_ counts: ImportCounts) -> String {
        let parts = [
            (counts.created, "created"), (counts.updated, "updated"), (counts.unchanged, "unchanged"),
            (counts.duplicate, "duplicate"), (counts.alreadySaved, "already saved"), (counts.skipped, "skipped"),
            (counts.refused, "refused"),
        ].filter { $0.0 > 0 }.map { "\(Formats.count($0.0)) \($0.1)" }
        return "\(Formats.count(counts.read)) read" + (parts.isEmpty ? "" : ", " + parts.joined(separator: ", "))
    }

    /// `deleted 20 records` has a span.
    var seqs: String {
        if case .deletedMany(_, let from) = change { return "\(from)..\(seq)" }
        return "\(seq)"
    }
}

/// Makes one row of many deletes that lie one behind the other, as a clear writes them. Rows come in the log's order or
/// its reverse.
struct LogGrouping {
    /// Fewer than so many stay rows of their own.
    static let countMin = 20
    private var waiting: [LogRow] = []
    /// Deletes of the run beyond those that wait.
    private var more = 0
    private var low: UInt64 = 0
    private var high: UInt64 = 0

    /// Takes a row; gives those that are certain now.
    mutating func take(_ row: LogRow) -> [LogRow] {
        guard case .deleted = row.change else { return finish() + [row] }
        if let first = waiting.first, first.origin == row.origin,
            row.seq == high &+ 1 || row.seq &+ 1 == low
        {
            low = min(low, row.seq)
            high = max(high, row.seq)
            if waiting.count < LogGrouping.countMin { waiting.append(row) } else { more += 1 }
            return []
        }
        let before = finish()
        waiting = [row]
        (low, high) = (row.seq, row.seq)
        return before
    }

    /// What still waits.
    mutating func finish() -> [LogRow] {
        defer {
            waiting = []
            more = 0
        }
        guard waiting.count + more >= LogGrouping.countMin, var row = waiting.first else { return waiting }
        row.change = .deletedMany(count: waiting.count + more, fromSeq: low)
        row.seq = high
        row.key = ""
        return [row]
    }
}

// `larder delete KIND --where CONDITION`.

import LarderFormat
import LarderWire

/// Deletes the records for which a condition holds: lists them, asks, and deletes each only if it is still as listed.
struct DeleteMatching {
    /// Shown before it is asked.
    private static let shownMax = 20
    private static let pageLimit = 2_000

    let context: Context
    let session: Session
    let kind: Kind
    let condition: String

    private struct Found {
        let key: RecordKey
        let seq: UInt64
        let label: String
    }

    /// - Returns: the exit code.
    func run() throws -> Int32 {
        let isDryRun = context.options.has("dry-run")
        if !isDryRun { try Confirmation.expectSomebody(DeleteCommand.name, context) }
        let found = try list()
        if !context.isJSON { show(found) }
        guard !found.isEmpty else {
            if context.isJSON { total([], isDryRun: isDryRun) }
            return 0
        }
        if !isDryRun {
            let library = DisplayText.visible(session.place.library)
            try Confirmation.expect(
                "This deletes \(Formats.count(found.count, "record")) of \(library).", DeleteCommand.name, context)
        }
        let writes = found.map { RecordWrite($0.key, .delete, ifSeq: $0.seq) }
        let outcomes = try RecordWrites(session: session, isDryRun: isDryRun).perform(writes, "deleting")
        for outcome in outcomes where context.isJSON || !outcome.isDone {
            OutcomeReport.print(outcome, isDryRun: isDryRun, context)
        }
        return total(outcomes, isDryRun: isDryRun)
    }

    private func list() throws -> [Found] {
        var found: [Found] = []
        var token: [UInt8] = []
        while true {
            let page = try ConditionText.attempt("listing", condition) {
                try session.client.list(
                    List(kind: kind.number, limit: DeleteMatching.pageLimit, token: token, condition: condition))
            }
            for stored in page.records {
                try stored.record.withUnsafeBytes { bytes in
                    let range = try RecordSchema(kind).keyRange(ofChecked: bytes)
                    let key = try RecordKey(decoding: UnsafeRawBufferPointer(rebasing: bytes[range]), kind)
                    let label = (try? Record(decoding: bytes, kind))?.label(kind) ?? RecordCells.unknownLabel
                    found.append(Found(key: key, seq: stored.header.seq, label: label))
                }
            }
            if page.isEnd { return found }
            token = page.token
        }
    }

    private func show(_ found: [Found]) {
        for item in found.prefix(DeleteMatching.shownMax) {
            context.output.line("  " + DisplayText.visible("\(item.label)  \(item.key.text)"))
        }
        if found.count > DeleteMatching.shownMax {
            context.output.line("  … and \(Formats.count(found.count - DeleteMatching.shownMax)) more")
        }
        if found.isEmpty { context.output.line("no record of kind \(kind.name) is so") }
        context.output.flush()
    }

    @discardableResult
    private func total(_ outcomes: [RecordOutcome], isDryRun: Bool) -> Int32 {
        let done = outcomes.filter(\.isDone).count
        if context.isJSON {
            context.output.json {
                $0.member("deleted", done)
                $0.member("left", outcomes.count - done)
                if isDryRun { $0.member("dry_run", true) }
            }
        } else {
            let left = outcomes.count - done
            context.output.line(
                "\(Formats.count(done, "record")) \(isDryRun ? "would be deleted" : "deleted")"
                    + (left > 0 ? ", \(Formats.count(left)) left as they were: they changed meanwhile" : ""))
        }
        return done == outcomes.count ? 0 : 1
    }
}

// `larder undo`.

import LarderFormat
import LarderWire

enum UndoCommand: Command {
    static let name = "undo"
    static let purpose = "take changes back: an import, a span of the log, one change"
    static let synopsis = [
        "undo IMPORT [--yes | --dry-run] [--force] [--all]", "undo SEQ [--yes | --dry-run]",
        "undo SEQ..SEQ [--yes | --dry-run]",
    ]
    static let options = [
        Confirmation.option, OptionSpec("dry-run", "show what it would do, change nothing"),
        OptionSpec("force", "take back what was changed since, too"),
        OptionSpec("all", short: "a", "show every record, not just the first ones"),
    ]
    static let details = """
        Each record becomes what it was before: what was created is deleted, what was changed is changed back, what was
        deleted or cleared comes back in its old place. It shows what it will do and asks.
        A record that was changed since is named and left alone, unless --force is given; then the command exits with 1.
        So it does where a part of the log is damaged.
        An import is named as larder log shows it: import:5, its source (the file's name), or its token.
        An undo is an import of its own, so it can be undone itself. Kinds that were declared stay so.
        """
    static let examples = [
        (line: "larder undo import:5", does: "shows what taking back an import would do, and asks"),
        (line: "larder undo 120..135 --dry-run", does: "only shows it"),
        (line: "larder undo 42 --yes", does: "takes one change back without asking"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        let options = context.options
        guard options.arguments.count == 1 else { throw misused("needs one IMPORT, SEQ or SEQ..SEQ") }
        let isDryRun = options.has("dry-run")
        let session = try context.session()
        let target = try UndoSearch(session: session).target(options.arguments[0])
        if !isDryRun { try Confirmation.expectSomebody(name, context) }
        let report = UndoReport(context, showsAll: options.has("all"))
        var total: Int?
        if isDryRun || !options.has("yes") {
            let counts = try plan(target, report, context)
            total = counts.total
            if counts.total == 0 { return nothing(counts, target, context) }
            if isDryRun { return say(counts, target, isDryRun: true, nil, context) }
            if counts.done.isEmpty {
                context.warn("undo \(target.name): \(UndoReport.sum(counts, future: true)); nothing was changed")
                return 1
            }
            try Confirmation.expect(
                "Undoing \(target.name): \(UndoReport.sum(counts, future: true)).", name, context)
        }
        return try perform(target, report, total, context)
    }

    private static func plan(_ target: UndoTarget, _ report: UndoReport, _ context: Context) throws -> UndoCounts {
        let run = try UndoRun(
            try context.session(), target, isForced: context.options.has("force"), origin: nil, isWanted: { true }
        ) { report.plan($0) }
        try run.run()
        report.finishRows()
        if run.counts.lost > 0 { context.warn("a part of the log is damaged there; what it did is not undone") }
        return run.counts
    }

    private static func perform(
        _ target: UndoTarget, _ report: UndoReport, _ total: Int?, _ context: Context
    ) throws -> Int32 {
        let session = try context.session()
        Interrupt.hold()
        defer { Interrupt.release() }
        let origin = try attempt("beginning to undo") {
            try session.client.beginImport(source: "undo \(target.name)").origin
        }
        let bar = ProgressBar(context.errors)
        var dealtWith = 0
        let run = try UndoRun(
            session, target, isForced: context.options.has("force"), origin: origin,
            isWanted: { !Interrupt.isPending }
        ) { row in
            dealtWith += 1
            if !row.refusal.isEmpty { bar.remove() }
            report.done(row)
            bar.show(done: dealtWith, total: total, what: "undone")
        }
        do { try run.run() } catch {
            bar.remove()
            _ = try? session.client.endImport(origin: origin, outcome: .failed, counts: counts(run.counts))
            throw error
        }
        bar.remove()
        let isCancelled = Interrupt.isPending
        _ = try attempt("ending the undo") {
            try session.client.endImport(
                origin: origin, outcome: isCancelled ? .cancelled : .complete, counts: counts(run.counts))
        }
        report.finishRows()
        if run.counts.lost > 0 { context.warn("a part of the log is damaged there; what it did was not undone") }
        if isCancelled {
            _ = say(run.counts, target, isDryRun: false, origin, context)
            return Interrupt.exitCode
        }
        if run.counts.total == 0 { return nothing(run.counts, target, context) }
        return say(run.counts, target, isDryRun: false, origin, context)
    }

    /// Its account in the log, which has no count of deletes: they are changes.
    private static func counts(_ undone: UndoCounts) -> ImportCounts {
        var counts = ImportCounts()
        counts.read = undone.total
        counts.created = undone.done[.bringBack] ?? 0
        counts.updated = undone.done.reduce(0) { $1.key == .bringBack ? $0 : $0 + $1.value }
        counts.unchanged = undone.unchanged
        counts.skipped = undone.refused
        return counts
    }

    private static func nothing(_ counts: UndoCounts, _ target: UndoTarget, _ context: Context) -> Int32 {
        if context.isJSON { return say(counts, target, isDryRun: context.options.has("dry-run"), nil, context) }
        context.output.flush()
        context.warn("undo \(target.name): no record was changed there")
        return exitCode(counts)
    }

    private static func exitCode(_ counts: UndoCounts) -> Int32 { counts.refused == 0 && counts.lost == 0 ? 0 : 1 }

    private static func say(
        _ counts: UndoCounts, _ target: UndoTarget, isDryRun: Bool, _ origin: UInt64?, _ context: Context
    ) -> Int32 {
        let code = exitCode(counts)
        guard context.isJSON else {
            context.output.line("undo \(target.name): " + UndoReport.sum(counts, future: isDryRun))
            if counts.refused > 0, !context.options.has("force") {
                context.note("--force takes back what was changed since, too")
            }
            if let origin, !counts.done.isEmpty { context.note("larder undo import:\(origin) takes this back") }
            return code
        }
        context.output.json { json in
            json.member("undo", target.name)
            if isDryRun { json.member("dry_run", true) }
            for action in UndoAction.allCases { json.member(action.outcome, counts.done[action] ?? 0) }
            json.member("unchanged", counts.unchanged)
            json.member("refused", counts.refused)
            if let origin { json.member("origin", origin) }
        }
        return code
    }
}

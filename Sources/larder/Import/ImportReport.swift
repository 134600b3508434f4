// What an import says while it runs and at its end.

import LarderFormat

/// Tells refusals, warnings and progress. Standard output gets the accounting, and with --json everything; standard
/// error gets the rest.
final class ImportReport {
    /// What is told of each sort unless all is asked for.
    static let shownMax = 20

    private let context: Context
    private let showsAll: Bool
    private let bar: ProgressBar
    private let begun = Clock.monotonic
    private var shownRefusals = 0
    private var shownWarnings = 0
    private(set) var refusedCount = 0
    private(set) var warningCount = 0
    private var unknown: [String: Int] = [:]

    init(_ context: Context, showsAll: Bool) {
        self.context = context
        self.showsAll = showsAll
        bar = ProgressBar(context.errors)
    }

    func refused(_ refusal: Refusal) {
        refusedCount += 1
        if context.isJSON {
            context.output.json {
                $0.name("refused")
                $0.beginObject()
                $0.member("file", refusal.file)
                $0.member("at", refusal.at)
                if refusal.line > 0 { $0.member("line", refusal.line) }
                if !refusal.field.isEmpty { $0.member("field", refusal.field) }
                $0.member("reason", refusal.reason)
                $0.member("message", refusal.message)
                $0.endObject()
            }
        } else if showsAll || shownRefusals < ImportReport.shownMax {
            shownRefusals += 1
            say(context.errors.styled("refused", .red) + " " + DisplayText.visible(refusal.text))
        }
    }

    /// - Parameter file: "" where an importer's own text says it.
    func warned(file: String, at: String, field: String, _ message: String) {
        warningCount += 1
        if context.isJSON {
            context.output.json {
                $0.name("warning")
                $0.beginObject()
                if !file.isEmpty { $0.member("file", file) }
                if !at.isEmpty { $0.member("at", at) }
                if !field.isEmpty { $0.member("field", field) }
                $0.member("message", message)
                $0.endObject()
            }
        } else if showsAll || shownWarnings < ImportReport.shownMax {
            shownWarnings += 1
            let place =
                [file, at].filter { !$0.isEmpty }.joined(separator: ":") + (file.isEmpty && at.isEmpty ? "" : ": ")
            let text = place + (field.isEmpty ? "" : field + ": ") + message
            say(context.errors.styled("warning", .yellow) + " " + DisplayText.visible(text))
        }
    }

    func skipped(at: String, _ reason: String) {
        guard context.isJSON else { return }
        context.output.json {
            $0.name("skipped")
            $0.beginObject()
            $0.member("at", at)
            $0.member("reason", reason)
            $0.endObject()
        }
    }

    /// Members of lines that the kind has no field for; told once, at the end.
    func unknownField(_ name: String, count: Int) { unknown[name, default: 0] += count }

    func note(_ text: String) {
        bar.remove()
        context.note(DisplayText.visible(text))
    }

    func progress(doneByteCount: Int, totalByteCount: Int?, rowCount: Int) {
        bar.show(done: doneByteCount, total: totalByteCount, count: rowCount, what: "rows")
    }

    private func say(_ line: String) {
        bar.remove()
        context.errors.line(line)
        context.errors.flush()
    }

    /// Everything that is told at the end; the accounting always.
    func finish(_ counts: Accounting, isDryRun: Bool, isCancelled: Bool) {
        bar.remove()
        var counts = counts
        counts.warnings = warningCount
        counts.milliseconds = Clock.monotonic - begun
        if context.isJSON { return finishJSON(counts, isDryRun: isDryRun, isCancelled: isCancelled) }
        let hiddenRefusals = refusedCount - shownRefusals
        if hiddenRefusals > 0 { note("… and \(Formats.count(hiddenRefusals)) more refused; --all-refusals shows them") }
        let hiddenWarnings = warningCount - shownWarnings
        if hiddenWarnings > 0 {
            note("… and \(Formats.count(hiddenWarnings, "more warning")); --all-refusals shows them")
        }
        for (name, count) in sortedUnknown {
            note("no field for “\(name)”: left out of \(Formats.count(count, "row"))")
        }
        if isDryRun { context.output.line("dry run: nothing was changed; it would have been") }
        if isCancelled { context.output.line("cancelled; what was read until then:") }
        context.output.line(counts.text)
        var rest = [Formats.duration(milliseconds: counts.milliseconds)]
        if counts.counts.read >= 1_000 {
            rest.append(Formats.rate(counts.counts.read, milliseconds: counts.milliseconds))
        }
        if counts.warnings > 0 { rest.insert(Formats.count(counts.warnings, "warning"), at: 0) }
        context.output.line(rest.joined(separator: ", "))
        context.output.flush()
    }

    private var sortedUnknown: [(key: String, value: Int)] {
        unknown.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
    }

    private func finishJSON(_ counts: Accounting, isDryRun: Bool, isCancelled: Bool) {
        if !unknown.isEmpty {
            context.output.json {
                $0.name("unknown_fields")
                $0.beginObject()
                for (name, count) in sortedUnknown { $0.member(name, count) }
                $0.endObject()
            }
        }
        context.output.json {
            if isDryRun { $0.member("dry_run", true) }
            if isCancelled { $0.member("cancelled", true) }
            counts.write(into: &$0)
        }
        context.output.flush()
    }
}

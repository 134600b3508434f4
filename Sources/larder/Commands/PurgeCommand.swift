// `larder purge`.

import LarderFormat
import LarderWire

enum PurgeCommand: Command {
    static let name = "purge"
    static let purpose = "take records out of the library's files for good"
    static let synopsis = [
        "purge KEY… [--yes] [--wait DURATION]", "purge KIND VALUE… [--yes] [--wait DURATION]",
        "purge --deleted-before DATE [--yes]",
    ]
    static let options = [
        Confirmation.option,
        OptionSpec(
            "deleted-before", "DATE",
            "every version and delete that was superseded before (2026-09, 2026-09-01, a time)"),
        OptionSpec(
            "wait", "DURATION", "how long programs that follow the library may take to learn of the delete (30 s)"),
    ]
    static let details = """
        Deletes the records, where they are there, and rewrites every file of the library that holds anything of them, also
        their earlier versions. When it returns, nothing of them is left in the library's directory. It can't be undone,
        and backups are not touched: renew them, or delete them. A program that follows the library and has not learned
        of the delete when --wait is over must start over with a snapshot.
        At most 1,000 keys at a time. Another record that names such a key, as one does that it was joined with, stays.
        """
    static let examples = [
        (line: "larder purge joke 0b7c4f0e-5a0f-4b7e-9b11-6f1f6f0a9a10", does: "asks, and takes one joke out for good"),
        (line: "larder purge --deleted-before 2026-01-01 --yes", does: "forgets what was changed or deleted last year"),
    ]

    private static let waitMilliseconds = 30_000
    private static let advice = "say --yes if it is"

    static func run(_ context: Context) throws -> Int32 {
        if let text = context.options.value("deleted-before") { return try purge(before: text, context) }
        try KeyArguments.expectSome(context.options.arguments, command: name)
        let wait = try wait(context)
        try Confirmation.expectSomebody(name, context, advice: advice)
        let session = try context.session()
        let keys = try KeyArguments.read(context.options.arguments, try session.kinds(), command: name)
        guard keys.count <= Compact.purgedCountMax else {
            throw misused(
                "takes at most \(Formats.count(Compact.purgedCountMax)) keys, not \(Formats.count(keys.count))")
        }
        try Confirmation.expect(question(keys), name, context)
        let deletedCount = try delete(keys, session, context)
        // Not slowed down: what is to be gone is to be gone soon.
        let message = Compact(
            includesLast: true, waitMilliseconds: wait, bytesPerSecond: .max,
            purged: keys.map { Compact.PurgedKey(kind: $0.kind.number, key: $0.bytes) })
        let run = CompactionRun(context: context, session: session)
        let result = try run.perform(message, "purging")
        if context.isJSON {
            context.output.json {
                $0.member("purged", keys.count)
                $0.member("deleted", deletedCount)
                CompactionRun.write(result, into: &$0)
            }
        } else {
            context.output.line(
                "\(Formats.count(keys.count, "key")) purged, \(Formats.count(deletedCount, "record")) deleted for it, in "
                    + Formats.duration(milliseconds: result.milliseconds))
            run.print(result)
        }
        return 0
    }

    private static func question(_ keys: [RecordKey]) -> String {
        let what = keys.count == 1 ? keys[0].text : "\(Formats.count(keys.count)) records"
        return
            "This deletes \(what) and takes it out of the library's files. It can't be undone. Backups are not touched."
    }

    private static func wait(_ context: Context) throws(Failure) -> Int {
        guard let text = context.options.value("wait") else { return waitMilliseconds }
        guard let wait = Amounts.milliseconds(text) else {
            throw .usage("--wait \(text)", "expected a duration such as 30s, 5min or 2h", "see larder \(name) --help")
        }
        return wait
    }

    /// Deletes those that are there; how many there were.
    private static func delete(_ keys: [RecordKey], _ session: Session, _ context: Context) throws -> Int {
        var count = 0
        let writes = RecordWrites(session: session)
        for outcome in try writes.perform(keys.map { RecordWrite($0, .delete) }, "deleting") {
            switch outcome.outcome {
            case .deleted: count += 1
            case .notFound:
                if let (other, _) = try session.joined(outcome.key) {
                    context.warn("\(outcome.key.text) was joined with \(other.text), which stays and names it")
                }
            default: throw Failure("deleting \(outcome.key.text)", outcome.reason)
            }
        }
        return count
    }

    // MARK: By time

    private static func purge(before text: String, _ context: Context) throws -> Int32 {
        try expectNoArguments(context)
        guard let since = milliseconds(text) else {
            throw Failure.usage(
                "--deleted-before \(text)", "expected a date such as 2026-09-01, or a time",
                "see larder \(name) --help")
        }
        try Confirmation.expectSomebody(name, context, advice: advice)
        let shown = Formats.localTime(milliseconds: since)
        try Confirmation.expect(
            "This takes what was changed or deleted before \(shown) out of the library's files. It can't be undone. "
                + "Backups are not touched.", name, context)
        // 0 would leave it to the host.
        let message = Compact(historySince: since == 0 ? 1 : since, includesLast: true, bytesPerSecond: .max)
        let run = CompactionRun(context: context, session: try context.session())
        let result = try run.perform(message, "purging")
        if !context.isJSON {
            context.output.line("purged in \(Formats.duration(milliseconds: result.milliseconds))")
        }
        run.print(result)
        return 0
    }

    /// A date is its first moment, in UTC.
    private static func milliseconds(_ text: String) -> Int64? {
        guard let date = PartialDate(text: text) else { return TimeText.milliseconds(text, secondsRequired: false) }
        guard (1...9_999).contains(date.year) else { return nil }
        func padded(_ number: Int, _ width: Int) -> String {
            String(repeating: "0", count: max(0, width - String(number).count)) + String(number)
        }
        let day = [padded(date.year, 4), padded(max(date.month, 1), 2), padded(max(date.day, 1), 2)]
        return TimeText.milliseconds(day.joined(separator: "-") + "T00:00:00Z")
    }
}

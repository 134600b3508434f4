// `larder undelete`.

import LarderFormat
import LarderWire

enum UndeleteCommand: Command {
    static let name = "undelete"
    static let purpose = "bring deleted records back as they were"
    static let synopsis = ["undelete KEY… [--dry-run]", "undelete KIND VALUE…"]
    static let options = [PersonalEdit.dryRun, Confirmation.needless]
    static let details = """
        Brings back the last version that the log holds, personal fields too, in its old place in the order of saving.
        Exits with 1 where a record is there or the log has nothing of it. larder undo brings back all that a clear deleted.
        """
    static let examples = [
        (line: "larder undelete title:tmdb/movie/603", does: "brings one film back"),
        (line: "larder undelete book isbn 9788937460449 --dry-run", does: "says what would come back, from when"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        try KeyArguments.expectSome(context.options.arguments, command: name)
        let session = try context.session()
        let kinds = try session.kinds()
        let keys = try KeyArguments.read(context.options.arguments, kinds, command: name)
        let origins = OriginNames(session)
        let isDryRun = context.options.has("dry-run")
        let writes = RecordWrites(session: session, isDryRun: isDryRun)
        var isComplete = true
        for key in keys {
            let history = try session.history(key)
            guard let newest = history.first else {
                report(key, "the log has nothing of it", context)
                isComplete = false
                continue
            }
            guard newest.isDelete else {
                report(key, "it is there; nothing was deleted", context)
                isComplete = false
                continue
            }
            guard let last = history.first(where: { $0.isSave }) else {
                report(key, "its deletion is in the log, its last version is not any more", context)
                isComplete = false
                continue
            }
            let write = RecordWrite(
                key, .restore(record: last.payload, firstSeq: last.firstSeq, savedAt: last.savedAt))
            var outcome = try writes.perform([write], "bringing \(key.text) back")[0]
            if outcome.isFirstSeqTaken {
                outcome.note = "its place is another record's now: it was given another key, not deleted"
            }
            if !outcome.isDone { isComplete = false }
            let when = Formats.localTime(milliseconds: newest.time, withSeconds: true)
            try print(outcome, last, "deleted \(when) by \(origins.name(newest.origin))", isDryRun, context)
        }
        return isComplete ? 0 : 1
    }

    private static func report(_ key: RecordKey, _ why: String, _ context: Context) {
        if context.isJSON {
            context.output.json {
                $0.member("key", key.text)
                $0.member("outcome", "refused")
                $0.member("reason", why)
            }
        } else {
            context.output.flush()
            context.warn("\(DisplayText.visible(key.text)): \(why)")
        }
    }

    private static func print(
        _ outcome: RecordOutcome, _ version: LogEntry, _ deleted: String, _ isDryRun: Bool, _ context: Context
    ) throws {
        guard outcome.outcome == .created else { return OutcomeReport.print(outcome, isDryRun: isDryRun, context) }
        if context.isJSON {
            context.output.json {
                $0.member("key", outcome.key.text)
                $0.member("outcome", "brought_back")
                if isDryRun { $0.member("dry_run", true) }
                $0.member("seq", outcome.seq)
                $0.member("from_seq", version.seq)
                $0.member("from_time", TimeText.text(milliseconds: version.time))
                $0.member("saved_seq", version.firstSeq)
            }
            return
        }
        let label = version.record(outcome.key.kind)?.label(outcome.key.kind).map { " ‘\($0)’" } ?? ""
        let from = Formats.localTime(milliseconds: version.time, withSeconds: true)
        context.output.line(
            DisplayText.visible(outcome.key.text + label) + (isDryRun ? ": would be brought back" : ": brought back")
                + " as of \(from), seq \(version.seq); \(DisplayText.visible(deleted))")
    }
}

// `larder delete`.

enum DeleteCommand: Command {
    static let name = "delete"
    static let purpose = "delete records by their keys, or by a condition"
    static let synopsis = [
        "delete KEY… [--yes | --dry-run]", "delete KIND VALUE…", "delete KIND --where CONDITION [--yes | --dry-run]",
    ]
    static let options = [
        OptionSpec("where", short: "w", "CONDITION", "all of a kind for which it holds"),
        OptionSpec("yes", short: "y", "do not ask, whatever the number; needed with --where where nobody can be asked"),
        PersonalEdit.dryRun,
    ]
    static let details = """
        Says of each key whether it was deleted or not found; exits with 1 where one was not. When the command returns
        the deletes are durable. On a terminal it asks before it deletes more than \(askingCount) records.
        With --where the records are listed first, and it always asks; one that changes meanwhile stays, and is told.
        A key whose record was joined with another deletes that one, and says so.
        The log keeps what was deleted: larder undelete KEY brings it back.
        """
    static let examples = [
        (line: "larder delete title:tmdb/movie/603", does: "deletes one film"),
        (line: "larder delete book isbn 9788937460449 --json", does: "deletes a book and prints the outcome as JSON"),
        (
            line: "larder delete joke --where '@saved < 2025 and note is absent' --dry-run",
            does: "shows which old jokes would go"
        ),
    ]

    /// Keys of one batch.
    private static let batchCount = 1_000
    /// More than these are not deleted by a slip of the hand.
    private static let askingCount = 10

    static func run(_ context: Context) throws -> Int32 {
        if let condition = context.options.value("where") {
            guard context.options.arguments.count == 1, !condition.isEmpty else {
                throw misused("--where takes one KIND and a condition")
            }
            let session = try context.session()
            let kind = try session.kinds().named(context.options.arguments[0])
            return try DeleteMatching(context: context, session: session, kind: kind, condition: condition).run()
        }
        try KeyArguments.expectSome(context.options.arguments, command: name)
        let session = try context.session()
        let keys = try KeyArguments.read(context.options.arguments, try session.kinds(), command: name)
        let isDryRun = context.options.has("dry-run")
        if keys.count > askingCount, !isDryRun, Confirmation.mayAsk() {
            try Confirmation.expect("This deletes \(Formats.count(keys.count)) records.", name, context)
        }
        let writes = RecordWrites(session: session, isDryRun: isDryRun)
        var isComplete = true
        for start in stride(from: 0, to: keys.count, by: batchCount) {
            let batch = keys[start..<min(start + batchCount, keys.count)].map { RecordWrite($0, .delete) }
            for var outcome in try writes.perform(batch, "deleting") {
                if outcome.outcome == .notFound, let (other, found) = try session.joined(outcome.key) {
                    context.noteJoined(outcome.key, other)
                    outcome = try writes.perform([RecordWrite(other, .delete, ifSeq: found.header.seq)], "deleting")[0]
                }
                if !outcome.isDone { isComplete = false }
                OutcomeReport.print(outcome, isDryRun: isDryRun, context)
            }
        }
        return isComplete ? 0 : 1
    }
}

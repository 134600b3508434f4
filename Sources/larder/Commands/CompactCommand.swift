// `larder compact`.

import LarderWire

enum CompactCommand: Command {
    static let name = "compact"
    static let purpose = "give the room back that changed and deleted records take"
    static let synopsis = ["compact [--keep-history DAYS|all|none] [--dead-share PERCENT] [--rate MIB]"]
    static let options = [
        HistoryLimit.option,
        OptionSpec("dead-share", "PERCENT", "rewrite a file when at least so much of it would go (10)"),
        OptionSpec("rate", "MIB", "read and write so many MiB a second at most; 0: as fast as it goes"),
    ]
    static let details = """
        Rewrites the log without the versions of records that were superseded, and without deletes, before the time that
        history is kept from; without --keep-history and --rate as the host is set (larder serve --help). Records stay as
        they are, and readers and writers go on. larder undo, undelete and log reach as far back as the history that is
        kept; a plugin that was away for longer starts over with a snapshot.
        A host that runs does this now and then by itself. Ctrl-C ends the command and not the compaction.
        """
    static let examples = [
        (line: "larder compact", does: "gives back what the host need not keep"),
        (line: "larder compact --keep-history 7", does: "keeps what was changed or deleted in the last week only"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        try expectNoArguments(context)
        var message = Compact(deadPercent: 10, includesLast: true)
        if let limit = try HistoryLimit(context.options, command: name) {
            message.historySince = limit.since(now: Clock.wall)
        }
        if let percent = try context.options.number("dead-share", in: 0...100, command: name) {
            message.deadPercent = percent
        }
        if let rate = try context.options.number("rate", in: 0...1_000_000, command: name) {
            message.bytesPerSecond = rate == 0 ? .max : rate << 20
        }
        let run = CompactionRun(context: context, session: try context.session())
        run.print(try run.perform(message, "compacting"))
        return 0
    }
}

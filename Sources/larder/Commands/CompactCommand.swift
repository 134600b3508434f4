// `larder compact`.

import LarderWire

enum CompactCommand: Command {
    static let name = "compact"
    static let purpose = "give the room back that changed and deleted records take"
    static let synopsis = [
        "compact [--keep-history DAYS|all|none] [--dead-share PERCENT] [--rate MIB] [--compress | --uncompress]"
    ]
    static let options = [
        HistoryLimit.option,
        OptionSpec("dead-share", "PERCENT", "rewrite a file when at least so much of it would go (10)"),
        OptionSpec("compress", "compress what is rewritten with zstd, and rewrite what is not compressed yet"),
        OptionSpec("uncompress", "write what is compressed as it was before"),
        OptionSpec("rate", "MIB", "read and write so many MiB a second at most; 0: as fast as it goes"),
    ]
    static let details = """
        Rewrites the log without the versions of records that were superseded, and without deletes, before the time that
        history is kept from; without --keep-history and --rate as the host is set (larder serve --help). Records stay as
        they are, and readers and writers go on. larder undo, undelete and log reach as far back as the history that is
        kept; a plugin that was away for longer starts over with a snapshot.
        --compress takes about half of the room, more or less with what the texts are; reading single records from the
        disk takes about 0.1 ms more, and who reads the files needs zstd (libzstd1) too. What is compressed stays so until
        --uncompress. Plugins see nothing of it.
        A host that runs does this now and then by itself. Ctrl-C ends the command and not the compaction.
        """
    static let examples = [
        (line: "larder compact", does: "gives back what the host need not keep"),
        (line: "larder compact --compress", does: "takes less room; whoever reads the files needs zstd"),
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
        let (compresses, unpacks) = (context.options.has("compress"), context.options.has("uncompress"))
        guard !compresses || !unpacks else {
            throw Failure.usage("--compress and --uncompress", "one excludes the other", "see larder \(name) --help")
        }
        if compresses || unpacks { message.compression = compresses ? .zstd : .none }
        if let rate = try context.options.number("rate", in: 0...1_000_000, command: name) {
            message.bytesPerSecond = rate == 0 ? .max : rate << 20
        }
        let run = CompactionRun(context: context, session: try context.session())
        run.print(try run.perform(message, "compacting"))
        return 0
    }
}

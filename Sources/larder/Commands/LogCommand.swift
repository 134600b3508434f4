// `larder log`.

import LarderFormat

enum LogCommand: Command {
    static let name = "log"
    static let purpose = "show what changed, when, and who changed it"
    static let synopsis = [
        "log [--kind KIND] [--limit N | --all] [--reverse]", "log KEY [--limit N]", "log KIND VALUE…",
    ]
    static let options = [
        OptionSpec("limit", short: "n", "N", "so many lines at most; 50 unless said"),
        OptionSpec("all", short: "a", "all that the log holds"),
        OptionSpec("reverse", short: "r", "oldest first"),
        OptionSpec("kind", "KIND", "only records of this kind"),
    ]
    static let details = """
        Newest first. With a key, what became of one record, also of one that was deleted; larder show KEY --history
        shows its versions with what changed in each.
        Each line ends with the seq of the change. larder undo takes a seq, a span of them such as 120..135, or an
        import as it is written here, such as import:5. Many deletes in a row are one line; not with --json.
        """
    static let examples = [
        (line: "larder log", does: "shows the last 50 changes"),
        (line: "larder log title:tmdb/movie/603", does: "shows what became of one film"),
        (line: "larder log --kind book --all --json", does: "prints every change of a book as JSON lines"),
    ]

    private static let limit = 50
    private static let recordLimitMax = 1_000

    static func run(_ context: Context) throws -> Int32 {
        let options = context.options
        let asked = try options.number("limit", in: 1...Int.max, command: name)
        if asked != nil, options.has("all") { throw misused("takes --limit or --all, not both") }
        let limit = asked ?? (options.has("all") ? Int.max : LogCommand.limit)
        if !options.arguments.isEmpty {
            if options.has("kind") { throw misused("takes a key or --kind, not both") }
            return try showRecord(context, limit)
        }
        let session = try context.session()
        let kind = try session.kindNumber(options.value("kind"))
        let kinds = try session.kinds()
        let isNewestFirst = !options.has("reverse")
        let reading = LogReading(session.client)
        let printer = try LogPrinter(context, session)
        var grouping = LogGrouping()
        for window in LogWindows(
            floor: reading.floor, last: session.client.welcome.lastSeq, isNewestFirst: isNewestFirst)
        {
            var rows: [LogRow] = []
            try reading.forEach(after: window.after, through: window.through) { entry, time in
                if let row = LogRow(entry, time: time, kinds), kind == 0 || row.kind == kind { rows.append(row) }
                return true
            }
            var ready: [LogRow] = []
            for row in isNewestFirst ? rows.reversed() : rows {
                ready += context.isJSON ? [row] : grouping.take(row)
                if printer.count + ready.count >= limit { break }
            }
            try printer.print(Array(ready.prefix(limit - printer.count)))
            if printer.count >= limit { break }
        }
        if printer.count < limit { try printer.print(Array(grouping.finish().prefix(limit - printer.count))) }
        finish(context, printer, reading, isWhole: printer.count < limit)
        return 0
    }

    private static func finish(_ context: Context, _ printer: LogPrinter, _ reading: LogReading, isWhole: Bool) {
        context.output.flush()
        for lost in reading.lost {
            context.warn("damaged in the log and lost: seq \(lost.after + 1) to \(lost.through)")
        }
        if context.isJSON { return }
        if printer.count == 0 { context.note("nothing has changed yet") }
        if !isWhole { context.note("\(Formats.count(printer.count, "change")) shown; more: --limit N, or all: --all") }
    }

    private static func showRecord(_ context: Context, _ limit: Int) throws -> Int32 {
        let session = try context.session()
        let kinds = try session.kinds()
        let keys = try KeyArguments.read(context.options.arguments, kinds, command: name)
        guard keys.count == 1 else { throw misused("takes one key") }
        let isNewestFirst = !context.options.has("reverse")
        // Of the reverse all are needed: the oldest come last.
        let asked = isNewestFirst ? min(limit, recordLimitMax) : recordLimitMax
        let entries = try session.history(keys[0], limit: asked)
        guard !entries.isEmpty else {
            context.warn("\(DisplayText.visible(keys[0].text)): the log has nothing of it")
            return 1
        }
        let rows = entries.compactMap { LogRow($0, kinds) }
        try LogPrinter(context, session, isOfOneRecord: true).print(
            Array((isNewestFirst ? rows : rows.reversed()).prefix(limit)))
        return 0
    }
}

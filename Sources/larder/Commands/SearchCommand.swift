// `larder search`.

import LarderFormat
import LarderWire

enum SearchCommand: Command {
    static let name = "search"
    static let purpose = "find records by words in their texts, the best first"
    static let synopsis = ["search WORD… [--kind KIND] [--limit N] [--page TOKEN]"]
    static let options = [
        OptionSpec("kind", short: "K", "KIND", "the records of one kind only"),
        OptionSpec("limit", short: "n", "N", "so many at most, up to 1,000; 20 unless said"),
        OptionSpec("page", "TOKEN", "go on behind a page that --limit ended"),
        OptionSpec("keys", short: "k", "show the keys, which get and delete take"),
    ]
    static let details = """
        Every word must be part of some text of the record; upper and lower case, and full and half width, are the same.
        First come those whose label is what was searched for, then those whose label begins with it or has it in it.
        With --json each line is a record with its rank (0 is the best), and a last line has the next page's token.
        """
    static let examples = [
        (line: "larder search matrix", does: "finds what has it in its title, overview, …"),
        (line: "larder search --kind book 한강 --limit 5", does: "shows the five best books"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        let options = context.options
        let query = options.arguments.joined(separator: " ")
        guard query.contains(where: { !$0.isWhitespace }) else { throw misused("needs a WORD to search for") }
        guard Search.queryByteCountRange.contains(query.utf8.count) else {
            throw misused("takes at most \(Search.queryByteCountRange.upperBound) bytes to search for")
        }
        let limit = try options.number("limit", in: Search.limitRange, command: name) ?? 20
        var token: [UInt8] = []
        if let text = options.value("page") {
            guard let bytes = Hex.bytes(text), !bytes.isEmpty else {
                throw misused("--page takes what an earlier search printed as the next page")
            }
            token = bytes
        }
        let session = try context.session()
        let kinds = try session.kinds()
        let number = try session.kindNumber(options.value("kind"))
        let printer = RecordPrinter(context, kinds, hasKeys: options.has("keys"))
        var left = limit
        var isEnd = false
        // A host may send fewer than were asked for.
        while left > 0, !isEnd {
            let matches = try attempt("searching") {
                try session.client.search(Search(kind: number, query: query, limit: left, token: token))
            }
            for match in matches.matches { add(match, kinds, printer, context) }
            printer.flush()
            left -= matches.matches.count
            isEnd = matches.isEnd
            token = matches.token
        }
        context.output.flush()
        if context.isJSON {
            context.output.json {
                $0.member("is_end", isEnd)
                if !isEnd { $0.member("page", Hex.text(token)) }
            }
        } else if left == limit {
            context.note("nothing has “\(DisplayText.visible(query))” in it")
        } else if !isEnd {
            context.note("there are more: --page \(Hex.text(token))")
        }
        return 0
    }

    private static func add(
        _ match: Matches.Match, _ kinds: Kinds, _ printer: RecordPrinter, _ context: Context
    ) {
        guard context.isJSON else { return printer.add(match.stored) }
        match.stored.record.withUnsafeBytes { bytes in
            context.output.json {
                $0.member("rank", match.rank)
                RecordJSON.write(match.stored.header, bytes, kinds, into: &$0)
            }
        }
    }
}

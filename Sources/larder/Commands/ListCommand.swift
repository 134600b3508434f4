// `larder list`: the records as a downloads screen shows them.

import LarderFormat
import LarderWire

enum ListCommand: Command {
    static let name = "list"
    static let purpose = "list the records, all or those of a condition"
    static let synopsis = [
        "list [KIND] [--where CONDITION] [--order FIELD] [--reverse] [--limit N | --all] [--page TOKEN] [--keys]",
        "list KIND --csv [--fields A,B,C] [OPTIONS]",
    ]
    static let options = [
        OptionSpec("where", short: "w", "CONDITION", "only those for which it holds"),
        OptionSpec(
            "order", short: "o", "FIELD", "in the order of a field (FIELD:desc: downwards), else in that of saving"),
        OptionSpec("reverse", short: "r", "the other way round; without --order the newest first"),
        OptionSpec("limit", short: "n", "N", "so many at most; 50 unless said, with --json all"),
        OptionSpec("all", short: "a", "all of them"),
        OptionSpec("page", "TOKEN", "go on behind a page that --limit ended"),
        OptionSpec("csv", "comma-separated values with a heading, all of them unless --limit says less"),
        OptionSpec("fields", "A,B,C", "the columns of --csv: fields, @saved, @changed, @seq"),
        OptionSpec("keys", short: "k", "show the keys, which get and delete take"),
    ]
    static let details = """
        Each line has what to call the record, its kind (movie, tv, … of titles), its date, and when it was saved here,
        in local time; of books the authors and the price as well.
        With --json each line is a whole record. Where --limit or --page was given a last line has the next page's
        token: {"is_end":false,"page":"…"}.
        A condition is made of tests with and, or, not and parentheses. A test is a field, one of = != < <= > >= contains
        starts, and a value, in quotes where it is more than one word; or FIELD in (A, B), FIELD exists, FIELD is absent,
        FIELD is blank. Fields are those of larder kinds KIND, and @saved, @changed, @seq, @origin and kind. Upper and
        lower case are the same, a year or a month stands for all its days, and a list has a value if one of its texts is
        it: release_date >= 1990 and not title starts "the "; @saved >= 2026-11 and watched is absent; kind = book.
        In --csv a list's texts are joined by "; ". Values stay as they are: a spreadsheet may take one that begins with
        = + - or @ for a formula, so tell it that the columns are text.
        """
    static let examples = [
        (line: "larder list title --reverse --limit 10", does: "shows the ten titles that were saved last"),
        (line: "larder list --json | jq -r .record.title", does: "prints the titles of all records"),
        (
            line: "larder list title --where 'genres = Drama and vote_average > 7.5' --order vote_average:desc",
            does: "shows good dramas, the best first"
        ),
        (line: "larder list book --csv --fields title,authors,price > books.csv", does: "writes a table"),
        (line: "larder list --limit 100 --json | tail -1", does: "prints what --page takes for the next hundred"),
    ]

    private static let tableLimit = 50
    /// Rows that are laid out together.
    private static let tablePageLimit = 500
    private static let jsonPageLimit = 2_000

    static func run(_ context: Context) throws -> Int32 {
        let options = context.options
        let limit = try options.number("limit", in: 1...Int.max, command: name)
        if limit != nil, options.has("all") { throw misused("takes --limit or --all, not both") }
        var token: [UInt8] = []
        if let text = options.value("page") {
            guard let bytes = Hex.bytes(text), !bytes.isEmpty else {
                throw misused("--page takes what an earlier list printed as the next page")
            }
            token = bytes
        }
        let kind = try optionalKind(context)
        if options.has("fields"), !options.has("csv") { throw misused("takes --fields with --csv") }
        if options.has("csv"), options.has("json") { throw misused("takes --csv or --json, not both") }
        let session = try context.session()
        let number = try session.kindNumber(kind)
        let (order, isReverse) = try Self.order(options, try session.kinds()[number])
        var csv: CSVWriter?
        if options.has("csv") {
            guard let kind = try session.kinds()[number] else { throw misused("--csv needs a KIND") }
            csv = try CSVWriter(kind, fields: options.value("fields"), context.output)
            csv?.writeHead()
        }
        let isWhole = options.has("all") || context.isJSON || csv != nil
        var left = limit ?? (isWhole ? Int.max : tableLimit)
        let printer = RecordPrinter(context, try session.kinds(), hasKeys: options.has("keys"))
        let condition = options.value("where") ?? ""
        var shown = 0
        var isEnd = false
        while left > 0, !isEnd {
            let list = List(
                kind: number, isReverse: isReverse,
                limit: min(left, context.isJSON || csv != nil ? jsonPageLimit : tablePageLimit), token: token,
                condition: condition, order: order)
            let page = try ConditionText.attempt("listing", condition) { try session.client.list(list) }
            for record in page.records {
                if csv == nil { printer.add(record) } else { csv?.write(record) }
            }
            printer.flush()
            shown += page.records.count
            left -= page.records.count
            isEnd = page.isEnd
            token = page.token
        }
        if let csv {
            context.output.flush()
            if csv.opaqueCount > 0 {
                context.warn(
                    "\(Formats.count(csv.opaqueCount, "record")) left out: of fields that this larder does not know")
            }
            if !isEnd { context.note("there are more; the next ones: --page \(Hex.text(token))") }
            return csv.opaqueCount == 0 ? 0 : 1
        }
        finish(
            context, shown, isEnd ? nil : Hex.text(token),
            isPaged: limit != nil || options.has("page") || !condition.isEmpty)
        return 0
    }

    /// The field of `--order FIELD[:asc|:desc]`, 0 for none, and whether it goes backwards.
    private static func order(_ options: Options, _ kind: Kind?) throws(Failure) -> (field: Int, isReverse: Bool) {
        let isReverse = options.has("reverse")
        guard let text = options.value("order") else { return (0, isReverse) }
        guard let kind else { throw misused("--order needs a KIND") }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count < 2 || parts[1] == "desc" || parts[1] == "asc" else {
            throw misused("--order takes FIELD, FIELD:asc or FIELD:desc, not “\(text)”")
        }
        let isDescending = parts.count > 1 && parts[1] == "desc"
        return (try FieldNames.field(parts[0], kind).number, isDescending != isReverse)
    }

    private static func finish(_ context: Context, _ shown: Int, _ next: String?, isPaged: Bool) {
        if context.isJSON {
            guard context.options.has("limit") || context.options.has("page") else { return }
            context.output.json {
                $0.member("is_end", next == nil)
                if let next { $0.member("page", next) }
            }
            return
        }
        context.output.flush()
        if shown == 0 {
            context.note(isPaged ? "nothing more" : "nothing is saved here; larder import brings something")
        }
        if let next {
            context.note("\(Formats.count(shown, "record")) shown; the next ones: --page \(next), or all: --all")
        }
    }
}

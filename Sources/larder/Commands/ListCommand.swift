// `larder list`: the records as a downloads screen shows them.

import LarderFormat
import LarderWire

enum ListCommand: Command {
    static let name = "list"
    static let purpose = "list the records in the order in which they were saved"
    static let synopsis = ["list [KIND] [--reverse] [--limit N | --all] [--page TOKEN] [--keys]"]
    static let options = [
        OptionSpec("reverse", short: "r", "newest first"),
        OptionSpec("limit", short: "n", "N", "so many at most; 50 unless said, with --json all"),
        OptionSpec("all", short: "a", "all of them"),
        OptionSpec("page", "TOKEN", "go on behind a page that --limit ended"),
        OptionSpec("keys", short: "k", "show the keys, which get and delete take"),
    ]
    static let details = """
        Each line has what to call the record, its kind (movie, tv, … of titles), its date, and when it was saved here,
        in local time; of books the authors and the price as well.
        With --json each line is a whole record. Where --limit or --page was given a last line has the next page's
        token: {"is_end":false,"page":"…"}.
        """
    static let examples = [
        (line: "larder list title --reverse --limit 10", does: "shows the ten titles that were saved last"),
        (line: "larder list --json | jq -r .record.title", does: "prints the titles of all records"),
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
        let session = try context.session()
        let number = try session.kindNumber(kind)
        var left = limit ?? (options.has("all") || context.isJSON ? Int.max : tableLimit)
        let printer = RecordPrinter(context, try session.kinds(), hasKeys: options.has("keys"))
        var shown = 0
        var isEnd = false
        while left > 0, !isEnd {
            let list = List(
                kind: number, isReverse: options.has("reverse"),
                limit: min(left, context.isJSON ? jsonPageLimit : tablePageLimit), token: token)
            let page = try attempt("listing") { try session.client.list(list) }
            for record in page.records { printer.add(record) }
            printer.flush()
            shown += page.records.count
            left -= page.records.count
            isEnd = page.isEnd
            token = page.token
        }
        finish(context, shown, isEnd ? nil : Hex.text(token), isPaged: limit != nil || options.has("page"))
        return 0
    }

    private static func finish(_ context: Context, _ shown: Int, _ next: String?, isPaged: Bool) {
        if context.isJSON {
            guard isPaged else { return }
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

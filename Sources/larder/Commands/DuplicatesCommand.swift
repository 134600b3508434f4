// `larder duplicates`.

import LarderFormat
import LarderWire

enum DuplicatesCommand: Command {
    static let name = "duplicates"
    static let purpose = "show records that may be of the same thing"
    static let synopsis = ["duplicates [KIND] [--limit N | --all] [--page TOKEN]"]
    static let options = [
        OptionSpec("limit", short: "n", "N", "so many pairs at most; 50 unless said, with --json all"),
        OptionSpec("all", short: "a", "all of them"),
        OptionSpec("page", "TOKEN", "go on behind a page that --limit ended"),
    ]
    static let details = """
        Two records of one kind with different keys are shown where they have the same imdb_id, isbn or other indexed
        value, or the same label and year. Letters, width and case are compared as in conditions. Of several records
        each is shown with the oldest. Nothing is changed; larder join makes one record of two.
        """
    static let examples = [
        (line: "larder duplicates title", does: "shows films that may be saved twice, and why"),
        (line: "larder duplicates --json | jq -r '.keys | join(\" \")'", does: "prints the pairs' keys"),
    ]

    private static let limit = 50
    /// Pairs that are read together: two entries each.
    private static let pageCount = 500

    static func run(_ context: Context) throws -> Int32 {
        let options = context.options
        let asked = try options.number("limit", in: 1...Int.max, command: name)
        if asked != nil, options.has("all") { throw misused("takes --limit or --all, not both") }
        let start = try options.value("page").map { try page($0) }
        let kindName = try optionalKind(context)
        let session = try context.session()
        let kind = try session.kindNumber(kindName)
        var pairs = try search(kind, context)[...]
        if let start { pairs = pairs.drop { $0 <= start } }
        var left = asked ?? (options.has("all") || context.isJSON ? Int.max : limit)
        let printer = DuplicatePrinter(context)
        var last: DuplicatePair?
        while left > 0, !pairs.isEmpty {
            let page = pairs.prefix(pageCount)
            for (pair, duplicate) in try looked(Array(page), session) where left > 0 {
                last = pair
                guard let duplicate else { continue }
                printer.add(duplicate)
                left -= 1
            }
            printer.flush()
            pairs = pairs.dropFirst(page.count)
        }
        // What is behind the last one shown, looked at or not.
        let isEnd = left > 0
        finish(context, printer.count, isEnd ? nil : last, isPaged: asked != nil || start != nil)
        return 0
    }

    private static func page(_ text: String) throws(Failure) -> DuplicatePair {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false).map { UInt64($0) }
        guard parts.count == 2, let first = parts[0], let second = parts[1] else {
            throw misused("--page takes what an earlier run printed as the next page")
        }
        return DuplicatePair(first: first, second: second)
    }

    private static func search(_ kind: Int, _ context: Context) throws -> [DuplicatePair] {
        let session = try context.session()
        let kinds = try session.kinds()
        let total = try attempt("counting") { try session.client.count(kind: kind).reduce(0) { $0 + $1.count } }
        let bar = ProgressBar(context.errors)
        var search = DuplicateSearch()
        var done = 0
        try attempt("reading the records") {
            try session.client.forEachRecord(kind: kind) { view in
                done += 1
                if done % 1_000 == 0 { bar.show(done: done, total: total, what: "compared") }
                guard let kind = kinds[view.header.kind], let record = try? Record(decoding: view.record, kind) else {
                    return true
                }
                search.take(record, kind, seq: view.header.seq)
                return true
            }
        }
        bar.remove()
        return search.takePairs()
    }

    /// The pairs with what their records say; nil where it was a chance or one is gone.
    private static func looked(
        _ pairs: [DuplicatePair], _ session: Session
    ) throws -> [(DuplicatePair, Duplicate?)] {
        let kinds = try session.kinds()
        let entries = try session.entries(Array(Set(pairs.flatMap { [$0.first, $0.second] })))
        func record(_ seq: UInt64) -> (key: RecordKey, record: Record)? {
            guard let entry = entries[seq], let kind = kinds[entry.kind], let key = entry.key(kind),
                let record = entry.record(kind)
            else { return nil }
            return (key, record)
        }
        return pairs.map { pair in
            guard let first = record(pair.first), let second = record(pair.second) else { return (pair, nil) }
            return (pair, Duplicate(first, second))
        }
    }

    private static func finish(_ context: Context, _ count: Int, _ next: DuplicatePair?, isPaged: Bool) {
        let token = next.map { "\($0.first)-\($0.second)" }
        if context.isJSON {
            guard isPaged else { return }
            context.output.json {
                $0.member("is_end", next == nil)
                if let token { $0.member("page", token) }
            }
            return
        }
        context.output.flush()
        if count == 0 {
            context.note(isPaged ? "nothing more" : "no two records look like the same thing")
        } else {
            context.note("larder join KEY KEY makes one record of two")
        }
        if let token {
            context.note("\(Formats.count(count, "pair")) shown; the next ones: --page \(token), or all: --all")
        }
    }
}

/// Prints pairs, a page at a time.
final class DuplicatePrinter {
    private let context: Context
    private var table: Table
    private var pending: [Duplicate] = []
    private(set) var count = 0
    private var isFirst = true

    init(_ context: Context) {
        self.context = context
        table = Table(
            [.init("LABEL", flexible: true), .init("WHY", flexible: true), .init("KEY"), .init("OTHER KEY")],
            width: context.output.width)
    }

    func add(_ duplicate: Duplicate) {
        count += 1
        guard context.isJSON else { return pending.append(duplicate) }
        let kind = duplicate.first.key.kind
        context.output.json { json in
            json.member("kind", kind.name)
            json.name("keys")
            DuplicatePrinter.write([duplicate.first.key.text, duplicate.second.key.text], into: &json)
            json.name("labels")
            DuplicatePrinter.write(
                [duplicate.first, duplicate.second].map { $0.record.label(kind) ?? "" }, into: &json)
            json.name("reasons")
            DuplicatePrinter.write(duplicate.reasons.map { duplicate.words($0) }, into: &json)
        }
    }

    private static func write(_ texts: [String], into json: inout JSONWriter) {
        json.beginArray()
        for text in texts { json.string(text) }
        json.endArray()
    }

    func flush() {
        for duplicate in pending {
            table.add([
                duplicate.first.record.label(duplicate.first.key.kind) ?? RecordCells.unknownLabel,
                duplicate.reasons.map { duplicate.words($0) }.joined(separator: ", "), duplicate.first.key.text,
                duplicate.second.key.text,
            ])
        }
        guard !pending.isEmpty else { return }
        pending = []
        table.print(to: context.output, withHeading: isFirst)
        isFirst = false
    }
}

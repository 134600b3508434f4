// `larder dump`.

import LarderClient
import LarderFormat
import LarderWire

enum DumpCommand: Command {
    static let name = "dump"
    static let purpose = "write the whole library as JSON lines, losing nothing"
    static let synopsis = ["dump [FILE] [--kind KIND] [--portable]"]
    static let options = [
        OptionSpec("kind", short: "K", "KIND", "the records of one kind only"),
        OptionSpec(
            "portable", short: "p", "leave out what is this library's own: numbers in its log, times of changes"),
    ]
    static let details = """
        The first line has the kinds with their declarations, then comes a record a line in the order of saving, and a
        last line that says how many there were. Every value is exact; larder load reads it all back.
        Without FILE it goes to standard output. FILE is put in place when it is whole.
        Portable dumps of two libraries with the same records are the same, byte for byte.
        Records that are saved or deleted meanwhile may or may not be in it.
        """
    static let examples = [
        (line: "larder dump library.jsonl", does: "writes everything to a file"),
        (line: "larder dump --kind book | gzip > books.jsonl.gz", does: "packs the books"),
        (
            line: "larder dump | jq -c 'select(.kind == \"title\") | .record'",
            does: "hands the titles to another program"
        ),
    ]

    static func run(_ context: Context) throws -> Int32 {
        let paths = context.options.arguments
        guard paths.count <= 1 else { throw misused("takes one FILE at most") }
        let path = paths.first == "-" ? nil : paths.first
        let session = try context.session()
        let kinds = try session.kinds()
        let number = try session.kindNumber(context.options.value("kind"))
        let isPortable = context.options.has("portable")
        // Without a file there is nothing to take away.
        if path != nil { Interrupt.hold() }
        let file = try DumpFile(path, context)
        let total = try attempt("counting") { try session.client.count(kind: number).reduce(0) { $0 + $1.count } }
        let begun = Clock.monotonic
        let bar = ProgressBar(context.errors)
        let origins = OriginTable(try attempt("asking who wrote") { try OriginTable.read(session.client) })
        file.output.json {
            let told = number == 0 ? kinds.all : kinds.all.filter { $0.number == number }
            DumpForm.writeHead(epoch: isPortable ? nil : session.client.welcome.epoch, told, into: &$0)
        }
        var count = 0
        var strangers: Set<UInt64> = []
        try attempt("reading the records") {
            try session.client.forEachRecord(kind: number, pageLimit: 2_000) { record in
                let origin = origins.name(record.header.origin)
                if origin == nil, record.header.origin != 0 { strangers.insert(record.header.origin) }
                file.output.json {
                    DumpForm.write(
                        record, kinds[record.header.kind], origin: origin, isPortable: isPortable, into: &$0)
                }
                count += 1
                if count % 1_000 == 0, !context.errors.isTerminal || path != nil {
                    bar.show(done: count, total: total, what: "records")
                }
                return count % 256 != 0 || !Interrupt.isPending
            }
        }
        bar.remove()
        if Interrupt.isPending {
            context.warn("the dump was stopped after \(Formats.count(count, "record")), and is not whole")
            return Interrupt.exitCode
        }
        file.output.json { DumpForm.writeEnd(recordCount: count, into: &$0) }
        try file.finish()
        if !strangers.isEmpty {
            context.warn("\(Formats.count(strangers.count, "origin")) not known to the host; their records name none")
        }
        guard let path else { return 0 }
        report(context, path, count, milliseconds: Clock.monotonic - begun)
        return 0
    }

    private static func report(_ context: Context, _ path: String, _ count: Int, milliseconds: Int64) {
        if context.isJSON {
            context.output.json {
                $0.member("file", path)
                $0.member("records", count)
                $0.member("milliseconds", milliseconds)
            }
            return
        }
        context.output.line(
            "\(Formats.count(count, "record")) in \(DisplayText.visible(path)), "
                + "\(Formats.duration(milliseconds: milliseconds)), \(Formats.rate(count, milliseconds: milliseconds))")
    }
}

/// The names of all origins, read at once.
struct OriginTable {
    private let names: [UInt64: String]

    init(_ origins: [OriginList.Origin]) {
        names = Dictionary(origins.map { ($0.number, $0.name) }) { first, _ in first }
    }

    static func read(_ client: LarderClient) throws(ClientError) -> [OriginList.Origin] {
        var all: [OriginList.Origin] = []
        while true {
            let page = try client.origins(after: all.last?.number ?? 0, limit: 10_000)
            guard let last = page.last, last.number > all.last?.number ?? 0 else { return all }
            all += page
        }
    }

    func name(_ number: UInt64) -> String? { names[number] }
}

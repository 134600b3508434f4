// The command line.

/// What a run measures, in the order in which it does.
enum Figure: String, CaseIterable {
    case probe, socket, ceiling, `import`, subscriber, null, memory, size, shuffled, reimport, replay, get, open,
        `where`, pages, search, latency, changed, compact,
        beside, compressed

    /// Measured in one round with imports, one after the other, so that they can be compared.
    var isOfImport: Bool {
        switch self {
        case .probe, .socket, .ceiling, .import, .subscriber, .null, .memory, .size: true
        default: false
        }
    }

    var summary: String {
        switch self {
        case .probe: "raw aligned writes of 2 MiB past the page cache, each synced"
        case .socket: "a raw Unix socket between two processes"
        case .ceiling: "the C yardstick's import, replay and get (needs --ceiling)"
        case .import: "durable bulk import, no subscriber"
        case .subscriber: "the same until a subscriber has received and checked every event"
        case .null: "the same with the log in memory that costs nothing"
        case .memory: "anonymous memory of the host after the import"
        case .size: "bytes of records in Larder and Protobuf, and of the library's files"
        case .shuffled: "import with ids in random order"
        case .reimport: "import again with nothing changed, and with the log not in the page cache"
        case .replay: "the whole log, and a snapshot, to one subscriber"
        case .get: "point reads at depth 1 and 16, placed freely, on two CPUs, on one"
        case .open: "from start to the first answered GET, after a close, a kill -9, and a kill -9 behind a compaction"
        case .where: "LIST with a condition, against SQLite's scan in process where it is installed"
        case .pages: "the first page of LIST and page 10,000, in saved order and in that of a field"
        case .search: "from start to a search's first page, with the log in the page cache and without"
        case .latency: "gets beside clients that have every record looked at"
        case .changed: "import again with one record in ten changed (merge)"
        case .compact: "a compaction at full rate with half of the records changed and a tenth deleted"
        case .compressed: "bytes of compressed segments against SQLite's, and what reading them costs"
        case .beside: "imports, and gets at a fixed pace, beside a compaction at the host's rate and at full rate"
        }
    }
}

/// Options of the commands that people use.
struct Options {
    var figures = Set(Figure.allCases)
    var recordCount = 1_000_000
    var runCount = 3
    /// Of each get measurement.
    var getSeconds = 1.0
    /// Where files are made and removed again; nil: a temporary directory.
    var directory: String?
    var dataset: String?
    /// Of the dataset, each with ids of its own, in the library that `open` opens.
    var copyCount = 1
    var ceiling: String?
    var bulk = ImportOptions().bulk

    init(_ arguments: [String]) throws(BenchError) {
        var arguments = arguments[...]
        while let option = arguments.popFirst() {
            switch option {
            case "--records": recordCount = try Options.integer(option, &arguments, 1...100_000_000)
            case "--runs": runCount = try Options.integer(option, &arguments, 1...100)
            case "--get-milliseconds":
                getSeconds = Double(try Options.integer(option, &arguments, 1...600_000)) / 1_000
            case "--batch": bulk.batchByteCount = try Options.integer(option, &arguments, 1...4_000_000)
            case "--window": bulk.windowByteCount = try Options.integer(option, &arguments, 1...1_000_000_000)
            case "--directory": directory = try Options.value(option, &arguments)
            case "--copies": copyCount = try Options.integer(option, &arguments, 1...100)
            case "--dataset": dataset = try Options.value(option, &arguments)
            case "--ceiling": ceiling = try Options.value(option, &arguments)
            case "--only":
                figures = []
                for name in try Options.value(option, &arguments).split(separator: ",") {
                    guard let figure = Figure(rawValue: String(name)) else {
                        throw .usage("no figure is called \(name)")
                    }
                    figures.insert(figure)
                }
            default: throw .usage("there is no option \(option)")
            }
        }
    }

    static func value(_ option: String, _ arguments: inout ArraySlice<String>) throws(BenchError) -> String {
        guard let value = arguments.popFirst() else { throw .usage("\(option) needs a value") }
        return value
    }

    static func integer(
        _ option: String, _ arguments: inout ArraySlice<String>, _ range: ClosedRange<Int>
    ) throws(BenchError) -> Int {
        let value = try value(option, &arguments)
        guard let integer = Int(value), range.contains(integer) else {
            throw .usage("\(option) takes \(range.lowerBound) to \(range.upperBound), not \(value)")
        }
        return integer
    }

    static var usage: String {
        let figures = Figure.allCases.map { figure in
            "  " + figure.rawValue + String(repeating: " ", count: 12 - figure.rawValue.count) + figure.summary
        }
        return """
            usage: larder-bench all [options]        every figure
                   larder-bench FIGURE [options]     one figure
                   larder-bench dataset N OUT.bin    write the dataset for other programs

            Measures a host on this machine: JSON lines on standard output, progress and a table on standard error.
            Each line has the median of the runs. Build it with `swift build -c release --product larder-bench`.

            figures:
            \(figures.joined(separator: "\n"))

            options:
              --records N            records of the dataset (1000000)
              --runs N               runs of each figure (3)
              --only FIGURE,…        these alone
              --directory DIR        where files are made, and removed in the end (TMPDIR, else /var/tmp); on the disk
                                     that is to be measured
              --copies N             of the dataset in the library of `open`, each with ids of its own (1)
              --dataset FILE.bin     a dataset that was written before
              --ceiling PROGRAM      the C yardstick
              --get-milliseconds N   length of each get measurement (1000)
              --batch BYTES          of one WRITE (262144)
              --window BYTES         sent and not answered (6291456)

            examples:
              larder-bench all --records 100000 --runs 1
              larder-bench import --directory /mnt/disk
              larder-bench open --records 1000000 --copies 10
              larder-bench all --only import,replay --ceiling ./ceiling > figures.jsonl

            """
    }
}

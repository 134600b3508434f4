// `larder load`.

import LarderFormat
import LarderWire

/// What `load` was told.
struct LoadOptions {
    var mode = SaveMode.insert
    var isDryRun = false
    var isStrict = false

    init(_ options: Options) throws(Failure) {
        isDryRun = options.has("dry-run")
        isStrict = options.has("strict")
        guard let text = options.value("mode") else { return }
        guard let found = ImportOptions.modes.first(where: { $0.name == text }) else {
            throw LoadCommand.misused("--mode is insert, replace, merge or fill, not “\(text)”")
        }
        mode = found.mode
    }
}

enum LoadCommand: Command {
    static let name = "load"
    static let purpose = "read back what dump wrote"
    static let synopsis = ["load [--mode MODE] [--dry-run] [--strict] FILE", "load [OPTIONS] -"]
    static let options = [
        OptionSpec(
            "mode", short: "m", "MODE",
            "how a record meets one that is there:\ninsert (unless said): it stays as it is\n"
                + "replace: it becomes what is loaded\nmerge: the fields that are loaded overwrite, the others stay\n"
                + "fill: only what is missing is set"),
        OptionSpec("dry-run", short: "n", "decide everything, change nothing"),
        OptionSpec("strict", short: "s", "stop at the first line that can't be taken"),
        OptionSpec("all-refusals", "show every refusal, not just the first 20"),
    ]
    static let details = """
        Kinds that the library lacks are declared, and fields that its kinds lack are added, before the first record.
        Records keep the time when they were first saved, their order, who wrote them, and the owner's own fields. When
        they were last changed, and their numbers in the log, are the new library's.
        A line that can't be taken is refused alone, with its number and the reason; the others go on. Loading the same
        dump again, or after it was broken off, doubles nothing.
        Exits with 0 if nothing was refused and the dump was whole.
        """
    static let examples = [
        (line: "larder --library new load library.jsonl", does: "makes a new library of a dump"),
        (line: "zcat library.jsonl.gz | larder load --dry-run -", does: "says what would become of its records"),
        (line: "larder load --mode fill library.jsonl", does: "sets only what is missing here"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        let options = try LoadOptions(context.options)
        guard context.options.arguments.count == 1 else { throw misused("needs one FILE, or - for standard input") }
        Interrupt.hold()
        let source = try ImportSource(context.options.arguments[0])
        let session = try context.session()
        let report = ImportReport(context, showsAll: context.options.has("all-refusals"))
        let run = try LoadRun(session, source, options, report)
        let (counts, end) = try run.run()
        report.finish(Accounting(counts: counts), isDryRun: options.isDryRun, isCancelled: end == .cancelled)
        switch end {
        case .cancelled: return Interrupt.exitCode
        case .stopped:
            context.warn("stopped at the first line that could not be taken; what came before it stays")
            return 1
        case .complete: return run.isWhole(context) && counts.refused == 0 ? 0 : 1
        }
    }
}

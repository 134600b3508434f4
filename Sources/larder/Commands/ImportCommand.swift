// `larder import`.

import LarderFormat

enum ImportCommand: Command {
    static let name = "import"
    static let purpose = "bring records in from files or standard input"
    static let synopsis = [
        "import [--kind KIND] [--set NAME=VALUE]… [--mode MODE] [--dry-run] FILE…", "import [OPTIONS] -",
    ]
    static let options = [
        OptionSpec("kind", "KIND", "of lines that name none by “kind”"),
        OptionSpec("set", "NAME=VALUE", "a value for a field where a row has none; may be given several times"),
        OptionSpec(
            "mode", "MODE",
            "how a record meets one that is there:\nmerge (unless said): its fields overwrite, the others stay\n"
                + "replace: it becomes what is imported\ninsert: it stays as it is\nfill: only what is missing is set"),
        OptionSpec(
            "personal",
            "write the owner's own fields, too (rating, watched, tags, note),\nwhich an import leaves out otherwise"),
        OptionSpec("dry-run", "decide everything, change nothing"), Confirmation.needless,
        OptionSpec("format", "NAME", "jsonl, or the importer plugin to use, whatever the file looks like"),
        OptionSpec("all-refusals", "show every refusal and warning, not just the first 20"),
    ]
    static let details = """
        JSON lines (an object a line, members named as the kind's fields) are read as they are; other files go to the
        importer plugin that recognises them. A bad row is refused alone, with its line and the reason, and the others
        go on. null, "" and [] are as good as absent, and absent never erases.
        Nothing is doubled if the same file is imported again, or if the host is killed in the middle: the import goes
        on with it for up to 30 s. Ctrl-C ends it in order; what was answered stays.
        At the end: read = created + updated + unchanged + duplicate + already saved + skipped + refused.
        Exits with 0 if nothing was refused.
        """
    static let examples = [
        (
            line: "larder import --kind title --set source=wikidata --set media_type=movie films.jsonl",
            does: "imports films whose lines have no source of their own"
        ),
        (line: "larder import trending.json", does: "hands a file to the plugin that knows it, such as tmdb-import"),
        (line: "zcat jokes.jsonl.gz | larder import --kind joke --dry-run -", does: "says what would become of them"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        let options = try ImportOptions(context.options)
        guard !context.options.arguments.isEmpty else { throw misused("needs a FILE, or - for standard input") }
        if context.options.arguments.filter({ $0 == "-" }).count > 1 { throw misused("takes - once") }
        Interrupt.hold()
        var sources: [ImportSource] = []
        for name in context.options.arguments { sources.append(try ImportSource(name)) }
        let session = try context.session()
        let report = ImportReport(context, showsAll: context.options.has("all-refusals"))
        let plan = try ImportPlan(sources, options, session)
        var sum = Accounting()
        var isCancelled = false
        do {
            if !plan.lines.isEmpty {
                let (counts, end) = try LineImport(session, plan.lines, options, report).run()
                sum.add(counts)
                isCancelled = end == .cancelled
            }
            for (importer, sources) in plan.importers where !isCancelled {
                let run = ImporterRun(importer, sources, options, session.place, report)
                sum.add(try run.run())
                isCancelled = run.isCancelled
            }
        } catch let broken as ImportBroken {
            report.finish(sum, isDryRun: options.isDryRun, isCancelled: false)
            var failure = Failure("the import was not finished", broken.error)
            failure.advice = "run it again: what is saved already is not doubled"
            throw failure
        }
        report.finish(sum, isDryRun: options.isDryRun, isCancelled: isCancelled)
        if !sum.isEven {
            context.warn(
                "the counts do not add up: \(sum.counts.read) read, \(sum.counts.sum) accounted for; please report it")
        }
        if isCancelled { return Interrupt.exitCode }
        return sum.counts.refused == 0 && sum.isEven ? 0 : 1
    }
}

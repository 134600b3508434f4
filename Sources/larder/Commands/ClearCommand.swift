// `larder clear`.

import LarderFormat

enum ClearCommand: Command {
    static let name = "clear"
    static let purpose = "delete all records, or all of one kind"
    static let synopsis = ["clear [KIND] [--yes | --dry-run]"]
    static let options = [
        Confirmation.option, OptionSpec("dry-run", "say how many records that would delete, delete none"),
    ]
    static let details = """
        Asks before. All or nothing: a crash in the middle leaves everything. Each record gets its deleted event.
        The log keeps what was deleted: larder undo brings it back, in the old order.
        """
    static let examples = [
        (line: "larder clear joke", does: "asks, and deletes all jokes"),
        (line: "larder clear --yes", does: "deletes everything without asking"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        let kind = try optionalKind(context)
        let isDryRun = context.options.has("dry-run")
        if !isDryRun { try Confirmation.expectSomebody(name, context) }
        let session = try context.session()
        let number = try session.kindNumber(kind)
        let count = try attempt("counting") { try session.client.count(kind: number).reduce(0) { $0 + $1.count } }
        if isDryRun { return sayDryRun(count, context) }
        if count > 0 { try Confirmation.expect(question(count, kind, session.place.library), name, context) }
        let bar = ProgressBar(context.errors)
        let cleared = try attempt("clearing") {
            try session.client.clear(kind: number) { bar.show(done: $0.done, total: $0.total, what: "deleted") }
        }
        bar.remove()
        if context.isJSON {
            context.output.json {
                $0.member("deleted", cleared.deleted)
                $0.member("seq", cleared.seq)
            }
        } else {
            context.output.line("\(Formats.count(cleared.deleted, "record")) deleted")
            if cleared.deleted > 0, cleared.seq >= UInt64(cleared.deleted) {
                context.note(
                    "larder undo \(cleared.seq - UInt64(cleared.deleted) + 1)..\(cleared.seq) brings them back")
            }
        }
        return 0
    }

    private static func sayDryRun(_ count: Int, _ context: Context) -> Int32 {
        if context.isJSON {
            context.output.json {
                $0.member("deleted", count)
                $0.member("dry_run", true)
            }
        } else {
            context.output.line("\(Formats.count(count, "record")) would be deleted")
        }
        return 0
    }

    private static func question(_ count: Int, _ kind: String?, _ library: String) -> String {
        let what = count == 1 ? "the only record" : "all \(Formats.count(count)) records"
        let whose = (kind.map { " of kind \($0)" } ?? "") + " of \(DisplayText.visible(library))"
        return "This deletes \(what)\(whose)."
    }
}

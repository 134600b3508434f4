// `larder clear`.

import Glibc
import LarderFormat

enum ClearCommand: Command {
    static let name = "clear"
    static let purpose = "delete all records, or all of one kind"
    static let synopsis = ["clear [KIND] [--yes]"]
    static let options = [OptionSpec("yes", short: "y", "do not ask; needed where nobody can be asked")]
    static let details = """
        Asks before. All or nothing: a crash in the middle leaves everything. Each record gets its deleted event.
        """
    static let examples = [
        (line: "larder clear joke", does: "asks, and deletes all jokes"),
        (line: "larder clear --yes", does: "deletes everything without asking"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        let kind = try optionalKind(context)
        let mayGoOn = context.options.has("yes")
        if !mayGoOn, isatty(STDIN_FILENO) == 0 {
            throw Failure("clear", "nobody can be asked whether that is meant", "say --yes")
        }
        let session = try context.session()
        let number = try session.kindNumber(kind)
        let count = try attempt("counting") { try session.client.count(kind: number).reduce(0) { $0 + $1.count } }
        if !mayGoOn, count > 0, !isConfirmed(count, kind, session.place.library, context) {
            throw Failure("clear", "nothing was deleted")
        }
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
        }
        return 0
    }

    private static func isConfirmed(_ count: Int, _ kind: String?, _ library: String, _ context: Context) -> Bool {
        let what = count == 1 ? "the only record" : "all \(Formats.count(count)) records"
        let whose = (kind.map { " of kind \($0)" } ?? "") + " of \(DisplayText.visible(library))"
        context.errors.raw("This deletes \(what)\(whose). Go on? [y/N] ")
        context.errors.flush()
        let answer = readLine()?.lowercased() ?? ""
        return answer == "y" || answer == "yes"
    }
}

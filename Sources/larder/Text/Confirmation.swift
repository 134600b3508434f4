// Asking a person whether that is meant.

import Glibc
import LarderFormat

enum Confirmation {
    static let option = OptionSpec("yes", short: "y", "do not ask; needed where nobody can be asked")

    /// Of commands that ask nothing, so that a script may say it of all.
    static let needless = OptionSpec("yes", short: "y", hidden: true, "")

    static func mayAsk() -> Bool { isatty(STDIN_FILENO) == 1 }

    /// Asks unless --yes was given.
    ///
    /// - Parameters:
    ///   - command: its name, for messages.
    ///   - what: a sentence with its full stop.
    /// - Throws: where the answer is no, and where nobody can be asked.
    static func expect(_ what: String, _ command: String, _ context: Context) throws(Failure) {
        if context.options.has("yes") { return }
        try expectSomebody(command, context)
        context.output.flush()
        context.errors.raw(DisplayText.visibleLines(what) + " Go on? [y/N] ")
        context.errors.flush()
        let answer = readLine()?.lowercased() ?? ""
        guard answer == "y" || answer == "yes" else { throw Failure(command, "nothing was changed") }
    }

    /// Before anything costly: --yes, or somebody who can be asked.
    ///
    /// - Parameter advice: what to say instead.
    static func expectSomebody(
        _ command: String, _ context: Context, advice: String = "say --yes, or --dry-run to see what it would do"
    ) throws(Failure) {
        guard context.options.has("yes") || mayAsk() else {
            throw Failure(command, "nobody can be asked whether that is meant", advice)
        }
    }
}

import Glibc
import LarderClient
import LarderFormat
import LarderHost

@main
struct Main {
    static func main() {
        let words = Array(CommandLine.arguments.dropFirst())
        if words.first == "guard" { exit(runGuard(Array(words.dropFirst()))) }
        exit(run(words))
    }

    /// - Returns: the exit code: 0, 1 for what failed or was refused, 2 for a wrong command line.
    static func run(_ words: [String]) -> Int32 {
        // A parent may have had it ignored; a pipe that nobody reads ends the command.
        signal(SIGPIPE, SIG_DFL)
        setlocale(LC_TIME, "C")
        do {
            return try dispatch(words)
        } catch {
            let failure: Failure =
                switch error {
                case let failure as Failure: failure
                case let error as ClientError: Failure("", error)
                default: Failure("", "\(error)")
                }
            if !failure.text.isEmpty { say(failure, words) }
            return failure.exitCode
        }
    }

    private static func say(_ failure: Failure, _ words: [String]) {
        let errors = Output(descriptor: STDERR_FILENO, mayColour: !words.contains("--no-color"))
        errors.line("larder: " + errors.styled(DisplayText.visibleLines(failure.text), .red))
        errors.flush()
    }

    private static func dispatch(_ words: [String]) throws -> Int32 {
        let (before, name, behind) = CommandLineWords.split(words)
        guard let name else {
            let options = try Options(before, OptionSpec.global + [OptionSpec("version", short: "V", "")], command: "")
            let context = Context(options)
            defer { context.output.flush() }
            if options.has("version") {
                Help.printVersion(context)
                return 0
            }
            if options.has("help") {
                Help.printOverview(context.output)
                return 0
            }
            Help.printOverview(context.errors)
            context.errors.flush()
            return 2
        }
        guard let command = Commands.named(name) else { throw Commands.unknown(name) }
        let options = try Options(before + command.arranged(behind), command.options + OptionSpec.global, command: name)
        let context = Context(options)
        defer {
            context.output.flush()
            context.close()
        }
        if options.has("help") {
            Help.print(command, context.output)
            return 0
        }
        do { return try command.run(context) } catch {
            // What was printed before the failure stands before its message.
            context.output.flush()
            throw error
        }
    }
}

/// Cuts a command line into its command and what stands around it.
enum CommandLineWords {
    static func split(_ words: [String]) -> (before: [String], command: String?, behind: [String]) {
        var at = 0
        while at < words.count {
            let word = words[at]
            guard word.hasPrefix("-"), word != "-", word != "--" else { break }
            let takesNext = word.count > 3 && ("--library".hasPrefix(word) || "--socket".hasPrefix(word))
            at += takesNext ? 2 : 1
        }
        if at < words.count, words[at] == "--" { at += 1 }
        guard at < words.count else { return (words, nil, []) }
        return (Array(words[..<at].filter { $0 != "--" }), words[at], Array(words[(at + 1)...]))
    }
}

// What a command is, and which there are.

/// A word behind `larder`, and what it does.
protocol Command: Sendable {
    static var name: String { get }
    /// One line for the list of commands, without a full stop.
    static var purpose: String { get }
    /// What stands behind `larder `, one line each.
    static var synopsis: [String] { get }
    /// Its own options, without the global ones.
    static var options: [OptionSpec] { get }
    /// More for `--help`, in paragraphs; or "".
    static var details: String { get }
    /// Command lines with what they do, at least two.
    static var examples: [(line: String, does: String)] { get }

    /// The words behind the command's name as options and arguments are read from them.
    static func arranged(_ words: [String]) -> [String]

    /// - Returns: the exit code.
    static func run(_ context: Context) throws -> Int32
}

extension Command {
    static func arranged(_ words: [String]) -> [String] { words }
    static var options: [OptionSpec] { [] }
    static var details: String { "" }

    /// An argument that a command needs is missing, or there are too many.
    static func misused(_ why: String) -> Failure { .usage(name, why, "see larder \(name) --help") }

    static func expectNoArguments(_ context: Context) throws(Failure) {
        if let first = context.options.arguments.first { throw misused("takes no argument such as “\(first)”") }
    }

    /// The one kind that may be named, or nil.
    static func optionalKind(_ context: Context) throws(Failure) -> String? {
        if context.options.arguments.count > 1 { throw misused("takes one kind at most") }
        return context.options.arguments.first
    }
}

/// All commands in the order of the help.
enum Commands {
    static let all: [any Command.Type] = [
        ServeCommand.self, StatusCommand.self, ImportCommand.self,
        ListCommand.self, SearchCommand.self, GetCommand.self, ShowCommand.self, CountCommand.self,
        SaveCommand.self, EditCommand.self, TagCommand.self, RateCommand.self, WatchedCommand.self, NoteCommand.self,
        DeleteCommand.self, ClearCommand.self, LogCommand.self, UndeleteCommand.self, UndoCommand.self,
        DuplicatesCommand.self, JoinCommand.self, KindsCommand.self, DumpCommand.self, LoadCommand.self,
        CompactCommand.self, PurgeCommand.self, BackupCommand.self, RestoreCommand.self, VerifyCommand.self,
        InspectCommand.self, SalvageCommand.self,
        UpgradeCommand.self, DoctorCommand.self, EventsCommand.self, PluginCommand.self, DemoCommand.self,
        HelpCommand.self,
    ]

    static func named(_ name: String) -> (any Command.Type)? { all.first { $0.name == name } }

    static func unknown(_ name: String) -> Failure {
        let near = Suggestion.nearest(to: name, in: all.map { $0.name })
        return .usage(
            "unknown command “\(name)”", near.map { "did you mean \($0)?" } ?? "larder has none such",
            "larder help lists the commands")
    }
}

/// `larder help`.
enum HelpCommand: Command {
    static let name = "help"
    static let purpose = "say what the commands are for, and how one is used"
    static let synopsis = ["help [COMMAND]"]
    static let examples = [
        (line: "larder help", does: "lists the commands"),
        (line: "larder help import", does: "says all about import; larder import --help does the same"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        guard let name = context.options.arguments.first else {
            Help.printOverview(context.output)
            return 0
        }
        guard let command = Commands.named(name) else { throw Commands.unknown(name) }
        Help.print(command, context.output)
        return 0
    }
}

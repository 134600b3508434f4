// `larder serve`: the host itself.

enum ServeCommand: Command {
    static let name = "serve"
    static let purpose = "run the host of a library until it is stopped"
    static let synopsis = ["serve [--verbose]"]
    static let options = [
        OptionSpec("verbose", short: "v", "say more of what happens, on standard error"),
        OptionSpec("transient", hidden: true, "stop when idle; how commands start a host"),
        OptionSpec("idle", "MS", hidden: true, "how long a transient host stays without a connection"),
        OptionSpec("segment", "KIB", hidden: true, "a new segment begins past this; for tests"),
    ]
    static let details = """
        The host owns the library, takes what importers send, streams its log to plugins and starts those that are
        enabled. It stays in the foreground: SIGTERM or Ctrl-C stops it in order, and nothing acknowledged is lost
        however it ends. A line on standard error says when it is ready.
        A host that a command started in the background gives way to this one.
        """
    static let examples = [
        (line: "larder serve", does: "serves the default library"),
        (
            line: "larder --library /srv/films serve --verbose",
            does: "serves the library in /srv/films, making it if there is none, and tells what happens"
        ),
    ]

    static func run(_ context: Context) throws -> Int32 {
        try expectNoArguments(context)
        let place = try context.place()
        let isTransient = context.options.has("transient")
        // What stays in the way is told at once; Host waits only for what goes.
        if !isTransient { _ = try HostEntry.askToGo(place) }
        let entry = HostEntry(
            place: place, isTransient: isTransient,
            idleMilliseconds: try context.options.number("idle", in: 0...3_600_000, command: name),
            segmentKibibytes: try context.options.number("segment", in: 4...65_536, command: name),
            isVerbose: context.options.has("verbose"))
        return try entry.run()
    }
}

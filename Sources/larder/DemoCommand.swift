// `larder demo`: how it is called. It becomes a command with its body, which conforms it to `Command` and puts it into
// the table.

enum DemoCommand {
    static let name = "demo"
    static let purpose = "show a host, three plugins and a sample of real films at work, with a crash in the middle"
    static let synopsis = ["demo [--keep] [--directory DIR]"]
    static let options = [
        OptionSpec("keep", "leave the demo's library and its files where they are"),
        OptionSpec("directory", "DIR", "where to make the demo's library; a temporary directory unless said"),
    ]
    static let details = """
        Works in a directory of its own and touches no other library. Exits with 0 only if every number that it shows is
        right.
        """
    static let examples = [
        (line: "larder demo", does: "runs the demo and removes what it made"),
        (line: "larder demo --keep", does: "leaves the library, so that list, get and events can look at it"),
    ]
}

// `larder demo`: everything at once, on real films, with a crash in the middle.

import Glibc
import LarderClient
import LarderFormat
import LarderWire

enum DemoCommand: Command {
    static let name = "demo"
    static let purpose = "show a host, three plugins and a sample of real films at work, with a crash in the middle"
    static let synopsis = ["demo [--keep] [--directory DIR] [--sample FILE] [--plugins DIR]"]
    static let options = [
        OptionSpec("keep", "leave the demo's library and its files where they are"),
        OptionSpec("directory", "DIR", "where to make the demo's library; a temporary directory unless said"),
        OptionSpec("sample", "FILE", "films as JSON lines; those that come with Larder unless said"),
        OptionSpec("plugins", "DIR", "where the plugins are; Plugins/ of the sources unless said"),
    ]
    static let details = """
        Works in a directory of its own and touches no other library. Exits with 0 only if every number that it shows is
        right.
        """
    static let examples = [
        (line: "larder demo", does: "runs the demo and removes what it made"),
        (line: "larder demo --keep", does: "leaves the library, so that list, get and events can look at it"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        try expectNoArguments(context)
        let stage = try DemoStage(context)
        defer { stage.tearDown() }
        let show = DemoShow(stage, context)
        try show.run()
        return show.summary() ? 0 : 1
    }
}

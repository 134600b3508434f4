// `larder events`: the log as it goes on.

import LarderWire

enum EventsCommand: Command {
    static let name = "events"
    static let purpose = "show what was saved and deleted, and follow what happens"
    static let synopsis = [
        "events [--follow] [--from CURSOR|start|now | --snapshot] [--kind KIND]… [--type TYPES]"
    ]
    static let options = [
        OptionSpec("follow", short: "f", "go on with what happens until Ctrl-C"),
        OptionSpec(
            "from", "WHERE",
            "behind a CURSOR, from the start of the log, or from now on\n(start unless said; with --follow now)"),
        OptionSpec("snapshot", "first every record as it is now, then what happens"),
        OptionSpec("kind", "KIND", "only of this kind; may be given several times"),
        OptionSpec("type", "TYPES", "downloaded (saved, new or changed), deleted, or both with a comma between them"),
    ]
    static let details = """
        Each event has its cursor; --from CURSOR goes on behind it without a gap or a repeat. The last line has the
        cursor of where it ended. Without --follow it ends with what is there when it starts. With --follow it connects
        again, from its cursor, if the host is restarted.
        """
    static let examples = [
        (line: "larder events --follow", does: "tells what is saved and deleted from now on"),
        (
            line: "larder events --follow --json | jq -r 'select(.created).record.title'",
            does: "prints the titles that come in"
        ),
        (line: "larder events --from 9b1f00c2a4d3e5f6-1234 --json", does: "prints what happened since an earlier run"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        try expectNoArguments(context)
        let options = context.options
        let types = try self.types(options)
        let from = try self.from(options)
        let session = try context.session()
        let kinds = try session.kinds()
        let numbers = try options.all("kind").map { try kinds.named($0).number }
        let welcome = session.client.welcome
        let start: Subscribe.Start =
            switch from {
            case .cursor(let cursor): .after(cursor)
            case .start: .after(Cursor(epoch: welcome.epoch, seq: max(welcome.floor, 1) - 1))
            case .now: .now
            case .snapshot: .snapshot
            }
        Interrupt.hold()
        let following = Following(
            session, EventPrinter(context, kinds, epoch: welcome.epoch), types, numbers,
            isFollowing: options.has("follow"))
        return try following.run(start)
    }

    private enum From {
        case start, now, snapshot
        case cursor(Cursor)
    }

    private static func from(_ options: Options) throws(Failure) -> From {
        if options.has("snapshot") {
            if options.has("from") { throw misused("takes --from or --snapshot, not both") }
            return .snapshot
        }
        switch options.value("from") {
        case nil: return options.has("follow") ? .now : .start
        case "start"?: return .start
        case "now"?: return .now
        case let text?:
            guard let cursor = Cursor(text) else {
                throw misused("--from takes a cursor such as 9b1f00c2a4d3e5f6-1234, start or now, not “\(text)”")
            }
            return .cursor(cursor)
        }
    }

    private static func types(_ options: Options) throws(Failure) -> EntryTypes {
        guard let text = options.value("type") else { return [.downloaded, .deleted] }
        var types: EntryTypes = []
        for word in text.split(separator: ",", omittingEmptySubsequences: false) {
            switch word {
            case "downloaded": types.insert(.downloaded)
            case "deleted": types.insert(.deleted)
            default: throw misused("--type takes downloaded and deleted, not “\(word)”")
            }
        }
        return types
    }
}

// `larder serve`: the host itself.

import LarderFormat
import LarderHost

enum ServeCommand: Command {
    static let name = "serve"
    static let purpose = "run the host of a library until it is stopped"
    static let synopsis = ["serve [--verbose] [--keep-history DAYS|all|none] [--no-compact]"]
    static let options = [
        OptionSpec("verbose", short: "v", "say more of what happens, on standard error"),
        HistoryLimit.option,
        OptionSpec(
            "keep-history-bytes", "SIZE", "of the history, no more than the newest so many bytes of the log (4 GiB)"),
        OptionSpec("compact-rate", "MIB", "compact at so many MiB a second at most (32); 0: as fast as it goes"),
        OptionSpec(
            "compress-after", "DAYS", "compress what was written longer ago with zstd, as larder compact --compress"),
        OptionSpec("no-compact", "give back no room unasked; larder compact does, when it is asked to"),
        OptionSpec("transient", hidden: true, "stop when idle; how commands start a host"),
        OptionSpec("idle", "MS", hidden: true, "how long a transient host stays without a connection"),
        OptionSpec("slow-opening", "MS", hidden: true, "take so long to read the log, at least; for tests"),
        OptionSpec("segment", "KIB", hidden: true, "a new segment begins past this; for tests"),
    ]
    static let details = """
        The host owns the library, takes what importers send, streams its log to plugins and starts those that are
        enabled. It stays in the foreground: SIGTERM or Ctrl-C stops it in order, and nothing acknowledged is lost
        however it ends. A line on standard error says when it is ready.
        When much of the log is of no use any more it gives the room back: what was changed or deleted longer ago than
        --keep-history says (90 days) is no longer kept. See larder compact --help.
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
            slowOpeningMilliseconds: try context.options.number("slow-opening", in: 0...600_000, command: name) ?? 0,
            isVerbose: context.options.has("verbose"), compaction: try compaction(context))
        return try entry.run()
    }

    private static func compaction(_ context: Context) throws(Failure) -> CompactionOptions {
        var options = CompactionOptions()
        options.isAutomatic = !context.options.has("no-compact")
        if let limit = try HistoryLimit(context.options, command: name) { options.historyMilliseconds = limit.duration }
        if let text = context.options.value("keep-history-bytes") {
            guard let byteCount = Amounts.bytes(text) else {
                throw .usage(
                    "--keep-history-bytes \(text)", "expected a number of bytes such as 512MiB or 4GiB",
                    "see larder \(name) --help")
            }
            options.historyByteCountMax = byteCount
        }
        if let rate = try context.options.number("compact-rate", in: 0...1_000_000, command: name) {
            options.bytesPerSecond = rate << 20
        }
        if let days = try context.options.number("compress-after", in: 0...1_000_000, command: name) {
            options.compressedAfterMilliseconds = Int64(days) * 86_400_000
            if !Zstandard.isInstalled {
                HostEntry.say(
                    "zstd is not installed (libzstd.so.1; Debian: apt install libzstd1): nothing is compressed")
            }
        }
        return options
    }
}

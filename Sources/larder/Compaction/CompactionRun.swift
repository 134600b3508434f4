// A compaction that a command asks for: what it waits for, how far it is, what it came to.

import Glibc
import LarderClient
import LarderFormat
import LarderWire

struct CompactionRun {
    let context: Context
    let session: Session

    /// What it came to, and how long it took.
    struct Result {
        var compacted: Compacted
        var milliseconds: Int64
    }

    /// Asks until the host has the hands free for it.
    func perform(_ message: Compact, _ what: String) throws -> Result {
        let begun = Clock.monotonic
        let bar = ProgressBar(context.errors)
        defer { bar.remove() }
        var isNoted = false
        while true {
            do throws(ClientError) {
                let compacted = try session.client.compact(message) {
                    bar.show(done: $0.done, total: $0.total, what: "segments")
                }
                return Result(compacted: compacted, milliseconds: Clock.monotonic - begun)
            } catch {
                guard error.number == .busy else { throw Failure(what, error) }
                if !isNoted {
                    bar.remove()
                    context.note("a clear or a compaction is running; waiting for its end …")
                }
                isNoted = true
                usleep(500_000)
            }
        }
    }

    func print(_ result: Result) {
        let compacted = result.compacted
        if context.isJSON {
            context.output.json { CompactionRun.write(result, into: &$0) }
            return
        }
        context.output.line(CompactionRun.text(compacted))
        if compacted.removedAsideCount > 0 {
            let count = Formats.count(compacted.removedAsideCount, "file")
            context.note("\(count) put aside with damage held what was purged, and is gone")
        }
        if compacted.endedSubscriptionCount > 0 {
            let count = Formats.count(compacted.endedSubscriptionCount, "subscription")
            context.note("\(count) lagged behind and had to end; their programs start over with a snapshot")
        }
    }

    /// `412 MiB → 97 MiB, 1,204,332 entries gone, history kept since 2026-09-01`.
    static func text(_ compacted: Compacted) -> String {
        let history =
            switch compacted.historySince {
            case .max: "no history kept"
            case .min: "all history kept"
            case let since: "history kept since \(Formats.localTime(milliseconds: since).prefix(10))"
            }
        return "\(Formats.bytes(compacted.byteCountBefore)) → \(Formats.bytes(compacted.byteCountAfter)), "
            + "\(Formats.count(compacted.droppedCount, "entry", "entries")) gone, \(history)"
    }

    static func write(_ result: Result, into json: inout JSONWriter) {
        let compacted = result.compacted
        json.member("bytes_before", compacted.byteCountBefore)
        json.member("bytes_after", compacted.byteCountAfter)
        json.member("segments", compacted.segmentCount)
        json.member("rewritten", compacted.rewrittenCount)
        json.member("dropped", compacted.droppedCount)
        json.member("aside_removed", compacted.removedAsideCount)
        json.member("subscriptions_ended", compacted.endedSubscriptionCount)
        json.member("floor", compacted.floor)
        let history =
            switch compacted.historySince {
            case .max: "none"
            case .min: "all"
            case let since: TimeText.text(milliseconds: since)
            }
        json.member("history_since", history)
        json.member("milliseconds", result.milliseconds)
    }
}

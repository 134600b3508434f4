// How commands that work on a library's files say what they found, to people and as JSON.

import LarderClient
import LarderFormat
import LarderStore

enum LogText {
    /// `segment 1, offset 8192, 4,096 bytes: no block begins here; lost seqs 11 to 20`
    static func line(_ damage: LogDamage) -> String {
        var text = "segment \(damage.segment), offset \(damage.offset)"
        if damage.byteCount > 0 { text += ", \(Formats.count(damage.byteCount)) bytes" }
        text += ": " + DisplayText.visible(damage.reason)
        if damage.lostSeqCount == 1 {
            text += "; lost seq \(damage.through)"
        } else if damage.lostSeqCount > 0 {
            text += "; lost seqs \(damage.after + 1) to \(damage.through)"
        }
        if damage.cause == .badEntry {
            text += "; served of this block: \(Formats.count(damage.keptEntryCount, "entry", "entries"))"
        }
        return text
    }

    static func line(_ tail: LogTail) -> String {
        let place = "segment \(tail.segment), offset \(tail.offset)"
        return switch tail.cause {
        case .torn:
            "\(place): \(Formats.count(tail.byteCount)) bytes of a write that was not finished; no damage, and not part "
                + "of the log"
        case .unfinishedRun:
            "\(place): \(Formats.count(tail.byteCount)) bytes of a batch that was not finished; no damage, and not part "
                + "of the log"
        case .room: "\(place): \(Formats.count(tail.byteCount)) zeros, room for what comes"
        }
    }

    static func write(_ damage: LogDamage, into json: inout JSONWriter) {
        json.member("damage", damage.cause.rawValue)
        json.member("segment", damage.segment)
        json.member("offset", damage.offset)
        json.member("bytes", damage.byteCount)
        json.member("reason", damage.reason)
        if damage.lostSeqCount > 0 {
            json.member("lost_from", damage.after + 1)
            json.member("lost_to", damage.through)
        }
        if damage.cause == .badEntry { json.member("served_entries", damage.keptEntryCount) }
    }

    static func write(_ tail: LogTail, into json: inout JSONWriter) {
        json.member("tail", tail.cause.rawValue)
        json.member("segment", tail.segment)
        json.member("offset", tail.offset)
        json.member("bytes", tail.byteCount)
    }

    static func show(_ damages: [LogDamage], count: Int, _ tail: LogTail?, _ context: Context) {
        let output = context.output
        if context.isJSON {
            for damage in damages { output.json { write(damage, into: &$0) } }
            if let tail { output.json { write(tail, into: &$0) } }
            return
        }
        for damage in damages { output.line(output.styled("damage", .red) + "  " + line(damage)) }
        if count > damages.count {
            output.line("        and \(Formats.count(count - damages.count)) more places, which are not listed")
        }
        if let tail { output.line(output.styled("end", .dim) + "     " + line(tail)) }
    }
}

/// Runs calls of the store; what they throw becomes a failure of `what`, with this exit code.
func onFiles<Result>(_ what: String, exitCode: Int32 = 2, _ body: () throws -> Result) throws -> Result {
    do { return try body() } catch let error as StoreError {
        throw Failure(what, DisplayText.visible("\(error)"), advice(error), exitCode: exitCode)
    }
}

private func advice(_ error: StoreError) -> String {
    switch error {
    case .newerFormat: "use a newer larder"
    case .needsZstd: "apt install libzstd1, or the zstd package of your system"
    case .notALibrary, .damaged: "larder salvage TO brings what can be read into a new library"
    case .unsound:
        "larder verify names them all; larder salvage TO makes a sound library of the rest; backup --damaged takes it as "
            + "it is"
    default: ""
    }
}

// `larder verify`.

import LarderFormat
import LarderStore

enum VerifyCommand: Command {
    static let name = "verify"
    static let purpose = "check every byte of the library's log, changing nothing"
    static let synopsis = ["verify [--verbose]"]
    static let options = [OptionSpec("verbose", short: "v", "show a line for each segment")]
    static let details = """
        Reads all blocks and entries: check sums, places, order, every record against its kind, and what entries say of
        one another. Names each damaged place, the seqs that are lost there and what of it is still served. A write that
        a crash cut off, or that a running host has under way, is the log's end and no damage.
        Needs no host and disturbs none.
        Exit codes: 0 sound, 1 damaged, 2 no library, or it can't be read.
        """
    static let examples = [
        (line: "larder verify", does: "says whether the library is sound"),
        (line: "larder verify --json | jq -c 'select(.damage)'", does: "prints the damaged places only"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        try expectNoArguments(context)
        let place = try context.place()
        let report = try onFiles("checking \(place.library)") {
            try LogSource(library: place.library).verify()
        }
        show(report, context)
        return report.isSound ? 0 : 1
    }

    static func show(_ report: VerifyReport, _ context: Context) {
        if context.options.has("verbose") { for line in report.segments { show(line, context) } }
        LogText.show(report.damages, count: report.damageCount, report.tail, context)
        let output = context.output
        if context.isJSON { return output.json { write(report, into: &$0) } }
        var counts = [
            Formats.count(report.segments.count, "segment"), Formats.count(report.blockCount, "block"),
            Formats.count(report.entryCount, "entry", "entries"), Formats.count(report.recordCount, "record"),
            Formats.bytes(report.byteCount),
        ]
        if report.compressedBlockCount > 0 {
            counts[1] += " (\(Formats.count(report.compressedBlockCount)) compressed)"
        }
        let summary = counts.joined(separator: ", ")
        if report.isSound { return output.line(output.styled("sound", .green) + "   " + summary) }
        output.line(
            output.styled("damaged", .red) + " \(Formats.count(report.damageCount, "place")), "
                + "\(Formats.count(Int(clamping: report.lostSeqCount), "seq")) lost; the rest is served: " + summary)
    }

    private static func show(_ line: VerifyReport.SegmentLine, _ context: Context) {
        if context.isJSON {
            return context.output.json {
                $0.member("segment", line.number)
                $0.member("bytes", line.byteCount)
                $0.member("blocks", line.blockCount)
                $0.member("entries", line.entryCount)
                $0.member("first_seq", line.firstSeq)
                $0.member("last_seq", line.lastSeq)
                $0.member("damages", line.damageCount)
            }
        }
        var text = "segment \(line.number)  \(Formats.bytes(line.byteCount)), "
        text += Formats.count(line.blockCount, "block") + ", " + Formats.count(line.entryCount, "entry", "entries")
        if line.firstSeq > 0 {
            text += ", seqs \(line.firstSeq) to \(line.lastSeq), "
            text += Formats.localTime(milliseconds: line.firstTime) + " to "
            text += Formats.localTime(milliseconds: line.lastTime)
        }
        if line.damageCount > 0 { text += ", " + Formats.count(line.damageCount, "damaged place") }
        context.output.line(text)
    }

    static func write(_ report: VerifyReport, into json: inout JSONWriter) {
        json.name("done")
        json.beginObject()
        json.member("sound", report.isSound)
        json.member("damages", report.damageCount)
        json.member("lost_seqs", report.lostSeqCount)
        json.member("segments", report.segments.count)
        json.member("blocks", report.blockCount)
        json.member("entries", report.entryCount)
        json.member("records", report.recordCount)
        json.member("kinds", report.kindCount)
        json.member("origins", report.originCount)
        json.member("bytes", report.byteCount)
        json.member("last_seq", report.lastSeq)
        json.member("unused_seqs", report.unusedSeqCount)
        json.member("unknown_types", report.unknownTypeCount)
        json.member("compressed_blocks", report.compressedBlockCount)
        json.endObject()
    }
}

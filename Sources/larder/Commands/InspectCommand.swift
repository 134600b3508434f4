// `larder inspect`.

import LarderFormat
import LarderStore

enum InspectCommand: Command {
    static let name = "inspect"
    static let purpose = "show segments, blocks and entries of the log as they lie on the disk"
    static let synopsis = ["inspect", "inspect SEGMENT[:OFFSET]", "inspect --seq N"]
    static let options = [OptionSpec("seq", "N", "the entry with this seq, and the block that holds it")]
    static let details = """
        In the words of Protocol/FORMAT.md: without an argument the segments; with SEGMENT its blocks; with an OFFSET the
        block that holds it and its entries. Damaged places are said. Needs no host, disturbs none, changes nothing.
        Exit codes: 0 shown, 1 no such place or seq, 2 it can't be read.
        """
    static let examples = [
        (line: "larder inspect 1", does: "lists the blocks of the first segment"),
        (line: "larder inspect 1:8192 --json", does: "shows the block there with its entries"),
        (line: "larder inspect --seq 7", does: "shows an entry where it lies"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        let words = context.options.arguments
        guard words.count <= 1 else { throw misused("takes one SEGMENT[:OFFSET] at most") }
        let seq = try context.options.number("seq", in: 1...Int.max, command: name)
        if seq != nil, !words.isEmpty { throw misused("takes a place or --seq, not both") }
        let place = try context.place()
        return try onFiles("reading \(place.library)") {
            let (source, loss) = try LogSource.damaged(library: place.library)
            if !loss.isEmpty { context.warn(DisplayText.visible(loss)) }
            if let seq { return try show(seq: UInt64(seq), source, context) }
            guard let word = words.first else { return try showSegments(source, context) }
            let parts = word.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count <= 2, let number = UInt32(parts[0]), parts.count == 1 || Int(parts[1]) ?? -1 >= 0 else {
                throw misused("“\(DisplayText.visible(word))” is no place: SEGMENT or SEGMENT:OFFSET, in decimal")
            }
            guard source.segmentNumbers.contains(number) else {
                throw Failure("segment \(number)", "the log has none such", "larder inspect lists the segments")
            }
            return try show(number, parts.count == 2 ? Int(parts[1]) : nil, source, context)
        }
    }

    private static func showSegments(_ source: LogSource, _ context: Context) throws -> Int32 {
        for number in source.segmentNumbers {
            var counts = (blocks: 0, entries: 0, bytes: 0, damaged: 0)
            var firstSeq: UInt64?
            try source.inspect(segment: number, withEntries: false) { stretch in
                counts.bytes += stretch.byteCount
                counts.blocks += stretch.header == nil ? 0 : 1
                counts.entries += stretch.entryCount
                counts.damaged += stretch.header == nil || !stretch.spoiled.isEmpty ? 1 : 0
                firstSeq = firstSeq ?? stretch.header?.commits.first?.firstSeq
                return true
            }
            if context.isJSON {
                context.output.json {
                    $0.member("segment", number)
                    $0.member("bytes", counts.bytes)
                    $0.member("blocks", counts.blocks)
                    $0.member("entries", counts.entries)
                    if let firstSeq { $0.member("first_seq", firstSeq) }
                    $0.member("unsound_places", counts.damaged)
                }
                continue
            }
            var text = "segment \(number)  \(Formats.count(counts.bytes)) bytes, "
            text += "\(Formats.count(counts.blocks, "block")), \(Formats.count(counts.entries, "entry", "entries"))"
            if let firstSeq { text += ", from seq \(firstSeq)" }
            if counts.damaged > 0 { text += ", \(Formats.count(counts.damaged, "place")) that does not check" }
            context.output.line(text)
        }
        return 0
    }

    private static func show(
        _ number: UInt32, _ offset: Int?, _ source: LogSource, _ context: Context
    ) throws -> Int32 {
        let entryText = offset == nil ? nil : EntryText(try source.kinds())
        var isFound = false
        try source.inspect(segment: number, holding: offset, withEntries: offset != nil) { stretch in
            isFound = true
            show(stretch, entryText, context)
            return offset == nil
        }
        if isFound || offset == nil { return 0 }
        throw Failure("segment \(number)", "it ends before offset \(offset ?? 0)", "larder inspect \(number) lists it")
    }

    private static func show(seq: UInt64, _ source: LogSource, _ context: Context) throws -> Int32 {
        guard let (block, entry) = try source.inspect(seq: seq) else {
            throw Failure("seq \(seq)", "no entry that checks has it", "larder verify names what is lost")
        }
        let text = EntryText(try source.kinds())
        if context.isJSON {
            context.output.json {
                $0.member("segment", block.segment)
                $0.member("block", block.offset)
                text.write(entry, into: &$0)
            }
            return 0
        }
        context.output.line("segment \(block.segment), block \(block.offset), " + text.line(entry))
        context.output.line("time \(TimeText.text(milliseconds: entry.time)), commit of seq \(entry.commitFirstSeq)")
        context.output.line("body " + Hex.text(entry.payload))
        return 0
    }

    private static func show(_ stretch: InspectedStretch, _ entryText: EntryText?, _ context: Context) {
        if context.isJSON { return context.output.json { BlockText.write(stretch, entryText, into: &$0) } }
        for line in BlockText.lines(stretch, entryText) { context.output.line(line) }
    }
}

// A block of the log in the words of FORMAT.md section 7.

import LarderFormat
import LarderStore

enum BlockText {
    private static func flags(_ header: BlockHeader) -> [String] {
        [
            (BlockHeader.continues, "continues"), (BlockHeader.continued, "continued"),
            (BlockHeader.compressed, "compressed"),
        ].filter { header.flags & $0.0 != 0 }.map(\.1)
    }

    static func lines(_ stretch: InspectedStretch, _ entryText: EntryText?) -> [String] {
        guard let header = stretch.header else {
            return ["offset \(stretch.offset)  \(Formats.count(stretch.byteCount)) bytes, no block: \(stretch.reason)"]
        }
        var text = "offset \(stretch.offset)  \(Formats.count(stretch.byteCount)) bytes, "
        text += "\(Formats.count(stretch.entryCount, "entry", "entries"))"
        if let commit = header.commits.first {
            text += " from seq \(commit.firstSeq), \(TimeText.text(milliseconds: commit.time))"
        }
        text += ", synced to \(header.synced.segment):\(header.synced.offset)"
        for flag in flags(header) { text += ", " + flag }
        var lines = [text]
        for damage in stretch.spoiled { lines.append("  damage  " + LogText.line(damage)) }
        guard let entryText else { return lines }
        lines.append(
            "  epoch \(hexadecimal(header.epoch)), payload \(Formats.count(Int(header.storedByteCount))) bytes")
        for commit in header.commits {
            lines.append(
                "  commit  first seq \(commit.firstSeq), \(TimeText.text(milliseconds: commit.time)), "
                    + "\(Formats.count(Int(commit.entryCount), "entry", "entries")), "
                    + "\(Formats.count(Int(commit.plainByteCount))) bytes")
        }
        for entry in stretch.entries { lines.append("  " + entryText.line(entry)) }
        return lines
    }

    static func write(_ stretch: InspectedStretch, _ entryText: EntryText?, into json: inout JSONWriter) {
        json.member("segment", stretch.segment)
        json.member("offset", stretch.offset)
        json.member("bytes", stretch.byteCount)
        guard let header = stretch.header else { return json.member("no_block", stretch.reason) }
        json.name("flags")
        json.beginArray()
        for flag in flags(header) { json.string(flag) }
        json.endArray()
        json.member("epoch", hexadecimal(header.epoch))
        json.member("stored_bytes", header.storedByteCount)
        json.member("plain_bytes", header.plainByteCount)
        json.member("entry_count", header.entryCount)
        json.member("synced_segment", header.synced.segment)
        json.member("synced_offset", header.synced.offset)
        json.name("commits")
        json.beginArray()
        for commit in header.commits {
            json.beginObject()
            json.member("first_seq", commit.firstSeq)
            json.member("time", TimeText.text(milliseconds: commit.time))
            json.member("entries", commit.entryCount)
            json.member("bytes", commit.plainByteCount)
            json.endObject()
        }
        json.endArray()
        json.name("damages")
        json.beginArray()
        for damage in stretch.spoiled {
            json.beginObject()
            LogText.write(damage, into: &json)
            json.endObject()
        }
        json.endArray()
        guard let entryText else { return }
        json.name("entries")
        json.beginArray()
        for entry in stretch.entries {
            json.beginObject()
            entryText.write(entry, into: &json)
            json.endObject()
        }
        json.endArray()
    }
}

// The lines of a dump; see Protocol/design/dump-and-load.md.

import LarderFormat
import LarderWire

/// How the lines are written.
enum DumpForm {
    /// Of this form. A reader refuses higher ones.
    static let version = 1
    /// The longest line: a record whose every byte is written as six.
    static let lineByteCountMax = 8 * recordByteCountMax
    /// What the first and the last line begin with.
    static let headName = "larder_dump"
    static let endName = "larder_dump_end"

    /// `{"larder_dump":1,"epoch":"…","kinds":[…]}`
    ///
    /// - Parameter epoch: of the library; nil where nothing of its own is told.
    static func writeHead(epoch: UInt64?, _ kinds: [Kind], into json: inout JSONWriter) {
        json.member(headName, version)
        if let epoch { json.member("epoch", epochText(epoch)) }
        json.name("kinds")
        json.beginArray()
        for kind in kinds {
            json.beginObject()
            KindJSON.write(kind, isNumbered: epoch != nil, into: &json)
            json.endObject()
        }
        json.endArray()
    }

    /// `{"larder_dump_end":1,"records":17472}`
    static func writeEnd(recordCount: Int, into json: inout JSONWriter) {
        json.member(endName, version)
        json.member("records", recordCount)
    }

    /// `{"kind":…,"seq":…,"first_seq":…,"saved":…,"changed":…,"origin":…,"record":{…}}`
    ///
    /// - Parameters:
    ///   - origin: the name of the program that made the current entry; nil: not known.
    ///   - isPortable: without what is the library's own: seq, first seq and the time of the last change.
    static func write(
        _ record: StoredRecordView, _ kind: Kind?, origin: String?, isPortable: Bool, into json: inout JSONWriter
    ) {
        let header = record.header
        json.name("kind")
        if let kind { json.string(kind.name) } else { json.integer(header.kind) }
        if !isPortable {
            json.member("seq", header.seq)
            json.member("first_seq", header.firstSeq)
        }
        time("saved", header.savedAt, into: &json)
        if !isPortable { time("changed", header.changedAt, into: &json) }
        if let origin { json.member("origin", origin) }
        if let kind, let decoded = try? Record(decoding: record.record, kind) {
            json.name("record")
            decoded.writeJSON(kind, into: &json)
        } else {
            // What the kind as it is declared here can't say is kept as it is.
            json.member("bytes", Base64.text(Array(record.record)))
        }
    }

    private static func time(_ name: String, _ milliseconds: Int64, into json: inout JSONWriter) {
        json.name(name)
        if timeRange.contains(milliseconds) {
            json.string(TimeText.text(milliseconds: milliseconds))
        } else {
            json.integer(milliseconds)
        }
    }

    static func epochText(_ epoch: UInt64) -> String {
        let digits = String(epoch, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}

// What became of an import, row by row and in sum.

import LarderFormat
import LarderWire

/// A row that an import did not take.
struct Refusal: Equatable {
    /// "" for standard input.
    var file = ""
    /// Where in the file: a line's number, or what an importer calls it.
    var at = ""
    /// From 1; 0 where it is not known.
    var line = 0
    /// Name of the field, or "".
    var field = ""
    /// A word for programs, such as `bad-id`.
    var reason: String
    /// A sentence for people.
    var message: String

    /// `films.jsonl:5: bad-id: id: expected …`
    var text: String {
        let place = (file.isEmpty ? "-" : file) + (at.isEmpty ? "" : ":" + at)
        let isSaid = field.isEmpty || message.hasPrefix(field)
        return "\(place): \(reason): " + (isSaid ? "" : field + ": ") + message
    }
}

/// The sums of an import.
struct Accounting: Equatable {
    var counts = ImportCounts()
    var warnings = 0
    var milliseconds: Int64 = 0

    /// Every row read is accounted for.
    var isEven: Bool { counts.read == counts.sum }

    /// `read 7 = 4 created + 1 updated + … + 2 refused`
    var text: String {
        let parts = counts.outcomes.map { "\(Formats.count($0.count)) \($0.words)" }
        return "read \(Formats.count(counts.read)) = " + parts.joined(separator: " + ")
    }

    func write(into json: inout JSONWriter) {
        json.name("done")
        json.beginObject()
        json.member("read", counts.read)
        for outcome in counts.outcomes { json.member(outcome.name, outcome.count) }
        json.member("warnings", warnings)
        json.member("milliseconds", milliseconds)
        json.endObject()
    }

    /// Adds those of another part of the same import.
    mutating func add(_ other: ImportCounts) {
        counts.read += other.read
        counts.created += other.created
        counts.updated += other.updated
        counts.unchanged += other.unchanged
        counts.duplicate += other.duplicate
        counts.alreadySaved += other.alreadySaved
        counts.skipped += other.skipped
        counts.refused += other.refused
    }
}

extension ImportCounts {
    /// All but `read`.
    var sum: Int { created + updated + unchanged + duplicate + alreadySaved + skipped + refused }

    /// In the order in which they are always told; each row has one of them.
    var outcomes: [(name: String, words: String, count: Int)] {
        [
            ("created", "created", created), ("updated", "updated", updated), ("unchanged", "unchanged", unchanged),
            ("duplicate", "duplicate", duplicate), ("already_saved", "already saved", alreadySaved),
            ("skipped", "skipped", skipped), ("refused", "refused", refused),
        ]
    }

    /// Reads the object that an importer's `done` has.
    init(json: JSONValue) {
        self.init()
        func number(_ name: String) -> Int { json[name]?.int64.flatMap { Int(exactly: $0) } ?? 0 }
        created = number("created")
        updated = number("updated")
        unchanged = number("unchanged")
        duplicate = number("duplicate")
        alreadySaved = number("already_saved")
        skipped = number("skipped")
        refused = number("refused")
        read = json["read"]?.int64.flatMap { Int(exactly: $0) } ?? sum
    }
}

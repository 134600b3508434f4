import LarderFormat
import Testing

@testable import larder

/// Inputs that people have had trouble with, imported by the built program.
@Suite("Importing cases", .timeLimit(.minutes(2)))
struct ImportCaseTests {
    private struct Imported {
        let library: TestLibrary
        let outcome: Outcome
        let objects: [JSONValue]

        var done: JSONValue? { objects.last?["done"] }
        var refused: [String] {
            objects.compactMap { $0["refused"] }.map { "\($0["line"]?.int64 ?? 0) \($0["reason"]?.string ?? "")" }
        }
        func count(_ name: String) -> Int { Int(done?[name]?.int64 ?? -1) }
        func records() throws -> [JSONValue?] { try library.records().map { $0["record"] } }
        func ids() throws -> [Int64?] { try records().map { $0?["id"]?.int64 } }
        func titles() throws -> [String?] { try records().map { $0?["title"]?.string } }
    }

    private func imported(_ name: String) throws -> Imported {
        let library = try TestLibrary()
        let outcome = try library.run(
            "import", "--json", "--kind", "title", "--set", "source=tmdb", "--set", "media_type=movie",
            TestLibrary.file(name))
        let imported = Imported(library: library, outcome: outcome, objects: try outcome.objects)
        let sum = ["created", "updated", "unchanged", "duplicate", "already_saved", "skipped", "refused"]
            .reduce(0) { $0 + imported.count($1) }
        #expect(imported.count("read") == sum)
        #expect(outcome.code == (imported.count("refused") == 0 ? 0 : 1))
        return imported
    }

    private func bytes(_ texts: [String?]) -> [[UInt8]] { texts.map { Array(($0 ?? "").utf8) } }

    @Test("003: an empty, null or missing date is no date")
    func emptyDate() throws {
        let imported = try imported("003-empty-release-date.jsonl")
        #expect(imported.refused.isEmpty)
        #expect(try imported.ids() == [900_301, 900_302, 900_303, 900_304])
        #expect(try imported.records().map { $0?["release_date"]?.string } == [nil, nil, nil, "2021-05-04"])
    }

    @Test("006: numbers that came as strings are numbers, and a string id is the same identity")
    func numbersAsStrings() throws {
        let imported = try imported("006-numbers-as-strings.jsonl")
        #expect(imported.count("created") == 3 && imported.count("duplicate") == 1)
        let records = try imported.records()
        #expect(records.map { $0?["id"]?.int64 } == [900_601, 900_602, 900_603])
        #expect(records[0]?["popularity"] == .decimal("93.4917224393659"))
        #expect(records[0]?["vote_average"] == .decimal("8.6"))
        #expect(records[1]?["vote_count"]?.int64 == 46)
        #expect(records[2]?["vote_count"] == nil)
        #expect(imported.objects.contains { $0["warning"]?["field"]?.string == "vote_count" })
    }

    @Test("007: large ids are exact, bad ones are refused with their lines")
    func ids() throws {
        let imported = try imported("007-int64-and-bad-ids.jsonl")
        #expect(try imported.ids() == [3_000_000_000, 12_669_814_169_816, 9_007_199_254_740_993, 900_705])
        #expect(imported.refused == (5...11).map { "\($0) bad-id" })
    }

    @Test("011: a byte order mark, both line ends, blank lines and a missing last one cost nothing")
    func lineEnds() throws {
        let imported = try imported("011-bom-crlf-blank-no-final-newline.jsonl")
        #expect(try imported.ids() == [901_101, 901_102, 901_103])
        #expect(imported.refused.isEmpty && imported.count("read") == 3)
    }

    @Test("012: bad lines are refused alone")
    func badLines() throws {
        let imported = try imported("012-bad-lines-in-the-middle.jsonl")
        #expect(try imported.ids() == [901_201, 901_203, 901_208])
        #expect(
            imported.refused == ["2 bad-json", "4 not-an-object", "5 not-an-object", "6 bad-json", "7 bad-json"])
    }

    @Test("014: U+0000 is taken out with a warning, a raw one is refused")
    func nul() throws {
        let imported = try imported("014-nul-in-title.jsonl")
        #expect(try imported.titles() == ["Broken Lamp", "Clean Lamp"])
        #expect(imported.refused == ["2 bad-json"])
        #expect(imported.count("warnings") == 1)
    }

    @Test("015: emoji are kept as they are, half a surrogate pair is refused")
    func emoji() throws {
        let imported = try imported("015-emoji-and-lone-surrogate.jsonl")
        let wanted = ["🛶 Canoe Winter", "🛶 Canoe Winter", "Family 👩‍👩‍👧 Album", "Letter 🇰🇷 Home", "After"]
        #expect(bytes(try imported.titles()) == bytes(wanted))
        #expect(imported.refused == ["5 bad-unicode"])
    }

    @Test("016: the decomposed form of a title that is there changes nothing")
    func normalisation() throws {
        let library = try TestLibrary()
        var counts: [[Int64?]] = []
        for name in ["nfc", "nfd", "again"] {
            let outcome = try library.run(
                "import", "--json", "--kind", "title", "--set", "source=tmdb", "--set", "media_type=movie",
                TestLibrary.file("016-hangul-\(name).jsonl"))
            let done = try outcome.objects.last?["done"]
            counts.append([done?["created"]?.int64, done?["updated"]?.int64, done?["unchanged"]?.int64])
        }
        #expect(counts.map { $0[1] } == [0, 0, 0])
        #expect(try library.records().count == 4)
        #expect(try library.run("events", "--json").objects.count == 4 + 1)
    }

    @Test("017: right-to-left titles keep their code points, a control character breaks no output")
    func rightToLeft() throws {
        let imported = try imported("017-rtl-bidi-and-one-letter.jsonl")
        let wanted = ["كتاب الميناء 28", "\u{200F}עדות 1 (2021)", "ا", "Mixed \u{202B}עברית\u{202C} end"]
        #expect(bytes(Array(try imported.titles().prefix(4))) == bytes(wanted))
        #expect(imported.count("read") == 5)
    }

    @Test("019: a number is a title, nothing is none")
    func titles() throws {
        let imported = try imported("019-numeric-and-empty-titles.jsonl")
        #expect(try imported.titles() == ["1776", "9"])
        #expect(
            imported.refused == [
                "3 missing-title", "4 missing-title", "5 missing-title", "6 bad-title", "7 missing-title",
            ])
    }

    /// Ids of what a search finds, in ascending order.
    private func found(_ text: String, in library: TestLibrary) throws -> [Int64] {
        let outcome = try library.run("search", text, "--json")
        #expect(outcome.code == 0)
        return try outcome.objects.compactMap { $0["record"]?["id"]?.int64 }.sorted()
    }

    @Test("015, 017, 019: emoji, right-to-left, one letter and numbers are found by search")
    func search() throws {
        let emoji = try imported("015-emoji-and-lone-surrogate.jsonl").library
        #expect(try found("🛶", in: emoji) == [901_501, 901_502])
        #expect(try found("canoe 🛶", in: emoji) == [901_501, 901_502])
        #expect(try found("👩‍👩‍👧", in: emoji) == [901_503])
        #expect(try found("🇰🇷", in: emoji) == [901_504])
        let rightToLeft = try imported("017-rtl-bidi-and-one-letter.jsonl").library
        #expect(try found("كتاب", in: rightToLeft) == [901_701])
        #expect(try found("עדות", in: rightToLeft) == [901_702])
        #expect(try found("ا", in: rightToLeft).contains(901_703))
        let numbers = try imported("019-numeric-and-empty-titles.jsonl").library
        #expect(try found("1776", in: numbers) == [901_901])
        #expect(try found("null", in: numbers).isEmpty)
    }

    @Test("016: Hangul and accents are found however they are typed")
    func searchOfForms() throws {
        let library = try TestLibrary()
        for name in ["nfc", "nfd"] {
            let file = TestLibrary.file("016-hangul-\(name).jsonl")
            let words = ["import", "--kind", "title", "--set", "source=tmdb", "--set", "media_type=movie", file]
            #expect(try library.run(words).code == 0)
        }
        for typed in [
            "각자의 계절",
            "\u{1100}\u{1161}\u{11A8}\u{110C}\u{1161}\u{110B}\u{1174} \u{1100}\u{1168}\u{110C}\u{1165}\u{11AF}",
        ] {
            #expect(try found(typed, in: library) == [901_601, 901_602])
        }
        for typed in ["Amélie Street", "AME\u{301}LIE street"] {
            #expect(try found(typed, in: library) == [901_603, 901_604])
        }
    }

    private func books(_ name: String, in library: TestLibrary, _ more: String...) throws -> [Int64?] {
        let outcome = try library.run(["import", "--json", "--kind", "book"] + more + [TestLibrary.file(name)])
        let done = try outcome.objects.last?["done"]
        return ["created", "updated", "unchanged", "duplicate", "refused"].map { done?[$0]?.int64 }
    }

    @Test("022: books without an ISBN are told apart by their ids")
    func noISBN() throws {
        let library = try TestLibrary()
        let counts = try books("022-goodreads-no-isbn.jsonl", in: library, "--set", "source=goodreads")
        #expect(counts == [3, 0, 0, 0, 0])
        #expect(try library.records("book").map { $0["record"]?["id"]?.int64 } == [9_201, 9_202, 9_203])
        #expect(try library.records("book").allSatisfy { $0["record"]?["isbn"] == nil })
    }

    @Test("027: an ISBN is one book however it is written; a wrong one is another")
    func isbn() throws {
        let library = try TestLibrary()
        #expect(try books("027-isbn-in-many-forms.jsonl", in: library) == [3, 0, 0, 3, 0])
        let records = try library.records("book").map { $0["record"] }
        try #require(records.count == 3)
        #expect(records.map { $0?["isbn"]?.string } == ["9781987654035", "0123456780", "01X3456789"])
        #expect(records.map { $0?["source"]?.string } == ["isbn", "isbn-unchecked", "isbn-unchecked"])
        #expect(records[0]?["id"]?.int64 == 9_781_987_654_035)
    }

    @Test("028: the same file twice changes nothing; a changed one changes what changed")
    func again() throws {
        let library = try TestLibrary()
        var counts: [[Int64?]] = []
        var events: [Int] = []
        for name in ["028-first.jsonl", "028-first.jsonl", "028-second.jsonl"] {
            counts.append(try books(name, in: library, "--set", "source=goodreads", "--personal"))
            let lines = try library.run("events", "--json").objects as [JSONValue]
            events.append(lines.filter { $0["event"]?.string == "downloaded" }.count)
        }
        #expect(counts == [[3, 0, 0, 0, 0], [0, 0, 3, 0, 0], [1, 1, 2, 0, 0]])
        #expect(events == [3, 3, 5])
        #expect(try library.records("book").map { $0["record"]?["rating"]?.int64 } == [3, 5, 3, 1])
    }

    @Test("045: records without an outer id are not the same, and one is deleted alone")
    func emptyIds() throws {
        let imported = try imported("045-empty-external-ids.jsonl")
        #expect(try imported.ids() == [903_101, 903_102, 903_103, 903_104])
        #expect(try imported.records().allSatisfy { $0?["imdb_id"] == nil })
        #expect(try imported.library.run("delete", "title:tmdb/movie/903104").code == 0)
        #expect(try imported.ids() == [903_101, 903_102, 903_103])
        let events = try imported.library.run("events", "--json").objects
        #expect(events.filter { $0["event"]?.string == "deleted" }.count == 1)
    }
}

// Likely duplicates, and one record of two.

import LarderFormat
import Testing

@testable import larder

private func title(_ source: String, _ id: Int64, _ more: [(String, Value)]) -> Record {
    let kind = Kind.title
    var record = Record([(1, .text(source)), (2, .choice(1)), (3, .identifier(.number(id)))])
    for (name, value) in more {
        if let field = kind.field(named: name) { record[field.number] = value }
    }
    return record
}

private func keyed(_ record: Record) throws -> (key: RecordKey, record: Record) {
    (try RecordKey(of: record, Kind.title), record)
}

private func date(_ text: String) throws -> Value { .date(try #require(PartialDate(text: text))) }

@Suite("Likely duplicates")
struct DuplicateTests {
    private func reasons(_ first: Record, _ second: Record) throws -> [String]? {
        guard let found = Duplicate(try keyed(first), try keyed(second)) else { return nil }
        return found.reasons.map { found.words($0) }
    }

    @Test("an equal imdb_id and an equal label of one year are told, folded")
    func told() throws {
        let first = title(
            "tmdb", 1,
            [
                ("title", .text("Ｍatrix")), ("release_date", try date("1999-03-31")), ("imdb_id", .text("tt1")),
            ])
        let second = title(
            "imdb", 2,
            [
                ("title", .text("MATRIX")), ("release_date", try date("1999")), ("imdb_id", .text("TT1")),
            ])
        #expect(try reasons(first, second) == ["same imdb_id tt1", "same label and year 1999"])
    }

    @Test("absent and blank values, other years, other media types and unknown years are no reason")
    func notTold() throws {
        let year = try date("1999")
        let base: [(String, Value)] = [("title", .text("M")), ("release_date", year)]
        #expect(try reasons(title("a", 1, base), title("b", 2, base)) != nil)
        #expect(try reasons(title("a", 1, base), title("b", 2, [("title", .text("M"))])) == nil)
        #expect(
            try reasons(
                title("a", 1, base), title("b", 2, [("title", .text("M")), ("release_date", try date("2000"))]))
                == nil)
        var series = title("b", 2, base)
        series[2] = .choice(2)
        #expect(try reasons(title("a", 1, base), series) == nil)
        let blank: [(String, Value)] = [("imdb_id", .text(" "))]
        #expect(try reasons(title("a", 1, blank), title("b", 2, blank)) == nil)
        #expect(try reasons(title("a", 1, []), title("b", 2, [])) == nil)
    }

    @Test("what was joined is told no more, nor a record and itself")
    func joined() throws {
        let value: [(String, Value)] = [("imdb_id", .text("tt1"))]
        #expect(try reasons(title("a", 1, value + [("also", .list(["title:b/movie/2"]))]), title("b", 2, value)) == nil)
        #expect(try reasons(title("a", 1, value), title("b", 2, value + [("also", .list(["title:a/movie/1"]))])) == nil)
        #expect(try reasons(title("a", 1, value), title("a", 1, value)) == nil)
    }

    @Test("each record is paired once with the oldest, however much they have in common")
    func pairs() throws {
        let common: [(String, Value)] = [
            ("title", .text("M")), ("release_date", try date("1999")), ("imdb_id", .text("tt1")),
        ]
        var search = DuplicateSearch()
        for (seq, id) in [(9, 3), (4, 1), (6, 2)] as [(UInt64, Int64)] {
            search.take(title("a", id, common), Kind.title, seq: seq)
        }
        search.take(title("a", 4, [("title", .text("other"))]), Kind.title, seq: 12)
        // Equal texts of another kind are nothing.
        search.take(Record([(1, .text("isbn")), (2, .identifier(.number(1))), (7, .text("tt1"))]), Kind.book, seq: 13)
        #expect(search.takePairs() == [DuplicatePair(first: 4, second: 6), DuplicatePair(first: 4, second: 9)])
        #expect(search.takePairs().isEmpty)
    }
}

@Suite("One record of two")
struct JoinTests {
    private func join(_ first: Record, _ second: Record) throws -> RecordJoin {
        let also = try #require(JoinedKeys.field(Kind.title))
        return RecordJoin(
            first, try RecordKey(of: first, Kind.title), second, try RecordKey(of: second, Kind.title), also: also)
    }

    private func value(_ name: String, _ record: Record) -> Value? {
        Kind.title.field(named: name).flatMap { record[$0.number] }
    }

    @Test("the second fills what the first lacks and overwrites nothing")
    func fills() throws {
        let joined = try join(
            title("a", 1, [("title", .text("A")), ("genres", .list(["x"])), ("rating", .number(Number(7)))]),
            title(
                "b", 2,
                [
                    ("title", .text("B")), ("overview", .text("o")), ("genres", .list(["y"])),
                    ("rating", .number(Number(9))),
                ]))
        #expect(value("title", joined.record) == .text("A"))
        #expect(value("overview", joined.record) == .text("o"))
        #expect(value("genres", joined.record) == .list(["x"]))
        #expect(value("rating", joined.record) == .number(Number(7)))
        #expect(joined.record[3] == .identifier(.number(1)))
        #expect(joined.filled.compactMap { Kind.title.field($0)?.name } == ["overview"])
    }

    @Test("tags are united, notes stand below each other, and neither is doubled")
    func personal() throws {
        let joined = try join(
            title("a", 1, [("tags", .list(["x", "y"])), ("note", .text("one"))]),
            title("b", 2, [("tags", .list(["y", "z"])), ("note", .text("two")), ("rating", .number(Number(9)))]))
        #expect(value("tags", joined.record) == .list(["x", "y", "z"]))
        #expect(value("note", joined.record) == .text("one\n\ntwo"))
        #expect(value("rating", joined.record) == .number(Number(9)))
        let same = try join(title("a", 1, [("note", .text("one"))]), title("b", 2, [("note", .text("one"))]))
        #expect(value("note", same.record) == .text("one"))
        #expect(same.filled.isEmpty)
    }

    @Test("the keys of both sides are kept, each once, without the record's own")
    func keys() throws {
        let joined = try join(
            title("a", 1, [("also", .list(["title:c/movie/3"]))]),
            title("b", 2, [("also", .list(["title:c/movie/3", "title:a/movie/1", "title:d/movie/4"]))]))
        #expect(
            value("also", joined.record) == .list(["title:c/movie/3", "title:b/movie/2", "title:d/movie/4"]))
    }
}

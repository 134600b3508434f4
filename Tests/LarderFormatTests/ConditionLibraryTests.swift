// Conditions, search and order on records of the kinds that Larder brings, with the odd titles that sources have.

import Testing

@testable import LarderFormat

@Suite("Conditions on a library")
struct ConditionLibraryTests {
    private static let schemas = Kind.shipped.map { RecordSchema($0) }

    private static func title(_ id: Int64, _ form: Int, _ values: [(Int, Value)]) -> [UInt8] {
        Samples.encode(
            Record([(1, .text("tmdb")), (2, .choice(form)), (3, .identifier(.number(id)))] + values), Kind.title)
    }

    private static func book(_ id: Int64, _ values: [(Int, Value)]) -> [UInt8] {
        Samples.encode(Record([(1, .text("goodreads")), (2, .identifier(.number(id)))] + values), Kind.book)
    }

    /// Kind, a name for the test, and bytes.
    private let library: [(kind: Int, name: String, bytes: [UInt8])] = [
        (1, "film", title(900_201, 1, [(4, .text("Glass Ferry")), (13, Samples.number("7.6"))])),
        (1, "series", title(900_201, 2, [(6, .text("Winter Clerk")), (16, .list(["Drama", "Sci-Fi & Fantasy"]))])),
        (1, "canoe", title(901_501, 1, [(4, .text("🛶 Canoe Winter")), (11, Samples.date("1990-12"))])),
        (1, "album", title(901_503, 1, [(4, .text("Family 👩‍👩‍👧 Album")), (11, Samples.date("1990-12-24"))])),
        (1, "arabic", title(901_703, 1, [(4, .text("ا"))])),
        (1, "hebrew", title(901_704, 1, [(4, .text("Mixed \u{202B}עברית\u{202C} end"))])),
        (1, "digits", title(901_901, 1, [(4, .text("1776")), (11, Samples.date("1972"))])),
        (2, "first", book(9201, [(3, .text("Poems")), (4, .list(["Kim"]))])),
        (2, "second", book(9202, [(3, .text("Poems")), (4, .list(["Lee"])), (7, .text(""))])),
        (2, "third", book(9203, [(3, .text("Letters")), (7, .text("9781158883591"))])),
    ]

    private func names(_ text: String) throws -> [String] {
        let condition = try Condition(text, schemas: ConditionLibraryTests.schemas)
        return library.filter { Samples.Stored(kind: $0.kind, bytes: $0.bytes).matches(condition) }.map(\.name)
    }

    @Test("each condition finds its records and no others")
    func conditions() throws {
        let rows: [(String, [String])] = [
            ("id = 900201", ["film", "series"]), ("id = 900201 and media_type = tv", ["series"]),
            ("media_type = MOVIE and vote_average >= 7.5", ["film"]), ("title = 1776", ["digits"]),
            ("title starts 17 and release_date < 1980", ["digits"]), ("title contains 🛶", ["canoe"]),
            ("title contains 👩‍👩‍👧", ["album"]), ("title = ا", ["arabic"]), ("title contains עברית", ["hebrew"]),
            ("release_date = 1990-12", ["canoe", "album"]), ("release_date = 1990-12-24", ["album"]),
            ("release_date >= 1990 and not title contains \"canoe \"", ["album"]),
            ("genres contains \"sci-fi\" or title = \"glass ferry\"", ["film", "series"]),
            ("isbn is blank", ["first", "second"]), ("isbn is absent", ["first"]), ("isbn = \"\"", ["second"]),
            ("title = poems and authors = kim", ["first"]), ("title = poems", ["first", "second"]),
            ("kind = book and title > m", ["first", "second"]), ("name exists", ["series"]),
            ("isbn exists or media_type = tv", []), ("body exists", []),
        ]
        for (text, expected) in rows { #expect(try names(text) == expected, "\(text)") }
    }

    @Test("search ranks titles above other fields")
    func search() {
        func ranks(_ query: String) -> [String: Int] {
            let search = SearchQuery(query)
            var ranks: [String: Int] = [:]
            for (kind, name, bytes) in library {
                bytes.withUnsafeBytes {
                    ranks[name] = search.rank(of: $0, schema: ConditionLibraryTests.schemas[kind - 1])
                }
            }
            return ranks
        }
        #expect(ranks("winter") == ["series": 1, "canoe": 2])
        #expect(ranks("900201") == ["film": 5, "series": 5])
        #expect(ranks("poems lee") == ["second": 5])
        #expect(ranks("1776") == ["digits": 0])
        #expect(ranks("ا") == ["arabic": 0])
        #expect(ranks("tmdb ferry") == ["film": 5])
        #expect(ranks("ferry glass") == ["film": 4])
    }
}

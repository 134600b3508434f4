// Search: what is found, and in which rank.

import Testing

@testable import LarderFormat

@Suite("Search")
struct SearchQueryTests {
    private func rank(_ query: String, _ values: [String: Value], code: Value? = nil) -> Int? {
        var record = Samples.record(values)
        if let code { record[1] = code }
        return Samples.encode(record).withUnsafeBytes {
            SearchQuery(query).rank(of: $0, schema: Samples.schema)
        }
    }

    @Test("ranks 0 to 5 are told apart by the label")
    func ranks() {
        let rows: [(String, String, Int?)] = [
            ("the matrix", "The Matrix", 0), ("THE  MATRIX ", "The Matrix", 0),
            ("the matrix", " The \u{3000} Matrix", 0),
            ("the", "The Matrix", 1), ("the mat", "The Matrix", 1), ("matrix", "The Matrix", 2),
            ("mat", "The Matrix", 2),
            ("matrix re", "The Matrix Reloaded", 2), ("atrix", "The Matrix", 3), ("e mat", "The Matrix", 3),
            ("atrix rel", "The Matrix Reloaded", 3), ("matrix the", "The Matrix", 4), ("x t", "The Matrix", 4),
            ("reloaded", "The Matrix", nil), ("matrix reloaded", "The Matrix", nil), ("xa a", "xa xa ab", 2),
            ("aa", "baa aab", 2), ("aa", "baaa", 3), ("a", "a", 0), ("７", "Ocean's 7", 2), ("한글", "한글 사전", 1),
        ]
        for (query, name, expected) in rows {
            #expect(rank(query, ["name": .text(name)]) == expected, "\(query) in \(name)")
        }
    }

    @Test("every text, identifier and list is searched, nothing else, and no word spans two of them")
    func otherFields() {
        let values: [String: Value] = [
            "name": .text("Label"), "note": .text("A hidden word"), "genres": .list(["Drama", "Science Fiction"]),
            "form": .choice(1), "count": .int(12345), "data": .bytes(Array("bytes".utf8)),
        ]
        for (query, expected) in [
            ("hidden", 5), ("drama", 5), ("science word label", 5), ("SCIENCE FICTION", 5), ("label", 0),
            ("lab drama", 5),
            ("film", nil), ("12345", nil), ("bytes", nil), ("dramascience", nil), ("dramalabel", nil), ("tt13", 5),
        ] as [(String, Int?)] {
            #expect(rank(query, values, code: .identifier(.text("tt133"))) == expected, "\(query)")
        }
        #expect(rank("60", values, code: .identifier(.number(603))) == 5)
    }

    @Test("the label is the first label field that is there and not blank")
    func labels() {
        #expect(rank("603", [:], code: .identifier(.number(603))) == 0)
        #expect(rank("603", ["name": .text(" ")], code: .identifier(.number(603))) == 0)
        #expect(rank("603", ["name": .text("x")], code: .identifier(.number(603))) == 5)
        #expect(
            rank("drama, x", ["name": .text(""), "genres": .list(["Drama,", "X"])], code: .identifier(.text(" "))) == 4)
    }

    @Test("Korean typed in parts or composed finds the same")
    func korean() {
        let composed = "살인의 추억"
        let parts =
            "\u{1109}\u{1161}\u{11AF}\u{110B}\u{1175}\u{11AB}\u{110B}\u{1174} \u{110E}\u{116E}\u{110B}\u{1165}\u{11A8}"
        for stored in [composed, parts] {
            for query in [composed, parts] { #expect(rank(query, ["name": .text(stored)]) == 0) }
            #expect(rank("추억", ["name": .text(stored)]) == 2)
            #expect(rank("\u{110E}\u{116E}\u{110B}\u{1165}\u{11A8}", ["name": .text(stored)]) == 2)
            #expect(rank("살인", ["name": .text(stored)]) == 1)
        }
    }

    @Test("titles of one letter, of digits, of signs and from right to left are found")
    func oddTitles() {
        for title in ["Q", "1917", "9", "$", "עִבְרִית", "\u{202B}abc\u{202C}", "👨‍👩‍👧", "...", "Ⅷ", "E\u{301}l", "2001: a"] {
            #expect(rank(title, ["name": .text(title)]) == 0, "\(title)")
            #expect(rank(title, ["note": .text("x " + title + " y")], code: .identifier(.text("-"))) == 5, "\(title)")
        }
        #expect(rank("", ["name": .text("x")]) == nil)
        #expect(rank(" \u{3000}", ["name": .text(" ")]) == nil)
    }

    @Test("random queries are found where a plain search finds their words")
    func random() {
        var random = SplitMix(11)
        var found = 0
        for _ in 0..<3000 {
            let record = random.record()
            let query = (0..<1 + random.below(2)).map { _ in random.text() }.joined(separator: " ")
            var texts: [[UInt32]] = []
            for (_, value) in record.values {
                switch value {
                case .text(let text), .identifier(.text(let text)): texts.append(TwinSubject.scalars(text))
                case .identifier(.number(let number)): texts.append(TwinSubject.scalars(String(number)))
                case .list(let list): texts += list.map(TwinSubject.scalars)
                default: break
                }
            }
            let words = TwinSubject.scalars(query).split { Unicode.Scalar($0)?.properties.isWhitespace == true }
            let isFound =
                !words.isEmpty
                && words.allSatisfy { word in
                    texts.contains { text in (0...text.count).contains { text[$0...].starts(with: word) } }
                }
            let rank = Samples.encode(record).withUnsafeBytes {
                SearchQuery(query).rank(of: $0, schema: Samples.schema)
            }
            #expect((rank != nil) == isFound, "\(query) in \(record.json(Samples.kind))")
            if isFound { found += 1 }
        }
        #expect(found > 150)
    }
}

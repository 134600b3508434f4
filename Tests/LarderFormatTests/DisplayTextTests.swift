import Testing

@testable import LarderFormat

@Suite("Text for a terminal")
struct DisplayTextTests {
    @Test(
        "a text's cells are counted as a terminal shows it",
        arguments: [
            ("", 0), ("The Matrix", 10), ("é", 1), ("e\u{301}", 1), ("각자의 계절", 11), ("\u{1100}\u{1161}\u{11A8}", 2),
            ("日本語", 6), ("ｶﾅ", 2), ("Ａ", 2), ("、", 2), ("🛶", 2), ("👩‍👩‍👧", 2), ("🇰🇷", 2), ("👍🏽", 2), ("❤", 1),
            ("❤\u{FE0F}", 2), ("1\u{FE0F}\u{20E3}", 2), ("⌚\u{FE0E}", 1), ("كتاب", 4), ("\u{200F}עדות", 4),
            ("a\u{200D}b", 2),
            ("\u{202B}עברית\u{202C}", 5), ("…", 1), ("\u{0301}", 0), ("\u{FEFF}x", 1), ("a\tb", 3), ("\u{1F9FF}", 2),
            ("\u{20000}", 2), ("ไทย", 3), ("ที่", 1), ("€", 1), ("\u{00AD}", 1),
        ])
    func width(_ text: String, _ cells: Int) {
        #expect(DisplayText.width(text) == cells)
    }

    @Test("the table of wide characters ascends, and the alphabets around it are narrow")
    func table() {
        for text in ["ɐ", "ԱԲ", "Ω", "Ж", "ä", "√", "─", "█", "♪", "\u{10FFFD}", "\u{E000}", "\u{1F100}"] {
            #expect(DisplayText.width(text) == text.unicodeScalars.count, "\(text)")
        }
        var wide = 0
        for value in UInt32(0)...0xFFFF where WideCharacters.contains(value) { wide += 1 }
        // CJK and Hangul make nearly all of it.
        #expect((11_172 + 27_584...43_000).contains(wide))
    }

    @Test("nothing that steers the terminal is left")
    func controls() {
        #expect(DisplayText.visible("a\u{1B}[31mb\n\r\n\u{7F}\u{9B}2J\u{2028}\0") == "a␛[31mb␊␍␊␡\u{FFFD}2J␤␀")
        for value in UInt32(0)..<0x3000 {
            guard let scalar = Unicode.Scalar(value) else { continue }
            for shown in DisplayText.visible("x" + String(Character(scalar))).unicodeScalars {
                #expect(shown.properties.generalCategory != .control)
            }
        }
    }

    @Test("directions that were begun are ended")
    func directions() {
        #expect(DisplayText.visible("\u{202E}abc").unicodeScalars.elementsEqual("\u{202E}abc\u{202C}".unicodeScalars))
        #expect(
            DisplayText.visible("\u{2067}\u{202B}x").unicodeScalars
                .elementsEqual("\u{2067}\u{202B}x\u{202C}\u{2069}".unicodeScalars))
        #expect(DisplayText.visible("a\u{202C}\u{2069}é").unicodeScalars.elementsEqual("aé".unicodeScalars))
        #expect(
            DisplayText.truncated("\u{202B}עברית\u{202C}", to: 3).unicodeScalars
                .elementsEqual("\u{202B}עב…\u{202C}".unicodeScalars))
    }

    @Test(
        "text is cut at a character's edge, with an ellipsis",
        arguments: [
            ("The Matrix", 10, "The Matrix"), ("The Matrix", 9, "The Matr…"), ("The Matrix", 1, "…"),
            ("The Matrix", 0, ""),
            ("각자의 계절", 11, "각자의 계절"), ("각자의 계절", 10, "각자의 계…"), ("각자의 계절", 4, "각…"), ("각자", 3, "각…"),
            ("각자", 2, "…"), ("👩‍👩‍👧👩‍👩‍👧", 3, "👩‍👩‍👧…"), ("abe\u{301}", 3, "abe\u{301}"), ("abe\u{301}d", 3, "ab…"),
            ("a\nbc", 3, "a␊…"),
        ])
    func truncated(_ text: String, _ width: Int, _ shown: String) {
        #expect(DisplayText.truncated(text, to: width).utf8.elementsEqual(shown.utf8))
    }

    @Test("whatever the text, cut and padded it takes exactly the width")
    func exact() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = Seeded(state: seed)
        let pieces = [
            "a", "한", "é", "e\u{301}", "👩‍👩‍👧", "🇰🇷", "\u{202E}", "\u{202C}", "\u{2067}", "\n", "\u{1B}", " ", "\u{200D}",
            "\u{FE0F}", "क्षि", "ا", "\u{1F1E6}", "\u{1161}", "❤",
        ]
        for _ in 0..<3000 {
            let text = (0..<Int.random(in: 0...12, using: &generator)).map { _ in
                pieces.randomElement(using: &generator) ?? ""
            }.joined()
            for width in [0, 1, 2, 5, 12] {
                let shown = DisplayText.padded(text, to: width, .trailing)
                #expect(
                    DisplayText.width(shown) == width, "\(Array(text.unicodeScalars)), width \(width), seed \(seed)")
            }
        }
    }

    @Test("padding goes to the side that is asked for")
    func padding() {
        #expect(DisplayText.padded("각", to: 4) == "각  ")
        #expect(DisplayText.padded("각", to: 4, .trailing) == "  각")
    }

    @Test("a character of thousands of marks is cut")
    func marks() {
        let text = "a" + String(repeating: "\u{301}", count: 10_000)
        #expect(DisplayText.truncated(text, to: 5).unicodeScalars.count == DisplayText.clusterScalarsMax)
    }
}

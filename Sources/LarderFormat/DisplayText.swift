// Text for a terminal: how many cells it takes, cut and padded to a width, and nothing in it that steers the terminal.

/// Measures and prepares text that comes from records.
public enum DisplayText {
    public enum Alignment: Sendable { case leading, trailing }

    /// What one character as people see it may be made of, in code points; more are cut off.
    static let clusterScalarsMax = 32

    /// Cells that `visible(text)` takes: 2 for wide characters and emoji, 0 for marks.
    public static func width(_ text: String) -> Int {
        if isPlain(text) { return text.utf8.count }
        return visible(text).reduce(0) { $0 + width($1) }
    }

    /// The text on one line and harmless: control characters become pictures (␛, ␊) or U+FFFD, and directions that
    /// were begun are ended, so that what follows it stands where it should.
    public static func visible(_ text: String) -> String {
        if isPlain(text) { return text }
        var (out, directions) = harmless(text)
        directions.close(into: &out)
        return String(out)
    }

    /// `visible` for text of several lines: their ends stay.
    public static func visibleLines(_ text: String) -> String {
        if isPlain(text) { return text }
        return text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
            .map { visible(String($0)) }.joined(separator: "\n")
    }

    /// `visible(text)`, its end replaced by `…` where it takes more than `width` cells.
    public static func truncated(_ text: String, to width: Int) -> String {
        if isPlain(text) && text.utf8.count <= width { return text }
        guard width > 0 else { return "" }
        // Characters are told apart once more in what is shown: where something was taken out, neighbours may join.
        var out = String.UnicodeScalarView()
        var directions = OpenDirections()
        var used = 0
        // What fits with an ellipsis behind it; the rest waits until it is known to fit without.
        var cut: (scalars: String.UnicodeScalarView, directions: OpenDirections)?
        for character in String(harmless(text).scalars) {
            let cells = DisplayText.width(character)
            if used + cells > width - 1 && cut == nil { cut = (out, directions) }
            if used + cells > width {
                if let cut { (out, directions) = cut }
                out.append("…")
                break
            }
            out.append(contentsOf: character.unicodeScalars)
            for scalar in character.unicodeScalars { _ = directions.take(scalar.value) }
            used += cells
        }
        directions.close(into: &out)
        return String(out)
    }

    /// `truncated(text, to: width)`, with spaces to make it exactly `width` cells.
    public static func padded(_ text: String, to width: Int, _ alignment: Alignment = .leading) -> String {
        let shown = truncated(text, to: width)
        let spaces = String(repeating: " ", count: max(0, width - DisplayText.width(shown)))
        return alignment == .leading ? shown + spaces : spaces + shown
    }

    /// Cells of one character as people see it.
    static func width(_ character: Character) -> Int {
        let scalars = character.unicodeScalars
        guard let first = scalars.first else { return 0 }
        if scalars.count == 1 { return width(first) }
        // A flag, a joined sequence, a skin tone, a keycap, or a sign asked to look like an emoji.
        if (0x1F1E6...0x1F1FF).contains(first.value) { return 2 }
        if first.properties.isEmoji {
            for scalar in scalars.dropFirst() {
                if scalar.value == 0xFE0F || scalar.properties.isEmojiModifier { return 2 }
                if scalar.value == 0xFE0E { return 1 }
            }
            if first.properties.isEmojiPresentation { return 2 }
        }
        return scalars.reduce(0) { $0 + width($1) }
    }

    private static func width(_ scalar: Unicode.Scalar) -> Int {
        let value = scalar.value
        if value < 0x300 { return value < 0x20 || (value >= 0x7F && value < 0xA0) ? 0 : 1 }
        // Hangul vowels and final consonants stand inside the cell of their first consonant.
        if (0x1160...0x11FF).contains(value) || (0xD7B0...0xD7FF).contains(value) { return 0 }
        if WideCharacters.contains(value) || scalar.properties.isEmojiPresentation {
            return scalar.properties.generalCategory == .nonspacingMark ? 0 : 2
        }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark: return 0
        // Signs that Arabic and Syriac put before a number are seen; other format characters are not.
        case .format: return scalar.properties.isDefaultIgnorableCodePoint || isDirection(value) ? 0 : 1
        default: return 1
        }
    }

    private static func isDirection(_ value: UInt32) -> Bool {
        (0x202A...0x202E).contains(value) || (0x2066...0x2069).contains(value)
    }

    /// ASCII without control characters: a cell a byte.
    private static func isPlain(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F } }

    /// `visible(text)` before the directions that are open at its end are closed.
    private static func harmless(_ text: String) -> (scalars: String.UnicodeScalarView, directions: OpenDirections) {
        var out = String.UnicodeScalarView()
        var directions = OpenDirections()
        for character in text {
            for scalar in character.unicodeScalars.prefix(clusterScalarsMax) {
                switch scalar.value {
                case 0x00...0x1F: out.append(Unicode.Scalar(0x2400 + scalar.value) ?? "\u{FFFD}")
                case 0x7F: out.append("\u{2421}")
                case 0x80...0x9F: out.append("\u{FFFD}")
                case 0x2028, 0x2029: out.append("\u{2424}")
                default: if directions.take(scalar.value) { out.append(scalar) }
                }
            }
        }
        return (out, directions)
    }
}

/// Embeddings, overrides and isolates that text has begun and not ended (UAX 9).
private struct OpenDirections {
    /// For each, whether it is an isolate.
    private var open: [Bool] = []
    private static let depthMax = 32

    /// Follows one character; false for one that would begin too many or end none.
    mutating func take(_ value: UInt32) -> Bool {
        switch value {
        case 0x202A, 0x202B, 0x202D, 0x202E, 0x2066...0x2068:
            guard open.count < OpenDirections.depthMax else { return false }
            open.append(value >= 0x2066)
            return true
        case 0x202C:
            guard open.last == false else { return false }
            open.removeLast()
            return true
        case 0x2069:
            guard let isolate = open.lastIndex(of: true) else { return false }
            open.removeSubrange(isolate...)
            return true
        default: return true
        }
    }

    func close(into out: inout String.UnicodeScalarView) {
        for isIsolate in open.reversed() { out.append(isIsolate ? "\u{2069}" : "\u{202C}") }
    }
}

// Books that a source knows by their ISBN alone.

/// The fields of a kind whose records may be known by an ISBN: keyed by a source and an id, with a text `isbn`.
struct ISBNRules: Sendable {
    let source: LineRule
    let id: LineRule
    let isbn: LineRule

    /// The source of a number that is right.
    static let right: StaticString = "isbn"
    /// The source of one that is wrong: it is no book's number, but all that the line has.
    static let wrong: StaticString = "isbn-unchecked"

    /// Nil for other kinds.
    init?(_ kind: Kind, _ rules: [LineRule]) {
        func rule(_ name: String, _ type: FieldType) -> LineRule? {
            rules.first { $0.name == name && $0.type == type }
        }
        guard kind.keyFieldCount == 2, let source = rule("source", .text), let id = rule("id", .identifier),
            let isbn = rule("isbn", .text), source.isKey, id.isKey, !isbn.isKey
        else { return nil }
        self.source = source
        self.id = id
        self.isbn = isbn
    }
}

extension LineFields {
    /// Writes the line's ISBN as thirteen digits, and makes it the key where the line has no other.
    ///
    /// - Returns: a warning about one that is none.
    mutating func takeISBN(_ rules: borrowing ISBNRules) -> LineWarning? {
        guard present.contains(rules.isbn.number) else { return nil }
        let isbn = withText(rules.isbn.number) { ISBN($0) } ?? nil
        let isKey = !present.contains(rules.source.number) && !present.contains(rules.id.number)
        guard let isbn else {
            if isKey {
                take(ISBNRules.wrong, rules.source)
                let text = withText(rules.isbn.number) { Array($0) } ?? []
                _ = text.withUnsafeBytes { take($0, isLasting: false, rules.id) }
            }
            return LineWarning(field: rules.isbn.name, reason: "bad-isbn: kept as it is, but it is no book's number")
        }
        if isKey {
            take(ISBNRules.right, rules.source)
            _ = takeIdentifier(isbn.number, rules.id)
        }
        var digits = isbn.number
        withUnsafeTemporaryAllocation(byteCount: 13, alignment: 1) { text in
            for at in (0..<13).reversed() {
                text[at] = UInt8(0x30 + digits % 10)
                digits /= 10
            }
            _ = take(UnsafeRawBufferPointer(text), isLasting: false, rules.isbn)
        }
        return nil
    }

    private mutating func take(_ text: StaticString, _ rule: borrowing LineRule) {
        _ = take(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount), isLasting: true, rule)
    }
}

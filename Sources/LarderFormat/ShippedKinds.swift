// The kinds that Larder brings. Protocol/kinds/*.json says the same for people; a test holds the two together.

extension Kind {
    public static let title = declared(
        1, "title", version: 2, keyFieldCount: 3, labelFields: [4, 6, 5, 7],
        [
            Field(1, "source", .text, [.required, .notBlank]),
            Field(
                2, "media_type", .choice, .required,
                choices: choices("movie", "tv", "season", "episode", "short", "video", "game")),
            Field(3, "id", .identifier, [.required, .notZero]),
            Field(4, "title", .text),
            Field(5, "original_title", .text),
            Field(6, "name", .text),
            Field(7, "original_name", .text),
            Field(8, "overview", .text),
            Field(9, "poster_path", .text),
            Field(10, "backdrop_path", .text),
            Field(11, "release_date", .date),
            Field(12, "vote_count", .int),
            Field(13, "vote_average", .number),
            Field(14, "imdb_id", .text, .indexed),
            Field(15, "runtime", .int),
            Field(16, "genres", .list),
            Field(17, "language", .text),
            Field(18, "country", .text),
            Field(19, "director", .text),
            Field(20, "popularity", .number),
            Field(21, "adult", .bool),
            Field(22, "file", .text),
            Field(23, "quality", .text),
            Field(24, "download_id", .text),
            Field(25, "rating", .number, .personal),
            Field(26, "watched", .date, .personal),
            Field(27, "tags", .list, .personal),
            Field(28, "note", .text, .personal),
            Field(29, "revenue", .int),
            Field(30, "budget", .int),
            Field(31, "status", .text),
            Field(32, "tagline", .text),
            Field(33, "homepage", .text),
            Field(34, "also", .list, [.indexed, .personal]),
        ])

    public static let book = declared(
        2, "book", version: 2, keyFieldCount: 2, labelFields: [3, 15],
        [
            Field(1, "source", .text, [.required, .notBlank]),
            Field(2, "id", .identifier, [.required, .notZero]),
            Field(3, "title", .text, .indexed),
            Field(4, "authors", .list),
            Field(5, "price", .number),
            Field(6, "sale_price", .number),
            Field(7, "isbn", .text, .indexed),
            Field(8, "publisher", .text),
            Field(9, "contents", .text),
            Field(10, "thumbnail", .text),
            Field(11, "url", .text),
            Field(12, "published", .date),
            Field(13, "translators", .list),
            Field(14, "status", .text),
            Field(15, "original_title", .text),
            Field(16, "language", .text),
            Field(17, "pages", .int),
            Field(18, "rating", .number, .personal),
            Field(19, "watched", .date, .personal),
            Field(20, "tags", .list, .personal),
            Field(21, "note", .text, .personal),
            Field(22, "series", .text),
            Field(23, "average_rating", .number),
            Field(24, "ratings_count", .int),
            Field(25, "also", .list, [.indexed, .personal]),
        ])

    public static let joke = declared(
        3, "joke", version: 1, keyFieldCount: 1, labelFields: [2],
        [
            Field(1, "id", .uuid, .required),
            Field(2, "body", .text, [.required, .notBlank]),
            Field(
                3, "category", .choice,
                choices: choices("유행어", "아재개그")),
            Field(4, "tags", .list, .personal),
            Field(5, "note", .text, .personal),
        ])

    /// In the order of their numbers.
    public static let shipped = [title, book, joke]

    private static func declared(
        _ number: Int, _ name: String, version: Int, keyFieldCount: Int, labelFields: [Int], _ fields: [Field]
    ) -> Kind {
        do throws(FormatError) {
            return try Kind(
                number: number, name: name, version: version, keyFieldCount: keyFieldCount, fields: fields,
                labelFields: labelFields)
        } catch {
            preconditionFailure("the kind \(name) contradicts itself: \(error)")
        }
    }

    /// Numbered from 1.
    private static func choices(_ names: String...) -> [Field.Choice] {
        names.enumerated().map { Field.Choice(number: $0.offset + 1, name: $0.element) }
    }
}

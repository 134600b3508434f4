// `larder rate`, `larder watched`, `larder note`: one field each.

import LarderFormat

enum RateCommand: Command {
    static let name = "rate"
    static let purpose = "rate records, from 0.5 to 10"
    static let synopsis = ["rate KEY… RATING [--dry-run]", "rate KEY… none"]
    static let options = [PersonalEdit.dryRun, Confirmation.needless]
    static let details = "The rating is the owner's own; imports change it only with --personal. none takes it away."
    static let examples = [
        (line: "larder rate title:tmdb/movie/603 8.5", does: "rates a film"),
        (line: "larder rate book:isbn/9788937460449 none", does: "takes a book's rating away"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        guard let text = context.options.arguments.last, context.options.arguments.count > 1 else {
            throw misused("needs a key and a rating")
        }
        var rating: Number?
        if text != "none" {
            guard let number = Number(exactText: text), (0.5...10).contains(number.doubleValue) else {
                throw misused("expected a rating from 0.5 to 10, or none, not “\(text)”")
            }
            rating = number
        }
        let edit = try PersonalEdit("rating", .number, context)
        let keys = try KeyArguments.read(
            context.options.arguments.dropLast(), try context.session().kinds(), command: name)
        return try edit.run(keys) { _, _ in rating.map(Value.number) }
    }
}

enum WatchedCommand: Command {
    static let name = "watched"
    static let purpose = "note when records were last watched or read"
    static let synopsis = ["watched KEY… [DATE] [--dry-run]", "watched KEY… none"]
    static let options = [PersonalEdit.dryRun, Confirmation.needless]
    static let details = "DATE is today unless said, and may be known to the month or the year. none takes it away."
    static let examples = [
        (line: "larder watched title:tmdb/movie/603", does: "notes that a film was watched today"),
        (line: "larder watched title:tmdb/tv/1399 2019-05", does: "notes a month"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        var words = context.options.arguments
        var date = FieldInput.date("today")
        if let last = words.last, words.count > 1, !last.utf8.contains(0x3A) {
            if last == "none" {
                date = nil
            } else if let found = FieldInput.date(last) {
                date = found
            } else {
                throw misused("expected a date such as 2026-01-31 or 2026, today or none, not “\(last)”")
            }
            words.removeLast()
        }
        let edit = try PersonalEdit("watched", .date, context)
        let keys = try KeyArguments.read(words, try context.session().kinds(), command: name)
        return try edit.run(keys) { _, _ in date.map(Value.date) }
    }
}

enum NoteCommand: Command {
    static let name = "note"
    static let purpose = "write a note on a record"
    static let synopsis = ["note KEY TEXT [--append] [--dry-run]", "note KEY --remove"]
    static let options = [
        OptionSpec("append", "put it below the note that is there"), OptionSpec("remove", "take the note away"),
        PersonalEdit.dryRun, Confirmation.needless,
    ]
    static let details = """
        The note is the owner's own; imports change it only with --personal. A note that is there is overwritten, unless
        --append is given. larder edit KEY opens longer ones.
        """
    static let examples = [
        (line: "larder note title:tmdb/movie/603 \"lent to Kim\"", does: "writes a note on a film"),
        (line: "larder note title:tmdb/movie/603 --remove", does: "takes it away"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        let words = context.options.arguments
        let removes = context.options.has("remove")
        guard words.count == (removes ? 1 : 2) else {
            throw misused(removes ? "needs a key alone" : "needs a key and a text")
        }
        let text = removes ? "" : words[1]
        if !removes, FieldInput.isBlank(text) { throw misused("a note is not blank; --remove takes one away") }
        let edit = try PersonalEdit("note", .text, context)
        let keys = try KeyArguments.read([words[0]], try context.session().kinds(), command: name)
        let appends = context.options.has("append")
        return try edit.run(keys) { value, _ in
            if removes { return nil }
            if appends, case .text(let before)? = value, !FieldInput.isBlank(before) {
                return .text(before + "\n" + text)
            }
            return .text(text)
        }
    }
}

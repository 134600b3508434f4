// `larder tag`.

import LarderFormat

enum TagCommand: Command {
    static let name = "tag"
    static let purpose = "put tags on records, and take them off"
    static let synopsis = ["tag KEY… +TAG… -TAG… [--dry-run]"]
    static let options = [
        OptionSpec("add", "TAG", "as +TAG"), OptionSpec("remove", "TAG", "as -TAG"), PersonalEdit.dryRun,
        Confirmation.needless,
    ]
    static let details = """
        A word with + in front is put on, one with - in front is taken off; --add and --remove do the same for a tag
        that looks like something else. A tag that is there stays where it is. Imports change tags only with --personal.
        """
    static let examples = [
        (line: "larder tag title:tmdb/movie/603 +favourite -unseen", does: "puts one tag on a film and takes one off"),
        (line: "larder tag book:isbn/9788937460449 book:isbn/9788936434267 +\"to read\"", does: "tags two books"),
    ]

    /// Words such as `-unseen` are not options.
    static func arranged(_ words: [String]) -> [String] {
        words.flatMap { word -> [String] in
            guard word.hasPrefix("-"), !word.hasPrefix("--"), word != "-h", word.utf8.count > 1 else { return [word] }
            return ["--remove", String(word.dropFirst())]
        }
    }

    static func run(_ context: Context) throws -> Int32 {
        let words = context.options.arguments
        let keys = words.filter { !$0.hasPrefix("+") }
        let added = words.filter { $0.hasPrefix("+") }.map { String($0.dropFirst()) } + context.options.all("add")
        let removed = context.options.all("remove")
        guard !added.isEmpty || !removed.isEmpty else { throw misused("needs +TAG or -TAG") }
        for tag in added + removed where FieldInput.isBlank(tag) { throw misused("a tag is not blank") }
        if let both = added.first(where: { removed.contains($0) }) {
            throw misused("puts “\(both)” on and takes it off")
        }
        let edit = try PersonalEdit("tags", .list, context)
        let read = try KeyArguments.read(keys, try context.session().kinds(), command: name)
        return try edit.run(read) { value, _ in
            var tags: [String] = []
            if case .list(let stored)? = value { tags = stored }
            tags.removeAll { removed.contains($0) }
            for tag in added where !tags.contains(tag) { tags.append(tag) }
            return tags.isEmpty ? nil : .list(tags)
        }
    }
}

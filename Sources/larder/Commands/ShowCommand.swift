// `larder show`.

import LarderFormat

enum ShowCommand: Command {
    static let name = "show"
    static let purpose = "show all that is known of a record"
    static let synopsis = ["show KEY… [--all] [--history]", "show KIND VALUE…"]
    static let options = [
        OptionSpec("all", short: "a", "show the fields that are absent, too"),
        OptionSpec("history", "show every version that the log holds, newest first, and what changed in each"),
    ]
    static let details = """
        Shows every field, when the record was saved and changed, and by whom; the owner's own fields stand apart.
        --history also shows a record that was deleted; larder undelete KEY brings it back.
        """
    static let examples = [
        (line: "larder show title:tmdb/movie/603", does: "shows one film"),
        (line: "larder show book isbn 9788937460449 --all", does: "shows a book with the fields that it lacks"),
        (line: "larder show title:tmdb/movie/603 --history", does: "shows what changed in a film, when, and by whom"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        try KeyArguments.expectSome(context.options.arguments, command: name)
        let session = try context.session()
        let kinds = try session.kinds()
        let keys = try KeyArguments.read(context.options.arguments, kinds, command: name)
        let origins = OriginNames(session)
        let view = RecordView(context: context, origins: origins)
        var isComplete = true
        for (index, key) in keys.enumerated() {
            if context.options.has("history") {
                if index > 0, !context.isJSON { context.output.line("") }
                if try !showHistory(key, origins, context) { isComplete = false }
                continue
            }
            guard let (key, found) = try context.stored(key) else {
                isComplete = false
                context.output.flush()
                context.warn("\(DisplayText.visible(key.text)): not found")
                continue
            }
            guard context.isJSON else {
                if index > 0 { context.output.line("") }
                try view.print(found, key, showsAbsent: context.options.has("all"))
                continue
            }
            let origin = try origins.name(found.header.origin)
            found.record.withUnsafeBytes { bytes in
                context.output.json {
                    RecordJSON.write(found.header, bytes, kinds, into: &$0)
                    $0.member("origin_name", origin)
                }
            }
        }
        return isComplete ? 0 : 1
    }

    /// - Returns: whether there is one.
    private static func showHistory(_ key: RecordKey, _ origins: OriginNames, _ context: Context) throws -> Bool {
        let session = try context.session()
        let versions = RecordVersion.all(try session.history(key), key.kind)
        guard !versions.isEmpty else {
            context.output.flush()
            context.warn("\(DisplayText.visible(key.text)): the log has nothing of it")
            return false
        }
        if !context.isJSON {
            let label = versions.lazy.compactMap { $0.record?.label(key.kind) }.first ?? RecordCells.unknownLabel
            context.output.line(
                context.output.styled(DisplayText.visible(label), .bold) + "  " + DisplayText.visible(key.text))
        }
        try HistoryView(context: context, kinds: try session.kinds(), origins: origins).print(versions, key)
        return true
    }
}

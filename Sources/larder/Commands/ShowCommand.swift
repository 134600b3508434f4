// `larder show`.

import LarderFormat

enum ShowCommand: Command {
    static let name = "show"
    static let purpose = "show all that is known of a record"
    static let synopsis = ["show KEY… [--all]", "show KIND VALUE…"]
    static let options = [OptionSpec("all", short: "a", "show the fields that are absent, too")]
    static let details = """
        Shows every field, when the record was saved and changed, and by whom; the owner's own fields stand apart.
        """
    static let examples = [
        (line: "larder show title:tmdb/movie/603", does: "shows one film"),
        (line: "larder show book isbn 9788937460449 --all", does: "shows a book with the fields that it lacks"),
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
            let found = try attempt("getting \(key.text)") {
                try session.client.get(kind: key.kind.number, key: key.bytes)
            }
            guard let found else {
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
}

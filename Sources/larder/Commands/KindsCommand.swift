// `larder kinds`.

import LarderFormat

enum KindsCommand: Command {
    static let name = "kinds"
    static let purpose = "list the kinds of records, show one, and declare your own"
    static let synopsis = ["kinds [KIND]", "kinds show KIND", "kinds add FILE [--dry-run]"]
    static let options = [OptionSpec("dry-run", short: "n", "say what add would change, change nothing")]
    static let details = """
        A kind is declared by a file: {"kind":"game","key":["id"],"label":["title"],"fields":[{"name":"id",
        "type":"text","required":true},{"name":"title","type":"text"}]}. Types are bool, int, number, text, identifier,
        bytes, date, time, uuid, choice (with "values":{"1":"new","2":"played"}) and list; a field may be required,
        not_blank, not_zero, indexed (found by get, kept apart by save --unless-exists) and personal (yours: imports leave
        it alone). The fields of "key" stand first; "label" has those to call a record by. Numbers may be left out.
        A kind that is there can be added to, also a shipped one: name it, and only the fields that are new. What is
        there stays: a field never goes and never changes its type.
        show prints the whole file, to be edited and added again; - is standard input.
        """
    static let examples = [
        (line: "larder kinds", does: "lists the kinds with their keys"),
        (line: "larder kinds title", does: "lists the fields of a title with their types"),
        (line: "larder kinds show book > book.json", does: "writes the declaration to a file"),
        (line: "larder kinds add game.json --dry-run", does: "says what would be declared"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        let words = context.options.arguments
        // A kind of such a name is listed by `kinds show add`.
        if let first = words.first, first == "add" || first == "show", words.count > 1 || first == "add" {
            guard words.count == 2 else { throw misused("\(first) takes one \(first == "add" ? "FILE" : "KIND")") }
            guard first == "add" else { return try show(words[1], context) }
            return try KindAdding(context, path: words[1]).run()
        }
        if context.options.has("dry-run") { throw misused("takes --dry-run with add") }
        let name = try optionalKind(context)
        let kinds = try context.session().kinds()
        let shown = try name.map { [try kinds.named($0)] } ?? kinds.all
        if context.isJSON {
            for kind in shown { context.output.json { KindJSON.write(kind, into: &$0) } }
        } else if name == nil {
            printKinds(shown, context.output)
        } else {
            for kind in shown { printFields(kind, context.output) }
        }
        return 0
    }

    private static func show(_ name: String, _ context: Context) throws -> Int32 {
        let kind = try context.session().kinds().named(name)
        if context.isJSON {
            context.output.json { KindJSON.write(kind, into: &$0) }
        } else {
            context.output.line(KindJSON.text(kind))
        }
        return 0
    }

    private static func printKinds(_ kinds: [Kind], _ output: Output) {
        var table = Table(
            [
                .init("KIND"), .init("NUMBER", .trailing), .init("VERSION", .trailing), .init("FIELDS", .trailing),
                .init("KEY", flexible: true),
            ], width: output.width)
        for kind in kinds {
            table.add([
                kind.name, "\(kind.number)", "\(kind.version)", "\(kind.fields.count)",
                kind.name + ":" + kind.keyFields.map(\.name).joined(separator: "/"),
            ])
        }
        table.print(to: output, withHeading: true)
    }

    private static func printFields(_ kind: Kind, _ output: Output) {
        var table = Table(
            [.init("FIELD", .trailing), .init("NAME"), .init("TYPE"), .init("REMARKS", flexible: true)],
            width: output.width)
        for field in kind.fields {
            var remarks = field.number <= kind.keyFieldCount ? ["key"] : []
            remarks += KindJSON.constraintNames(field).map { $0.split(separator: "_").joined(separator: " ") }
            if kind.labelFields.contains(field.number) { remarks.append("label") }
            if !field.choices.isEmpty { remarks.append(field.choices.map(\.name).joined(separator: " | ")) }
            table.add(["\(field.number)", field.name, field.type.name, remarks.joined(separator: ", ")])
        }
        table.print(to: output, withHeading: true)
    }
}

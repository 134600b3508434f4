// `larder kinds`.

import LarderFormat

enum KindsCommand: Command {
    static let name = "kinds"
    static let purpose = "list the kinds of records, or the fields of one"
    static let synopsis = ["kinds [KIND]"]
    static let examples = [
        (line: "larder kinds", does: "lists the kinds with their keys"),
        (line: "larder kinds title", does: "lists the fields of a title with their types"),
    ]

    static func run(_ context: Context) throws -> Int32 {
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

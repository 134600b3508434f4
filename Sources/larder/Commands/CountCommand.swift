// `larder count`.

import LarderFormat

enum CountCommand: Command {
    static let name = "count"
    static let purpose = "count the records"
    static let synopsis = ["count [KIND] [--where CONDITION]", "count KIND --by FIELD [--where CONDITION]"]
    static let options = [
        OptionSpec("where", short: "w", "CONDITION", "only those for which it holds"),
        OptionSpec("by", short: "b", "FIELD", "how many have each value of a field, most first"),
    ]
    static let details = """
        Conditions are those of larder list --where; larder help list says how they are written. By a list, a record
        counts once for each of its texts.
        """
    static let examples = [
        (line: "larder count", does: "counts the records of each kind"),
        (line: "larder count title", does: "prints how many titles there are, as a number alone"),
        (line: "larder count title --by genres --where 'release_date >= 1990'", does: "counts newer titles by genre"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        let name = try optionalKind(context)
        let session = try context.session()
        let number = try session.kindNumber(name)
        let kinds = try session.kinds()
        let condition = context.options.value("where") ?? ""
        if let field = context.options.value("by") {
            guard let kind = kinds[number] else { throw misused("--by needs a KIND") }
            return try countGroups(context, kind, try FieldNames.field(field, kind), condition)
        }
        let found = try ConditionText.attempt("counting", condition) {
            try session.client.count(kind: number, condition: condition)
        }
        // A host leaves out kinds of which there is nothing.
        let numbers = name == nil ? Set(kinds.all.map(\.number) + found.map(\.kind)).sorted() : [number]
        let counts = numbers.map { number in (kind: number, count: found.first { $0.kind == number }?.count ?? 0) }
        if context.isJSON {
            for count in counts {
                context.output.json {
                    $0.member("kind", kinds[count.kind]?.name ?? "\(count.kind)")
                    $0.member("count", count.count)
                }
            }
            return 0
        }
        if name != nil {
            // For scripts: no separators, no words.
            context.output.line("\(counts.first?.count ?? 0)")
            return 0
        }
        var table = Table([.init("KIND"), .init("RECORDS", .trailing)], width: nil)
        for count in counts { table.add([kinds[count.kind]?.name ?? "\(count.kind)", Formats.count(count.count)]) }
        table.add(["all", Formats.count(counts.reduce(0) { $0 + $1.count })])
        table.print(to: context.output, withHeading: true)
        return 0
    }

    private static func countGroups(
        _ context: Context, _ kind: Kind, _ field: Field, _ condition: String
    ) throws -> Int32 {
        let client = try context.client()
        let groups = try ConditionText.attempt("counting", condition) {
            try client.countGroups(kind: kind.number, by: field.number, condition: condition)
        }
        // A list's texts come one by one, each as a text.
        let shape = field.type == .list ? Field(field.number, field.name, .text) : field
        var table = Table(
            [.init(field.name.uppercased(), flexible: true), .init("RECORDS", .trailing)], width: context.output.width)
        for group in groups {
            let value = try group.value.map { try decoded($0, shape) }
            if context.isJSON {
                context.output.json {
                    $0.member("field", field.name)
                    $0.name("value")
                    if let value { value.writeJSON(shape, into: &$0) } else { $0.null() }
                    $0.member("count", group.count)
                }
            } else {
                table.add([value.map { $0.plainText(shape) } ?? "(none)", Formats.count(group.count)])
            }
        }
        if !context.isJSON { table.print(to: context.output, withHeading: true) }
        return 0
    }

    private static func decoded(_ bytes: [UInt8], _ field: Field) throws -> Value {
        let read: Result<Value, FormatError> = bytes.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            do throws(FormatError) { return .success(try Value(from: &reader, field)) } catch { return .failure(error) }
        }
        switch read {
        case .success(let value): return value
        case .failure(let error):
            throw Failure("counting by \(field.name)", "the host told a value that is none: \(error)")
        }
    }
}

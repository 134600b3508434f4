// `larder count`.

enum CountCommand: Command {
    static let name = "count"
    static let purpose = "count the records"
    static let synopsis = ["count [KIND]"]
    static let examples = [
        (line: "larder count", does: "counts the records of each kind"),
        (line: "larder count title", does: "prints how many titles there are, as a number alone"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        let name = try optionalKind(context)
        let session = try context.session()
        let number = try session.kindNumber(name)
        let kinds = try session.kinds()
        let found = try attempt("counting") { try session.client.count(kind: number) }
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
}

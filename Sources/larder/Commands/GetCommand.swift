// `larder get`.

import LarderFormat
import LarderWire

enum GetCommand: Command {
    static let name = "get"
    static let purpose = "show records by their keys"
    static let synopsis = ["get KEY…", "get KIND VALUE…"]
    static let details = """
        A key is written kind:value/value, as title:tmdb/movie/603; % and / inside a value are %25 and %2F.
        The second form takes the values of one key as words, just as they are.
        """
    static let examples = [
        (line: "larder get title:tmdb/movie/603", does: "shows one film with all its fields"),
        (line: "larder get title tmdb movie 603 --json", does: "prints the same record as JSON"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        try KeyArguments.expectSome(context.options.arguments, command: name)
        let session = try context.session()
        let kinds = try session.kinds()
        let keys = try KeyArguments.read(context.options.arguments, kinds, command: name)
        var isComplete = true
        for (index, key) in keys.enumerated() {
            guard let (key, found) = try context.stored(key) else {
                isComplete = false
                context.output.flush()
                context.warn("\(DisplayText.visible(key.text)): not found")
                continue
            }
            found.record.withUnsafeBytes { bytes in
                if context.isJSON {
                    context.output.json { RecordJSON.write(found.header, bytes, kinds, into: &$0) }
                } else {
                    if index > 0 { context.output.line("") }
                    print(found.header, bytes, key, context.output)
                }
            }
        }
        return isComplete ? 0 : 1
    }

    private static func print(
        _ header: StoredRecordHeader, _ bytes: UnsafeRawBufferPointer, _ key: RecordKey, _ output: Output
    ) {
        let record = try? Record(decoding: bytes, key.kind)
        let cells = RecordCells(record, bytes, key.kind)
        output.line(output.styled(DisplayText.visible(cells.label), .bold))
        var facts = [
            ("key", key.text),
            ("saved", Formats.localTime(milliseconds: header.savedAt) + " (seq \(header.firstSeq))"),
        ]
        if header.seq != header.firstSeq {
            facts.append(("changed", Formats.localTime(milliseconds: header.changedAt) + " (seq \(header.seq))"))
        }
        for (number, value) in record?.values ?? [] {
            guard let field = key.kind.field(number), number > key.kind.keyFieldCount else { continue }
            facts.append((field.name, value.plainText(field)))
        }
        if record == nil { facts.append(("opaque", Hex.text(bytes))) }
        let width = facts.map { $0.0.count }.max() ?? 0
        for (name, value) in facts {
            let gap = String(repeating: " ", count: width - name.count + 2)
            output.line("  " + output.styled(name, .dim) + gap + DisplayText.visible(value))
        }
    }
}

// `larder get`.

import LarderFormat
import LarderWire

enum GetCommand: Command {
    static let name = "get"
    static let purpose = "show records by their keys, or by an indexed field"
    static let synopsis = ["get KEY…", "get KIND VALUE…", "get KIND FIELD=VALUE"]
    static let details = """
        A key is written kind:value/value, as title:tmdb/movie/603; % and / inside a value are %25 and %2F.
        The second form takes the values of one key as words, just as they are.
        The third finds the records with a value in an indexed field (larder kinds KIND says which are); upper and lower
        case are the same there, and an ISBN may have ten or thirteen digits, with hyphens or without.
        """
    static let examples = [
        (line: "larder get title:tmdb/movie/603", does: "shows one film with all its fields"),
        (line: "larder get title tmdb movie 603 --json", does: "prints the same record as JSON"),
        (line: "larder get title imdb_id=tt0133093", does: "shows the titles with that IMDb id"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        try KeyArguments.expectSome(context.options.arguments, command: name)
        let session = try context.session()
        let kinds = try session.kinds()
        if let (kind, field, value) = try fieldValue(context.options.arguments, kinds) {
            return try find(context, session, kind, field, value)
        }
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

    /// `KIND FIELD=VALUE`; nil where it is something else.
    private static func fieldValue(_ words: [String], _ kinds: Kinds) throws(Failure) -> (Kind, Field, [UInt8])? {
        guard words.count == 2, !words[0].utf8.contains(0x3A), let equals = words[1].firstIndex(of: "=") else {
            return nil
        }
        let kind = try kinds.named(words[0])
        let name = String(words[1][..<equals])
        // A key of one value may have the sign in it.
        if kind.keyFieldCount == 1, kind.field(named: name) == nil { return nil }
        let field = try FieldNames.field(name, kind)
        guard field.constraints.contains(.indexed) else {
            let indexed = kind.fields.filter { $0.constraints.contains(.indexed) }.map(\.name).joined(separator: ", ")
            throw .usage(
                "\(kind.name).\(name)", "this field is not indexed",
                (indexed.isEmpty ? "" : "indexed are: \(indexed); ")
                    + "larder list \(kind.name) --where finds by any field")
        }
        let shape = field.type == .list ? Field(field.number, field.name, .text) : field
        do throws(RecordTextError) {
            var writer = ByteWriter()
            let text = FieldInput.isbn(String(words[1][words[1].index(after: equals)...]), field)
            try Value(plainText: text, shape).encode(into: &writer)
            return (kind, field, writer.bytes)
        } catch { throw .usage("\(kind.name).\(name)", error.reason) }
    }

    private static func find(
        _ context: Context, _ session: Session, _ kind: Kind, _ field: Field, _ value: [UInt8]
    ) throws -> Int32 {
        let kinds = try session.kinds()
        let found = try attempt("looking for \(field.name)") {
            try session.client.find(Find(kind: kind.number, field: field.number, value: value, limit: 1_000))
        }
        for (index, stored) in found.records.enumerated() {
            try stored.record.withUnsafeBytes { bytes in
                if context.isJSON {
                    context.output.json { RecordJSON.write(stored.header, bytes, kinds, into: &$0) }
                    return
                }
                let range = try RecordSchema(kind).keyRange(ofChecked: bytes)
                let key = try RecordKey(decoding: UnsafeRawBufferPointer(rebasing: bytes[range]), kind)
                if index > 0 { context.output.line("") }
                print(stored.header, bytes, key, context.output)
            }
        }
        context.output.flush()
        if found.records.isEmpty { context.warn("no \(kind.name) with that \(field.name)") }
        if !found.isEnd {
            context.warn("there are more than \(Formats.count(found.records.count)); these are the first")
        }
        return found.records.isEmpty ? 1 : 0
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

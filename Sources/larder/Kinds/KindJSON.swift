// A kind in the form of its file (Protocol/kinds/*.json).

import LarderFormat

enum KindJSON {
    /// Names of the constraints as files spell them, in their order.
    static let constraints: [(name: String, constraint: FieldConstraints)] = [
        ("required", .required), ("not_blank", .notBlank), ("not_zero", .notZero), ("indexed", .indexed),
        ("personal", .personal),
    ]

    static func constraintNames(_ field: Field) -> [String] {
        constraints.filter { field.constraints.contains($0.constraint) }.map(\.name)
    }

    /// The members of the object.
    ///
    /// - Parameter isNumbered: with the kind's number and version, which are the library's own.
    static func write(_ kind: Kind, isNumbered: Bool = true, into json: inout JSONWriter) {
        json.member("kind", kind.name)
        if isNumbered {
            json.member("number", kind.number)
            json.member("version", kind.version)
        }
        for (member, numbers) in [("key", kind.keyFields.map(\.number)), ("label", kind.labelFields)] {
            json.name(member)
            json.beginArray()
            for number in numbers { json.string(kind.field(number)?.name ?? "") }
            json.endArray()
        }
        json.name("fields")
        json.beginArray()
        for field in kind.fields {
            json.beginObject()
            write(field, into: &json)
            json.endObject()
        }
        json.endArray()
    }

    private static func write(_ field: Field, into json: inout JSONWriter) {
        json.member("number", field.number)
        json.member("name", field.name)
        json.member("type", field.type.name)
        for constraint in constraintNames(field) { json.member(constraint, true) }
        guard !field.choices.isEmpty else { return }
        json.name("values")
        json.beginObject()
        for choice in field.choices { json.member(String(choice.number), choice.name) }
        json.endObject()
    }

    /// As people edit it: a member a line, and a field a line.
    static func text(_ kind: Kind) -> String {
        var json = JSONWriter()
        json.beginObject()
        write(kind, into: &json)
        json.endObject()
        guard let object = (try? JSONValue(parsing: json.text))?.object else { return json.text }
        var lines: [String] = []
        for (name, value) in object.members {
            guard name == "fields", let fields = value.array else {
                lines.append("  \(KindJSON.text(.string(name))): \(KindJSON.text(value))")
                continue
            }
            let rows = fields.map { "    " + KindJSON.text($0) }
            lines.append("  \"fields\": [\n" + rows.joined(separator: ",\n") + "\n  ]")
        }
        return "{\n" + lines.joined(separator: ",\n") + "\n}"
    }

    private static func text(_ value: JSONValue) -> String {
        var json = JSONWriter()
        json.value(value)
        return json.text
    }
}

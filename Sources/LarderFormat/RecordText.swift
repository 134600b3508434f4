// Values and records as JSON (SPEC.md section 4), strict in both directions.

/// A value or a record that can't be read from its text.
public struct RecordTextError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Name of the field, or "".
    public let field: String
    /// What was seen and what would be right, as the rest of a sentence.
    public let reason: String

    public init(_ field: String, _ reason: String) {
        self.field = field
        self.reason = reason
    }

    public var description: String { field.isEmpty ? reason : "\(field): \(reason)" }
}

extension Value {
    /// The JSON form, without the quotes that a string has there: `603`, `movie`, `1999-03-31`. A list is joined with
    /// commas.
    public func plainText(_ field: Field) -> String {
        switch self {
        case .bool(let value): value ? "true" : "false"
        case .int(let value), .identifier(.number(let value)): String(value)
        case .number(let value): value.text
        case .text(let value), .identifier(.text(let value)): value
        case .bytes(let value): Base64.text(value)
        case .date(let value): value.text
        case .time(let value): TimeText.text(milliseconds: value)
        case .uuid(let value): value.text
        case .choice(let value): field.choiceName(value) ?? String(value)
        case .list(let value): value.joined(separator: ", ")
        }
    }

    public func writeJSON(_ field: Field, into writer: inout JSONWriter) {
        switch self {
        case .bool(let value): writer.bool(value)
        case .int(let value), .identifier(.number(let value)): writer.integer(value)
        case .number(let value): writer.number(value)
        case .list(let value):
            writer.beginArray()
            for text in value { writer.string(text) }
            writer.endArray()
        case .text, .identifier, .bytes, .date, .time, .uuid, .choice: writer.string(plainText(field))
        }
    }

    /// Reads the JSON form of a value of the field's type.
    public init(json: JSONValue, _ field: Field) throws(RecordTextError) {
        switch (field.type, json) {
        case (.bool, .bool(let value)): self = .bool(value)
        case (.int, .integer(let value)): self = .int(value)
        case (.number, .integer(let value)): self = .number(Number(value))
        case (.number, .unsigned(let value)): self = .number(try Value.number(String(value), field))
        case (.number, .decimal(let text)): self = .number(try Value.number(text, field))
        case (.identifier, .integer(let value)):
            guard let identifier = Identifier(value) else { throw Value.refusal(field, json) }
            self = .identifier(identifier)
        case (.list, .array(let elements)):
            var list: [String] = []
            for element in elements {
                guard let text = element.string else { throw Value.refusal(field, json) }
                list.append(try Value.withoutNUL(text, field))
            }
            self = .list(list)
        case (.text, .string(let text)), (.identifier, .string(let text)), (.bytes, .string(let text)),
            (.date, .string(let text)), (.time, .string(let text)), (.uuid, .string(let text)),
            (.choice, .string(let text)):
            self = try Value(plainText: text, field)
        default: throw Value.refusal(field, json)
        }
    }

    /// Reads what `plainText` writes, strictly. A list is a text of its own here: one element.
    public init(plainText text: String, _ field: Field) throws(RecordTextError) {
        let value: Value? =
            switch field.type {
            case .bool: text == "true" ? .bool(true) : text == "false" ? .bool(false) : nil
            case .int: Value.wholeNumber(text).map(Value.int)
            case .number: .number(try Value.number(text, field))
            case .text: .text(try Value.withoutNUL(text, field))
            case .identifier: Identifier(try Value.withoutNUL(text, field)).map(Value.identifier)
            case .bytes: Base64.bytes(text).map(Value.bytes)
            case .date: PartialDate(text: text).map(Value.date)
            case .time: TimeText.milliseconds(text).map(Value.time)
            case .uuid: UUIDBytes(text: text).map(Value.uuid)
            case .choice: field.choice(named: text).map(Value.choice)
            case .list: .list([try Value.withoutNUL(text, field)])
            }
        guard let value else { throw Value.refusal(field, .string(text)) }
        self = value
    }

    private static func number(_ text: String, _ field: Field) throws(RecordTextError) -> Number {
        do throws(Number.TextError) { return try Number(jsonText: text) } catch {
            throw RecordTextError(field.name, error == .overflow ? "the number is too large" : "not a number")
        }
    }

    /// An integer in its only form: no sign but `-`, no leading zeros.
    private static func wholeNumber(_ text: String) -> Int64? {
        Int64(text).flatMap { String($0) == text ? $0 : nil }
    }

    private static func withoutNUL(_ text: String, _ field: Field) throws(RecordTextError) -> String {
        if text.utf8.contains(0) { throw RecordTextError(field.name, "text with U+0000 in it") }
        return text
    }

    private static func refusal(_ field: Field, _ seen: JSONValue) -> RecordTextError {
        var wanted: String
        switch field.type {
        case .bool: wanted = "true or false"
        case .int: wanted = "a whole number of at most 64 bits"
        case .number: wanted = "a number"
        case .text: wanted = "a string"
        case .identifier: wanted = "a whole number from 0 or a string that is not empty"
        case .bytes: wanted = "a string in base64"
        case .date: wanted = "a date such as \"1999\", \"1999-03\" or \"1999-03-31\""
        case .time: wanted = "a time such as \"1999-03-31T08:00:00.000Z\""
        case .uuid: wanted = "a uuid such as \"123e4567-e89b-42d3-a456-426614174000\""
        case .choice: wanted = "one of " + field.choices.map { "\"\($0.name)\"" }.joined(separator: ", ")
        case .list: wanted = "an array of strings"
        }
        if case .string = seen { wanted += ", not another text" } else { wanted += ", not \(seen.typeName)" }
        return RecordTextError(field.name, "expected \(wanted)")
    }
}

extension Record {
    /// An object with the present fields by name, ascending by number. Fields that `kind` does not declare are left out.
    public func writeJSON(_ kind: Kind, into writer: inout JSONWriter) {
        writer.beginObject()
        writeMembers(kind, into: &writer)
        writer.endObject()
    }

    /// The members alone, inside an object that the caller opened.
    public func writeMembers(_ kind: Kind, into writer: inout JSONWriter) {
        for (number, value) in values {
            guard let field = kind.field(number) else { continue }
            writer.name(field.name)
            value.writeJSON(field, into: &writer)
        }
    }

    public func json(_ kind: Kind) -> String {
        var writer = JSONWriter()
        writeJSON(kind, into: &writer)
        return writer.text
    }

    /// Reads an object whose members are all fields of `kind`, in their JSON form. Requirements of the kind are checked
    /// when the record is encoded.
    public init(json: JSONValue, _ kind: Kind) throws(RecordTextError) {
        guard let object = json.object else { throw RecordTextError("", "expected an object, not \(json.typeName)") }
        self.init()
        for (name, member) in object.members {
            guard let field = kind.field(named: name) else {
                throw RecordTextError(name, "the kind \(kind.name) has no such field")
            }
            self[field.number] = try Value(json: member, field)
        }
    }
}

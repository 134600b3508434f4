// What a person types for a field, and what is wrong with it.

import LarderFormat

/// A value that a field does not take. The description begins with the field's name.
struct FieldFault: Error, Equatable, CustomStringConvertible {
    let field: String
    let reason: String

    init(_ field: String, _ reason: String) {
        self.field = field
        self.reason = reason
    }

    var description: String { field.isEmpty ? reason : "\(field): \(reason)" }
}

/// Reads values as people type them: the JSON form without quotes, and what is easier to type and can't be mistaken.
enum FieldInput {
    /// A value of one line or more. A list gets one element; the empty text is the caller's to interpret.
    static func value(_ text: String, _ field: Field, isKey: Bool) throws(FieldFault) -> Value {
        func fault() -> FieldFault {
            FieldFault(field.name, "expected \(wanted(field)), not \(quoted(text))")
        }
        if text.utf8.contains(0) { throw FieldFault(field.name, "text with U+0000 in it") }
        let value: Value?
        switch field.type {
        case .text: value = .text(isKey ? composed(text) : isbn(text, field))
        case .list: value = .list([text])
        case .identifier: value = Identifier(isKey ? composed(text) : text).map(Value.identifier)
        case .bool: value = bool(text).map(Value.bool)
        case .int: value = int(text).map(Value.int)
        case .number: value = Number(exactText: text).map(Value.number)
        case .date: value = date(text).map(Value.date)
        case .time: value = time(text).map(Value.time)
        case .choice:
            guard let number = choice(text, field) else { throw unknownChoice(text, field) }
            value = .choice(number)
        case .uuid, .bytes: value = try? Value(plainText: text, field)
        }
        guard let value else { throw fault() }
        try check(value, field)
        return value
    }

    /// What the kind asks of the field beyond its type.
    static func check(_ value: Value, _ field: Field) throws(FieldFault) {
        switch value {
        case .text(let text) where field.constraints.contains(.notBlank) && isBlank(text):
            throw FieldFault(field.name, "must not be blank")
        case .int(0), .identifier(.number(0)):
            if field.constraints.contains(.notZero) { throw FieldFault(field.name, "must not be 0") }
        default: break
        }
    }

    /// White space only, as FORMAT.md section 3 has it.
    static func isBlank(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { $0.properties.isWhitespace || (0x09...0x0D).contains($0.value) }
    }

    /// A book's number as imports write it, in thirteen digits, so that it is found however it was typed.
    static func isbn(_ text: String, _ field: Field) -> String {
        field.name == "isbn" ? ISBN(text)?.description ?? text : text
    }

    // MARK: What is allowed

    /// Words behind "expected".
    static func wanted(_ field: Field) -> String {
        switch field.type {
        case .bool: "true or false"
        case .int: "a whole number"
        case .number: "a number such as 8 or 8.5"
        case .text: "a text"
        case .identifier: "a whole number from 0, or a text"
        case .bytes: "bytes in base64"
        case .date: "a date such as 1999, 1999-03 or 1999-03-31, or today"
        case .time: "a time such as 1999-03-31T08:00:00Z, or now"
        case .uuid: "a uuid such as 123e4567-e89b-42d3-a456-426614174000"
        case .choice: "one of " + field.choices.map(\.name).joined(separator: ", ")
        case .list: "texts"
        }
    }

    /// The text in quotes, cut where it is long.
    static func quoted(_ text: String) -> String { "“\(DisplayText.truncated(DisplayText.visible(text), to: 60))”" }

    private static func unknownChoice(_ text: String, _ field: Field) -> FieldFault {
        let near = Suggestion.nearest(to: text.lowercased(), in: field.choices.map(\.name))
        let advice = near.map { "; did you mean \($0)?" } ?? ""
        return FieldFault(field.name, "expected \(wanted(field)), not \(quoted(text))\(advice)")
    }

    // MARK: Types

    private static func bool(_ text: String) -> Bool? {
        switch text.lowercased() {
        case "true", "yes": true
        case "false", "no": false
        default: nil
        }
    }

    private static func int(_ text: String) -> Int64? {
        guard let value = Int64(text), text.utf8.first != 0x2B else { return nil }
        return value
    }

    static func date(_ text: String) -> PartialDate? {
        if text.lowercased() == "today" {
            return PartialDate(text: String(Formats.localTime(milliseconds: Clock.wall).prefix(10)))
        }
        return PartialDate(lenient: text)
    }

    private static func time(_ text: String) -> Int64? {
        text.lowercased() == "now" ? Clock.wall : TimeText.milliseconds(text)
    }

    private static func choice(_ text: String, _ field: Field) -> Int? {
        field.choice(named: text) ?? field.choices.first { $0.name == composed(text) }?.number
            ?? field.choices.first { $0.name.lowercased() == text.lowercased() }?.number
    }
}

// A record as lines to be edited: every field with its type and what it takes.

import LarderFormat

/// Writes and reads the form.
///
///     # media_type (choice, key, required): movie, tv, season
///     media_type: movie
///     # genres (list)
///     genres: Drama
///     genres: Crime
///     # overview (text)
///     overview:
///     | first line
///     | second line
///
/// A field without a value is absent. What can't stand in plain words (white space at an end, control characters, the
/// empty text, quotes in front) is in double quotes, as JSON has strings; `[]` is the empty list.
enum EditForm {
    /// - Parameter notes: told at the top, above everything else.
    static func text(_ record: Record, _ kind: Kind, heading: [String], notes: [String] = []) -> String {
        var text = ""
        for note in notes { for line in lines(note) { text += "#! \(line)\n" } }
        if !notes.isEmpty { text += "#\n" }
        for line in heading { text += line.isEmpty ? "#\n" : "# \(line)\n" }
        for field in kind.fields {
            text += "\n# \(about(field, kind))\n"
            if let value = record[field.number] { write(value, field, into: &text) } else { text += field.name + ":\n" }
        }
        return text
    }

    static let howTo = [
        "A line is “field: value”; a field without a value is absent. Lines with # in front are passed over.",
        "A list has a line for each text. More lines of one text have | in front.",
        "Save and close to store it; empty the file to give up.",
    ]

    private static func about(_ field: Field, _ kind: Kind) -> String {
        var words = [field.type.name]
        if field.number <= kind.keyFieldCount { words.append("key") }
        if field.constraints.contains(.required) { words.append("required") }
        if field.constraints.contains(.personal) { words.append("personal") }
        let choices = field.choices.map(\.name).joined(separator: ", ")
        return "\(field.name) (\(words.joined(separator: ", ")))" + (choices.isEmpty ? "" : ": " + choices)
    }

    // MARK: Writing

    private static func write(_ value: Value, _ field: Field, into text: inout String) {
        switch value {
        case .list(let texts):
            if texts.isEmpty { text += "\(field.name): []\n" }
            for element in texts {
                text += "\(field.name): \(element == "[]" ? json(element) : plainOrQuoted(element))\n"
            }
        case .text(let value) where mayStandInLines(value):
            text += field.name + ":\n"
            for line in lines(value) { text += line.isEmpty ? "|\n" : "| \(line)\n" }
        default:
            text += "\(field.name): \(plainOrQuoted(value.plainText(field)))\n"
        }
    }

    /// Several lines, each of which an editor leaves as it is.
    private static func mayStandInLines(_ text: String) -> Bool {
        let parts = lines(text)
        return parts.count > 1
            && parts.allSatisfy { line in
                line.utf8.last.map { $0 != 0x20 } ?? true
                    && line.unicodeScalars.allSatisfy { $0.value >= 0x20 && !isLineEnd($0.value) }
            }
    }

    private static func plainOrQuoted(_ text: String) -> String { isPlain(text) ? text : json(text) }

    private static func isPlain(_ text: String) -> Bool {
        guard let first = text.unicodeScalars.first, let last = text.unicodeScalars.last else { return false }
        return first != "\"" && !first.properties.isWhitespace && !last.properties.isWhitespace
            && text.unicodeScalars.allSatisfy { $0.value >= 0x20 && !isLineEnd($0.value) }
    }

    /// What an editor may take for the end of a line.
    private static func isLineEnd(_ scalar: UInt32) -> Bool { [0x7F, 0x85, 0x2028, 0x2029].contains(scalar) }

    /// By bytes: as characters, a line feed and a combining mark behind it are one.
    private static func lines(_ text: String) -> [String] {
        text.utf8.split(separator: 0x0A, omittingEmptySubsequences: false).map { String(Substring($0)) }
    }

    private static func json(_ text: String) -> String {
        var writer = JSONWriter()
        writer.string(text)
        // What an editor may take for the end of a line.
        return String(
            writer.text.unicodeScalars.map { isLineEnd($0.value) ? escape($0.value) : String($0) }.joined())
    }

    private static func escape(_ scalar: UInt32) -> String {
        let digits = String(scalar, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }

    // MARK: Reading

    /// A line that can't be read.
    struct LineFault: Equatable {
        let line: Int
        let text: String
    }

    /// What a form says. Without lines that say anything `isEmpty` holds.
    struct Reading {
        var record = Record()
        var faults: [LineFault] = []
        var isEmpty = true
    }

    private struct Pending {
        let field: Field
        let line: Int
        var text: String
        var isQuoted = false
        var hasLines = false
    }

    static func read(_ form: String, _ kind: Kind) -> Reading {
        var reading = Reading()
        var pending: Pending?
        for (index, line) in lines(form).enumerated() {
            let number = index + 1
            var line = line
            if line.utf8.last == 0x0D { line = String(Substring(line.utf8.dropLast())) }
            if line.utf8.first == 0x7C {
                proceed(&pending, line, number, &reading)
                continue
            }
            finish(&pending, kind, &reading)
            if line.utf8.first == 0x23 || trimmed(line).isEmpty { continue }
            reading.isEmpty = false
            begin(line, number, kind, &pending, &reading)
        }
        finish(&pending, kind, &reading)
        return reading
    }

    private static func begin(
        _ line: String, _ number: Int, _ kind: Kind, _ pending: inout Pending?, _ reading: inout Reading
    ) {
        guard let colon = line.utf8.firstIndex(of: 0x3A) else {
            reading.faults.append(
                LineFault(line: number, text: "expected “field: value”, not \(FieldInput.quoted(line))"))
            return
        }
        do throws(FieldFault) {
            let field = try FieldEdits.field(trimmed(String(line[..<colon])), kind)
            let text = trimmed(String(line[line.utf8.index(after: colon)...]))
            pending = Pending(field: field, line: number, text: text)
            if text.utf8.first == 0x22, text.utf8.count >= 2, text.utf8.last == 0x22 {
                guard let plain = (try? JSONValue(parsing: text))?.string else {
                    throw FieldFault(field.name, "in double quotes, \" is written \\\" and \\ is written \\\\")
                }
                pending?.text = plain
                pending?.isQuoted = true
            }
        } catch {
            pending = nil
            reading.faults.append(LineFault(line: number, text: error.description))
        }
    }

    /// A further line of a text.
    private static func proceed(
        _ pending: inout Pending?, _ line: String, _ number: Int, _ reading: inout Reading
    ) {
        guard var before = pending, before.field.type == .text, !before.isQuoted else {
            reading.faults.append(
                LineFault(
                    line: number,
                    text: "a line with | goes on with a text, and there is none above \(FieldInput.quoted(line))"))
            return
        }
        var rest = line.utf8.dropFirst()
        if rest.first == 0x20 { rest = rest.dropFirst() }
        let more = String(Substring(rest))
        before.text = before.hasLines || !before.text.isEmpty ? before.text + "\n" + more : more
        before.hasLines = true
        pending = before
    }

    private static func finish(_ pending: inout Pending?, _ kind: Kind, _ reading: inout Reading) {
        guard let last = pending else { return }
        pending = nil
        let field = last.field
        let before = reading.record[field.number]
        if last.text.isEmpty, !last.isQuoted, !last.hasLines { return }
        do throws(FieldFault) {
            if field.type == .list, last.text == "[]", !last.isQuoted, before == nil {
                reading.record[field.number] = .list([])
                return
            }
            let value = try FieldInput.value(last.text, field, isKey: field.number <= kind.keyFieldCount)
            switch (value, before) {
            case (.list(let texts), .list(let others)?): reading.record[field.number] = .list(others + texts)
            case (_, nil): reading.record[field.number] = value
            default: throw FieldFault(field.name, "given twice; only a list is")
            }
        } catch {
            reading.faults.append(LineFault(line: last.line, text: error.description))
        }
    }

    private static func trimmed(_ text: String) -> String {
        var scalars = Substring(text).unicodeScalars
        while let first = scalars.first, first.properties.isWhitespace { scalars.removeFirst() }
        while let last = scalars.last, last.properties.isWhitespace { scalars.removeLast() }
        return String(scalars)
    }
}

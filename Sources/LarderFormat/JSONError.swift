// What is wrong with JSON text, and where.

/// JSON text that breaks RFC 8259 or one of the reader's own rules.
public struct JSONError: Error, Equatable, Sendable {
    public enum Code: UInt8, Sendable {
        /// The text ends inside a value.
        case unexpectedEnd
        /// A byte that can't stand here: a comma too many, a comment, a word that is none, …
        case unexpectedByte
        /// Text behind the value.
        case trailing
        /// A byte below 0x20 inside a string.
        case controlCharacter
        /// A backslash with something else behind it than RFC 8259 allows.
        case badEscape
        /// Half of a surrogate pair, or bytes that are not UTF-8.
        case badUnicode
        /// A number that is none: `01`, `1.`, `-`, `+1`.
        case badNumber
        /// The same name twice in one object; the place is that of the later one.
        case repeatedName
        /// Objects and arrays in one another, more than `JSONReader.depthMax`.
        case tooDeep
        /// A value of another type or range than the one that was asked for.
        case wrongType
    }

    public let code: Code
    /// In bytes from the start of the text.
    public let offset: Int
    /// From 1; lines end at a line feed.
    public let line: Int
    /// From 1, in characters (Unicode scalars).
    public let column: Int
    /// What would have been right here, as the words behind "expected", or "".
    let expected: StaticString

    public static func == (a: JSONError, b: JSONError) -> Bool {
        a.code == b.code && a.offset == b.offset && a.line == b.line && a.column == b.column
    }

    init(_ code: Code, offset: Int, line: Int, column: Int, expected: StaticString = "") {
        self.code = code
        self.offset = offset
        self.line = line
        self.column = column
        self.expected = expected
    }

    /// Finds line and column by reading `text` up to `offset`.
    init(_ code: Code, at offset: Int, of text: UnsafeRawBufferPointer, expected: StaticString = "") {
        var line = 1
        var column = 1
        for byte in text.prefix(offset) {
            if byte == 0x0A {
                line += 1
                column = 1
            } else if byte & 0xC0 != 0x80 {
                column += 1
            }
        }
        self.init(code, offset: offset, line: line, column: column, expected: expected)
    }

    /// The fault without its place.
    public var reason: String {
        let what =
            switch code {
            case .unexpectedEnd: "the text ends too early"
            case .unexpectedByte: "a character that can't stand here"
            case .trailing: "more text behind the value"
            case .controlCharacter: "a raw control character in a string; write it as an escape"
            case .badEscape: "an escape that JSON does not have"
            case .badUnicode: "half of a surrogate pair, or bytes that are not UTF-8"
            case .badNumber: "not a number as JSON writes it"
            case .repeatedName: "a name that this object has already"
            case .tooDeep: "more than \(JSONReader.depthMax) objects and arrays in one another"
            case .wrongType: "a value of the wrong type"
            }
        return expected.utf8CodeUnitCount == 0 ? what : "\(what); expected \(expected)"
    }
}

extension JSONError: CustomStringConvertible {
    public var description: String { "\(reason), at line \(line), column \(column) (offset \(offset))" }
}

// Parts a condition's text into tokens (SPEC.md section 17).

/// A token of a condition, with the offset in bytes at which it begins.
struct ConditionToken {
    enum Content: Equatable {
        /// A name, a word of the language, or a value without quotes.
        case word(String)
        /// A value in quotes, without them and without backslashes.
        case quoted(String)
        /// = != < <= > >=
        case comparison(ConditionComparison)
        case open
        case close
        case comma
        case end
    }

    let content: Content
    let offset: Int

    /// As reasons name it.
    var name: String {
        switch content {
        case .word(let text): "'\(ConditionToken.short(text))'"
        case .quoted: "a text in quotes"
        case .comparison(let comparison): "'\(comparison.rawValue)'"
        case .open: "'('"
        case .close: "')'"
        case .comma: "','"
        case .end: "the end"
        }
    }

    var word: String? {
        if case .word(let text) = content { return text }
        return nil
    }

    /// Text for a reason: a peer's word may be long.
    static func short(_ text: String) -> String {
        text.unicodeScalars.count <= 40 ? text : String(String.UnicodeScalarView(text.unicodeScalars.prefix(40))) + "…"
    }
}

enum ConditionComparison: String {
    case equal = "="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
}

struct ConditionLexer {
    static let byteCountMax = 4096

    private let bytes: [UInt8]
    private var at = 0

    init(_ text: String) throws(ConditionError) {
        bytes = Array(text.utf8)
        guard bytes.count <= ConditionLexer.byteCountMax else {
            throw ConditionError(
                offset: ConditionLexer.byteCountMax,
                reason: "the condition has \(bytes.count) bytes; at most \(ConditionLexer.byteCountMax) are allowed")
        }
        if let nul = bytes.firstIndex(of: 0) {
            throw ConditionError(offset: nul, reason: "U+0000 is part of no condition")
        }
    }

    mutating func next() throws(ConditionError) -> ConditionToken {
        while whiteSpace > 0 { at += whiteSpace }
        let start = at
        guard at < bytes.count else { return ConditionToken(content: .end, offset: start) }
        func token(_ content: ConditionToken.Content) -> ConditionToken {
            ConditionToken(content: content, offset: start)
        }
        switch bytes[at] {
        case UInt8(ascii: "("):
            at += 1
            return token(.open)
        case UInt8(ascii: ")"):
            at += 1
            return token(.close)
        case UInt8(ascii: ","):
            at += 1
            return token(.comma)
        case UInt8(ascii: "="):
            at += 1
            return token(.comparison(.equal))
        case UInt8(ascii: "!"):
            at += 1
            guard skip("=") else { throw ConditionError(offset: start, reason: "'!' stands only in '!='; use 'not'") }
            return token(.comparison(.notEqual))
        case UInt8(ascii: "<"):
            at += 1
            return token(.comparison(skip("=") ? .lessOrEqual : .less))
        case UInt8(ascii: ">"):
            at += 1
            return token(.comparison(skip("=") ? .greaterOrEqual : .greater))
        case UInt8(ascii: "\""):
            return token(.quoted(try quoted()))
        default:
            while at < bytes.count, whiteSpace == 0, !ConditionLexer.endsWord(bytes[at]) { at += 1 }
            return token(.word(String(decoding: bytes[start..<at], as: UTF8.self)))
        }
    }

    private var whiteSpace: Int { bytes.withUnsafeBytes { whiteSpaceByteCount($0, at: at) } }

    private mutating func skip(_ wanted: Unicode.Scalar) -> Bool {
        guard at < bytes.count, UInt32(bytes[at]) == wanted.value else { return false }
        at += 1
        return true
    }

    private static func endsWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: ","), UInt8(ascii: "="),
            UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "!"):
            true
        default: false
        }
    }

    private mutating func quoted() throws(ConditionError) -> String {
        let start = at
        at += 1
        var text: [UInt8] = []
        while at < bytes.count {
            let byte = bytes[at]
            if byte == UInt8(ascii: "\"") {
                at += 1
                return String(decoding: text, as: UTF8.self)
            }
            if byte == UInt8(ascii: "\\") {
                at += 1
                guard at < bytes.count else { break }
                guard bytes[at] == UInt8(ascii: "\"") || bytes[at] == UInt8(ascii: "\\") else {
                    throw ConditionError(
                        offset: at - 1, reason: "a backslash in quotes stands only before '\"' and before another one")
                }
            }
            text.append(bytes[at])
            at += 1
        }
        throw ConditionError(offset: start, reason: "the quotes that begin here do not end; '\"' is missing")
    }
}

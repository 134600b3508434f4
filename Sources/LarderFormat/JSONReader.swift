// Reads JSON text strictly (RFC 8259), a token at a time, without making anything of plain strings.
//
// Reads raw memory that the caller owns: every access lies below `end`, which never exceeds the text's count.

/// What `JSONReader.next()` found; text and number lie in the reader until the next call.
public enum JSONToken: UInt8, Sendable {
    case beginObject, endObject, beginArray, endArray
    /// A name in an object and the colon behind it; `text` holds it.
    case name
    /// `text` holds it.
    case string
    /// `number` holds it.
    case number
    case `true`, `false`, null
    /// Everything was read; every later call says so again.
    case end
}

/// A cursor over JSON text that somebody else owns and keeps unchanged while the reader or a slice of it is in use.
///
/// One value, white space around it, nothing else: no comments, no trailing commas, no byte order mark, no name twice
/// in one object, no half surrogate pairs, no bytes that are not UTF-8. After an error the reader is of no use until
/// `restart`. Allocates only to remember the names of open objects, in memory that `restart` keeps.
public struct JSONReader {
    /// Objects and arrays in one another, at most.
    public static let depthMax = 64

    private enum Expecting: UInt8 { case value, elementOrEnd, nameOrEnd, separator }

    private var base: UnsafePointer<UInt8>
    private var count: Int
    /// Where well-formed UTF-8 without NUL ends.
    private var end: Int
    /// In bytes from the start of the text: behind what was read.
    public private(set) var offset = 0
    /// Objects and arrays that are open.
    public private(set) var depth = 0
    /// Bit per open container, the innermost lowest: 1 for an object.
    private var containers: UInt64 = 0
    private var expecting = Expecting.value
    private var names = JSONNames()

    /// Of the last token `name` or `string`.
    public private(set) var text: JSONText
    /// Of the last token `number`.
    public private(set) var number = JSONNumber(text: UnsafeRawBufferPointer(start: nil, count: 0))
    /// Where the last token begins, in bytes.
    public private(set) var tokenOffset = 0

    public init(_ text: UnsafeRawBufferPointer) {
        base = JSONReader.nothing
        count = 0
        end = 0
        self.text = JSONText(bytes: UnsafeRawBufferPointer(start: nil, count: 0))
        restart(text)
    }

    /// Begins with another text, in the same memory.
    public mutating func restart(_ text: UnsafeRawBufferPointer) {
        base = text.baseAddress?.assumingMemoryBound(to: UInt8.self) ?? JSONReader.nothing
        count = text.count
        end = badTextOffset(text) ?? text.count
        offset = 0
        depth = 0
        containers = 0
        expecting = .value
        names.removeAll()
    }

    /// Never read: stands for the address of empty text.
    private static var nothing: UnsafePointer<UInt8> {
        UnsafePointer(bitPattern: 1).unsafelyUnwrapped
    }

    /// - Throws: the first fault. That a name is there twice is said at the end of its object.
    public mutating func next() throws(JSONError) -> JSONToken {
        var byte = peek()
        if expecting == .separator {
            if depth == 0 {
                guard offset == end else { throw fault(.trailing, at: offset) }
                guard end == count else { throw fault(.unexpectedEnd, at: end) }
                tokenOffset = end
                return .end
            }
            if byte != 0x2C { return try close(byte) }
            offset += 1
            byte = peek()
            if containers & 1 == 1 { return try name(byte) }
        } else if expecting == .nameOrEnd {
            if byte == 0x7D { return try close(byte) }
            return try name(byte)
        } else if expecting == .elementOrEnd && byte == 0x5D {
            return try close(byte)
        }
        return try value(byte)
    }

    /// Reads past the value that comes next, with all that is in it.
    public mutating func skipValue() throws(JSONError) {
        let outer = depth
        repeat { _ = try next() } while depth > outer
    }

    /// Reads on to the end of the container that is open at `outer`.
    public mutating func skip(toDepth outer: Int) throws(JSONError) {
        while depth > outer { _ = try next() }
    }

    /// Reads the end of the text.
    public mutating func finish() throws(JSONError) {
        guard try next() == .end else { throw fault(.trailing, at: tokenOffset) }
    }

    /// An error at the last token, for whoever wanted something else there.
    public func wrongType(expected: StaticString) -> JSONError {
        fault(.wrongType, at: tokenOffset, expected: expected)
    }

    // MARK: Tokens

    /// The next byte that is not white space, or 0 at the end.
    @inline(__always)
    private mutating func peek() -> UInt8 {
        while offset < end {
            let byte = base[offset]
            if byte > 0x20 || (byte != 0x20 && byte != 0x0A && byte != 0x0D && byte != 0x09) { return byte }
            offset += 1
        }
        return 0
    }

    private mutating func value(_ byte: UInt8) throws(JSONError) -> JSONToken {
        tokenOffset = offset
        switch byte {
        case 0x22:
            text = try string()
            expecting = .separator
            return .string
        case 0x2D, 0x30...0x39:
            try scanNumber()
            expecting = .separator
            return .number
        case 0x7B:
            try open(1)
            names.open()
            expecting = .nameOrEnd
            return .beginObject
        case 0x5B:
            try open(0)
            expecting = .elementOrEnd
            return .beginArray
        case 0x74: return try word("true", .true)
        case 0x66: return try word("false", .false)
        case 0x6E: return try word("null", .null)
        default: throw unexpected("a value")
        }
    }

    private mutating func open(_ bit: UInt64) throws(JSONError) {
        guard depth < JSONReader.depthMax else { throw fault(.tooDeep, at: offset) }
        depth += 1
        containers = containers << 1 | bit
        offset += 1
    }

    private mutating func close(_ byte: UInt8) throws(JSONError) -> JSONToken {
        let isObject = containers & 1 == 1
        guard byte == (isObject ? 0x7D : 0x5D) else {
            let isEmpty = expecting != .separator
            if isObject { throw unexpected(isEmpty ? "a name or }" : "a comma or }") }
            throw unexpected("a comma or ]")
        }
        tokenOffset = offset
        offset += 1
        depth -= 1
        containers >>= 1
        expecting = .separator
        guard isObject else { return .endArray }
        if let repeated = names.close(in: base) { throw fault(.repeatedName, at: repeated) }
        return .endObject
    }

    private mutating func name(_ byte: UInt8) throws(JSONError) -> JSONToken {
        guard byte == 0x22 else { throw unexpected("a name in quotes") }
        let start = offset
        text = try string()
        names.append(text, quoteAt: start)
        guard peek() == 0x3A else { throw unexpected("a colon") }
        offset += 1
        tokenOffset = start
        expecting = .value
        return .name
    }

    private mutating func word(_ word: StaticString, _ token: JSONToken) throws(JSONError) -> JSONToken {
        let size = word.utf8CodeUnitCount
        for index in 0..<size {
            guard offset + index < end else { throw fault(.unexpectedEnd, at: end) }
            guard base[offset + index] == word.utf8Start[index] else { throw unexpected("a value") }
        }
        offset += size
        expecting = .separator
        return token
    }

    // MARK: Strings

    /// Reads a string whose opening quote is at `offset`.
    @inline(__always)
    private mutating func string() throws(JSONError) -> JSONText {
        let start = offset + 1
        let at = plainEnd(from: start)
        if at < end && base[at] == 0x22 {
            offset = at + 1
            return JSONText(bytes: UnsafeRawBufferPointer(start: base + start, count: at - start))
        }
        return try longString(start, at)
    }

    /// The first quote, backslash or control character at or behind `from`, or the end.
    @inline(__always)
    private func plainEnd(from: Int) -> Int {
        let ones: UInt64 = 0x0101_0101_0101_0101
        var at = from
        while end - at >= 8 {
            let word = UInt64(littleEndian: UnsafeRawPointer(base + at).loadUnaligned(as: UInt64.self))
            let quote = word ^ (ones &* 0x22)
            let backslash = word ^ (ones &* 0x5C)
            // The lowest marked byte is marked rightly; a borrow can only mark bytes above it.
            let marks =
                (((quote &- ones) & ~quote) | ((backslash &- ones) & ~backslash) | ((word &- ones &* 0x20) & ~word))
                & (ones &* 0x80)
            if marks != 0 { return at &+ marks.trailingZeroBitCount >> 3 }
            at &+= 8
        }
        while at < end {
            let byte = base[at]
            if byte == 0x22 || byte == 0x5C || byte < 0x20 { break }
            at &+= 1
        }
        return at
    }

    /// Goes on from `at`, which is no closing quote.
    private mutating func longString(_ start: Int, _ special: Int) throws(JSONError) -> JSONText {
        var at = special
        var hasNUL = false
        while true {
            guard at < end else { throw fault(.unexpectedEnd, at: end, inString: true) }
            let byte = base[at]
            if byte == 0x22 { break }
            guard byte == 0x5C else { throw fault(.controlCharacter, at: at) }
            let escape = try JSONEscape(base, at: at, end: end, fault: fault)
            if escape.scalar == 0 { hasNUL = true }
            at = plainEnd(from: at + escape.byteCount)
        }
        offset = at + 1
        return JSONText(
            bytes: UnsafeRawBufferPointer(start: base + start, count: at - start), hasEscapes: true, hasNUL: hasNUL)
    }

    // MARK: Numbers

    private mutating func scanNumber() throws(JSONError) {
        let start = offset
        var at = start
        var found = JSONNumber(text: UnsafeRawBufferPointer(start: nil, count: 0))
        if base[at] == 0x2D {
            found.isNegative = true
            at += 1
        }
        let whole = at
        while at < end, base[at] &- 0x30 < 10 {
            found.take(base[at] &- 0x30, isFraction: false)
            at += 1
        }
        if at == whole { throw badNumber(at) }
        if base[whole] == 0x30 && at - whole > 1 { throw fault(.badNumber, at: start) }
        if at < end, base[at] == 0x2E {
            found.isInteger = false
            at += 1
            let fraction = at
            while at < end, base[at] &- 0x30 < 10 {
                found.take(base[at] &- 0x30, isFraction: true)
                at += 1
            }
            if at == fraction { throw badNumber(at) }
        }
        if at < end, base[at] | 0x20 == 0x65 {
            found.isInteger = false
            at += 1
            var isNegative = false
            if at < end, base[at] == 0x2B || base[at] == 0x2D {
                isNegative = base[at] == 0x2D
                at += 1
            }
            let digits = at
            var exponent = 0
            while at < end, base[at] &- 0x30 < 10 {
                if exponent < 100_000_000 { exponent = exponent * 10 + Int(base[at] &- 0x30) }
                at += 1
            }
            if at == digits { throw badNumber(at) }
            found.exponent += isNegative ? -exponent : exponent
        }
        found.text = UnsafeRawBufferPointer(start: base + start, count: at - start)
        number = found
        offset = at
    }

    private func badNumber(_ at: Int) -> JSONError {
        at == end ? fault(.unexpectedEnd, at: end) : fault(.badNumber, at: tokenOffset)
    }

    // MARK: Faults

    private func unexpected(_ expected: StaticString) -> JSONError {
        offset == end ? fault(.unexpectedEnd, at: end) : fault(.unexpectedByte, at: offset, expected: expected)
    }

    /// The end of good UTF-8 before the end of the text is a fault of its own.
    @inline(never)
    private func fault(
        _ code: JSONError.Code, at: Int, inString: Bool = false, expected: StaticString = ""
    ) -> JSONError {
        var code = code
        if code == .unexpectedEnd && end < count {
            code = base[end] != 0 ? .badUnicode : inString ? .controlCharacter : .unexpectedByte
        }
        return JSONError(code, at: at, of: UnsafeRawBufferPointer(start: base, count: count), expected: expected)
    }

    private func fault(_ code: JSONError.Code, _ at: Int) -> JSONError { fault(code, at: at, inString: true) }
}

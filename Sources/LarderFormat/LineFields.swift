// The values of one line, each encoded as its field asks, before they are put in order.
//
// Reads raw memory that the line's owner lends: a slot may point into the line until `write` has run.

/// A field as an import sees it.
struct LineRule: Sendable {
    let number: Int
    let name: String
    let type: FieldType
    let isKey: Bool
    let isLabel: Bool
    let isRequired: Bool
    /// White space alone is as good as nothing.
    let isBlankAbsent: Bool
    let isZeroBad: Bool
    let choices: [(name: [UInt8], number: Int)]

    init(_ field: Field, _ kind: Kind) {
        number = field.number
        name = field.name
        type = field.type
        isKey = field.number <= kind.keyFieldCount
        isLabel = kind.labelFields.contains(field.number)
        isRequired = field.constraints.contains(.required)
        isBlankAbsent = isLabel || isRequired || field.constraints.contains(.notBlank)
        isZeroBad = field.constraints.contains(.notZero)
        choices = field.choices.map { (Array($0.name.utf8), $0.number) }
    }
}

/// What became of a value.
enum LineTaken {
    case stored
    /// As good as nothing: null, "", [].
    case absent
    /// White space where it is as good as nothing.
    case blank
    /// Words behind "expected".
    case bad(StaticString)
}

/// The values that a line has given so far.
struct LineFields: ~Copyable {
    /// Where a field's encoded value lies, or the bytes of a text without its count.
    private struct Slot {
        var text: UnsafeRawPointer?
        var start: Int
        var count: Int
    }

    private(set) var present = FieldSet()
    private var slots = [Slot](repeating: Slot(text: nil, start: 0, count: 0), count: 257)
    private var scratch = ByteWriter(reserving: 1024)
    private var list = ByteWriter(reserving: 256)
    private var listCount = 0

    mutating func removeAll() {
        present = FieldSet()
        scratch.bytes.removeAll(keepingCapacity: true)
    }

    /// Takes a string.
    ///
    /// - Parameter isLasting: the bytes stay where they are until `write`.
    mutating func take(_ string: UnsafeRawBufferPointer, isLasting: Bool, _ rule: borrowing LineRule) -> LineTaken {
        if string.isEmpty { return .absent }
        switch rule.type {
        case .text:
            if rule.isBlankAbsent && isBlank(string) { return .blank }
            if rule.isKey && !isNFC(string) { return takeNormalised(string, rule) }
            if isLasting {
                slots[rule.number] = Slot(text: string.baseAddress, start: 0, count: string.count)
                present.insert(rule.number)
                return .stored
            }
            let start = scratch.count
            scratch.byteString(string)
            return stored(rule, from: start)
        case .list:
            beginList()
            append(string)
            return endList(rule)
        default:
            return takeTrimmed(trimmed(string), rule)
        }
    }

    /// A key's text in normalisation form C.
    private mutating func takeNormalised(_ string: UnsafeRawBufferPointer, _ rule: borrowing LineRule) -> LineTaken {
        let start = scratch.count
        let text = normalised(string)
        scratch.text(text)
        return stored(rule, from: start)
    }

    private mutating func takeTrimmed(_ string: UnsafeRawBufferPointer, _ rule: borrowing LineRule) -> LineTaken {
        if string.isEmpty { return .absent }
        let start = scratch.count
        switch rule.type {
        case .bool:
            if string.elementsEqual("true".utf8) { return take(true, rule) }
            if string.elementsEqual("false".utf8) { return take(false, rule) }
            return .bad("true or false")
        case .int:
            guard let number = JSONNumber(parsing: string) else { return .bad("a whole number") }
            return take(number, rule)
        case .number:
            guard let number = JSONNumber(parsing: string) else { return .bad("a number") }
            return take(number, rule)
        case .identifier:
            if let number = Identifier.plainDecimal(string) { return takeIdentifier(number, rule) }
            if JSONNumber(parsing: string) != nil && !string.allSatisfy({ $0 &- 0x30 < 10 || $0 | 0x20 == 0x65 }) {
                return .bad("a whole number from 0, or a text that is no number")
            }
            let text = rule.isKey && !isNFC(string) ? Array(normalised(string).utf8) : Array(string)
            scratch.varint(text.count << 1 | 1)
            scratch.raw(text)
        case .bytes:
            guard let bytes = Base64.bytes(String(decoding: string, as: UTF8.self)) else { return .bad("base64") }
            scratch.byteString(bytes)
        case .date:
            guard let date = date(string) else { return .bad("a date") }
            scratch.svarint(date.packed)
        case .time:
            guard let time = TimeText.milliseconds(String(decoding: string, as: UTF8.self)) else {
                return .bad("a time with its offset")
            }
            scratch.svarint(time)
        case .uuid:
            guard let uuid = UUIDBytes(text: String(decoding: string, as: UTF8.self)) else { return .bad("a uuid") }
            Value.uuid(uuid).encode(into: &scratch)
        case .choice:
            guard let choice = rule.choices.first(where: { string.elementsEqual($0.name) }) else {
                return .bad("one of the field's values")
            }
            scratch.varint(choice.number)
        case .text, .list: return .bad("another value")
        }
        return stored(rule, from: start)
    }

    /// Takes a number.
    mutating func take(_ number: JSONNumber, _ rule: borrowing LineRule) -> LineTaken {
        let start = scratch.count
        switch rule.type {
        case .int:
            guard let value = number.wholeInt64 else { return .bad("a whole number of at most 64 bits") }
            if value == 0 && rule.isZeroBad { return .bad("a number that is not 0") }
            scratch.svarint(value)
        case .number:
            guard let value = try? Number(json: number) else { return .bad("a number in the range of doubles") }
            scratch.svarint(value.mantissa)
            scratch.svarint(Int64(value.exponent))
        case .identifier:
            guard let value = number.int64, value >= 0 else { return .bad("a whole number from 0, or a text") }
            return takeIdentifier(value, rule)
        case .date:
            guard let year = number.int64, year >= 1, year <= 9999, let date = PartialDate(year: Int(year)) else {
                return .bad("a date")
            }
            scratch.svarint(date.packed)
        case .text, .list: return take(number.text, isLasting: true, rule)
        case .bool: return .bad("true or false")
        case .bytes: return .bad("base64")
        case .time: return .bad("a time with its offset")
        case .uuid: return .bad("a uuid")
        case .choice: return .bad("one of the field's values")
        }
        return stored(rule, from: start)
    }

    mutating func takeIdentifier(_ value: Int64, _ rule: borrowing LineRule) -> LineTaken {
        if value == 0 && rule.isZeroBad { return .bad("an id that is not 0") }
        let start = scratch.count
        scratch.varint(UInt64(value) << 1)
        return stored(rule, from: start)
    }

    mutating func take(_ flag: Bool, _ rule: borrowing LineRule) -> LineTaken {
        guard rule.type == .bool else { return .bad(LineFields.wanted(rule.type)) }
        let start = scratch.count
        scratch.u8(flag ? 1 : 0)
        return stored(rule, from: start)
    }

    /// Takes a value that was encoded before.
    mutating func fill(_ encoded: [UInt8], _ number: Int) {
        let start = scratch.count
        scratch.raw(encoded)
        slots[number] = Slot(text: nil, start: start, count: encoded.count)
        present.insert(number)
    }

    // MARK: Lists

    mutating func beginList() {
        list.bytes.removeAll(keepingCapacity: true)
        listCount = 0
    }

    /// Adds an element; the empty text is none.
    mutating func append(_ element: UnsafeRawBufferPointer) {
        if element.isEmpty { return }
        list.byteString(element)
        listCount += 1
    }

    mutating func endList(_ rule: borrowing LineRule) -> LineTaken {
        if listCount == 0 { return .absent }
        let start = scratch.count
        scratch.varint(listCount)
        scratch.raw(list.bytes)
        return stored(rule, from: start)
    }

    private mutating func stored(_ rule: borrowing LineRule, from start: Int) -> LineTaken {
        slots[rule.number] = Slot(text: nil, start: start, count: scratch.count - start)
        present.insert(rule.number)
        return .stored
    }

    // MARK: The record

    /// The encoded value of a field that is present.
    func encoded(_ number: Int) -> [UInt8] {
        var writer = ByteWriter()
        writeValue(number, into: &writer)
        return writer.bytes
    }

    /// Lends the bytes of a text that is present.
    func withText<Result>(_ number: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
        guard present.contains(number) else { return nil }
        let slot = slots[number]
        if let text = slot.text { return body(UnsafeRawBufferPointer(start: text, count: slot.count)) }
        return scratch.bytes.withUnsafeBytes { bytes in
            var reader = ByteReader(UnsafeRawBufferPointer(rebasing: bytes[slot.start..<slot.start + slot.count]))
            return (try? reader.bytes()).map(body)
        }
    }

    /// Writes the whole record.
    func write(into writer: inout ByteWriter) {
        present.encode(into: &writer)
        var rest = present
        while let number = rest.popFirst() { writeValue(number, into: &writer) }
    }

    @inline(__always)
    private func writeValue(_ number: Int, into writer: inout ByteWriter) {
        let slot = slots[number]
        if let text = slot.text {
            writer.byteString(UnsafeRawBufferPointer(start: text, count: slot.count))
        } else {
            scratch.bytes.withUnsafeBytes {
                writer.raw(UnsafeRawBufferPointer(rebasing: $0[slot.start..<slot.start + slot.count]))
            }
        }
    }

    static func wanted(_ type: FieldType) -> StaticString {
        switch type {
        case .bool: "true or false"
        case .int: "a whole number"
        case .number: "a number"
        case .text: "a text"
        case .identifier: "a whole number from 0, or a text"
        case .bytes: "base64"
        case .date: "a date"
        case .time: "a time with its offset"
        case .uuid: "a uuid"
        case .choice: "one of the field's values"
        case .list: "an array of texts"
        }
    }
}

/// Without ASCII white space at both ends.
func trimmed(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (byte >= 0x09 && byte <= 0x0D) }
    var start = 0
    var end = bytes.count
    while start < end && isSpace(bytes[start]) { start += 1 }
    while end > start && isSpace(bytes[end - 1]) { end -= 1 }
    return UnsafeRawBufferPointer(rebasing: bytes[start..<end])
}

/// Most dates are of one form; the rest go the long way.
private func date(_ text: UnsafeRawBufferPointer) -> PartialDate? {
    if text.count == 10 && text[4] == 0x2D && text[7] == 0x2D {
        func digits(_ from: Int, _ count: Int) -> Int? {
            var value = 0
            for at in from..<from + count {
                guard text[at] &- 0x30 < 10 else { return nil }
                value = value * 10 + Int(text[at] &- 0x30)
            }
            return value
        }
        if let year = digits(0, 4), let month = digits(5, 2), let day = digits(8, 2), month > 0, day > 0 {
            return PartialDate(year: year, month: month, day: day)
        }
    }
    return PartialDate(lenient: String(decoding: text, as: UTF8.self))
}

// Writes JSON text.

extension ByteWriter {
    /// A string in quotes. Quotes, backslashes and control characters are escaped; everything else stands as it is.
    public mutating func jsonString(_ text: UnsafeRawBufferPointer) {
        u8(0x22)
        var plain = 0
        for (at, byte) in text.enumerated() where byte < 0x20 || byte == 0x22 || byte == 0x5C {
            raw(UnsafeRawBufferPointer(rebasing: text[plain..<at]))
            jsonEscape(byte)
            plain = at + 1
        }
        raw(UnsafeRawBufferPointer(rebasing: text[plain...]))
        u8(0x22)
    }

    public mutating func jsonString(_ text: String) {
        var text = text
        text.withUTF8 { jsonString(UnsafeRawBufferPointer($0)) }
    }

    /// ASCII text without anything around it.
    mutating func ascii(_ text: StaticString) {
        raw(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    private mutating func jsonEscape(_ byte: UInt8) {
        switch byte {
        case 0x22: ascii("\\\"")
        case 0x5C: ascii("\\\\")
        case 0x08: ascii("\\b")
        case 0x09: ascii("\\t")
        case 0x0A: ascii("\\n")
        case 0x0C: ascii("\\f")
        case 0x0D: ascii("\\r")
        default:
            let digits: StaticString = "0123456789abcdef"
            ascii("\\u00")
            u8(digits.utf8Start[Int(byte >> 4)])
            u8(digits.utf8Start[Int(byte & 15)])
        }
    }
}

/// Writes JSON without white space, and the commas where they belong.
///
/// The caller opens and closes in order and names every member; nothing is checked.
public struct JSONWriter: Sendable {
    public var out: ByteWriter
    private var needsComma = false

    public init(into out: ByteWriter = ByteWriter()) { self.out = out }

    public mutating func beginObject() { open(0x7B) }
    public mutating func endObject() { close(0x7D) }
    public mutating func beginArray() { open(0x5B) }
    public mutating func endArray() { close(0x5D) }

    public mutating func name(_ name: String) {
        comma()
        out.jsonString(name)
        out.u8(0x3A)
        needsComma = false
    }

    public mutating func string(_ value: String) {
        comma()
        out.jsonString(value)
    }

    public mutating func string(_ value: UnsafeRawBufferPointer) {
        comma()
        out.jsonString(value)
    }

    public mutating func integer(_ value: some FixedWidthInteger) {
        comma()
        out.raw(Array(String(value).utf8))
    }

    public mutating func number(_ value: Number) {
        comma()
        out.raw(Array(value.text.utf8))
    }

    /// The shortest decimal that reads back as `value`; `null` for infinities and NaN.
    public mutating func double(_ value: Double) {
        if let value = Number(double: value) { number(value) } else { null() }
    }

    public mutating func bool(_ value: Bool) {
        comma()
        out.ascii(value ? "true" : "false")
    }

    public mutating func null() {
        comma()
        out.ascii("null")
    }

    public mutating func value(_ value: JSONValue) {
        switch value {
        case .null: null()
        case .bool(let flag): bool(flag)
        case .integer(let number): integer(number)
        case .unsigned(let number): integer(number)
        case .decimal(let text):
            comma()
            out.raw(Array(text.utf8))
        case .string(let text): string(text)
        case .array(let elements):
            beginArray()
            for element in elements { self.value(element) }
            endArray()
        case .object(let object):
            beginObject()
            for (name, member) in object.members {
                self.name(name)
                self.value(member)
            }
            endObject()
        }
    }

    /// A line feed between values that stand on lines of their own.
    public mutating func newline() {
        out.u8(0x0A)
        needsComma = false
    }

    public var text: String { String(decoding: out.bytes, as: UTF8.self) }

    private mutating func comma() {
        if needsComma { out.u8(0x2C) }
        needsComma = true
    }

    private mutating func open(_ bracket: UInt8) {
        comma()
        out.u8(bracket)
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        out.u8(bracket)
        needsComma = true
    }
}

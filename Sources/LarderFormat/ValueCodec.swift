// The one encoding of each value (FORMAT.md section 2), by way of `Value`.

extension Value {
    public func encode(into writer: inout ByteWriter) {
        switch self {
        case .bool(let value): writer.u8(value ? 1 : 0)
        case .int(let value), .time(let value): writer.svarint(value)
        case .number(let value):
            writer.svarint(value.mantissa)
            writer.svarint(Int64(value.exponent))
        case .text(let value): writer.text(value)
        case .identifier(.number(let value)): writer.varint(UInt64(value) << 1)
        case .identifier(.text(let value)):
            writer.varint(value.utf8.count << 1 | 1)
            writer.raw(Array(value.utf8))
        case .bytes(let value): writer.byteString(value)
        case .date(let value): writer.svarint(value.packed)
        case .uuid(let value):
            for half in [value.high, value.low] { writer.u64(half.byteSwapped) }
        case .choice(let value): writer.varint(value)
        case .list(let value):
            writer.varint(value.count)
            for text in value { writer.text(text) }
        }
    }

    /// Reads a value of the field's type.
    ///
    /// - Throws: whatever makes it another encoding than `encode` gives, or a value that the type does not have.
    public init(from reader: inout ByteReader, _ field: Field) throws(FormatError) {
        let start = reader.offset
        switch field.type {
        case .bool:
            let byte = try reader.u8()
            guard byte <= 1 else { throw FormatError(.outOfRange, at: start) }
            self = .bool(byte == 1)
        case .int: self = .int(try reader.svarint())
        case .number:
            let mantissa = try reader.svarint()
            let exponent = try reader.svarint()
            guard mantissa == 0 ? exponent == 0 : mantissa % 10 != 0 else {
                throw FormatError(.notCanonical, at: start)
            }
            guard let small = Int(exactly: exponent), let number = Number(mantissa: mantissa, exponent: small) else {
                throw FormatError(.outOfRange, at: start)
            }
            self = .number(number)
        case .text: self = .text(try reader.text())
        case .identifier: self = .identifier(try Value.identifier(from: &reader))
        case .bytes: self = .bytes(Array(try reader.bytes()))
        case .date:
            guard let date = PartialDate(packed: try reader.svarint()) else {
                throw FormatError(.outOfRange, at: start)
            }
            self = .date(date)
        case .time:
            let time = try reader.svarint()
            guard timeRange.contains(time) else { throw FormatError(.outOfRange, at: start) }
            self = .time(time)
        case .uuid:
            guard reader.remaining >= 16 else { throw FormatError(.truncated, at: start) }
            let high = try reader.u64()
            self = .uuid(UUIDBytes(high: high.byteSwapped, low: try reader.u64().byteSwapped))
        case .choice:
            let number = try reader.varint()
            guard let small = Int(exactly: number), field.choiceName(small) != nil else {
                throw FormatError(.unknownChoice, at: start)
            }
            self = .choice(small)
        case .list:
            var list: [String] = []
            for _ in 0..<(try reader.count(ofAtLeast: 1)) { list.append(try reader.text()) }
            self = .list(list)
        }
    }

    private static func identifier(from reader: inout ByteReader) throws(FormatError) -> Identifier {
        let start = reader.offset
        let head = try reader.varint()
        if head & 1 == 0 { return .number(Int64(head >> 1)) }
        guard head > 1 else { throw FormatError(.notCanonical, at: start) }
        guard head >> 1 <= UInt64(reader.remaining) else { throw FormatError(.truncated, at: start) }
        let text = try reader.slice(Int(head >> 1))
        guard badTextOffset(text) == nil else { throw FormatError(.badText, at: start) }
        let found = String(decoding: text, as: UTF8.self)
        guard Identifier.plainDecimal(found.utf8) == nil else { throw FormatError(.notCanonical, at: start) }
        return .text(found)
    }

    /// Holds the value against its field's constraints, and its text in a key against NFC.
    ///
    /// - Throws: with `offset`, and without a field.
    func check(_ field: Field, isKey: Bool, at offset: Int) throws(FormatError) {
        switch self {
        case .text(let text):
            if field.constraints.contains(.notBlank) && text.isBlank { throw FormatError(.blankField, at: offset) }
            if isKey && !text.isNFC { throw FormatError(.keyNotNormalised, at: offset) }
        case .identifier(.text(let text)):
            if isKey && !text.isNFC { throw FormatError(.keyNotNormalised, at: offset) }
        case .identifier(.number(0)), .int(0):
            if field.constraints.contains(.notZero) { throw FormatError(.zeroField, at: offset) }
        default: break
        }
    }
}

extension String {
    /// No character but white space (FORMAT.md section 3).
    var isBlank: Bool {
        unicodeScalars.allSatisfy { scalar in
            switch scalar.value {
            case 0x09...0x0D, 0x20, 0x85, 0xA0, 0x1680, 0x2000...0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000: true
            default: false
            }
        }
    }

    var isNFC: Bool { Array(utf8).withUnsafeBytes { LarderFormat.isNFC($0) } }
}

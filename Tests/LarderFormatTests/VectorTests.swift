// Primitives, values and kinds of Protocol/vectors.

import Testing

@testable import LarderFormat

@Suite("Vectors of primitives, values and kinds")
struct VectorTests {
    // MARK: Primitives

    /// A primitive's value as the vectors show it: bytes in hexadecimal.
    private func primitive(_ type: String, _ bytes: [UInt8]) throws -> JSONValue {
        func number(_ value: UInt64) -> JSONValue { Int64(exactly: value).map(JSONValue.integer) ?? .unsigned(value) }
        return try bytes.reading { reader in
            let value: JSONValue
            switch type {
            case "varint": value = number(try reader.varint())
            case "svarint": value = .integer(try reader.svarint())
            case "text": value = .string(try reader.text())
            case "bytes": value = .string(try reader.bytes().map(hexByte).joined())
            case "u8": value = .integer(Int64(try reader.u8()))
            case "u16": value = .integer(Int64(try reader.u16()))
            case "u32": value = .integer(Int64(try reader.u32()))
            case "u64": value = number(try reader.u64())
            case "i64": value = .integer(try reader.i64())
            default: throw VectorFormError("there is no primitive \(type)")
            }
            try reader.expectEnd()
            return value
        }
    }

    private func hexByte(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }

    private func encodedPrimitive(_ vector: Vector) throws -> [UInt8] {
        var writer = ByteWriter()
        switch try vector.text("type") {
        case "varint": writer.varint(try vector.integer("value", as: UInt64.self))
        case "svarint": writer.svarint(try vector.integer("value"))
        case "text": writer.text(try vector.text("value"))
        case "bytes": writer.byteString(try vector.hex("value"))
        case "u8": writer.u8(try vector.integer("value"))
        case "u16": writer.u16(try vector.integer("value"))
        case "u32": writer.u32(try vector.integer("value"))
        case "u64": writer.u64(try vector.integer("value"))
        case "i64": writer.i64(try vector.integer("value"))
        case let type: throw VectorFormError("there is no primitive \(type)")
        }
        return writer.bytes
    }

    @Test("primitives")
    func primitives() throws {
        let file = try VectorFile("primitives", members: ["type"])
        for vector in file.valid {
            #expect(try primitive(vector.text("type"), vector.bytes()) == vector.value("value"), "\(vector)")
            #expect(try encodedPrimitive(vector) == vector.bytes(), "\(vector)")
        }
        for vector in file.invalid {
            let found = try outcome(vector, .alone) { try primitive(vector.text("type"), vector.bytes()) }
            #expect(try found == expectedOutcome(vector), "\(vector)")
        }
    }

    // MARK: Values

    /// A field of the vector's type, numbered 2.
    private func field(_ vector: Vector) throws -> Field {
        let name = try vector.text("type")
        guard let type = FieldType(name: name) else { throw VectorFormError("\(vector): there is no type \(name)") }
        guard type == .choice else { return Field(2, "value", type) }
        let choices = try vector.object("values").json.object?.members.map { name, value in
            guard let number = Int(name), let text = value.string else { throw VectorFormError("\(vector): values") }
            return Field.Choice(number: number, name: text)
        }
        return Field(2, "value", type, choices: (choices ?? []).sorted { $0.number < $1.number })
    }

    private func expectedValue(_ vector: Vector, _ field: Field) throws -> Value {
        guard field.type == .number else { return try Value(json: vector.value("value"), field) }
        let form = try vector.object("value")
        let mantissa = try form.integer("mantissa", as: Int64.self)
        let exponent = try form.integer("exponent", as: Int.self)
        let number = try #require(Number(mantissa: mantissa, exponent: exponent), "\(vector)")
        // Vectors show a number in its only form.
        #expect(number.mantissa == mantissa && number.exponent == exponent, "\(vector)")
        let json = try form.value("json")
        if !json.isNull { #expect(try Value(json: json, field) == .number(number), "\(vector)") }
        return .number(number)
    }

    private func decode(_ bytes: [UInt8], _ field: Field) throws -> Value {
        try bytes.reading { reader in
            let value = try Value(from: &reader, field)
            try reader.expectEnd()
            return value
        }
    }

    /// The value as the last of a record, checked by the hot path; offsets are those in the value.
    private func scan(_ bytes: [UInt8], _ field: Field) throws {
        let kind = try Kind(
            number: 64, name: "k", version: 1, keyFieldCount: 1, fields: [Field(1, "key", .bool, .required), field],
            labelFields: [])
        let head: [UInt8] = [1, 3, 1]
        do {
            _ = try (head + bytes).withUnsafeBytes { try RecordSchema(kind).scan($0) }
        } catch let error as FormatError {
            throw FormatError(error.code, at: error.offset - head.count, field: error.field)
        }
    }

    @Test("values, by the plain twin and by the hot path")
    func values() throws {
        let file = try VectorFile("values", members: ["type"], optional: ["values"])
        for vector in file.valid {
            let field = try field(vector)
            let bytes = try vector.bytes()
            let expected = try expectedValue(vector, field)
            let found = try decode(bytes, field)
            #expect(found == expected, "\(vector)")
            var writer = ByteWriter()
            expected.encode(into: &writer)
            #expect(writer.bytes == bytes, "\(vector)")
            try scan(bytes, field)
            // A number beyond the doubles is written and not read: JSON's numbers are doubles.
            if field.type == .number, try vector.object("value").value("json").isNull { continue }
            var json = JSONWriter()
            found.writeJSON(field, into: &json)
            #expect(try Value(json: JSONValue(parsing: json.text), field) == expected, "\(vector)")
        }
        for vector in file.invalid {
            let field = try field(vector)
            let expected = try expectedOutcome(vector)
            #expect(try outcome(vector, .alone) { try decode(vector.bytes(), field) } == expected, "\(vector)")
            #expect(try outcome(vector, .alone) { try scan(vector.bytes(), field) } == expected, "\(vector), hot path")
        }
    }

    // MARK: Kinds

    private func kind(_ bytes: [UInt8]) throws -> Kind {
        try bytes.reading { reader in
            let kind = try Kind(from: &reader)
            try reader.expectEnd()
            return kind
        }
    }

    @Test("kinds")
    func kinds() throws {
        let file = try VectorFile("kinds", members: [])
        for vector in file.valid {
            let declared = try Kind(json: vector.value("value"))
            #expect(try kind(vector.bytes()) == declared, "\(vector)")
            #expect(try declared.encoded == vector.bytes(), "\(vector)")
        }
        for vector in file.invalid {
            let found = try outcome(vector, .declaration) { try kind(vector.bytes()) }
            #expect(try found == expectedOutcome(vector), "\(vector)")
        }
    }

    @Test("a kind that is cut is refused; one with a flipped bit is refused, or is its own encoding")
    func kindFlips() throws {
        for vector in try VectorFile("kinds", members: []).valid {
            let bytes = try vector.bytes()
            for count in bytes.indices {
                #expect(throws: FormatError.self, "\(vector), \(count) bytes") { try kind(Array(bytes[..<count])) }
            }
            try bytes.eachFlip { changed, bit in
                do {
                    let encoded = try kind(changed).encoded
                    #expect(encoded == changed, "\(vector), bit \(bit)")
                } catch let error as FormatError {
                    #expect(error.offset <= changed.count, "\(vector), bit \(bit)")
                }
            }
        }
    }
}

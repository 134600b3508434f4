// Records and keys of Protocol/vectors, by the plain twin and by the hot path.

import Testing

@testable import LarderFormat

@Suite("Vectors of records and keys")
struct VectorTestsOfRecords {
    private func recordFile() throws -> VectorFile {
        try VectorFile("records", members: ["kind"], optional: ["key", "key_text", "field", "relax"])
    }

    /// Fields that may be absent.
    private func exempt(_ vector: Vector) throws -> FieldSet {
        guard vector.has("relax") else { return FieldSet() }
        let relax = try vector.text("relax")
        guard relax == "uuid" else { throw VectorFormError("\(vector): relax is \(relax)") }
        return FieldSet([1])
    }

    @Test("valid records")
    func validRecords() throws {
        let file = try recordFile()
        for vector in file.valid {
            let kind = try file.kind(vector)
            let exempt = try exempt(vector)
            let bytes = try vector.bytes()
            let expected = try Record(json: vector.value("value"), kind)
            let record = try Record(decoding: bytes, kind, exempt: exempt)
            #expect(record == expected, "\(vector)")
            #expect(try expected.encode(kind, exempt: exempt) == bytes, "\(vector)")
            #expect(try Record(json: JSONValue(parsing: record.json(kind)), kind) == expected, "\(vector)")

            let schema = RecordSchema(kind)
            let scan = try bytes.withUnsafeBytes { try schema.scan($0, exempt: exempt) }
            #expect(scan.present == FieldSet(expected.values.map(\.field)), "\(vector)")
            var ranges: [Range<Int>] = []
            let present = try bytes.withUnsafeBytes { try schema.fieldRanges(ofChecked: $0, into: &ranges) }
            #expect(present == scan.present, "\(vector)")
            for (number, value) in expected.values {
                var writer = ByteWriter()
                value.encode(into: &writer)
                #expect(Array(bytes[ranges[number]]) == writer.bytes, "\(vector), field \(number)")
            }
            guard !vector.has("relax") else { continue }
            let key = try vector.hex("key")
            #expect(Array(bytes[scan.keyOffset..<(scan.keyOffset + scan.keyByteCount)]) == key, "\(vector)")
            let range = try bytes.withUnsafeBytes { try schema.keyRange(ofChecked: $0) }
            #expect(Array(bytes[range]) == key, "\(vector)")
            let recordKey = try RecordKey(of: record, kind)
            #expect(try recordKey.bytes == key && recordKey.text == vector.text("key_text"), "\(vector)")
        }
    }

    @Test("invalid records")
    func invalidRecords() throws {
        let file = try recordFile()
        for vector in file.invalid {
            let kind = try file.kind(vector)
            let bytes = try vector.bytes()
            let exempt = try exempt(vector)
            let expected = try expectedOutcome(vector)
            let plain = try outcome(vector, .record) { try Record(decoding: bytes, kind, exempt: exempt) }
            #expect(plain == expected, "\(vector)")
            let schema = RecordSchema(kind)
            let hot = try outcome(vector, .record) {
                try bytes.withUnsafeBytes { try schema.scan($0, exempt: exempt) }
            }
            #expect(hot == expected, "\(vector), hot path")
        }
    }

    /// What both ways make of a record's bytes: they must agree to the last offset.
    ///
    /// - Returns: its encoding, or nil when it is refused.
    private func recoded(_ bytes: [UInt8], _ kind: Kind, _ schema: RecordSchema, _ exempt: FieldSet) throws -> [UInt8]?
    {
        let hot = try attempt { try bytes.withUnsafeBytes { try schema.scan($0, exempt: exempt) } }
        let plain = try attempt { try Record(decoding: bytes, kind, exempt: exempt) }
        switch (hot, plain) {
        case (.success, .success(let record)):
            return try record.encode(kind, exempt: exempt)
        case (.failure(let a), .failure(let b)):
            #expect(a == b)
            #expect(a.offset >= 0 && a.offset <= bytes.count)
            return nil
        default:
            throw VectorFormError("one way takes what the other refuses: \(hot) and \(plain)")
        }
    }

    @Test("a record that is cut is refused; one with a flipped bit is refused, or is its own encoding")
    func recordFlips() throws {
        let file = try recordFile()
        for vector in file.valid {
            let kind = try file.kind(vector)
            let schema = RecordSchema(kind)
            let exempt = try exempt(vector)
            let bytes = try vector.bytes()
            for count in bytes.indices {
                #expect(try recoded(Array(bytes[..<count]), kind, schema, exempt) == nil, "\(vector), \(count) bytes")
            }
            try bytes.eachFlip { changed, bit in
                guard let encoded = try recoded(changed, kind, schema, exempt) else { return }
                #expect(encoded == changed, "\(vector), bit \(bit)")
            }
        }
    }

    // MARK: Keys

    private func keyFile() throws -> VectorFile { try VectorFile("keys", members: ["kind"], optional: ["field"]) }

    private func key(_ bytes: [UInt8], _ kind: Kind) throws -> RecordKey {
        try bytes.withUnsafeBytes { try RecordKey(decoding: $0, kind) }
    }

    private func check(_ bytes: [UInt8], _ schema: RecordSchema) throws {
        try bytes.withUnsafeBytes { try schema.checkKey($0) }
    }

    @Test("valid keys")
    func validKeys() throws {
        let file = try keyFile()
        for vector in file.valid {
            let kind = try file.kind(vector)
            let bytes = try vector.bytes()
            #expect(try key(bytes, kind).text == vector.text("value"), "\(vector)")
            #expect(try RecordKey(text: vector.text("value")) { file.kinds[$0] }.bytes == bytes, "\(vector)")
            try check(bytes, RecordSchema(kind))
        }
    }

    @Test("invalid keys")
    func invalidKeys() throws {
        let file = try keyFile()
        for vector in file.invalid {
            let kind = try file.kind(vector)
            let bytes = try vector.bytes()
            let expected = try expectedOutcome(vector)
            #expect(try outcome(vector, .key) { try key(bytes, kind) } == expected, "\(vector)")
            #expect(
                try outcome(vector, .key) { try check(bytes, RecordSchema(kind)) } == expected, "\(vector), hot path")
        }
    }

    @Test("a key that is cut is refused; one with a flipped bit is refused, or is its own encoding")
    func keyFlips() throws {
        let file = try keyFile()
        for vector in file.valid {
            let kind = try file.kind(vector)
            let schema = RecordSchema(kind)
            let bytes = try vector.bytes()
            for count in bytes.indices {
                #expect(throws: FormatError.self, "\(vector)") { try key(Array(bytes[..<count]), kind) }
            }
            try bytes.eachFlip { changed, bit in
                do {
                    try check(changed, schema)
                } catch let error as FormatError {
                    #expect(throws: error, "\(vector), bit \(bit)") { try key(changed, kind) }
                    return
                }
                let found = try key(changed, kind)
                var writer = ByteWriter()
                for value in found.values { value.encode(into: &writer) }
                #expect(writer.bytes == changed, "\(vector), bit \(bit)")
            }
        }
    }
}

// Validates encoded records in place: the hot path of every write. The plain twin is Record.init(decoding:kind:).

/// A kind made ready for checking records of it. Immutable; any thread.
public final class RecordSchema: Sendable {
    public let kind: Kind
    /// Type of each field number 0 … 256, 0 where none is declared. Owned by this object.
    private let rules: UnsafeRules
    public let declared: FieldSet
    public let required: FieldSet
    public let personal: FieldSet
    public let indexed: FieldSet
    public let kindKeyFieldCount: Int
    /// Some field beside the key is required.
    public let requiresMoreThanKey: Bool
    /// See `Kind.keyIsOneUUID`.
    public let kindKeyIsOneUUID: Bool

    private struct UnsafeRules: @unchecked Sendable {
        /// Low byte: the type; from bit 8: constraints; bit 15: a key field.
        let table: UnsafeMutablePointer<UInt16>
        /// Of each choice: which of the numbers 1 … 63 are declared.
        let choices: UnsafeMutablePointer<UInt64>
    }

    public init(_ kind: Kind) {
        self.kind = kind
        let table = UnsafeMutablePointer<UInt16>.allocate(capacity: 257)
        table.initialize(repeating: 0, count: 257)
        let choices = UnsafeMutablePointer<UInt64>.allocate(capacity: 257)
        choices.initialize(repeating: 0, count: 257)
        for field in kind.fields {
            for choice in field.choices where choice.number < 64 { choices[field.number] |= 1 << UInt64(choice.number) }
            var rule = UInt16(field.type.rawValue) | UInt16(field.constraints.rawValue) << 8
            if field.number <= kind.keyFieldCount { rule |= 0x8000 }
            table[field.number] = rule
        }
        rules = UnsafeRules(table: table, choices: choices)
        func numbers(_ constraint: FieldConstraints) -> FieldSet {
            FieldSet(kind.fields.filter { $0.constraints.contains(constraint) }.map(\.number))
        }
        declared = FieldSet(kind.fields.map(\.number))
        required = numbers(.required)
        personal = numbers(.personal)
        indexed = numbers(.indexed)
        kindKeyFieldCount = kind.keyFieldCount
        requiresMoreThanKey = kind.highestRequired > kind.keyFieldCount
        kindKeyIsOneUUID = kind.keyIsOneUUID
    }

    deinit {
        rules.table.deallocate()
        rules.choices.deallocate()
    }

    /// The rule of a field number 0 … 256.
    @inline(__always)
    func rule(_ field: Int) -> UInt16 { rules.table[field] }
    /// `rule` of each field number 0 … 256; this object's memory.
    @inline(__always)
    var ruleTable: UnsafePointer<UInt16> { UnsafePointer(rules.table) }
    /// Which of the numbers 1 … 63 a choice has, as bits.
    @inline(__always)
    func choiceMask(_ field: Int) -> UInt64 { rules.choices[field] }

    /// What a record that was checked is made of.
    public struct Scan {
        public var present: FieldSet
        /// Where the key lies in the record, in bytes.
        public var keyOffset: Int
        public var keyByteCount: Int
    }

    /// Checks a whole record: canonical, every constraint, its last byte.
    ///
    /// - Parameter exempt: fields whose absence is forgiven (a key that the host will make; a merge, which has only
    ///   its key and what changes). Key fields are forgiven only when named.
    /// - Throws: the first fault, with its field and offset. Undeclared and missing fields come first, at the bitmap.
    public func scan(_ record: UnsafeRawBufferPointer, exempt: FieldSet = FieldSet()) throws(FormatError) -> Scan {
        if let quick = quickScan(record, exempt: exempt) { return quick }
        guard record.count <= recordByteCountMax else { throw FormatError(.tooLarge, at: 0) }
        var reader = ByteReader(record)
        let present = try FieldSet(from: &reader)
        if let unknown = present.subtracting(declared).first {
            throw FormatError(.unknownField, at: 0, field: unknown)
        }
        if let missing = required.subtracting(present).subtracting(exempt).first {
            throw FormatError(.missingField, at: 0, field: missing)
        }
        let keyOffset = reader.offset
        var keyEnd = keyOffset
        var rest = present
        while let field = rest.popFirst() {
            let rule = rules.table[field]
            do throws(FormatError) { try check(rule, field, &reader) } catch {
                throw FormatError(error.code, at: error.offset, field: field)
            }
            if rule & 0x8000 != 0 { keyEnd = reader.offset }
        }
        try reader.expectEnd()
        return Scan(present: present, keyOffset: keyOffset, keyByteCount: keyEnd - keyOffset)
    }

    /// Checks a key: the encoded values of the key fields and nothing behind them.
    public func checkKey(_ key: UnsafeRawBufferPointer) throws(FormatError) {
        var reader = ByteReader(key)
        for field in 1...kind.keyFieldCount {
            do throws(FormatError) { try check(rules.table[field], field, &reader) } catch {
                throw FormatError(error.code, at: error.offset, field: field)
            }
        }
        try reader.expectEnd()
    }

    /// The key's place in a record that was checked before, for instance one that was read back from the log.
    public func keyRange(ofChecked record: UnsafeRawBufferPointer) throws(FormatError) -> Range<Int> {
        var reader = ByteReader(record)
        _ = try FieldSet(from: &reader)
        let start = reader.offset
        for field in 1...kind.keyFieldCount { try skip(rules.table[field], &reader) }
        return start..<reader.offset
    }

    /// Where a field's value lies in a checked record; empty where it is absent.
    public func range(of field: Int, inChecked record: UnsafeRawBufferPointer) throws(FormatError) -> Range<Int> {
        var reader = ByteReader(record)
        var rest = try FieldSet(from: &reader)
        guard rest.contains(field) else { return 0..<0 }
        while let next = rest.popFirst() {
            let start = reader.offset
            try skip(rules.table[next], &reader)
            if next == field { return start..<reader.offset }
        }
        return 0..<0
    }

    @inline(__always)
    private func check(_ rule: UInt16, _ field: Int, _ reader: inout ByteReader) throws(FormatError) {
        let constraints = UInt8(truncatingIfNeeded: (rule >> 8) & 0x1F)
        switch UInt8(truncatingIfNeeded: rule) {
        case FieldType.text.rawValue:
            let start = reader.offset
            let text = try reader.textBytes()
            if constraints & FieldConstraints.notBlank.rawValue != 0 && isBlank(text) {
                throw FormatError(.blankField, at: start)
            }
            if rule & 0x8000 != 0 && !isNFC(text) { throw FormatError(.keyNotNormalised, at: start) }
        case FieldType.int.rawValue:
            let start = reader.offset
            let value = try reader.varint()
            if value == 0 && constraints & FieldConstraints.notZero.rawValue != 0 {
                throw FormatError(.zeroField, at: start)
            }
        default:
            try checkRare(rule, field, &reader)
        }
    }

    private func checkRare(_ rule: UInt16, _ field: Int, _ reader: inout ByteReader) throws(FormatError) {
        let start = reader.offset
        let constraints = FieldConstraints(rawValue: UInt8(truncatingIfNeeded: (rule >> 8) & 0x1F))
        switch FieldType(rawValue: UInt8(truncatingIfNeeded: rule)) {
        case .bool:
            if try reader.u8() > 1 { throw FormatError(.outOfRange, at: start) }
        case .number:
            let mantissa = try reader.svarint()
            let exponent = try reader.svarint()
            guard mantissa == 0 ? exponent == 0 : mantissa % 10 != 0 else {
                throw FormatError(.notCanonical, at: start)
            }
            guard exponent >= -400 && exponent <= 400 else { throw FormatError(.outOfRange, at: start) }
        case .identifier:
            try checkIdentifier(&reader, start, constraints, isKey: rule & 0x8000 != 0)
        case .bytes:
            _ = try reader.bytes()
        case .date:
            guard PartialDate(packed: try reader.svarint()) != nil else { throw FormatError(.outOfRange, at: start) }
        case .time:
            guard timeRange.contains(try reader.svarint()) else { throw FormatError(.outOfRange, at: start) }
        case .uuid:
            _ = try reader.slice(16)
        case .choice:
            let value = try reader.varint()
            if value < 64 && rules.choices[field] & (1 << value) != 0 { return }
            guard value > 63, value <= UInt64(Int32.max), kind.field(field)?.choiceName(Int(value)) != nil else {
                throw FormatError(.unknownChoice, at: start)
            }
        case .list:
            for _ in 0..<(try reader.count(ofAtLeast: 1)) { _ = try reader.textBytes() }
        case .text, .int, nil:
            throw FormatError(.unknownField, at: start)
        }
    }

    private func checkIdentifier(
        _ reader: inout ByteReader, _ start: Int, _ constraints: FieldConstraints, isKey: Bool
    ) throws(FormatError) {
        let head = try reader.varint()
        if head & 1 == 0 {
            if head == 0 && constraints.contains(.notZero) { throw FormatError(.zeroField, at: start) }
            return
        }
        guard head > 1 else { throw FormatError(.notCanonical, at: start) }
        guard head >> 1 <= UInt64(reader.remaining) else { throw FormatError(.truncated, at: start) }
        let text = try reader.slice(Int(head >> 1))
        guard badTextOffset(text) == nil else { throw FormatError(.badText, at: start) }
        if Identifier.plainDecimal(text) != nil { throw FormatError(.notCanonical, at: start) }
        if isKey && !isNFC(text) { throw FormatError(.keyNotNormalised, at: start) }
    }

    /// Moves past a value without checking more than its framing.
    private func skip(_ rule: UInt16, _ reader: inout ByteReader) throws(FormatError) {
        switch FieldType(rawValue: UInt8(truncatingIfNeeded: rule)) {
        case .bool: _ = try reader.u8()
        case .int, .date, .time, .choice: _ = try reader.varint()
        case .number:
            _ = try reader.varint()
            _ = try reader.varint()
        case .text, .bytes: _ = try reader.bytes()
        case .identifier:
            let head = try reader.varint()
            if head & 1 == 1 {
                guard head >> 1 <= UInt64(reader.remaining) else { throw FormatError(.truncated, at: reader.offset) }
                _ = try reader.slice(Int(head >> 1))
            }
        case .uuid: _ = try reader.slice(16)
        case .list:
            for _ in 0..<(try reader.count(ofAtLeast: 1)) { _ = try reader.bytes() }
        case nil: throw FormatError(.unknownField, at: reader.offset)
        }
    }

    /// Where each present field's value lies in a checked record: `ranges[field]` is set for every field of the result.
    public func fieldRanges(
        ofChecked record: UnsafeRawBufferPointer, into ranges: inout [Range<Int>]
    ) throws(FormatError) -> FieldSet {
        if ranges.count < 257 { ranges = Array(repeating: 0..<0, count: 257) }
        var reader = ByteReader(record)
        let present = try FieldSet(from: &reader)
        var rest = present
        while let field = rest.popFirst() {
            let start = reader.offset
            try skip(rules.table[field], &reader)
            ranges[field] = start..<reader.offset
        }
        return present
    }
}

/// The largest record, in bytes.
public let recordByteCountMax = 1_048_576

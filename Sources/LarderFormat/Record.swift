// A record as values, for everything that is not on the hot path. Decoding is the plain twin of RecordSchema.scan.

/// The values of a record's present fields.
public struct Record: Sendable {
    /// Ascending by field number, no field twice.
    public private(set) var values: [(field: Int, value: Value)]

    public init() { values = [] }

    /// Values in any order; of a field that is there twice the last one counts.
    public init(_ values: some Sequence<(Int, Value)>) {
        self.init()
        for (field, value) in values { self[field] = value }
    }

    public subscript(_ field: Int) -> Value? {
        get { values.first { $0.field == field }?.value }
        set {
            let index = values.firstIndex { $0.field >= field } ?? values.count
            let isThere = index < values.count && values[index].field == field
            switch newValue {
            case nil: if isThere { values.remove(at: index) }
            case let value?:
                if isThere { values[index].value = value } else { values.insert((field, value), at: index) }
            }
        }
    }

    /// What to call it: the first of the kind's label fields that is present and not blank, as text.
    public func label(_ kind: Kind) -> String? {
        for number in kind.labelFields {
            guard let value = self[number], let field = kind.field(number) else { continue }
            let text = value.plainText(field)
            if !text.isBlank { return text }
        }
        return nil
    }

    /// - Parameter exempt: required fields that may be absent.
    /// - Returns: its one encoding.
    /// - Throws: the fault that a reader of those bytes would find, with its field; `badStructure` for a value of
    ///   another type than its field's.
    public func encode(_ kind: Kind, exempt: FieldSet = FieldSet()) throws(FormatError) -> [UInt8] {
        var writer = ByteWriter(reserving: 512)
        FieldSet(values.map(\.field).filter(Field.numberRange.contains)).encode(into: &writer)
        for (number, value) in values {
            guard let field = kind.field(number) else {
                throw FormatError(.unknownField, at: writer.count, field: number)
            }
            guard value.type == field.type else { throw FormatError(.badStructure, at: writer.count, field: number) }
            value.encode(into: &writer)
        }
        let bytes = writer.bytes
        _ = try Record(decoding: bytes, kind, exempt: exempt)
        return bytes
    }

    /// The encoded values of the key fields, one after the other.
    ///
    /// - Throws: `missingField` when one is absent, else as `encode`.
    public func key(_ kind: Kind) throws(FormatError) -> [UInt8] {
        var writer = ByteWriter()
        for field in kind.keyFields {
            guard let value = self[field.number] else { throw FormatError(.missingField, at: 0, field: field.number) }
            guard value.type == field.type else { throw FormatError(.badStructure, at: 0, field: field.number) }
            let start = writer.count
            value.encode(into: &writer)
            try value.check(field, isKey: true, at: start)
        }
        return writer.bytes
    }

    /// Reads a record, refusing everything that FORMAT.md sections 2 to 4 do not allow.
    ///
    /// - Parameter exempt: required fields that may be absent.
    /// - Throws: the first fault, with its field and offset. Undeclared and missing fields come first, at the bitmap.
    public init(
        decoding bytes: UnsafeRawBufferPointer, _ kind: Kind, exempt: FieldSet = FieldSet()
    ) throws(FormatError) {
        guard bytes.count <= recordByteCountMax else { throw FormatError(.tooLarge, at: 0) }
        var reader = ByteReader(bytes)
        var numbers: [Int] = []
        let bitmapByteCount = Int(try reader.u8())
        guard bitmapByteCount <= 32 else { throw FormatError(.outOfRange, at: 0) }
        guard bitmapByteCount <= reader.remaining else { throw FormatError(.truncated, at: 0) }
        for (index, byte) in (try reader.slice(bitmapByteCount)).enumerated() {
            if index == bitmapByteCount - 1 && byte == 0 { throw FormatError(.notCanonical, at: 0) }
            for bit in 0..<8 where byte & (1 << UInt8(bit)) != 0 { numbers.append(index * 8 + bit + 1) }
        }
        for number in numbers where kind.field(number) == nil {
            throw FormatError(.unknownField, at: 0, field: number)
        }
        for field in kind.fields where field.constraints.contains(.required) && !numbers.contains(field.number) {
            if exempt.contains(field.number) { continue }
            throw FormatError(.missingField, at: 0, field: field.number)
        }
        self.init()
        for number in numbers {
            guard let field = kind.field(number) else { continue }
            let start = reader.offset
            do throws(FormatError) {
                let value = try Value(from: &reader, field)
                try value.check(field, isKey: number <= kind.keyFieldCount, at: start)
                values.append((number, value))
            } catch {
                throw FormatError(error.code, at: error.offset, field: number)
            }
        }
        try reader.expectEnd()
    }

    public init(decoding bytes: [UInt8], _ kind: Kind, exempt: FieldSet = FieldSet()) throws(FormatError) {
        self = try bytes.withUnsafeBufferPointer { bytes throws(FormatError) in
            try Record(decoding: UnsafeRawBufferPointer(bytes), kind, exempt: exempt)
        }
    }
}

extension Record: Equatable {
    public static func == (a: Record, b: Record) -> Bool {
        a.values.count == b.values.count
            && zip(a.values, b.values).allSatisfy { $0.field == $1.field && $0.value == $1.value }
    }
}

// The order of a field's values (SPEC.md, 06 LIST): sort keys that memcmp puts in the order of the values.

/// Makes sort keys of a field of a kind. One thread at a time, each with a buffer of its own.
///
/// Keys of a field compare like its values: byte by byte, a shorter one before all that it begins. What they are made of:
///
///     text, list, choice   the text, the first text, the name: folded
///     identifier           0, the number in 8 bytes; or 1, the text folded
///     int, time            8 bytes, the sign bit turned
///     number               0 below zero, 1 zero, 2 above; the decimal exponent in 2 bytes; 19 digits in 8 bytes.
///                          All but the first turned round below zero
///     date                 its first day in 4 bytes, then its last
///     bool, uuid, bytes    as they are
public final class FieldOrder {
    /// Of a key. Where more would be needed the key is cut: such values stand in saved order.
    public static let byteCountMax = 256

    private let schema: RecordSchema
    private let field: Int
    private let type: FieldType
    private let choiceNames: [Int: [UInt8]]

    /// Nil: the kind has no such field.
    public init?(field: Int, schema: RecordSchema) {
        guard let declared = schema.kind.field(field) else { return nil }
        self.schema = schema
        self.field = field
        type = declared.type
        choiceNames = Dictionary(
            declared.choices.map { ($0.number, folded($0.name)) }, uniquingKeysWith: { first, _ in first })
    }

    /// Appends the sort key of the record's value: at most 256 bytes. False, and nothing appended, where it is absent,
    /// an empty list, or broken.
    public func appendKey(of record: UnsafeRawBufferPointer, to buffer: inout FoldBuffer) -> Bool {
        guard let bytes = FieldBytes(record), let at = bytes.offset(of: field, schema) else { return false }
        let start = buffer.count
        guard append(bytes, at, to: &buffer) else {
            buffer.truncate(to: start)
            return false
        }
        buffer.truncate(to: start + FieldOrder.byteCountMax)
        return true
    }

    private func append(_ bytes: FieldBytes, _ start: Int, to buffer: inout FoldBuffer) -> Bool {
        var at = start
        var value: Int64 = 0
        var head: UInt64 = 0
        switch type {
        case .text:
            guard let text = bytes.string(&at) else { return false }
            append(text, to: &buffer)
        case .list:
            guard bytes.varint(&at, &head), head > 0, let text = bytes.string(&at) else { return false }
            append(text, to: &buffer)
        case .choice:
            guard bytes.varint(&at, &head), head <= UInt64(Int32.max), let name = choiceNames[Int(head)] else {
                return false
            }
            name.withUnsafeBytes { buffer.append($0) }
        case .identifier:
            guard bytes.varint(&at, &head) else { return false }
            let isText = head & 1 == 1
            let begin = at
            buffer.append(isText ? 1 : 0)
            guard isText else {
                append(head >> 1, byteCount: 8, to: &buffer)
                return true
            }
            guard bytes.pass(head >> 1, &at) else { return false }
            append(UnsafeRawBufferPointer(start: bytes.base + begin, count: at - begin), to: &buffer)
        case .int, .time:
            guard bytes.svarint(&at, &value) else { return false }
            append(UInt64(bitPattern: value) ^ 1 << 63, byteCount: 8, to: &buffer)
        case .number:
            var exponent: Int64 = 0
            guard bytes.svarint(&at, &value), bytes.svarint(&at, &exponent), exponent >= -400, exponent <= 400 else {
                return false
            }
            append(mantissa: value, exponent: Int(exponent), to: &buffer)
        case .date:
            guard bytes.svarint(&at, &value), let days = Span(packedDate: value) else { return false }
            append(UInt64(bitPattern: days.first) ^ 1 << 31, byteCount: 4, to: &buffer)
            append(UInt64(bitPattern: days.last) ^ 1 << 31, byteCount: 4, to: &buffer)
        case .bool:
            guard bytes.pass(1, &at) else { return false }
            buffer.append(bytes.byte(start))
        case .uuid:
            guard bytes.pass(16, &at) else { return false }
            buffer.append(UnsafeRawBufferPointer(start: bytes.base + start, count: 16))
        case .bytes:
            guard let string = bytes.string(&at) else { return false }
            buffer.append(UnsafeRawBufferPointer(rebasing: string.prefix(FieldOrder.byteCountMax)))
        }
        return true
    }

    /// Folds as much of a text as the key may need.
    private func append(_ text: UnsafeRawBufferPointer, to buffer: inout FoldBuffer) {
        // Four scalars at most become one, so 4,096 bytes are enough; and what stands before an ASCII character is
        // folded as if nothing stood behind it.
        var count = text.count
        if count > 4096, let ascii = text[4096...].firstIndex(where: { $0 < 0x80 }) { count = ascii }
        buffer.append(folding: UnsafeRawBufferPointer(rebasing: text.prefix(count)))
    }

    /// The low bytes of a word, the highest of them first.
    private func append(_ word: UInt64, byteCount: Int, to buffer: inout FoldBuffer) {
        for index in (0..<byteCount).reversed() { buffer.append(UInt8(truncatingIfNeeded: word >> UInt64(8 * index))) }
    }

    private func append(mantissa: Int64, exponent: Int, to buffer: inout FoldBuffer) {
        guard mantissa != 0 else { return buffer.append(1) }
        // Its digits with zeros behind them: 10^18 … 10^19 − 1.
        var digits = mantissa.magnitude
        var decimal = exponent + 18
        while digits < 1_000_000_000_000_000_000 {
            digits *= 10
            decimal -= 1
        }
        let turn = mantissa < 0 ? UInt64.max : 0
        buffer.append(mantissa < 0 ? 0 : 2)
        append(UInt64(decimal + 1000) ^ turn, byteCount: 2, to: &buffer)
        append(digits ^ turn, byteCount: 8, to: &buffer)
    }
}

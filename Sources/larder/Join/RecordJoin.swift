// One record of two.

import LarderFormat

/// What becomes of a record when another is joined with it.
struct RecordJoin {
    /// The first record with what the second adds.
    let record: Record
    /// Fields that came from the second, ascending.
    let filled: [Int]

    /// - Parameters:
    ///   - first: keeps its key and all that it has.
    ///   - second: fills what the first lacks.
    ///   - also: the kind's field for keys of joined records.
    init(_ first: Record, _ firstKey: RecordKey, _ second: Record, _ secondKey: RecordKey, also: Field) {
        let kind = firstKey.kind
        var record = first
        var filled: [Int] = []
        for field in kind.fields.dropFirst(kind.keyFieldCount) where field.number != also.number {
            let joined = RecordJoin.value(first[field.number], second[field.number], field)
            if joined != first[field.number] {
                record[field.number] = joined
                filled.append(field.number)
            }
        }
        let keys = JoinedKeys.texts(first, kind) + [secondKey.text] + JoinedKeys.texts(second, kind)
        record[also.number] = .list(RecordJoin.united(keys.filter { $0 != firstKey.text }))
        self.record = record
        self.filled = filled
    }

    private static func value(_ first: Value?, _ second: Value?, _ field: Field) -> Value? {
        guard let first else { return second }
        guard let second, field.constraints.contains(.personal) else { return first }
        // Both are the owner's words: none is dropped where both fit.
        switch (first, second) {
        case (.list(let a), .list(let b)): return .list(united(a + b))
        case (.text(let a), .text(let b)):
            if FieldInput.isBlank(a) { return second }
            return FieldInput.isBlank(b) || a == b ? first : .text(a + "\n\n" + b)
        default: return first
        }
    }

    /// Each text once, where it stood first.
    private static func united(_ texts: [String]) -> [String] {
        var seen = Set<[UInt8]>()
        return texts.filter { seen.insert(Array($0.utf8)).inserted }
    }
}

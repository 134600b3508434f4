// What a save makes of the record that is there and the one that was sent.

/// How a save meets an existing key; raw values are those of the wire.
public enum SaveMode: UInt8, CaseIterable, Sendable {
    case insert = 1
    case replace = 2
    case merge = 3
    case fill = 4
}

/// Works out merged records. Keeps its scratch memory from one to the next; one thread.
public struct RecordMerger {
    private var oldRanges: [Range<Int>] = Array(repeating: 0..<0, count: 257)
    private var newRanges: [Range<Int>] = Array(repeating: 0..<0, count: 257)
    /// The record of the last `merge` that was not unchanged.
    public private(set) var result = ByteWriter(reserving: 2048)
    /// The fields that the last `merge` changed.
    public private(set) var changed = FieldSet()

    public init() {}

    /// Works out `result` and `changed`; false when nothing would change.
    ///
    /// - Parameters:
    ///   - old: the stored record, checked when it was written. Nil when the key is new.
    ///   - new: the record that was sent, checked.
    ///   - known: the highest field that the sender knows; a replace keeps what lies above.
    ///   - personal: whether personal fields are written; else they stay as stored.
    ///   - unset: fields to make absent (merge only; key fields are ignored).
    /// - Returns: whether the record changes. Text that differs only by normalisation keeps its stored bytes.
    /// - Throws: when `old` is damaged.
    public mutating func merge(
        old: UnsafeRawBufferPointer?, new: UnsafeRawBufferPointer, schema: RecordSchema, mode: SaveMode, known: Int,
        personal: Bool, unset: FieldSet = FieldSet()
    ) throws(FormatError) -> Bool {
        var offered = try schema.fieldRanges(ofChecked: new, into: &newRanges)
        if !personal { offered = offered.subtracting(schema.personal) }
        let present =
            try old.map { bytes throws(FormatError) in
                try schema.fieldRanges(ofChecked: bytes, into: &oldRanges)
            } ?? FieldSet()

        var kept = FieldSet()
        var taken = offered
        switch mode {
        case .insert, .replace:
            for field in schema.kind.fields where present.contains(field.number) {
                let isAbove = field.number > known
                let isGuarded = !personal && field.constraints.contains(.personal)
                if isAbove || isGuarded { kept.insert(field.number) }
            }
            taken = taken.subtracting(kept)
        case .merge:
            kept = present.subtracting(unset.subtracting(personal ? FieldSet() : schema.personal))
            for key in 1...schema.kind.keyFieldCount where present.contains(key) { kept.insert(key) }
        case .fill:
            kept = present
            taken = offered.subtracting(present)
        }

        changed = FieldSet()
        result.bytes.removeAll(keepingCapacity: true)
        let final = kept.union(taken)
        final.encode(into: &result)
        var rest = final
        while let field = rest.popFirst() {
            let oldValue =
                present.contains(field) ? old.map { UnsafeRawBufferPointer(rebasing: $0[oldRanges[field]]) } : nil
            guard taken.contains(field) else {
                if let oldValue { result.raw(oldValue) }
                continue
            }
            let newValue = UnsafeRawBufferPointer(rebasing: new[newRanges[field]])
            if let oldValue, isSame(oldValue, newValue, schema.kind.field(field)?.type) {
                result.raw(oldValue)
            } else {
                result.raw(newValue)
                changed.insert(field)
            }
        }
        changed = changed.union(present.subtracting(final))
        return old == nil || !changed.isEmpty
    }

    /// States the fields of a change that was not merged.
    public mutating func note(changed fields: FieldSet) { changed = fields }

    private func isSame(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer, _ type: FieldType?) -> Bool {
        if a.count == b.count && a.elementsEqual(b) { return true }
        guard type == .text || type == .list else { return false }
        guard a.contains(where: { $0 >= 0x80 }), b.contains(where: { $0 >= 0x80 }) else { return false }
        var x = ByteReader(a)
        var y = ByteReader(b)
        do throws(FormatError) {
            if type == .text { return areCanonicallyEqual(try x.bytes(), try y.bytes()) }
            let count = try x.varint()
            guard try y.varint() == count else { return false }
            while !x.isAtEnd {
                guard areCanonicallyEqual(try x.bytes(), try y.bytes()) else { return false }
            }
            return true
        } catch { return false }
    }
}

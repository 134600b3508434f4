// Counts records by the values of a field (SPEC.md, 07 COUNT).

/// How many records there are of each value that a field has. One thread at a time.
///
/// Values are told apart by their encoding. A list counts once for each different text that it has, and an empty one as
/// absent.
public final class GroupCounter {
    private struct Group {
        /// Where its value lies in `values`.
        let start: Int
        let byteCount: Int
        let hash: Int
        var count: Int
        /// The record that was counted last.
        var record: Int
    }

    private let schema: RecordSchema
    private let field: Int
    private let isList: Bool
    private let limit: Int
    private let byteLimit: Int
    private var found: [Group] = []
    private var values: [UInt8] = []
    /// Open addressing by hash: index of the group + 1, or 0. At most half full; its count is a power of two.
    private var buckets = [Int32](repeating: 0, count: 64)
    private var records = 0
    private var absentCount = 0
    /// How many groups there were when the first record without a value came.
    private var absentPlace = 0

    /// Nil: the kind has no such field.
    ///
    /// - Parameters:
    ///   - limit: the most different values, absence not among them.
    ///   - byteLimit: the most bytes that these values have together.
    public init?(field: Int, schema: RecordSchema, limit: Int = 10_000, byteLimit: Int = .max) {
        guard let declared = schema.kind.field(field) else { return nil }
        self.schema = schema
        self.field = field
        self.limit = min(max(limit, 0), Int(Int32.max) - 1)
        self.byteLimit = byteLimit
        isList = declared.type == .list
    }

    /// Counts a checked record. False: its value would be one more than the limits; it is not counted then.
    public func add(_ record: UnsafeRawBufferPointer) -> Bool {
        records += 1
        guard let bytes = FieldBytes(record), let start = bytes.offset(of: field, schema) else {
            countAbsent()
            return true
        }
        var at = start
        guard isList else {
            guard bytes.skip(UInt8(truncatingIfNeeded: schema.rule(field)), &at) else {
                countAbsent()
                return true
            }
            return count(UnsafeRawBufferPointer(start: bytes.base + start, count: at - start))
        }
        var textCount: UInt64 = 0
        guard bytes.varint(&at, &textCount), textCount > 0 else {
            countAbsent()
            return true
        }
        while textCount > 0 {
            let begin = at
            guard bytes.string(&at) != nil else { return true }
            guard count(UnsafeRawBufferPointer(start: bytes.base + begin, count: at - begin)) else { return false }
            textCount -= 1
        }
        return true
    }

    /// Value in its encoding (nil: absent; of a list each text, encoded as a text) and records that have it: most first,
    /// equal counts by first appearance. O(n log n) in the number of values.
    public var groups: [(value: [UInt8]?, count: Int)] {
        var all: [(value: [UInt8]?, count: Int)] = found.map { group in
            (Array(values[group.start..<group.start + group.byteCount]), group.count)
        }
        if absentCount > 0 { all.insert((nil, absentCount), at: absentPlace) }
        let order = all.indices.sorted { a, b in
            all[a].count != all[b].count ? all[a].count > all[b].count : a < b
        }
        return order.map { all[$0] }
    }

    private func countAbsent() {
        if absentCount == 0 { absentPlace = found.count }
        absentCount += 1
    }

    private func count(_ value: UnsafeRawBufferPointer) -> Bool {
        // Seeded by the process, so that nobody can choose values that share a bucket.
        var hasher = Hasher()
        hasher.combine(bytes: value)
        let hash = hasher.finalize()
        let mask = buckets.count - 1
        var at = hash & mask
        while buckets[at] != 0 {
            let index = Int(buckets[at]) - 1
            if found[index].hash == hash && isValue(found[index], value) {
                if found[index].record != records {
                    found[index].record = records
                    found[index].count += 1
                }
                return true
            }
            at = (at + 1) & mask
        }
        guard found.count < limit, value.count <= byteLimit - values.count else { return false }
        found.append(Group(start: values.count, byteCount: value.count, hash: hash, count: 1, record: records))
        values.append(contentsOf: value)
        buckets[at] = Int32(found.count)
        if found.count * 2 > buckets.count { grow() }
        return true
    }

    private func isValue(_ group: Group, _ value: UnsafeRawBufferPointer) -> Bool {
        guard group.byteCount == value.count else { return false }
        return values.withUnsafeBytes { stored in
            UnsafeRawBufferPointer(rebasing: stored[group.start..<group.start + group.byteCount]).elementsEqual(value)
        }
    }

    private func grow() {
        buckets = [Int32](repeating: 0, count: buckets.count * 2)
        let mask = buckets.count - 1
        for (index, group) in found.enumerated() {
            var at = group.hash & mask
            while buckets[at] != 0 { at = (at + 1) & mask }
            buckets[at] = Int32(index + 1)
        }
    }
}

// Records by a value of an indexed field: the durable ones by the index, the pending ones by what was noted of them.

import LarderFormat

/// What asking for the records with a value came to.
public enum KeysWithValue: Sendable {
    case keys([[UInt8]], isEnd: Bool)
    /// Run the read, supply its result, and go on.
    case cold(ColdRead)
    /// Go on when other work had its turn.
    case more
}

/// A search for the records with a value of an indexed field. It goes on where it was.
public struct ValueSearch: Sendable {
    let kindIndex: UInt8
    let field: Int
    /// Folded.
    let value: [UInt8]
    let fingerprint: UInt32
    /// Durable records that have it, in saved order, as they were when they were looked at.
    var found: [(seq: UInt64, key: [UInt8])] = []
    var isDone = false
    /// It ended before all were looked at: for a batch at one that nothing pending and no operation of it was about.
    var isCut = false
    /// First seq of the last record that was looked at.
    var through: UInt64 = 0
    /// The records of `found` before this one have pending changes.
    var pendingCount = 0

    init(_ kindIndex: UInt8, _ field: Int, _ value: [UInt8], _ fingerprint: UInt32) {
        self.kindIndex = kindIndex
        self.field = field
        self.value = value
        self.fingerprint = fingerprint
    }
}

extension StoreCore {
    /// What a part of a search came to.
    enum SearchStep {
        case done
        case cold(ColdRead)
        case more
    }

    /// A kind's index, if it is there.
    func values(_ kindIndex: UInt8) -> ValueIndex? { valueIndexes[kindIndex] }

    func valueFingerprint(_ kindIndex: UInt8, _ field: Int, _ value: [UInt8]) -> UInt32 {
        value.withUnsafeBytes { hasher.fingerprint(kind: kinds[kindIndex].kind.number << 9 | field | 1 << 62, key: $0) }
    }

    /// The folded values that a record has in an indexed field: one, or each text of a list; none where it is absent.
    func foldedValues(_ field: Int, of record: UnsafeRawBufferPointer, _ schema: RecordSchema) -> [[UInt8]] {
        guard let range = try? schema.range(of: field, inChecked: record), !range.isEmpty else { return [] }
        let value = UnsafeRawBufferPointer(rebasing: record[range])
        var reader = ByteReader(value)
        switch schema.kind.field(field)?.type {
        case .text:
            guard let text = try? reader.bytes() else { return [] }
            return [folded(text)]
        case .list:
            guard let count = try? reader.count(ofAtLeast: 1) else { return [] }
            var texts: [[UInt8]] = []
            for _ in 0..<count {
                guard let text = try? reader.bytes() else { break }
                texts.append(folded(text))
            }
            return texts
        case .identifier:
            guard let head = try? reader.varint(), head & 1 == 1, let text = try? reader.slice(reader.remaining) else {
                return [Array(value)]
            }
            return [[1] + folded(text)]
        default:
            return [Array(value)]
        }
    }

    /// Whether a record of the search's kind has the value.
    func has(_ record: UnsafeRawBufferPointer, _ search: ValueSearch) -> Bool {
        foldedValues(search.field, of: record, kinds[search.kindIndex]).contains(search.value)
    }

    /// Makes a kind's index ready, a slice at a call. Returns nil when it is.
    mutating func prepareValues(_ kindIndex: UInt8) throws(StoreError) -> SearchStep? {
        if let ready = valueIndexes[kindIndex], ready.isReady, !ready.isWornOut { return nil }
        if valueIndexes[kindIndex]?.isWornOut != false { valueIndexes[kindIndex] = ValueIndex() }
        guard let values = valueIndexes[kindIndex], let through = values.walkedThrough else { return nil }
        let schema = kinds[kindIndex]
        var ordinal = table.firstOrdinal(atOrAfter: through &+ 1)
        var room = StepRoom()
        while ordinal < table.count {
            guard !room.isUsedUp else { return .more }
            let number = UInt32(truncatingIfNeeded: ordinal)
            let place = table[number]
            if !place.isHole && place.kindIndex == kindIndex {
                switch try entry(at: place) {
                case .cold(let read): return .cold(read)
                case .entry(let view):
                    insertValues(view.payload, ordinal: number, schema, kindIndex, values)
                    room.take(view.payload.count)
                }
            }
            values.walkedThrough = table.firstSeq(number)
            ordinal += 1
        }
        values.walkedThrough = nil
        return nil
    }

    /// Returns whether the record has a value that it was not known to have.
    @discardableResult
    private func insertValues(
        _ record: UnsafeRawBufferPointer, ordinal: UInt32, _ schema: RecordSchema, _ kindIndex: UInt8,
        _ values: ValueIndex
    ) -> Bool {
        var hasNew = false
        var fields = schema.indexed
        while let field = fields.popFirst() {
            for value in foldedValues(field, of: record, schema) {
                let isNew = values.insert(valueFingerprint(kindIndex, field, value), ordinal: ordinal)
                hasNew = hasNew || isNew
            }
        }
        return hasNew
    }

    /// Keeps a kind's index up with a change that is published.
    mutating func publishValues(_ op: PendingOp) {
        guard !valueIndexes.isEmpty, let values = valueIndexes[op.kindIndex] else { return }
        if op.isDelete { return values.superseded() }
        guard let ordinal = table.ordinal(firstSeq: op.firstSeq) else { return }
        let hasNew = insertValues(op.payload, ordinal: ordinal, kinds[op.kindIndex], op.kindIndex, values)
        if hasNew && op.firstSeq != op.seq { values.superseded() }
    }

    /// Goes on with a search, up to `limit` records; for a batch, no more than up to one that neither it nor a pending
    /// change is about.
    mutating func goOn(
        _ search: inout ValueSearch, limit: Int, _ batch: WriteBatch? = nil
    ) throws(StoreError) -> SearchStep {
        if let step = try prepareValues(search.kindIndex) { return step }
        guard let values = valueIndexes[search.kindIndex] else { return .more }
        let schema = kinds[search.kindIndex]
        var room = StepRoom()
        for ordinal in values.candidates(search.fingerprint)[...].drop(through: search.through, table) {
            guard Int(ordinal) < table.count else { break }
            let place = table[ordinal]
            guard !place.isHole, place.kindIndex == search.kindIndex else { continue }
            // A batch has to begin anew with every commit, so it goes through in one: it looks at little more than its own.
            guard batch != nil || !room.isUsedUp else { return .more }
            let record: UnsafeRawBufferPointer
            let seq: UInt64
            if let fetched = batch?.fetched[place.raw] {
                (record, seq) = (fetched.record, fetched.entry.seq)
            } else {
                switch try entry(at: place) {
                case .cold(let read):
                    batch?.awaitedPlace = place
                    return .cold(read)
                case .entry(let view): (record, seq) = (view.payload, view.seq)
                }
            }
            room.take(record.count)
            search.through = table.firstSeq(ordinal)
            guard foldedValues(search.field, of: record, schema).contains(search.value),
                let range = try? schema.keyRange(ofChecked: record)
            else { continue }
            search.found.append((seq, Array(record[range])))
            search.isCut =
                batch.map { isUntouched(record[range], search.kindIndex, $0) } ?? (search.found.count >= limit)
            if search.isCut { break }
        }
        search.isDone = true
        return .done
    }

    private func isUntouched(_ key: Slice<UnsafeRawBufferPointer>, _ kindIndex: UInt8, _ batch: WriteBatch) -> Bool {
        let key = UnsafeRawBufferPointer(rebasing: key)
        return !batch.touched.contains(hasher.fingerprint(kind: kinds[kindIndex].kind.number, key: key))
            && !isPending(key, kindIndex)
    }

    /// A search for a value in its encoding; nil where the field is none, or not indexed, or the value is none of it.
    func search(kind: Int, field: Int, value: UnsafeRawBufferPointer) -> ValueSearch? {
        guard let kindIndex = kinds.index(kind), kinds[kindIndex].indexed.contains(field),
            let folded = foldedValue(field, value, kinds[kindIndex])
        else { return nil }
        return ValueSearch(kindIndex, field, folded, valueFingerprint(kindIndex, field, folded))
    }

    mutating func keys(_ search: inout ValueSearch, limit: Int) throws(StoreError) -> KeysWithValue {
        switch try goOn(&search, limit: limit + 1) {
        case .cold(let read): return .cold(read)
        case .more: return .more
        case .done: return .keys(search.found.prefix(limit).map(\.key), isEnd: search.found.count <= limit)
        }
    }

    /// A value of an indexed field, folded; of a list one of its texts. Nil for bytes that are no such value.
    private func foldedValue(_ field: Int, _ value: UnsafeRawBufferPointer, _ schema: RecordSchema) -> [UInt8]? {
        var reader = ByteReader(value)
        switch schema.kind.field(field)?.type {
        case .text, .list:
            guard let text = try? reader.textBytes(), reader.isAtEnd else { return nil }
            return folded(text)
        case .identifier:
            guard let head = try? reader.varint() else { return nil }
            if head & 1 == 0 { return reader.isAtEnd ? Array(value) : nil }
            guard let text = try? reader.slice(reader.remaining), UInt64(text.count) == head >> 1,
                badTextOffset(text) == nil
            else { return nil }
            return [1] + folded(text)
        case nil: return nil
        default: return Array(value)
        }
    }

    /// The seq of a pending record, of the newest change of its key, that has one of the values; nil if none has.
    mutating func pendingRecord(
        kindIndex: UInt8, field: Int, values: [(bytes: [UInt8], fingerprint: UInt32)],
        exceptKeys: [UnsafeRawBufferPointer]
    ) -> UInt64? {
        while let at = stagedOps.nextUnnoted { stagedOps.note(indexedFingerprints(stagedOps[at])) }
        while let at = inFlightOps.nextUnnoted { inFlightOps.note(indexedFingerprints(inFlightOps[at])) }
        let schema = kinds[kindIndex]
        for value in values {
            for inStaged in [true, false] {
                if let seq = pendingRecord(value, field, schema, kindIndex, exceptKeys, inStaged: inStaged) {
                    return seq
                }
            }
        }
        return nil
    }

    /// Superseded changes that are looked past before they are forgotten.
    private static let supersededMax = 16

    private mutating func pendingRecord(
        _ value: (bytes: [UInt8], fingerprint: UInt32), _ field: Int, _ schema: RecordSchema, _ kindIndex: UInt8,
        _ exceptKeys: [UnsafeRawBufferPointer], inStaged: Bool
    ) -> UInt64? {
        let candidates =
            inStaged
            ? stagedOps.withValue(value.fingerprint, kindIndex) : inFlightOps.withValue(value.fingerprint, kindIndex)
        var current: [Int] = []
        var seen = 0
        var seq: UInt64?
        for at in candidates {
            seen += 1
            let op = inStaged ? stagedOps[at] : inFlightOps[at]
            // Only the newest change of a key counts.
            let newest = stagedOps.find(op.fingerprint, kindIndex: op.kindIndex, key: op.key)
            guard
                inStaged
                    ? newest == at
                    : newest == nil && inFlightOps.find(op.fingerprint, kindIndex: op.kindIndex, key: op.key) == at
            else { continue }
            current.append(at)
            if exceptKeys.contains(where: { isEqual(op.key, $0) }) { continue }
            if foldedValues(field, of: op.payload, schema).contains(value.bytes) {
                seq = op.seq
                break
            }
        }
        if seen - current.count > Self.supersededMax {
            if inStaged {
                stagedOps.keep(current, ofFirst: seen, value.fingerprint, kindIndex)
            } else {
                inFlightOps.keep(current, ofFirst: seen, value.fingerprint, kindIndex)
            }
        }
        return seq
    }

    /// Fingerprints of all values of a pending record's indexed fields.
    private func indexedFingerprints(_ op: PendingOp) -> [UInt32] {
        if op.isDelete { return [] }
        let schema = kinds[op.kindIndex]
        var fields = schema.indexed
        var found: [UInt32] = []
        while let field = fields.popFirst() {
            for value in foldedValues(field, of: op.payload, schema) {
                found.append(valueFingerprint(op.kindIndex, field, value))
            }
        }
        return found
    }
}

extension ArraySlice<UInt32> {
    /// Of ascending ordinals those behind the one with this first seq.
    fileprivate func drop(through firstSeq: UInt64, _ table: borrowing RecordTable) -> ArraySlice<UInt32> {
        var low = startIndex
        var high = endIndex
        while low < high {
            let middle = (low + high) / 2
            let isBehind = Int(self[middle]) >= table.count || table.firstSeq(self[middle]) > firstSeq
            if isBehind { high = middle } else { low = middle + 1 }
        }
        return self[low...]
    }
}

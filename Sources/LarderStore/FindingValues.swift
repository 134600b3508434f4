// Records by a value of an indexed field: the durable ones by the index, the pending ones by what was noted of them.

import LarderFormat

/// What asking for the records with a value came to.
public enum KeysWithValue: Sendable {
    case keys([[UInt8]], isEnd: Bool)
    /// The field is none, or not indexed, or the value is none of it.
    case notIndexed
    /// Run the read, supply its result, and ask again.
    case cold(ColdRead)
    /// The index is being made: ask again when other work had its turn.
    case building
}

extension StoreCore {
    /// What asking for a value came to.
    enum ValueAnswer {
        /// (seq, key) of the records with the value; whether there may be more.
        case records([(seq: UInt64, key: [UInt8])], isCut: Bool)
        case cold(ColdRead)
        /// The index is being made.
        case building
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

    /// Makes a kind's index ready, a slice at a call. Returns nil when it is.
    mutating func prepareValues(_ kindIndex: UInt8) throws(StoreError) -> ValueAnswer? {
        if let ready = valueIndexes[kindIndex], ready.isReady, !ready.isWornOut { return nil }
        if valueIndexes[kindIndex]?.isWornOut != false { valueIndexes[kindIndex] = ValueIndex() }
        guard let values = valueIndexes[kindIndex], let through = values.walkedThrough else { return nil }
        let schema = kinds[kindIndex]
        var ordinal = table.firstOrdinal(atOrAfter: through &+ 1)
        var left = 20_000
        while ordinal < table.count {
            guard left > 0 else { return .building }
            let number = UInt32(truncatingIfNeeded: ordinal)
            let place = table[number]
            if !place.isHole && place.kindIndex == kindIndex {
                switch try entry(at: place) {
                case .cold(let read): return .cold(read)
                case .entry(let view): insertValues(view.payload, ordinal: number, schema, kindIndex, values)
                }
                left -= 1
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

    /// The durable records of a kind that have one of the values in a field, at most `limit`; for a batch, no more than
    /// up to one that neither it nor a pending change is about.
    mutating func records(
        kindIndex: UInt8, field: Int, values wanted: [(bytes: [UInt8], fingerprint: UInt32)], limit: Int,
        _ batch: WriteBatch?
    ) throws(StoreError) -> ValueAnswer {
        if let answer = try prepareValues(kindIndex) { return answer }
        guard let values = valueIndexes[kindIndex] else { return .building }
        let schema = kinds[kindIndex]
        var found: [(seq: UInt64, key: [UInt8])] = []
        for value in wanted {
            for ordinal in values.candidates(value.fingerprint) where Int(ordinal) < table.count {
                let place = table[ordinal]
                guard !place.isHole, place.kindIndex == kindIndex else { continue }
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
                guard foldedValues(field, of: record, schema).contains(value.bytes),
                    let range = try? schema.keyRange(ofChecked: record), !found.contains(where: { $0.seq == seq })
                else { continue }
                found.append((seq, Array(record[range])))
                let isEnough = batch.map { isUntouched(record[range], kindIndex, $0) } ?? (found.count >= limit)
                if isEnough { return .records(found, isCut: true) }
            }
        }
        return .records(found, isCut: false)
    }

    private func isUntouched(_ key: Slice<UnsafeRawBufferPointer>, _ kindIndex: UInt8, _ batch: WriteBatch) -> Bool {
        let key = UnsafeRawBufferPointer(rebasing: key)
        return !batch.touched.contains(hasher.fingerprint(kind: kinds[kindIndex].kind.number, key: key))
            && !isPending(key, kindIndex)
    }

    mutating func keys(
        kind: Int, field: Int, value: UnsafeRawBufferPointer, limit: Int
    ) throws(StoreError) -> KeysWithValue {
        guard let kindIndex = kinds.index(kind), kinds[kindIndex].indexed.contains(field) else { return .notIndexed }
        let schema = kinds[kindIndex]
        guard let folded = foldedValue(field, value, schema) else { return .notIndexed }
        let wanted = [(folded, valueFingerprint(kindIndex, field, folded))]
        switch try records(kindIndex: kindIndex, field: field, values: wanted, limit: limit + 1, nil) {
        case .cold(let read): return .cold(read)
        case .building: return .building
        case .records(let found, _):
            return .keys(found.prefix(limit).map(\.key), isEnd: found.count <= limit)
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
            let staged = stagedOps.withValue(value.fingerprint, kindIndex)
            if let seq = pendingRecord(staged, value, field, schema, exceptKeys, inStaged: true) { return seq }
            let flying = inFlightOps.withValue(value.fingerprint, kindIndex)
            if let seq = pendingRecord(flying, value, field, schema, exceptKeys, inStaged: false) { return seq }
        }
        return nil
    }

    private func pendingRecord(
        _ candidates: [Int], _ value: (bytes: [UInt8], fingerprint: UInt32), _ field: Int, _ schema: RecordSchema,
        _ exceptKeys: [UnsafeRawBufferPointer], inStaged: Bool
    ) -> UInt64? {
        for at in candidates {
            let op = inStaged ? stagedOps[at] : inFlightOps[at]
            guard !exceptKeys.contains(where: { isEqual(op.key, $0) }) else { continue }
            // Only the newest change of a key counts.
            let newest = stagedOps.find(op.fingerprint, kindIndex: op.kindIndex, key: op.key)
            guard
                inStaged
                    ? newest == at
                    : newest == nil && inFlightOps.find(op.fingerprint, kindIndex: op.kindIndex, key: op.key) == at
            else { continue }
            if foldedValues(field, of: op.payload, schema).contains(value.bytes) { return op.seq }
        }
        return nil
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

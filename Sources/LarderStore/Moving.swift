// Operations that are not a save or a delete of one key: move, restore, and the value that no other record may have.

import LarderFormat

extension StoreCore {
    /// The seq of a record, stored or pending, with one of the values that an operation must be alone to have. The record
    /// itself does not count, nor what a move makes of it.
    mutating func recordWithValue(
        _ batch: WriteBatch, _ rare: RareOptions, _ pointer: UnsafeMutablePointer<BatchOp>,
        oldKey: UnsafeRawBufferPointer
    ) -> UInt64? {
        let kindIndex = pointer.pointee.kindIndex
        let ownKeys = [pointer.pointee.key, oldKey]
        if let seq = pendingRecord(
            kindIndex: kindIndex, field: rare.unlessExists, values: rare.values, exceptKeys: ownKeys)
        {
            return seq
        }
        for number in rare.searches {
            // What is pending stays so while the batch is decided: it need not be looked at by each operation.
            var next = batch.searches[number].pendingCount
            while next < batch.searches[number].found.count,
                batch.searches[number].found[next].key.withUnsafeBytes({ isPending($0, kindIndex) })
            { next += 1 }
            batch.searches[number].pendingCount = next
            for other in batch.searches[number].found[next...] {
                let counts = other.key.withUnsafeBytes { key in
                    !ownKeys.contains { isEqual(key, $0) } && !isPending(key, kindIndex)
                }
                if counts { return other.seq }
            }
        }
        return nil
    }

    /// Whether a change of this key is staged or being written.
    func isPending(_ key: UnsafeRawBufferPointer, _ kindIndex: UInt8) -> Bool {
        let fingerprint = hasher.fingerprint(kind: kinds[kindIndex].kind.number, key: key)
        return stagedOps.find(fingerprint, kindIndex: kindIndex, key: key) != nil
            || inFlightOps.find(fingerprint, kindIndex: kindIndex, key: key) != nil
    }

    /// Whether the records that were found to have values that must be alone still decide: the search for them ended at
    /// one that nothing changed, and that may be pending by now.
    func isFoundStill(_ batch: WriteBatch) -> Bool {
        for search in batch.searches where search.isCut {
            if search.found.last?.key.withUnsafeBytes({ isPending($0, search.kindIndex) }) == true { return false }
        }
        return true
    }

    /// A record comes back to its place in the order of saving. Its key is not there.
    mutating func restore(
        _ batch: WriteBatch, _ at: Int, _ pointer: UnsafeMutablePointer<BatchOp>, _ rare: RareOptions, _ origin: UInt64,
        _ earlier: Int?, _ dependsOnStaged: inout Bool, _ dependsOnInFlight: inout Bool
    ) throws(StoreError) {
        dependsOnStaged = dependsOnStaged || stagedOps.count > 0
        dependsOnInFlight = dependsOnInFlight || inFlightOps.count > 0
        guard rare.restoredFirstSeq < nextSeq, isFree(firstSeq: rare.restoredFirstSeq) else {
            batch.refusals.append(Refusal(position: at, reason: .badPlace(rare.restoredFirstSeq)))
            return batch.conclude(pointer, .refused, seq: 0)
        }
        merger.note(changed: allFields(pointer.pointee.payload))
        let record = pointer.pointee.payload
        try stageUpdate(
            pointer, record, rare.restoredFirstSeq, rare.restoredSavedAt, 0, origin, earlier, isNew: true)
        batch.conclude(pointer, .created, seq: nextSeq - 1)
    }

    /// No record, stored or pending, has this first seq.
    private mutating func isFree(firstSeq: UInt64) -> Bool {
        if let isLive = stagedOps.isLive(firstSeq: firstSeq) ?? inFlightOps.isLive(firstSeq: firstSeq) {
            return !isLive
        }
        guard let ordinal = table.ordinal(firstSeq: firstSeq) else { return true }
        return table[ordinal].isHole
    }

    private func allFields(_ record: UnsafeRawBufferPointer) -> FieldSet {
        var reader = ByteReader(record)
        return (try? FieldSet(from: &reader)) ?? FieldSet()
    }

    /// A record gets another key.
    mutating func move(
        _ batch: WriteBatch, _ at: Int, _ pointer: UnsafeMutablePointer<BatchOp>,
        from old: UnsafeMutablePointer<BatchOp>, _ there: Existing?, _ origin: UInt64, _ earlier: Int?,
        _ dependsOnStaged: inout Bool, _ dependsOnInFlight: inout Bool
    ) throws(StoreError) {
        let (from, earlierOfOld) = lookUp(old, &dependsOnStaged, &dependsOnInFlight)
        guard let from else { return batch.conclude(pointer, .notFound, seq: 0) }
        if let ifSeq = batch.rare[at]?.ifSeq, ifSeq != from.seq {
            batch.refusals.append(Refusal(position: at, reason: .conflict(current: from.seq)))
            return batch.conclude(pointer, .refused, seq: from.seq)
        }
        let isSameKey = isEqual(old.pointee.key, pointer.pointee.key)
        if let there, !isSameKey { return batch.conclude(pointer, .alreadySaved, seq: there.seq) }
        let schema = kinds[pointer.pointee.kindIndex]
        let isChanged: Bool
        do throws(FormatError) {
            isChanged = try merger.merge(
                old: from.record, new: pointer.pointee.payload, schema: schema, mode: .replace,
                known: max(Int(pointer.pointee.known), schema.kind.keyFieldCount), personal: pointer.pointee.isPersonal)
        } catch { throw .damaged(path: path, offset: 0, fault: error) }
        if isSameKey && !isChanged { return batch.conclude(pointer, .unchanged, seq: from.seq) }
        let record = merger.result.bytes.withUnsafeBytes { batch.arena.copy($0) }
        if let fault = mergedFault(record, schema) {
            batch.refusals.append(Refusal(position: at, reason: .format(fault)))
            return batch.conclude(pointer, .refused, seq: from.seq)
        }
        if !isSameKey {
            old.pointee.kindNumber = pointer.pointee.kindNumber
            try stageDelete(old, from.firstSeq, from.seq, origin, earlierOfOld)
        }
        try stageUpdate(
            pointer, record, from.firstSeq, from.savedAt, from.seq, origin, isSameKey ? earlierOfOld : earlier,
            isNew: !isSameKey)
        batch.conclude(pointer, .updated, seq: nextSeq - 1)
    }
}

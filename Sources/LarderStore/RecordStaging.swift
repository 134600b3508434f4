// Entries of records on their way into a block, and what is pending of them.

import LarderFormat

extension StoreCore {
    @inline(__always)
    mutating func create(
        _ batch: WriteBatch, _ at: Int, _ pointer: UnsafeMutablePointer<BatchOp>, _ origin: UInt64, _ earlier: Int?
    ) throws(StoreError) {
        var record = pointer.pointee.payload
        if pointer.pointee.mayBePartial || pointer.pointee.hasGuardedFields {
            let schema = kinds[pointer.pointee.kindIndex]
            if pointer.pointee.hasGuardedFields {
                do throws(FormatError) {
                    _ = try merger.merge(
                        old: nil, new: pointer.pointee.payload, schema: schema, mode: .replace, known: 256,
                        personal: false)
                } catch { throw .damaged(path: path, offset: 0, fault: error) }
                record = merger.result.bytes.withUnsafeBytes { batch.arena.copy($0) }
            }
            if pointer.pointee.mayBePartial, let fault = mergedFault(record, schema) {
                batch.refusals.append(Refusal(position: at, reason: .format(fault)))
                return batch.conclude(pointer, .refused, seq: 0)
            }
        }
        try reserve(record.count + EntryWriter.headByteCountMax)
        let seq = nextSeq
        let base = open.cursor
        let byteCount = EntryWriter.created(
            at: base, seq: seq, commitFirstSeq: open.firstSeq, kind: Int(pointer.pointee.kindNumber),
            origin: origin, record: record)
        // The record lies between the head and the CRC.
        let payload = UnsafeRawBufferPointer(start: base + (byteCount &- 4 &- record.count), count: record.count)
        let offset = advance(byteCount, seq: seq, isPlain: true)
        let keyOffset = pointer.pointee.hasGuardedFields ? Int32(1 + Int(record[0])) : pointer.pointee.keyOffset
        stagedOps.append(
            PendingOp(
                seq: seq, firstSeq: seq, previousSeq: 0, savedAt: staged.time, origin: origin, payload: payload,
                keyOffset: UInt32(truncatingIfNeeded: keyOffset),
                keyByteCount: UInt32(truncatingIfNeeded: pointer.pointee.keyByteCount),
                place: Place(
                    segment: position.segment, offset: offset, kindIndex: pointer.pointee.kindIndex,
                    entryByteCount: byteCount),
                fingerprint: pointer.pointee.fingerprint, kindIndex: pointer.pointee.kindIndex, isDelete: false,
                isNew: true),
            replacing: earlier)
        batch.conclude(pointer, .created, seq: seq)
    }

    mutating func stageUpdate(
        _ pointer: UnsafeMutablePointer<BatchOp>, _ record: UnsafeRawBufferPointer, _ firstSeq: UInt64,
        _ savedAt: Int64, _ previousSeq: UInt64, _ origin: UInt64, _ earlier: Int?, isNew: Bool = false
    ) throws(StoreError) {
        try reserve(record.count + EntryWriter.headByteCountMax)
        let seq = nextSeq
        let base = open.cursor
        let byteCount = EntryWriter.updated(
            at: base, seq: seq, commitFirstSeq: open.firstSeq, commitTime: staged.time,
            flags: isNew ? 1 : 0,
            kind: Int(pointer.pointee.kindNumber), origin: origin, firstSeq: firstSeq, savedAt: savedAt,
            previousSeq: previousSeq, changed: merger.changed, record: record)
        let payload = UnsafeRawBufferPointer(start: base + (byteCount - 4 - record.count), count: record.count)
        let offset = advance(byteCount, seq: seq, isPlain: true)
        stagedOps.append(
            PendingOp(
                seq: seq, firstSeq: firstSeq, previousSeq: previousSeq, savedAt: savedAt, origin: origin,
                payload: payload, keyOffset: UInt32(1 + Int(record[0])),
                keyByteCount: UInt32(truncatingIfNeeded: pointer.pointee.keyByteCount),
                place: Place(
                    segment: position.segment, offset: offset, kindIndex: pointer.pointee.kindIndex,
                    entryByteCount: byteCount),
                fingerprint: pointer.pointee.fingerprint, kindIndex: pointer.pointee.kindIndex, isDelete: false,
                isNew: isNew),
            replacing: earlier)
    }

    mutating func stageDelete(
        _ pointer: UnsafeMutablePointer<BatchOp>, _ firstSeq: UInt64, _ previousSeq: UInt64, _ origin: UInt64,
        _ earlier: Int?
    ) throws(StoreError) {
        let key = pointer.pointee.key
        try reserve(key.count + EntryWriter.headByteCountMax)
        let seq = nextSeq
        let base = open.cursor
        let byteCount = EntryWriter.deleted(
            at: base, seq: seq, commitFirstSeq: open.firstSeq, kind: Int(pointer.pointee.kindNumber),
            origin: origin, firstSeq: firstSeq, previousSeq: previousSeq, key: key)
        let payload = UnsafeRawBufferPointer(start: base + (byteCount - 4 - key.count), count: key.count)
        _ = advance(byteCount, seq: seq, isPlain: true)
        stagedOps.append(
            PendingOp(
                seq: seq, firstSeq: firstSeq, previousSeq: previousSeq, savedAt: 0, origin: origin, payload: payload,
                keyOffset: 0, keyByteCount: UInt32(key.count), place: .hole, fingerprint: pointer.pointee.fingerprint,
                kindIndex: pointer.pointee.kindIndex, isDelete: true, isNew: false),
            replacing: earlier)
    }
}

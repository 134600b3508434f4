// Checking operations as they come: a bad one is refused before anything is looked up.

import LarderFormat

extension StoreCore {
    /// Checks an operation and puts it with the batch. A bad one is refused there and then.
    mutating func add(_ operation: WriteOperation, to batch: WriteBatch) {
        guard let kindIndex = kinds.index(operation.kind) else {
            batch.refuse(.unknownKind(operation.kind))
            return
        }
        var op = BatchOp(payload: operation.payload)
        op.kindIndex = kindIndex
        op.kindNumber = Int32(truncatingIfNeeded: operation.kind)
        op.isDelete = operation.isDelete
        op.isMove = operation.action == .move
        op.isRestore = operation.action == .restore
        op.mode = op.isMove || op.isRestore ? .replace : operation.mode
        op.isPersonal = operation.isPersonal || operation.action == .restore
        op.known = Int32(clamping: operation.known)
        do throws(FormatError) {
            try kinds.with(kindIndex) { schema throws(FormatError) in
                if operation.isDelete {
                    try schema.checkKey(operation.payload)
                    op.keyByteCount = Int32(truncatingIfNeeded: operation.payload.count)
                } else {
                    try check(&op, schema, batch)
                }
            }
        } catch {
            batch.refuse(operation.isDelete ? .badKey(error) : .format(error))
            return
        }
        if operation.ifSeq != nil || !operation.unset.isEmpty || operation.unlessExists != 0 || op.isMove
            || op.isRestore
        {
            guard let rare = rareOptions(operation, op, batch) else { return }
            op.hasRareOptions = true
            batch.rare[batch.ops.count] = rare
        }
        op.fingerprint = hasher.fingerprint(kind: operation.kind, key: op.key)
        index.prefetch(op.fingerprint)
        if op.payload.count > batch.payloadByteCountMax { batch.payloadByteCountMax = op.payload.count }
        batch.ops.append(op)
    }

    /// What few operations have; nil if the operation was refused for it.
    private mutating func rareOptions(_ operation: WriteOperation, _ op: BatchOp, _ batch: WriteBatch) -> RareOptions? {
        var rare = RareOptions()
        rare.ifSeq = operation.ifSeq
        rare.unset = operation.unset
        let schema = kinds[op.kindIndex]
        if operation.unlessExists != 0 {
            guard schema.indexed.contains(operation.unlessExists) else {
                batch.refuse(.notIndexed(operation.unlessExists))
                return nil
            }
            let values = foldedValues(operation.unlessExists, of: op.payload, schema)
            rare.values = values.map { ($0, valueFingerprint(op.kindIndex, operation.unlessExists, $0)) }
            rare.unlessExists = values.isEmpty ? 0 : operation.unlessExists
        }
        if op.isMove {
            do throws(FormatError) { try schema.checkKey(operation.oldKey) } catch {
                batch.refuse(.badKey(error))
                return nil
            }
            var old = BatchOp(payload: operation.oldKey)
            old.kindIndex = op.kindIndex
            old.keyByteCount = Int32(truncatingIfNeeded: operation.oldKey.count)
            old.fingerprint = hasher.fingerprint(kind: operation.kind, key: operation.oldKey)
            rare.oldKey = batch.oldKeys.count
            batch.oldKeys.append(old)
        }
        if op.isRestore {
            // Whether the seq is one of this log is decided with the operation: those before it in the batch have theirs.
            guard operation.firstSeq > 0, timeRange.contains(operation.savedAt) else {
                batch.refuse(.badPlace(operation.firstSeq))
                return nil
            }
            rare.restoredFirstSeq = operation.firstSeq
            rare.restoredSavedAt = operation.savedAt
        }
        return rare
    }

    @inline(__always)
    private func check(_ op: inout BatchOp, _ schema: RecordSchema, _ batch: WriteBatch) throws(FormatError) {
        var exempt = FieldSet()
        if op.mode == .merge || op.mode == .fill {
            op.mayBePartial = schema.requiresMoreThanKey
            if op.mayBePartial || schema.kindKeyIsOneUUID { exempt = exemptFields(op, schema) }
        } else if schema.kindKeyIsOneUUID {
            exempt = exemptFields(op, schema)
        }
        var scan = try schema.scan(op.payload, exempt: exempt)
        if schema.kindKeyIsOneUUID && !scan.present.contains(1) {
            op.payload = withMadeKey(op.payload, scan.present, batch)
            op.madeKey = true
            scan = try schema.scan(op.payload, exempt: exempt)
        }
        op.keyOffset = Int32(truncatingIfNeeded: scan.keyOffset)
        op.keyByteCount = Int32(truncatingIfNeeded: scan.keyByteCount)
        op.hasGuardedFields = !op.isPersonal && !scan.present.intersection(schema.personal).isEmpty
    }

    /// A merge may leave out what the stored record has; a uuid key may be left to the host.
    private func exemptFields(_ op: BatchOp, _ schema: RecordSchema) -> FieldSet {
        var exempt = FieldSet()
        if op.mode == .merge || op.mode == .fill {
            exempt = schema.required.subtracting(FieldSet(1...schema.kind.keyFieldCount))
        }
        if schema.kind.keyIsOneUUID { exempt.insert(1) }
        return exempt
    }

    private func withMadeKey(
        _ record: UnsafeRawBufferPointer, _ present: FieldSet, _ batch: WriteBatch
    ) -> UnsafeRawBufferPointer {
        var writer = ByteWriter(reserving: record.count + 20)
        var fields = present
        fields.insert(1)
        fields.encode(into: &writer)
        let uuid = madeKey(record, batch)
        for word in [uuid.high, uuid.low] { withUnsafeBytes(of: word.bigEndian) { writer.raw($0) } }
        writer.raw(UnsafeRawBufferPointer(rebasing: record[(1 + Int(record[0]))...]))
        return writer.bytes.withUnsafeBytes { batch.arena.copy($0) }
    }

    /// A uuid for a record without one. In a numbered batch of an import the same record at the same position gets the
    /// same one, so that a batch that is sent again after a lost answer doubles nothing (RFC 9562, version 8).
    private func madeKey(_ record: UnsafeRawBufferPointer, _ batch: WriteBatch) -> UUIDBytes {
        guard batch.origin != 0, batch.batchNumber != 0 else { return UUIDBytes.random() }
        var writer = ByteWriter(reserving: record.count + 24)
        writer.u64(batch.origin)
        writer.u64(batch.batchNumber)
        writer.u64(UInt64(batch.ops.count))
        writer.raw(record)
        return writer.bytes.withUnsafeBytes { bytes in
            let high = hasher.hash(kind: 1 << 61, key: bytes)
            let low = hasher.hash(kind: 1 << 61 | 1, key: bytes)
            return UUIDBytes(
                high: high & 0xFFFF_FFFF_FFFF_0FFF | 0x8000, low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
        }
    }
}

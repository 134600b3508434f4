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
        op.mode = operation.mode
        op.isPersonal = operation.isPersonal
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
        if operation.ifSeq != nil || !operation.unset.isEmpty {
            op.hasRareOptions = true
            batch.rare[batch.ops.count] = (operation.ifSeq, operation.unset)
        }
        op.fingerprint = hasher.fingerprint(kind: operation.kind, key: op.key)
        index.prefetch(op.fingerprint)
        if op.payload.count > batch.payloadByteCountMax { batch.payloadByteCountMax = op.payload.count }
        batch.ops.append(op)
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
        let uuid = UUIDBytes.random()
        for word in [uuid.high, uuid.low] { withUnsafeBytes(of: word.bigEndian) { writer.raw($0) } }
        writer.raw(UnsafeRawBufferPointer(rebasing: record[(1 + Int(record[0]))...]))
        return writer.bytes.withUnsafeBytes { batch.arena.copy($0) }
    }
}

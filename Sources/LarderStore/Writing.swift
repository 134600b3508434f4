// Deciding a batch: resolve (what is there), then stage (what becomes of it).

import LarderFormat

/// What resolving a batch came to.
public enum Resolution: Sendable {
    case ready
    /// Run the read, supply its result, and resolve again.
    case cold(ColdRead)
    /// An index is being made, a slice at a time: resolve again when other work had its turn.
    case again
}

/// What staging a batch came to.
public enum Staged: Equatable, Sendable {
    /// Decided. The answer may go when this commit is durable; 0: at once.
    case staged(commit: UInt64)
    /// There is no room until a commit has been taken or finished.
    case full
    /// The index has changed since the batch was resolved; resolve again.
    case stale
    /// The result would be over 16 MiB. Nothing was staged.
    case tooLarge
    /// A clear is running; wait for its end.
    case clearing
    /// An atomic batch that may not be; `WriteBatch.firstFailure` says why. Nothing was staged. The answer may go when
    /// this commit is durable; 0: at once.
    case failed(commit: UInt64)
}

/// The most that one batch may add to the log.
public let batchResultByteCountMax = 16_777_216

extension StoreCore {
    mutating func stage(_ batch: WriteBatch, now: Int64) throws(StoreError) -> Staged {
        if let failure { throw .readOnly(reason: failure) }
        if clear != nil { return .clearing }
        guard batch.resolvedGeneration == generation, batch.resolvedCount == batch.ops.count else { return .stale }
        guard isFoundStill(batch) else {
            batch.resolvedGeneration = 0
            return .stale
        }
        let byteCountMax = stagedByteCountMax(batch)
        guard byteCountMax <= batchResultByteCountMax else { return .tooLarge }
        let isRun = byteCountMax > Self.payloadByteCountMax
        guard case .ready = try makeRoom(byteCountMax, isRun: isRun, mayUseReserve: batch.isOnlyDeletes, now: now)
        else { return .full }
        let mark = mark()
        do throws(StoreError) {
            let decided = try decide(batch, isRun: isRun, firstSeq: mark.nextSeq)
            let isFailed = batch.isAtomic && batch.firstFailure != nil
            guard isFailed || batch.isDryRun else { return decided }
            rollBack(to: mark)
            let commit = commitDependedOn(batch)
            batch.lastSeq = commit == 0 ? publishedSeq : nextSeq - 1
            return isFailed ? .failed(commit: commit) : .staged(commit: commit)
        } catch {
            // Half a batch must not become durable.
            let isHalfStaged = nextSeq != mark.nextSeq
            rollBack(to: mark)
            if case .system = error, isHalfStaged { failWriting(error) }
            throw error
        }
    }

    /// The pending commit that an answer waits for whose batch staged nothing; 0: none.
    private func commitDependedOn(_ batch: WriteBatch) -> UInt64 {
        // The batch's own changes are no longer among the staged.
        if batch.dependsOnStaged && stagedOps.count > 0 { return staged.number }
        return batch.dependsOnStaged || batch.dependsOnInFlight ? inFlight?.number ?? 0 : 0
    }

    /// No less than the bytes that a batch can add to the log.
    ///
    /// What is stored was counted when the batch was resolved. Merged with a record that is pending, or that an earlier
    /// operation of the batch makes, a small operation can become a large entry: that is counted here, roughly where it
    /// cannot matter and by key where it can.
    private func stagedByteCountMax(_ batch: WriteBatch) -> Int {
        let largest = max(batch.payloadByteCountMax, stagedOps.payloadByteCountMax, inFlightOps.payloadByteCountMax)
        // A move writes two entries, and what it moves may be pending.
        let rough = batch.stagedByteCountMax &+ (batch.ops.count &+ batch.oldKeys.count) &* largest
        if rough <= Self.roughByteCountMax { return rough }
        var byteCounts: [UInt32: Int] = [:]
        var total = 4096
        for at in 0..<batch.ops.count {
            let op = batch.ops.pointer(at)
            guard !op.pointee.isRefused else { continue }
            var known = byteCountKnown(op, byteCounts) ?? op.pointee.stored.count
            if op.pointee.hasRareOptions, let old = batch.rare[at]?.oldKey.map({ batch.oldKeys.pointer($0) }) {
                known = max(known, byteCountKnown(old, byteCounts) ?? old.pointee.stored.count)
                total &+= old.pointee.payload.count &+ EntryWriter.headByteCountMax
            }
            // Two keys of one fingerprint are counted as one, which is never too little.
            let byteCount = min(known &+ op.pointee.payload.count, recordByteCountMax)
            byteCounts[op.pointee.fingerprint] = max(byteCount, byteCounts[op.pointee.fingerprint] ?? 0)
            total &+= byteCount &+ EntryWriter.headByteCountMax
        }
        return total
    }

    /// Bytes of what an earlier operation of the batch, or a pending one, may have made of a key.
    private func byteCountKnown(_ op: UnsafeMutablePointer<BatchOp>, _ byteCounts: [UInt32: Int]) -> Int? {
        let (fingerprint, kindIndex) = (op.pointee.fingerprint, op.pointee.kindIndex)
        if let known = byteCounts[fingerprint] { return known }
        if let staged = stagedOps.find(fingerprint, kindIndex: kindIndex, key: op.pointee.key) {
            return stagedOps[staged].payload.count
        }
        return inFlightOps.find(fingerprint, kindIndex: kindIndex, key: op.pointee.key).map {
            inFlightOps[$0].payload.count
        }
    }

    /// Up to this a rough count is good enough: it leaves room in a block.
    private static let roughByteCountMax = 1_048_576

    private mutating func decide(_ batch: WriteBatch, isRun: Bool, firstSeq: UInt64) throws(StoreError) -> Staged {
        var origin = batch.origin
        var dependsOnInFlight = false
        var dependsOnStaged = false
        for at in 0..<batch.ops.count {
            let op = batch.ops.pointer(at)
            if op.pointee.isRefused {
                batch.conclude(op, .refused, seq: 0)
                continue
            }
            if origin == 0 { origin = try declareOrigin(batch) }
            try decide(batch, at, op, origin, &dependsOnStaged, &dependsOnInFlight)
        }
        (batch.dependsOnStaged, batch.dependsOnInFlight) = (dependsOnStaged, dependsOnInFlight)
        if nextSeq != firstSeq {
            if batch.batchNumber != 0 { try stageToken(batch, origin) }
            batch.lastSeq = nextSeq - 1
            if isRun { closeBlock(continues: false) }
            return .staged(commit: staged.number)
        }
        batch.lastSeq = dependsOnStaged || dependsOnInFlight ? nextSeq - 1 : publishedSeq
        if dependsOnStaged { return .staged(commit: staged.number) }
        return .staged(commit: dependsOnInFlight ? (inFlight?.number ?? 0) : 0)
    }

    /// The number of the program's own origin, declared in the log before its first change.
    private mutating func declareOrigin(_ batch: WriteBatch) throws(StoreError) -> UInt64 {
        if let known = origins.number(name: batch.originName, token: "") { return known }
        return try stageOrigin(name: batch.originName, token: "")
    }

    mutating func stageOrigin(name: String, token: String) throws(StoreError) -> UInt64 {
        let origin = Origin(number: origins.next, name: name, token: token, time: staged.time)
        try stageOther(EntryType.origin, origin.body)
        origins.declare(origin)
        return origin.number
    }

    private mutating func stageToken(_ batch: WriteBatch, _ origin: UInt64) throws(StoreError) {
        var writer = ByteWriter()
        writer.varint(origin)
        writer.varint(batch.batchNumber)
        for outcome in Outcome.allCases { writer.varint(batch.counts[outcome]) }
        try stageOther(EntryType.token, writer.bytes)
        staged.tokens.append((origin, batch.batchNumber))
    }

    /// What is there of a key, pending changes included.
    struct Existing {
        var seq: UInt64
        var firstSeq: UInt64
        var savedAt: Int64
        var origin: UInt64
        var record: UnsafeRawBufferPointer
        var isEqual: Bool
    }

    /// What there is of an operation's key, and the staged change of it, if any.
    @inline(__always)
    func lookUp(
        _ pointer: UnsafeMutablePointer<BatchOp>, _ dependsOnStaged: inout Bool, _ dependsOnInFlight: inout Bool
    ) -> (Existing?, earlier: Int?) {
        let (fingerprint, kindIndex, key) = (
            pointer.pointee.fingerprint, pointer.pointee.kindIndex, pointer.pointee.key
        )
        if let earlier = stagedOps.find(fingerprint, kindIndex: kindIndex, key: key) {
            dependsOnStaged = true
            return (existing(stagedOps[earlier], pointer), earlier)
        }
        if let flying = inFlightOps.find(fingerprint, kindIndex: kindIndex, key: key) {
            dependsOnInFlight = true
            return (existing(inFlightOps[flying], pointer), nil)
        }
        guard pointer.pointee.storedOrdinal != UInt32.max else { return (nil, nil) }
        let stored = Existing(
            seq: pointer.pointee.storedSeq, firstSeq: pointer.pointee.storedFirstSeq,
            savedAt: pointer.pointee.storedSavedAt, origin: pointer.pointee.storedOrigin,
            record: pointer.pointee.isEqualToStored ? pointer.pointee.payload : pointer.pointee.stored,
            isEqual: pointer.pointee.isEqualToStored)
        return (stored, nil)
    }

    @inline(__always)
    private mutating func decide(
        _ batch: WriteBatch, _ at: Int, _ pointer: UnsafeMutablePointer<BatchOp>, _ origin: UInt64,
        _ dependsOnStaged: inout Bool, _ dependsOnInFlight: inout Bool
    ) throws(StoreError) {
        let (existing, earlier) = lookUp(pointer, &dependsOnStaged, &dependsOnInFlight)
        var unset = FieldSet()
        if pointer.pointee.hasRareOptions, let rare = batch.rare[at] {
            unset = rare.unset
            if let ifSeq = rare.ifSeq, rare.oldKey == nil, ifSeq != existing?.seq ?? 0 {
                batch.refusals.append(Refusal(position: at, reason: .conflict(current: existing?.seq ?? 0)))
                batch.conclude(pointer, .refused, seq: existing?.seq ?? 0)
                return
            }
        }
        if pointer.pointee.isDelete {
            guard let existing else { return batch.conclude(pointer, .notFound, seq: 0) }
            try stageDelete(pointer, existing.firstSeq, existing.seq, origin, earlier)
            return batch.conclude(pointer, .deleted, seq: nextSeq - 1)
        }
        if pointer.pointee.hasRareOptions, let rare = batch.rare[at] {
            if rare.unlessExists != 0 {
                // That no record has the value can be due to a pending change as well.
                dependsOnStaged = dependsOnStaged || stagedOps.count > 0
                dependsOnInFlight = dependsOnInFlight || inFlightOps.count > 0
                let oldKey = rare.oldKey.map { batch.oldKeys.pointer($0).pointee.key } ?? pointer.pointee.key
                if let other = recordWithValue(batch, rare, pointer, oldKey: oldKey) {
                    return batch.conclude(pointer, .alreadySaved, seq: other)
                }
            }
            if pointer.pointee.isRestore {
                guard existing == nil else { return batch.conclude(pointer, .alreadySaved, seq: existing?.seq ?? 0) }
                return try restore(
                    batch, at, pointer, rare, origin, earlier, &dependsOnStaged, &dependsOnInFlight)
            }
            if let old = rare.oldKey {
                return try move(
                    batch, at, pointer, from: batch.oldKeys.pointer(old), existing, origin, earlier, &dependsOnStaged,
                    &dependsOnInFlight)
            }
        }
        guard let existing else {
            return try create(batch, at, pointer, origin, earlier)
        }
        if batch.isImport && existing.origin == origin && !options.savesTwice {
            return batch.conclude(pointer, .duplicate, seq: existing.seq)
        }
        if pointer.pointee.mode == .insert { return batch.conclude(pointer, .alreadySaved, seq: existing.seq) }
        if existing.isEqual && unset.isEmpty { return batch.conclude(pointer, .unchanged, seq: existing.seq) }
        let isChanged: Bool
        do throws(FormatError) {
            isChanged = try merger.merge(
                old: existing.record, new: pointer.pointee.payload, schema: kinds[pointer.pointee.kindIndex],
                mode: pointer.pointee.mode, known: Int(pointer.pointee.known),
                personal: pointer.pointee.isPersonal, unset: unset)
        } catch {
            throw .damaged(path: path, offset: 0, fault: error)
        }
        guard isChanged else { return batch.conclude(pointer, .unchanged, seq: existing.seq) }
        let merged = merger.result.bytes
        if let fault = merged.withUnsafeBytes({ mergedFault($0, kinds[pointer.pointee.kindIndex]) }) {
            batch.refusals.append(Refusal(position: at, reason: .format(fault)))
            return batch.conclude(pointer, .refused, seq: existing.seq)
        }
        let record = merged.withUnsafeBytes { batch.arena.copy($0) }
        try stageUpdate(pointer, record, existing.firstSeq, existing.savedAt, existing.seq, origin, earlier)
        batch.conclude(pointer, .updated, seq: nextSeq - 1)
    }

    /// What a merged record lacks or exceeds, or nil.
    func mergedFault(_ record: UnsafeRawBufferPointer, _ schema: RecordSchema) -> FormatError? {
        guard record.count <= recordByteCountMax else { return FormatError(.tooLarge, at: 0) }
        var reader = ByteReader(record)
        do throws(FormatError) {
            let present = try FieldSet(from: &reader)
            if let missing = schema.required.subtracting(present).first {
                return FormatError(.missingField, at: 0, field: missing)
            }
            return nil
        } catch { return error }
    }

    func existing(_ pending: PendingOp, _ pointer: UnsafeMutablePointer<BatchOp>) -> Existing? {
        guard !pending.isDelete else { return nil }
        return Existing(
            seq: pending.seq, firstSeq: pending.firstSeq, savedAt: pending.savedAt, origin: pending.origin,
            record: pending.payload, isEqual: isEqual(pending.payload, pointer.pointee.payload))
    }
}

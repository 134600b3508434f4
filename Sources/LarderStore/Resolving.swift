// Finding what is there of a batch's keys, before anything is decided.

import LarderFormat

extension StoreCore {
    mutating func resolve(_ batch: WriteBatch) throws(StoreError) -> Resolution {
        if batch.resolvedGeneration != generation {
            batch.resolvedGeneration = generation
            batch.resolvedCount = 0
            batch.stagedByteCountMax = 4096
            batch.forgetSearches()
            if batch.fetchedLayout != layoutCount { batch.fetched.removeAll() }
            batch.fetchedLayout = layoutCount
        }
        while batch.resolvedCount < batch.ops.count {
            let at = batch.resolvedCount
            var byteCount = EntryWriter.headByteCountMax
            let op = batch.ops.pointer(at)
            if !op.pointee.isRefused {
                if let cold = try resolve(op, batch) { return .cold(cold) }
                byteCount += op.pointee.payload.count + op.pointee.stored.count
                if op.pointee.hasRareOptions {
                    switch try resolveRare(batch, at) {
                    case .ready: break
                    case let other: return other
                    }
                    if let old = batch.rare[at]?.oldKey {
                        byteCount += 2 * batch.oldKeys.pointer(old).pointee.stored.count + EntryWriter.headByteCountMax
                    }
                }
            }
            batch.stagedByteCountMax += byteCount
            batch.resolvedCount = at + 1
        }
        return .ready
    }

    /// Finds the durable entry of an operation's key. Returns a read that has to be done first, or nil.
    @inline(__always)
    private mutating func resolve(
        _ op: UnsafeMutablePointer<BatchOp>, _ batch: WriteBatch
    ) throws(StoreError) -> ColdRead? {
        op.pointee.storedOrdinal = UInt32.max
        op.pointee.isEqualToStored = false
        op.pointee.stored = UnsafeRawBufferPointer(start: nil, count: 0)
        var probe = 0
        while let ordinal = index.next(op.pointee.fingerprint, &probe) {
            let place = table[ordinal]
            guard place.kindIndex == op.pointee.kindIndex else { continue }
            switch try confirm(op, ordinal, place, batch) {
            case .isOther: continue
            case .isIt: return nil
            case .cold(let read): return read
            }
        }
        return nil
    }

    /// Resolves what only few operations ask for: the old key of a move, and who has an indexed value.
    private mutating func resolveRare(_ batch: WriteBatch, _ at: Int) throws(StoreError) -> Resolution {
        guard let rare = batch.rare[at] else { return .ready }
        if let old = rare.oldKey, let cold = try resolve(batch.oldKeys.pointer(old), batch) { return .cold(cold) }
        guard rare.unlessExists != 0 else { return .ready }
        noteTouched(batch)
        let kindIndex = batch.ops.pointer(at).pointee.kindIndex
        var searches: [Int] = []
        for (value, fingerprint) in rare.values {
            let wanted = WantedValue(kindIndex: kindIndex, field: rare.unlessExists, value: value)
            let number: Int
            if let known = batch.searchOfValue[wanted] {
                number = known
            } else {
                number = batch.searches.count
                batch.searches.append(ValueSearch(kindIndex, rare.unlessExists, value, fingerprint))
                batch.searchOfValue[wanted] = number
            }
            searches.append(number)
            if batch.searches[number].isDone { continue }
            switch try goOn(&batch.searches[number], limit: .max, batch) {
            case .cold(let read): return .cold(read)
            case .more: return .again
            case .done: continue
            }
        }
        batch.rare[at]?.searches = searches
        return .ready
    }

    private func noteTouched(_ batch: WriteBatch) {
        guard batch.touched.isEmpty else { return }
        for at in 0..<batch.ops.count { batch.touched.insert(batch.ops.pointer(at).pointee.fingerprint) }
        for at in 0..<batch.oldKeys.count { batch.touched.insert(batch.oldKeys.pointer(at).pointee.fingerprint) }
    }

    private enum Confirmation {
        case isIt
        case isOther
        case cold(ColdRead)
    }

    private mutating func confirm(
        _ op: UnsafeMutablePointer<BatchOp>, _ ordinal: UInt32, _ place: Place, _ batch: WriteBatch
    ) throws(StoreError) -> Confirmation {
        var view: EntryView
        var isFetched = false
        if !batch.fetched.isEmpty, let fetched = batch.fetched[place.raw] {
            view = fetched.entry
            view.payload = fetched.record
            isFetched = true
        } else {
            switch try entry(at: place) {
            case .cold(let read):
                batch.awaitedPlace = place
                return .cold(read)
            case .entry(let found): view = found
            }
        }
        if !op.pointee.isDelete && isEqual(view.payload, op.pointee.payload) {
            op.pointee.isEqualToStored = true
        } else {
            guard hasKey(view.payload, op.pointee.key) else { return .isOther }
            op.pointee.stored = isFetched || op.pointee.isDelete ? view.payload : batch.arena.copy(view.payload)
        }
        op.pointee.storedOrdinal = ordinal
        op.pointee.storedSeq = view.seq
        op.pointee.storedFirstSeq = view.firstSeq
        op.pointee.storedSavedAt = view.savedAt
        op.pointee.storedOrigin = view.origin
        return .isIt
    }

    /// Keeps what a cold read brought for as long as the batch needs it, so that resolving always gets on.
    mutating func keep(for batch: WriteBatch) throws(StoreError) {
        let place = batch.awaitedPlace
        batch.awaitedPlace = .hole
        guard !place.isHole, batch.fetchedLayout == layoutCount, batch.fetched[place.raw] == nil,
            case .entry(let view) = try entry(at: place)
        else {
            return
        }
        batch.fetched[place.raw] = (view, batch.arena.copy(view.payload))
    }
}

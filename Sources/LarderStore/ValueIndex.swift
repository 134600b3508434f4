// From the values of a kind's indexed fields to its records. Made when it is first asked for, by one walk over the
// records in slices; kept up as records are published; dropped when too much of it is stale, and made again.

/// The index of one kind's indexed fields: fingerprint of field and folded value → ordinals, in 8-byte slots like those
/// of KeyIndex. A hit is a candidate: the record tells. One thread.
final class ValueIndex {
    private var index = KeyIndex(growth: .close)
    /// Ordinals, ascending, of fingerprints that very many records share, so that no probe is long.
    private var crowded: [UInt32: [UInt32]] = [:]
    private var crowdedCount = 0
    private(set) var staleCount = 0
    /// First seq of the last record that the walk has seen; nil: it is done.
    var walkedThrough: UInt64? = 0
    /// Records of one fingerprint from which on it is crowded.
    private static let crowd = 32

    var isReady: Bool { walkedThrough == nil }
    var count: Int { index.count + crowdedCount }
    var isGrowing: Bool { index.isGrowing }
    /// So much of it points at values that are gone that it is better made anew. Never while it is made: it would not
    /// come to an end.
    var isWornOut: Bool { isReady && staleCount > 1_000 && staleCount > count / 4 }

    /// Memory that it takes, in bytes, but for what the allocator adds.
    var byteCount: Int {
        let slotByteCount = MemoryLayout<UInt32>.stride + MemoryLayout<[UInt32]>.stride
        return index.capacity * MemoryLayout<UInt64>.stride + crowded.capacity * slotByteCount
            + crowded.values.reduce(0) { $0 + 32 + $1.capacity * MemoryLayout<UInt32>.stride }
    }

    /// Ordinals, ascending, that may have a value.
    func candidates(_ fingerprint: UInt32) -> [UInt32] {
        if let ordinals = crowded[fingerprint] { return ordinals }
        var found: [UInt32] = []
        var probe = 0
        while let ordinal = index.next(fingerprint, &probe) { found.append(ordinal) }
        found.sort()
        return found
    }

    /// False when it was there.
    @discardableResult
    func insert(_ fingerprint: UInt32, ordinal: UInt32) -> Bool {
        if !crowded.isEmpty, crowded[fingerprint] != nil { return insertCrowded(fingerprint, ordinal) }
        var probe = 0
        var sharing = 0
        while let other = index.next(fingerprint, &probe) {
            if other == ordinal { return false }
            sharing += 1
        }
        if sharing < ValueIndex.crowd {
            index.insert(fingerprint, ordinal: ordinal)
            return true
        }
        let there = candidates(fingerprint)
        for other in there { index.remove(fingerprint, ordinal: other) }
        crowded[fingerprint] = there
        crowdedCount += there.count
        return insertCrowded(fingerprint, ordinal)
    }

    private func insertCrowded(_ fingerprint: UInt32, _ ordinal: UInt32) -> Bool {
        guard let count = crowded[fingerprint]?.count else { return false }
        // Nearly always it comes last.
        var low = crowded[fingerprint]?.last.map { $0 < ordinal } == true ? count : 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            guard let other = crowded[fingerprint]?[middle] else { return false }
            if other == ordinal { return false }
            if other < ordinal { low = middle + 1 } else { high = middle }
        }
        crowded[fingerprint]?.insert(ordinal, at: low)
        crowdedCount += 1
        return true
    }

    func superseded() { staleCount += 1 }
}

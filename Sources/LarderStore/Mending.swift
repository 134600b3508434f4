// Records that come back to the midst of the saved order, and the index of a log that lost entries: there a record may
// have begun with an entry that is gone, or ended with one.

import LarderFormat

extension StoreCore {
    /// A record without an ordinal of its own; `adoptOrphans` gives it one.
    mutating func updateOrphan(_ place: Place, firstSeq: UInt64, fingerprint: UInt32) {
        if let old = orphans[firstSeq] { segment(old.place.segment)?.liveCount -= 1 }
        orphans[firstSeq] = (place, fingerprint)
    }

    mutating func deleteOrphan(firstSeq: UInt64) {
        if let old = orphans.removeValue(forKey: firstSeq) { segment(old.place.segment)?.liveCount -= 1 }
    }

    /// Puts the records whose first entry is lost where they belong, and leaves one record of each key.
    mutating func mendIndex() throws(StoreError) {
        adoptOrphans()
        for ordinals in index.collisions() { try keepNewest(ordinals) }
    }

    /// Builds the table anew, in the order of first seqs, with the records that have no ordinal. O(n log n), so once for
    /// all that came together.
    mutating func adoptOrphans() {
        guard !orphans.isEmpty else { return }
        var records: [(firstSeq: UInt64, place: Place, ordinal: UInt32?)] = orphans.map {
            ($0.key, $0.value.place, nil)
        }
        for ordinal in 0..<UInt32(truncatingIfNeeded: table.count) where !table[ordinal].isHole {
            records.append((table.firstSeq(ordinal), table[ordinal], ordinal))
        }
        records.sort { $0.firstSeq < $1.firstSeq }
        // No slot is of a hole; if one were, it would be of a record that is not confirmed.
        var map = [UInt32](repeating: 0, count: table.count)
        var adopted: [(fingerprint: UInt32, ordinal: UInt32)] = []
        table.removeAll()
        for record in records {
            let ordinal = table.append(record.place, firstSeq: record.firstSeq)
            if let old = record.ordinal {
                map[Int(old)] = ordinal
            } else if let orphan = orphans[record.firstSeq] {
                adopted.append((orphan.fingerprint, ordinal))
                liveCounts[Int(record.place.kindIndex)] += 1
            }
        }
        index.renumber { map[Int($0)] }
        for record in adopted { index.insert(record.fingerprint, ordinal: record.ordinal) }
        orphans = [:]
        valueIndexes = [:]
        generation &+= 1
    }

    /// Of records with the same key all but the newest were deleted by entries that are lost.
    private mutating func keepNewest(_ ordinals: [UInt32]) throws(StoreError) {
        struct Found: Hashable {
            var kindIndex: UInt8
            var key: [UInt8]
        }
        var newest: [Found: (seq: UInt64, firstSeq: UInt64)] = [:]
        for ordinal in ordinals {
            let place = table[ordinal]
            let schema = kinds[place.kindIndex]
            let view = try entryBlocking(at: place)
            guard let range = try? schema.keyRange(ofChecked: view.payload) else { continue }
            let key = UnsafeRawBufferPointer(rebasing: view.payload[range])
            let fingerprint = hasher.fingerprint(kind: schema.kind.number, key: key)
            let found = Found(kindIndex: place.kindIndex, key: Array(key))
            let record = (seq: view.seq, firstSeq: table.firstSeq(ordinal))
            guard let other = newest[found] else {
                newest[found] = record
                continue
            }
            let isNewer = record.seq > other.seq
            newest[found] = isNewer ? record : other
            applyDeleted(firstSeq: isNewer ? other.firstSeq : record.firstSeq, fingerprint: fingerprint)
        }
    }

    private mutating func entryBlocking(at place: Place) throws(StoreError) -> EntryView {
        while true {
            switch try entry(at: place) {
            case .entry(let view): return view
            case .cold(let read):
                let result = read.run()
                if let failure = result.failure { throw .system(failure) }
                reader.supply(result)
            }
        }
    }
}

// Records that come back to the midst of the saved order, and the index of a log that lost entries: there a record may
// have begun with an entry that is gone, or ended with one.

import LarderFormat

extension StoreCore {
    /// A record without an ordinal of its own; `adoptOrphans` gives it one.
    mutating func updateOrphan(_ place: Place, firstSeq: UInt64, fingerprint: UInt32) {
        deleteOrphan(firstSeq: firstSeq)
        orphans[firstSeq] = (place, fingerprint)
        orphansByFingerprint[fingerprint, default: []].append(firstSeq)
    }

    mutating func deleteOrphan(firstSeq: UInt64) {
        guard let old = orphans.removeValue(forKey: firstSeq) else { return }
        segment(old.place.segment)?.liveCount -= 1
        orphansByFingerprint[old.fingerprint]?.removeAll { $0 == firstSeq }
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
        renumberCount += 1
        index.renumber { map[Int($0)] }
        for record in adopted { index.insert(record.fingerprint, ordinal: record.ordinal) }
        orphans = [:]
        orphansByFingerprint = [:]
        valueIndexes = [:]
        generation &+= 1
    }

    // MARK: Behind damage, while recovering

    /// What an entry says of a key is the last word: other records with that key ended with entries that are lost.
    mutating func endOthers(
        _ kindIndex: UInt8, _ key: UnsafeRawBufferPointer, _ fingerprint: UInt32, except firstSeq: UInt64
    ) throws(StoreError) {
        var others: [(firstSeq: UInt64, place: Place)] = []
        var probe = 0
        while let ordinal = index.next(fingerprint, &probe) {
            others.append((table.firstSeq(ordinal), table[ordinal]))
        }
        for seq in orphansByFingerprint[fingerprint] ?? [] {
            if let orphan = orphans[seq] { others.append((seq, orphan.place)) }
        }
        for other in others where other.firstSeq != firstSeq && other.place.kindIndex == kindIndex {
            // Fingerprints may be equal by chance.
            let record = try payload(at: other.place)
            guard record.withUnsafeBytes({ hasKey($0, key) }) else { continue }
            applyDeleted(firstSeq: other.firstSeq, fingerprint: fingerprint)
        }
    }

    /// A record that was moved by an entry that is lost is filed under the key that it has now.
    mutating func refile(firstSeq: UInt64, _ kindIndex: UInt8, _ fingerprint: UInt32) {
        guard let ordinal = table.ordinal(firstSeq: firstSeq) else { return }
        let place = table[ordinal]
        guard !place.isHole else { return }
        if place.kindIndex != kindIndex {
            liveCounts[Int(place.kindIndex)] -= 1
            liveCounts[Int(kindIndex)] += 1
        }
        var probe = 0
        while let found = index.next(fingerprint, &probe) {
            if found == ordinal { return }
        }
        index.remove(ordinal: ordinal)
        index.insert(fingerprint, ordinal: ordinal)
    }

    /// The record of an entry that was checked, read from its file: its commit may not be in the index yet.
    private func payload(at place: Place) throws(StoreError) -> [UInt8] {
        guard let segment = segment(place.segment) else { return [] }
        let offset = Int(place.offset)
        var bytes: [UInt8]
        do throws(SystemError) {
            let file = try files.openForReading(segment.path)
            defer { files.close(file) }
            bytes = try segment.read(files, file, at: offset, count: 16_384)
            let whole = bytes.withUnsafeBytes { bytes in
                var head = ByteReader(bytes)
                let length = (try? head.varint()) ?? 0
                return head.offset + Int(min(length, UInt64(entryByteCountMax)))
            }
            if whole > bytes.count { bytes = try segment.read(files, file, at: offset, count: whole) }
        } catch { throw .system(error) }
        return bytes.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return [] }
            // Any first seq that no difference leads out of will do: only the record is wanted.
            let entry = try? readEntry(
                base: base, offset: 0, end: bytes.count, commitFirstSeq: 1 << 62, commitTime: 0, isVerified: false)
            return entry.map { Array($0.payload) } ?? []
        }
    }
}

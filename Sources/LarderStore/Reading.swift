// Reads of what is durable: one record by its key, pages in saved order, counts.

import LarderFormat

/// A record as it is stored. Its bytes are borrowed until the next call of the store.
public struct StoredRecord {
    /// The kind's number.
    public var kind: Int
    public var seq: UInt64
    public var firstSeq: UInt64
    /// When it was first saved, and when its current entry was; ms since 1970.
    public var savedAt: Int64
    public var changedAt: Int64
    public var origin: UInt64
    public var record: UnsafeRawBufferPointer
}

public enum GetResult {
    case found(StoredRecord)
    case missing
    /// Run the read, supply its result, and ask again.
    case cold(ColdRead)
}

/// Where a page ended: the next one begins behind it.
public struct PageToken: Equatable, Sendable {
    public var epoch: UInt64
    /// Kind's number, 0 for all.
    public var kind: Int
    public var isReverse: Bool
    /// First seq of the last record shown.
    public var firstSeq: UInt64

    public init(epoch: UInt64, kind: Int, isReverse: Bool, firstSeq: UInt64) {
        self.epoch = epoch
        self.kind = kind
        self.isReverse = isReverse
        self.firstSeq = firstSeq
    }

    /// Opaque bytes for the wire.
    public var encoded: [UInt8] {
        var writer = ByteWriter(reserving: 24)
        writer.u8(1)
        writer.u8(isReverse ? 1 : 0)
        writer.varint(kind)
        writer.u64(epoch)
        writer.u64(firstSeq)
        return writer.bytes
    }

    /// Nil for bytes that are no token.
    public init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        do throws(FormatError) {
            guard try reader.u8() == 1 else { return nil }
            let flags = try reader.u8()
            guard flags <= 1 else { return nil }
            isReverse = flags == 1
            kind = try reader.varint(atMost: Int(Int32.max))
            epoch = try reader.u64()
            firstSeq = try reader.u64()
            try reader.expectEnd()
        } catch { return nil }
    }
}

/// A page being made. It survives waiting for the disk: ask again with the same value.
public struct PageCursor {
    public let kind: Int
    public let isReverse: Bool
    /// Records, and bytes of records, still wanted.
    public var limit: Int
    public var byteLimit: Int
    /// First seq of the last record shown, or nil at the beginning.
    public var lastFirstSeq: UInt64?
    public var count = 0

    /// - Parameter kind: 0 for all.
    public init(kind: Int, isReverse: Bool, limit: Int, byteLimit: Int, after: PageToken?) {
        self.kind = kind
        self.isReverse = isReverse
        self.limit = limit
        self.byteLimit = byteLimit
        lastFirstSeq = after?.firstSeq
    }
}

public enum PageStep {
    /// The page is full, or there are no more records.
    case done(isEnd: Bool)
    case cold(ColdRead)
}

extension StoreCore {
    func prefetch(kind: Int, key: UnsafeRawBufferPointer) -> UInt32 {
        let fingerprint = hasher.fingerprint(kind: kind, key: key)
        index.prefetch(fingerprint)
        return fingerprint
    }

    func prefetchRecord(_ fingerprint: UInt32) {
        var probe = 0
        if let ordinal = index.next(fingerprint, &probe) { table.prefetch(ordinal) }
    }

    mutating func get(kind: Int, key: UnsafeRawBufferPointer) throws(StoreError) -> GetResult {
        guard let kindIndex = kinds.index(kind) else { return .missing }
        let fingerprint = hasher.fingerprint(kind: kind, key: key)
        var probe = 0
        while let ordinal = index.next(fingerprint, &probe) {
            let place = table[ordinal]
            guard place.kindIndex == kindIndex else { continue }
            let (segment, commit) = try locate(place)
            switch try entry(segment, commit, place) {
            case .cold(let read): return .cold(read)
            case .entry(let view):
                if hasKey(view.payload, key) { return .found(stored(view, changedAt: commit.time)) }
            }
        }
        return .missing
    }

    /// The record that was first saved with that seq.
    mutating func get(firstSeq: UInt64) throws(StoreError) -> GetResult {
        guard let ordinal = table.ordinal(firstSeq: firstSeq) else { return .missing }
        let place = table[ordinal]
        guard !place.isHole else { return .missing }
        let (segment, commit) = try locate(place)
        switch try entry(segment, commit, place) {
        case .cold(let read): return .cold(read)
        case .entry(let view):
            try confirm(view, ordinal, place)
            return .found(stored(view, changedAt: commit.time))
        }
    }

    /// What is found by its place in the order, and not by its key, has to be the record of that place.
    @inline(__always)
    func confirm(_ view: EntryView, _ ordinal: UInt32, _ place: Place) throws(StoreError) {
        if view.firstSeq == table.firstSeq(ordinal) { return }
        let offset = Int(place.offset)
        let segment = segment(place.segment)
        throw .damaged(
            path: segment?.path ?? path, offset: segment?.fileOffset(offset) ?? offset,
            fault: FormatError(.badStructure, at: offset))
    }

    @inline(__always)
    func stored(_ view: EntryView, changedAt: Int64) -> StoredRecord {
        StoredRecord(
            kind: view.kind, seq: view.seq, firstSeq: view.firstSeq, savedAt: view.savedAt, changedAt: changedAt,
            origin: view.origin, record: view.payload)
    }

    /// Goes on with a page, showing each record once.
    mutating func page(_ cursor: inout PageCursor, _ show: (StoredRecord) -> Void) throws(StoreError) -> PageStep {
        let wanted = cursor.kind == 0 ? nil : kinds.index(cursor.kind)
        if cursor.kind != 0 && wanted == nil { return .done(isEnd: true) }
        var ordinal: Int
        if cursor.isReverse {
            ordinal = cursor.lastFirstSeq.map { table.firstOrdinal(atOrAfter: $0) - 1 } ?? table.count - 1
        } else {
            ordinal = cursor.lastFirstSeq.map { table.firstOrdinal(atOrAfter: $0 &+ 1) } ?? 0
        }
        while ordinal >= 0 && ordinal < table.count {
            let place = table[UInt32(truncatingIfNeeded: ordinal)]
            if !place.isHole && (wanted == nil || place.kindIndex == wanted) {
                guard cursor.limit > 0 && cursor.byteLimit > 0 else { return .done(isEnd: false) }
                let (segment, commit) = try locate(place)
                switch try entry(segment, commit, place) {
                case .cold(let read): return .cold(read)
                case .entry(let view):
                    try confirm(view, UInt32(truncatingIfNeeded: ordinal), place)
                    if cursor.count > 0 && view.payload.count > cursor.byteLimit { return .done(isEnd: false) }
                    show(stored(view, changedAt: commit.time))
                    cursor.limit -= 1
                    cursor.byteLimit -= view.payload.count
                    cursor.count += 1
                    cursor.lastFirstSeq = view.firstSeq
                }
            }
            ordinal += cursor.isReverse ? -1 : 1
        }
        return .done(isEnd: true)
    }

    /// Live records by kind number: all kinds with any, or the one asked for.
    func counts(kind: Int) -> [(kind: Int, count: Int)] {
        var rows: [(kind: Int, count: Int)] = []
        for (at, schema) in kinds.schemas.enumerated() where kind == 0 ? liveCounts[at] > 0 : schema.kind.number == kind
        {
            rows.append((schema.kind.number, liveCounts[at]))
        }
        return rows
    }
}

/// Whether a stored record has this key. A key's encoding ends by itself, so no other key begins with it, and it lies
/// right behind the bitmap.
@inline(__always)
func hasKey(_ record: UnsafeRawBufferPointer, _ key: UnsafeRawBufferPointer) -> Bool {
    guard let base = record.baseAddress, let wanted = key.baseAddress, record.count > 0 else { return false }
    let offset = 1 &+ Int(record[0])
    return record.count >= offset &+ key.count && larderMemoryCompare(base + offset, wanted, key.count) == 0
}

// Walks over all records, for what has to look at each.

import LarderFormat

/// A walk over the records in saved order, in slices. Each record that stays is seen once, as it is when it is passed.
public struct RecordWalk: Sendable {
    /// Kind's number, 0 for all.
    public let kind: Int
    public let isReverse: Bool
    /// First seq of the last record seen, or nil at the beginning.
    public var lastFirstSeq: UInt64?

    public init(kind: Int, isReverse: Bool = false, after firstSeq: UInt64? = nil) {
        self.kind = kind
        self.isReverse = isReverse
        lastFirstSeq = firstSeq
    }
}

public enum WalkStep: Sendable {
    /// The slice is used up.
    case more
    case end
    /// `visit` did not want the record, which is seen again when the walk goes on.
    case stopped
    /// To go on, run the read and supply its result.
    case cold(ColdRead)
}

/// What one step of long work may look at: some tenths of a millisecond.
struct StepRoom {
    private var recordsLeft: Int
    private var bytesLeft = 1_048_576

    init(recordCount: Int = 2_048) { recordsLeft = recordCount }

    var isUsedUp: Bool { recordsLeft <= 0 || bytesLeft <= 0 }

    @inline(__always)
    mutating func take(_ byteCount: Int) {
        recordsLeft &-= 1
        bytesLeft &-= byteCount
    }
}

extension StoreCore {
    /// Shows up to `slice` records behind where the walk is; fewer where they are large.
    mutating func walk(
        _ walk: inout RecordWalk, slice: Int, _ visit: (StoredRecord) -> Bool
    ) throws(StoreError) -> WalkStep {
        let wanted = walk.kind == 0 ? nil : kinds.index(walk.kind)
        if walk.kind != 0 && wanted == nil { return .end }
        var ordinal: Int
        if walk.isReverse {
            ordinal = walk.lastFirstSeq.map { table.firstOrdinal(atOrAfter: $0) - 1 } ?? table.count - 1
        } else {
            ordinal = walk.lastFirstSeq.map { table.firstOrdinal(atOrAfter: $0 &+ 1) } ?? 0
        }
        var room = StepRoom(recordCount: slice)
        var nearby = Nearby()
        while ordinal >= 0 && ordinal < table.count {
            let place = table[UInt32(truncatingIfNeeded: ordinal)]
            if !place.isHole && (wanted == nil || place.kindIndex == wanted) {
                guard !room.isUsedUp else { return .more }
                if let view = nearby.entry(at: place), isSave(view, place) {
                    try confirm(view, UInt32(truncatingIfNeeded: ordinal), place)
                    guard visit(stored(view, changedAt: nearby.time)) else { return .stopped }
                    walk.lastFirstSeq = view.firstSeq
                    room.take(view.payload.count)
                } else {
                    let (segment, commit) = try locate(place)
                    switch try entry(segment, commit, place) {
                    case .cold(let read): return .cold(read)
                    case .entry(let view):
                        try confirm(view, UInt32(truncatingIfNeeded: ordinal), place)
                        guard visit(stored(view, changedAt: commit.time)) else { return .stopped }
                        walk.lastFirstSeq = view.firstSeq
                        room.take(view.payload.count)
                    }
                    nearby = Nearby(commit, reader.window(segment: segment.number, offset: Int(place.offset)))
                }
            }
            ordinal += walk.isReverse ? -1 : 1
        }
        return .end
    }
}

/// The entries of the commit that the walk is in, as far as they lie in a window that was read. Without a look-up, a
/// copy or a count of references for each of them. Valid until the next read of the log.
private struct Nearby {
    private var segment: UInt32 = 0
    /// Offsets in the segment: what lies in both the commit and the window.
    private var start = 0
    private var end = 0
    /// Where `start` lies in memory.
    private var base: UnsafeRawPointer?
    private var firstSeq: UInt64 = 0
    /// Of the commit.
    private(set) var time: Int64 = 0

    init() {}

    init(_ commit: CommitPlace, _ window: Window?) {
        guard let window else { return }
        segment = window.segment
        start = max(Int(commit.start), window.offset)
        end = max(start, min(Int(commit.end), window.offset + window.count))
        base = UnsafeRawPointer(window.memory) + (start - window.offset)
        firstSeq = commit.firstSeq
        time = commit.time
    }

    /// The entry at a place, its CRC checked; nil where it is not here, or not right.
    @inline(__always)
    func entry(at place: Place) -> EntryView? {
        let offset = Int(place.offset)
        guard place.segment == segment, offset >= start, offset < end, let base else { return nil }
        return try? readEntry(
            base: base + (offset &- start), offset: 0, end: end &- offset, commitFirstSeq: firstSeq, commitTime: time)
    }
}

// The log as a stream of events: what a subscriber is given, straight from where it lies.

import LarderFormat

/// Which entries a subscriber wants; bits as on the wire.
public struct EntryFilter: Sendable {
    public static let downloaded = 1
    public static let deleted = 2
    public static let kinds = 4
    public static let origins = 8
    public static let imports = 16
    public static let recovered = 32

    public var types: Int
    /// Kind numbers; nil for all.
    public var kinds: Set<Int>? { didSet { smallKinds = EntryFilter.bits(kinds) } }
    /// The same as bits, for the numbers below 64.
    private var smallKinds: UInt64
    /// Entries of this origin are left out; 0 leaves out none.
    public var exceptOrigin: UInt64

    public init(types: Int, kinds: Set<Int>? = nil, exceptOrigin: UInt64 = 0) {
        self.types = types
        self.kinds = kinds
        smallKinds = EntryFilter.bits(kinds)
        self.exceptOrigin = exceptOrigin
    }

    private static func bits(_ kinds: Set<Int>?) -> UInt64 {
        (kinds ?? []).reduce(0) { (0..<64).contains($1) ? $0 | 1 << UInt64($1) : $0 }
    }

    /// Every save and every delete passes.
    @inline(__always)
    var passesPlain: Bool { types & 3 == 3 && kinds == nil && exceptOrigin == 0 }

    @inline(__always)
    func passes(_ entry: EntryView) -> Bool {
        let bit =
            switch entry.type {
            case EntryType.created, EntryType.updated: EntryFilter.downloaded
            case EntryType.deleted: EntryFilter.deleted
            case EntryType.kind: EntryFilter.kinds
            case EntryType.origin: EntryFilter.origins
            case EntryType.importBegan, EntryType.importEnded, EntryType.token: EntryFilter.imports
            case EntryType.recovered: EntryFilter.recovered
            default: 0
            }
        guard types & bit != 0 else { return false }
        guard entry.type <= EntryType.deleted else { return true }
        if exceptOrigin != 0 && entry.origin == exceptOrigin { return false }
        guard let kinds else { return true }
        return entry.kind < 64 ? smallKinds & (1 << UInt64(entry.kind)) != 0 : kinds.contains(entry.kind)
    }
}

/// A subscriber's place in the log.
public struct LogCursor: Sendable {
    /// Everything up to and including this was given, or was not for it.
    public internal(set) var seq: UInt64
    /// Up to this seq only what is current is given (a snapshot); 0: none of that.
    public var snapshotSeq: UInt64
    var segment: UInt32 = 0
    var commit = 0
    /// Offset of the next entry in the segment; 0: the commit's first.
    var offset = 0
    /// `StoreCore.layoutCount` + 1 as of when it was sought; 0: it was not.
    var layout: UInt64 = 0
}

/// A run of entries of one commit, borrowed until the next call of the store.
public struct EventRun {
    public var firstSeq: UInt64
    public var time: Int64
    public var bytes: UnsafeRawBufferPointer
}

public enum StreamStep: Sendable {
    /// Runs were added up to `cursor.seq`; there may be more.
    case more
    /// Runs were added; the cursor is at the end of what is durable.
    case end
    /// What was added is good; then entries up to the seq are damaged. The cursor has passed them.
    case lost(after: UInt64, through: UInt64)
    /// What was added is good; to go on, run the read and supply its result.
    case cold(ColdRead)
}

/// What became of a cursor that a subscriber brought.
public enum CursorCheck: Equatable, Sendable {
    case good
    /// Of another history, before the floor, or beyond the end.
    case expired
}

extension StoreCore {
    func check(epoch: UInt64, seq: UInt64) -> CursorCheck {
        let floor = max(floor, compaction?.floor ?? 0)
        guard epoch == identity.epoch, seq <= publishedSeq, seq == UInt64.max || seq + 1 >= floor else {
            return .expired
        }
        for gap in recoveredGaps where seq >= gap.lowerBound && seq <= gap.upperBound { return .expired }
        return .good
    }

    /// Runs that one call gives at most, but for one.
    static let runCountMax = 500

    /// Gathers entries for a subscriber until they come to `byteBudget` bytes.
    ///
    /// At least one entry is given when one is wanted, however large. Bounded work: the call also ends after passing
    /// over a few megabytes that were not wanted.
    mutating func stream(
        _ cursor: inout LogCursor, _ filter: EntryFilter, byteBudget: Int, into runs: inout [EventRun]
    ) throws(StoreError) -> StreamStep {
        var budget = byteBudget
        var passed = 0
        var windowReads = 0
        if cursor.layout != layoutCount &+ 1 { seek(&cursor) }
        while let segment = segmentForStream(&cursor) {
            let commit = segment.commits[cursor.commit]
            if cursor.offset == 0 { cursor.offset = Int(commit.start) }
            if cursor.offset == Int(commit.start), let lost = lostBefore(commit, cursor.seq) {
                cursor.seq = lost.through
                return .lost(after: lost.after, through: lost.through)
            }
            guard
                budget > 0 && passed < 4_194_304 && runs.count < Self.runCountMax
                    && windowReads < LogReader.borrowedReadsMax
            else { return .more }
            let end = Int(commit.end)
            let bytes: UnsafeRawBufferPointer
            var isVerified = true
            if let found = slabs.bytes(segment: segment.number, offset: cursor.offset) {
                bytes = UnsafeRawBufferPointer(rebasing: found[..<min(found.count, end - cursor.offset)])
                isVerified = false
            } else {
                windowReads += 1
                switch try window(segment, cursor.offset, end) {
                case .cold(let read): return .cold(read)
                case .bytes(let found):
                    bytes = UnsafeRawBufferPointer(rebasing: found[..<min(found.count, end - cursor.offset)])
                }
            }
            let before = cursor.offset
            try gather(&cursor, filter, segment, commit, bytes, isVerified, &budget, &runs)
            passed += cursor.offset - before
            if cursor.offset >= end {
                cursor.seq = max(cursor.seq, commit.lastSeq)
                cursor.commit += 1
                cursor.offset = 0
            }
        }
        cursor.seq = max(cursor.seq, publishedSeq)
        return .end
    }

    /// At least one whole entry from this offset.
    private mutating func window(_ segment: Segment, _ offset: Int, _ end: Int) throws(StoreError) -> LogBytes {
        var needed = min(16, end - offset)
        while true {
            let read: LogBytes
            do throws(SystemError) {
                read = try reader.bytes(
                    segment, offset: offset, needed: needed, end: segment.imageByteCount, isSequential: true)
            } catch { throw .system(error) }
            guard case .bytes(let bytes) = read else { return read }
            var head = ByteReader(bytes)
            let whole: Int
            do throws(FormatError) {
                let length = try head.varint()
                guard length <= UInt64(entryByteCountMax), head.offset + Int(length) <= end - offset else {
                    throw FormatError(.tooLarge, at: offset)
                }
                whole = head.offset + Int(length)
            } catch { throw .damaged(path: segment.path, offset: segment.fileOffset(offset), fault: error) }
            if whole <= bytes.count { return read }
            needed = whole
        }
    }

    /// Takes entries from bytes of one commit until the budget or the whole entries end.
    @inline(__always)
    private func gather(
        _ cursor: inout LogCursor, _ filter: EntryFilter, _ segment: Segment, _ commit: CommitPlace,
        _ bytes: UnsafeRawBufferPointer, _ isVerified: Bool, _ budget: inout Int, _ runs: inout [EventRun]
    ) throws(StoreError) {
        guard let base = bytes.baseAddress else { return }
        var at = 0
        var runStart = 0
        func flush(_ end: Int) {
            guard end > runStart else { return }
            runs.append(
                EventRun(
                    firstSeq: commit.firstSeq, time: commit.time,
                    bytes: UnsafeRawBufferPointer(rebasing: bytes[runStart..<end])))
            budget -= end - runStart
        }
        let isWhole = commit.isPlain && filter.passesPlain && cursor.seq >= cursor.snapshotSeq && !isVerified
        let offset = cursor.offset
        var taken = 0
        // An entry that does not fit ends what was begun; alone it goes, however large.
        var isFull = false
        while at < bytes.count && taken < budget && runs.count < Self.runCountMax {
            var head = ByteReader(base: base, offset: at, end: bytes.count)
            guard let length = try? head.varint(), length <= UInt64(head.remaining) else { break }
            let next = head.offset &+ Int(length)
            if isWhole && cursor.seq < commit.firstSeq {
                if next &- runStart > budget && (at > runStart || !runs.isEmpty) {
                    isFull = true
                    break
                }
                // Nothing to be looked at: only where the entries end.
                taken = next &- runStart
                at = next
                continue
            }
            let entry: EntryView
            do throws(FormatError) {
                entry = try readEntry(
                    base: base, offset: at, end: bytes.count, commitFirstSeq: commit.firstSeq, commitTime: commit.time,
                    isVerified: isVerified)
            } catch { throw .damaged(path: segment.path, offset: segment.fileOffset(offset + at), fault: error) }
            let isWanted =
                entry.seq > cursor.seq && filter.passes(entry)
                && (entry.seq > cursor.snapshotSeq || isCurrent(entry, segment, offset + at))
            if !isWanted {
                flush(at)
                runStart = next
                taken = 0
            } else {
                if next &- runStart > budget && (at > runStart || !runs.isEmpty) {
                    isFull = true
                    break
                }
                taken = next &- runStart
            }
            at = next
            if entry.seq > cursor.seq { lastSeqSeen(&cursor, entry.seq) }
        }
        flush(at)
        if isFull { budget = 0 }
        cursor.offset += at
        if isWhole, at > 0, cursor.seq < commit.firstSeq, at < bytes.count || offset + at < Int(commit.end) {
            // The cut lies inside the commit: the seq of the entry before it is that of the next, less one.
            if let next = try? readEntry(
                base: base, offset: at, end: bytes.count, commitFirstSeq: commit.firstSeq, commitTime: commit.time,
                isVerified: false)
            {
                cursor.seq = next.seq - 1
            }
        }
    }

    @inline(__always)
    private func lastSeqSeen(_ cursor: inout LogCursor, _ seq: UInt64) { cursor.seq = seq }

    /// Whether an entry of a snapshot is what the library holds now.
    private func isCurrent(_ entry: EntryView, _ segment: Segment, _ offset: Int) -> Bool {
        guard entry.isSave else { return entry.type != EntryType.deleted }
        if segment.liveCount == segment.saveCount { return true }
        guard let ordinal = table.ordinal(firstSeq: entry.firstSeq) else { return false }
        let place = table[ordinal]
        return !place.isHole && place.segment == segment.number && Int(place.offset) == offset
    }

    /// Puts a cursor at the first commit that holds a seq above its own.
    private func seek(_ cursor: inout LogCursor) {
        cursor.layout = layoutCount &+ 1
        cursor.offset = 0
        cursor.commit = 0
        cursor.segment = segments.first?.number ?? 1
        let wanted = cursor.seq &+ 1
        for segment in segments.reversed() {
            guard let first = segment.commits.first else { continue }
            cursor.segment = segment.number
            cursor.commit = segment.firstCommit(reaching: wanted)
            if first.firstSeq <= wanted { return }
        }
    }

    /// The segment with the commit that the cursor is at; nil at the end of what is published.
    private func segmentForStream(_ cursor: inout LogCursor) -> Segment? {
        while let segment = segment(cursor.segment) {
            if cursor.commit < segment.commits.count { return segment }
            // Damage can have left a segment with nothing in it.
            guard let next = segments.first(where: { $0.number > cursor.segment && !$0.commits.isEmpty }) else {
                return nil
            }
            cursor.segment = next.number
            cursor.commit = 0
            cursor.offset = 0
        }
        return nil
    }

    private func lostBefore(_ commit: CommitPlace, _ seq: UInt64) -> LostSpan? {
        if report.lostSpans.isEmpty { return nil }
        return report.lostSpans.first { $0.through > seq && $0.after < commit.lastSeq && $0.through < commit.lastSeq }
    }
}

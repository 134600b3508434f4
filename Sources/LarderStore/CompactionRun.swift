// A compaction under way: what it is to do, how far it is, and what of the history it may drop.

import LarderFormat
import Synchronization

/// A compaction under way.
struct CompactionRun {
    enum Phase {
        /// The floor is to be staged.
        case beginning
        /// The floor's commit has this number.
        case raisingFloor(UInt64)
        /// The job looks for entries that the kept history supersedes.
        case protecting
        /// The next segment is to be chosen.
        case choosing
        case listing(Segment)
        case marking(SegmentListing, Marks)
        case rewriting(SegmentListing, Marks)
        /// A rewrite found no room: once more, with the room of the reserve.
        case lending(SegmentListing, Marks)
        /// All segments were looked at: those of them that have no sidecar get one. The next step tells how far that is.
        case indexing(tells: Bool)
        case ending(reason: String?, isFull: Bool)
    }

    var request: CompactionRequest
    var phase = Phase.beginning
    var report = CompactionReport()
    /// What superseded an entry lies below this: the entry may go.
    var historySeq: UInt64 = 1
    /// What the library's floor is raised to. From the beginning on, no cursor behind it is taken any more.
    var floor: UInt64 = 1
    /// Entries of purged keys go up to this.
    var purgeSeq: UInt64 = 0
    /// Seqs below `historySeq` that something at or above it supersedes: they stay, so that it can be undone.
    var protected: Set<UInt64> = []
    /// Numbers of the segments to look at, ascending.
    var numbers: [UInt32] = []
    var next = 0
    /// No save that may go is left in the segments before: tombstones may go too.
    var isOlderClean = true
    /// Segments for whose rewriting there was no room: they are tried once more when others have made some.
    var unroomed: [UInt32] = []
    /// Why there was none for the last of them.
    var fullReason = ""
    /// A segment was rewritten since the first of them was left.
    var hasMadeRoom = false
    /// A segment had to stay as it is, and may hold what was to be purged: why.
    var unpurgedReason: String?
    /// No save of a purged key is left in the segments before: its deletes may go too.
    var hasTakenAllPurged: Bool { unpurgedReason == nil && unroomed.isEmpty }
    /// The checkpoint was taken away: it names segments as they were.
    var hasDroppedCheckpoint = false
    /// What a job came to, until the next step takes it in.
    var result: CompactionResult?
    var isJobOut = false
    /// To be closed by the next job.
    var leftFile: LeftFile?
    /// Its last step was taken.
    var isOver = false
    let cancelled = CancelFlag()

    init(request: CompactionRequest) { self.request = request }
}

/// Tells a job on another thread to end soon.
final class CancelFlag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
}

/// What becomes of the entries of a listing.
struct Marks {
    /// The record's ordinal where an entry is what the library holds, else `none`.
    var ordinals: ContiguousArray<UInt32> = []
    var isDropped: ContiguousArray<Bool> = []
    /// The ordinal of the last entry's record; the next one's often follows.
    var lastOrdinal: UInt32 = 0
    var droppedCount = 0
    /// Bytes of the entries that stay.
    var keptByteCount = 0
    /// What they will take in the file, about.
    var fileByteCount = 0
    var hasPurged = false
    /// A save may not go now, and may later.
    var hasLaterDrops = false
    /// How often the table had been numbered anew.
    var renumberCount = 0

    static let none = UInt32.max
}

extension StoreCore {
    // MARK: The floor

    func floor(for request: CompactionRequest) -> UInt64 {
        max(floor, min(historyStart(request), request.floorMax, publishedSeq + 1))
    }

    /// The first seq of the history that is kept: of the first commit, in the order of the log, that is young enough, or
    /// that lies within the newest bytes, whichever is later.
    private func historyStart(_ request: CompactionRequest) -> UInt64 {
        var byAge = publishedSeq + 1
        age: for segment in segments {
            for commit in segment.commits where commit.time >= request.keepsHistorySince {
                byAge = commit.firstSeq
                break age
            }
        }
        var bySize: UInt64 = 1
        var byteCount = 0
        size: for segment in segments.reversed() {
            for commit in segment.commits.reversed() {
                byteCount += Int(commit.end - commit.start)
                if byteCount > request.historyByteCountMax {
                    bySize = commit.lastSeq + 1
                    break size
                }
            }
        }
        return max(byAge, bySize)
    }

    /// Takes in a floor entry that is durable.
    mutating func raiseFloor(_ entry: OtherEntry) {
        entry.body.withUnsafeBytes { body in
            var reader = ByteReader(body)
            floor = max(floor, (try? reader.varint()) ?? 0)
        }
    }

    // MARK: What it would bring

    /// Bytes of sealed segments that a rewrite would free, from counts alone.
    var reclaimableByteCount: Int {
        guard compactionIsOver == nil else { return 0 }
        return segments.reduce(0) { $0 + ($1.number < durable.segment ? reclaimable(of: $1) : 0) }
    }

    func compressibleByteCount(_ request: CompactionRequest) -> Int {
        guard request.compression == .zstd, compactionIsOver == nil else { return 0 }
        return segments.reduce(0) { sum, segment in
            sum + (segment.number < durable.segment && changesForm(segment, request) ? segment.byteCount : 0)
        }
    }

    private func reclaimable(of segment: Segment) -> Int {
        // One block stays at least.
        let most = segment.byteCount - BlockHeader.alignment
        guard most > 0, segment.lookedAtLiveCount != segment.liveCount else { return 0 }
        let payload = segment.commits.reduce(0) { $0 + Int($1.end - $1.start) + CommitHeader.byteCount }
        let live = segment.saveCount == 0 ? payload : payload / segment.saveCount * segment.liveCount
        // What is compressed shrinks about as its image does.
        let gain = Double(max(segment.imageByteCount - live, 0)) / Double(max(segment.imageByteCount, 1))
        return min(Int(Double(segment.byteCount) * gain), most)
    }

    /// Whether a segment is to be written anew because its blocks are to be compressed, or not to be.
    func changesForm(_ segment: Segment, _ request: CompactionRequest) -> Bool {
        switch request.compression {
        case .kept: false
        case .none: segment.image != nil
        case .zstd:
            segment.image == nil && !segment.isIncompressible && segment.byteCount > BlockHeader.alignment
                && segment.commits.last?.time ?? .max <= request.compressesUntil
        }
    }

    /// Whether the blocks of a segment that is written anew are compressed.
    func compresses(_ number: UInt32, _ request: CompactionRequest) -> Bool {
        switch request.compression {
        case .kept: segment(number)?.image != nil
        case .none: false
        case .zstd: segment(number).map { $0.image != nil || changesForm($0, request) } ?? false
        }
    }

    /// Whether a segment is worth reading for a request.
    func isWorthReading(_ segment: Segment, _ request: CompactionRequest) -> Bool {
        if changesForm(segment, request) { return true }
        if request.deadShareMin <= 0 || !request.purged.isEmpty { return true }
        if segment.byteCount <= BlockHeader.alignment { return false }
        return Double(reclaimable(of: segment)) >= request.deadShareMin * Double(segment.byteCount)
    }

    // MARK: Beginning and ending

    mutating func beginCompaction(_ request: CompactionRequest) -> String? {
        if compaction != nil { return "a compaction is under way" }
        if clear != nil { return "a clear is under way" }
        if let failure { return "the store only reads: \(failure)" }
        if let compactionIsOver { return "it has to wait for a restart: \(compactionIsOver)" }
        if options.isReadOnly { return "the library is open for reading only" }
        if request.compression == .zstd, !Zstandard.isInstalled {
            return "zstd is not installed (libzstd.so.1; Debian: apt install libzstd1)"
        }
        for purged in request.purged where isLive(purged) { return "a key that is to be purged is in the library" }
        var run = CompactionRun(request: request)
        run.purgeSeq = publishedSeq
        run.historySeq = floor(for: request)
        run.floor = request.purged.isEmpty ? run.historySeq : publishedSeq + 1
        run.report.byteCountBefore = segments.reduce(0) { $0 + $1.byteCount }
        compaction = run
        return nil
    }

    mutating func cancelCompaction() { compaction?.cancelled.set() }

    mutating func finish(_ result: CompactionResult) { compaction?.result = result }

    /// Notes what an entry that becomes visible supersedes.
    @inline(__always)
    mutating func protect(_ previousSeq: UInt64) {
        guard previousSeq != 0, previousSeq < compaction?.historySeq ?? 0 else { return }
        compaction?.protected.insert(previousSeq)
    }
}

// Compaction: what is asked of it, what it says, and its steps. design/compaction.md tells how it is done.

import LarderFormat

/// A key whose every entry goes, however young.
public struct PurgedKey: Hashable, Sendable {
    public var kind: Int
    /// The encoded values of the kind's key fields.
    public var key: [UInt8]

    public init(kind: Int, key: [UInt8]) {
        self.kind = kind
        self.key = key
    }
}

/// Whether the blocks of segments that are written anew are compressed.
public enum BlockCompression: Int, Sendable {
    /// As they were.
    case kept = 0
    case zstd = 1
    case none = 2
}

/// What a compaction is to do.
public struct CompactionRequest: Sendable {
    /// Versions and deletes that were superseded at or after this time are kept, in milliseconds since 1970;
    /// `Int64.max`: none.
    public var keepsHistorySince = Int64.max
    /// Of the history, no more than what lies in the newest so many bytes of the log is kept.
    public var historyByteCountMax = Int.max
    /// The floor is not raised above this: the lowest seq that someone who follows the log has not had yet.
    public var floorMax = UInt64.max
    /// A segment is rewritten when at least this share of it, 0 … 1, would go; 0: whenever anything would.
    public var deadShareMin = 0.0
    /// The segment that is written is ended first, so that it can be rewritten too.
    public var includesLast = false
    /// None of these may be in the library when the compaction begins.
    public var purged: Set<PurgedKey> = []
    /// Other than `kept`: segments in another form are rewritten though nothing of them would go.
    public var compression = BlockCompression.kept
    /// Segments whose last entry is younger are not compressed for the sake of it, in milliseconds since 1970.
    public var compressesUntil = Int64.max
    /// Bytes read and written a second at most; 0: as fast as it goes.
    public var bytesPerSecond = 0

    public init() {}
}

/// What a compaction came to, or has come to so far.
public struct CompactionReport: Equatable, Sendable {
    /// Segments looked at, and how many there are to look at.
    public var doneCount = 0
    public var totalCount = 0
    public var rewrittenCount = 0
    /// Bytes of the log before and now.
    public var byteCountBefore = 0
    public var byteCountAfter = 0
    /// Entries that are gone.
    public var droppedCount = 0
    /// The library's floor.
    public var floor: UInt64 = 1
    /// Segments that stay as they are because they are damaged, or in a form that is not written here.
    public var unfitCount = 0
    /// The first of those that are damaged though the opening did not see it: why. The next opening reads the whole log,
    /// and says what is lost.
    public var damage: String?
    /// Segments without a checkpoint or a sidecar, of which so many have one by now.
    public var toIndexCount = 0
    public var indexedCount = 0
    /// Files in `aside` that held a purged key and are gone.
    public var removedAsideCount = 0

    public init() {}
}

/// What the caller has to do next.
public enum CompactionStep: Sendable {
    /// Take the commit, run it, finish it, then step again; where there is none to take, step again when the one that is
    /// under way is finished.
    case commit
    /// Run the job on a thread other than the store's, give its result to `Store.finish`, then step again.
    case job(CompactionJob)
    /// So far; step again.
    case progress(CompactionReport)
    case finished(CompactionReport)
    /// It ended before all was done: what was rewritten is, and the library is as good as before. `isFull`: for want of
    /// room on the disk.
    case failed(reason: String, isFull: Bool)
}

extension Store {
    /// Whether a compaction is under way.
    public var isCompacting: Bool { core.compaction != nil }

    /// Bytes of sealed segments that a compaction would free at most, from what is known without reading them.
    public var reclaimableByteCount: Int { core.reclaimableByteCount }

    /// Bytes of sealed segments that a request would compress, of which perhaps nothing goes.
    public func compressibleByteCount(_ request: CompactionRequest) -> Int { core.compressibleByteCount(request) }

    /// The floor, or the one that a compaction which has begun will raise it to: no cursor below it is taken.
    public var comingFloor: UInt64 { max(core.floor, core.compaction?.floor ?? 0) }

    /// The floor that a request's history limits lead to.
    public func floor(for request: CompactionRequest) -> UInt64 { core.floor(for: request) }

    /// Begins a compaction; `stepCompaction` does it. One at a time; not while a clear runs.
    ///
    /// - Returns: why it cannot begin, or nil.
    public func beginCompaction(_ request: CompactionRequest) -> String? { core.beginCompaction(request) }

    /// Does a slice of at most about two milliseconds.
    public func stepCompaction(now: Int64) -> CompactionStep { core.stepCompaction(now: now) }

    /// Takes in what a compaction's job came to.
    public func finish(_ result: CompactionResult) { core.finish(result) }

    /// Has the job that is under way end soon, and the next step be the last.
    public func cancelCompaction() { core.cancelCompaction() }
}

// When the host compacts of its own accord, and what it keeps then.

import LarderFormat

/// How a host compacts.
public struct CompactionOptions: Sendable {
    /// Whether the host compacts of its own accord.
    public var isAutomatic = true
    /// Versions and deletes are kept for so long after they were superseded, ms; `Int64.max`: for ever.
    public var historyMilliseconds: Int64 = 90 * 86_400_000
    /// Of the history, no more than what lies in the newest so many bytes of the log is kept.
    public var historyByteCountMax = 4 << 30
    /// Bytes read and written a second at most; 0: as fast as it goes.
    public var bytesPerSecond = 32 << 20
    /// Of its own accord: a segment is rewritten when at least this share of it would go, 0 … 1.
    public var deadShareMin = 0.3
    /// Of its own accord: what was written longer ago, ms, is compressed where zstd is installed; nil: nothing is.
    public var compressedAfterMilliseconds: Int64?
    /// Of its own accord: not for less than so many bytes.
    public var reclaimableByteCountMin = 16 << 20

    public init() {}

    /// What was written up to then is compressed; ms since 1970. Nil: nothing is.
    func compressesUntil(now: Int64) -> Int64? {
        guard let compressedAfterMilliseconds, Zstandard.isInstalled else { return nil }
        let (until, isOver) = now.subtractingReportingOverflow(max(compressedAfterMilliseconds, 0))
        return isOver ? .min : until
    }

    /// Since when history is kept at a time; both ms since 1970.
    func historySince(now: Int64) -> Int64 {
        let (since, isOver) = now.subtractingReportingOverflow(max(historyMilliseconds, 0))
        return isOver || historyMilliseconds == .max ? .min : since
    }
}

/// Decides when it is time. A value without I/O; `now` is in monotonic milliseconds.
struct CompactionSchedule {
    static let lookMilliseconds: UInt64 = 5_000
    /// After one that failed.
    static let retryMilliseconds: UInt64 = 600_000
    /// After one that left much, since time alone makes history old.
    static let againMilliseconds: UInt64 = 86_400_000

    private let reclaimableByteCountMin: Int
    private var nextLook: UInt64 = 0
    /// What the last one left is no reason for another.
    private var expectedByteCount = 0
    private var forgetsAt: UInt64 = .max

    init(_ options: CompactionOptions) {
        reclaimableByteCountMin = max(options.reclaimableByteCountMin, 1)
    }

    /// Whether it is time to look; asking counts as looking.
    mutating func looks(now: UInt64) -> Bool {
        guard now >= nextLook else { return false }
        nextLook = now &+ CompactionSchedule.lookMilliseconds
        return true
    }

    /// - Parameters:
    ///   - reclaimable: bytes that could be freed at most.
    ///   - compressible: bytes of segments that are to be compressed.
    ///   - log: bytes of the log.
    mutating func isDue(reclaimable: Int, compressible: Int = 0, log: Int, now: UInt64) -> Bool {
        if now >= forgetsAt {
            expectedByteCount = 0
            forgetsAt = .max
        }
        if compressible >= reclaimableByteCountMin { return true }
        return reclaimable >= reclaimableByteCountMin && reclaimable >= log / 4 && reclaimable >= expectedByteCount
    }

    /// A compaction has ended, whoever asked for it, and has left so much that could be freed at most.
    mutating func ended(hasFailed: Bool, reclaimable: Int, log: Int, now: UInt64) {
        if hasFailed {
            nextLook = now &+ CompactionSchedule.retryMilliseconds
        } else {
            expectedByteCount = reclaimable.addingReportingOverflow(max(reclaimableByteCountMin, log / 8)).partialValue
            forgetsAt = now &+ CompactionSchedule.againMilliseconds
        }
    }
}

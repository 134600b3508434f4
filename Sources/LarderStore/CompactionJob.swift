// The work of a compaction that leaves the loop thread: reading segments, and writing them anew.

import Glibc
import LarderFormat
import Synchronization

/// What every job of a compaction knows. Immutable; any thread.
struct CompactionContext: Sendable {
    let files: any StoreFiles
    /// The library's directory.
    let path: String
    let epoch: UInt64
    /// By number, to find the keys of purged records.
    let schemas: [Int: RecordSchema]
    let purged: Set<PurgedKey>
    let purgeSeq: UInt64
    let historySeq: UInt64
    /// The library's floor, which is durable.
    let floor: UInt64
    /// The last durable batch of each import.
    let lastBatch: [UInt64: UInt64]
    let bytesPerSecond: Int
    let cancelled: CancelFlag

    var logPath: String { path + "/log" }

    /// Whether an entry that is of no record stays.
    func keeps(_ entry: EntryView) -> Bool {
        guard entry.seq < historySeq else { return true }
        var reader = ByteReader(entry.payload)
        switch entry.type {
        case EntryType.token:
            guard let origin = try? reader.varint(), let batch = try? reader.varint() else { return true }
            return batch >= lastBatch[origin] ?? 0
        case EntryType.floor:
            guard let seq = try? reader.varint() else { return true }
            return seq >= floor
        default:
            return true
        }
    }
}

/// Work of a compaction for another thread. Immutable; run it once.
public struct CompactionJob: @unchecked Sendable {
    enum Work {
        /// Find what the entries at and above the history's beginning supersede, in these files up to those ends.
        case protect([(number: UInt32, end: Int)])
        case list(number: UInt32, byteCount: Int)
        case rewrite(SegmentListing, Marks, RewriteForm)
        case index(SegmentIndexing)
        case close(LeftFile)
    }

    let context: CompactionContext
    let work: Work

    /// Reads, and writes. Blocks, for seconds where a rate was asked for.
    public func run() -> CompactionResult {
        var pace = Pace(context)
        do throws(CompactionFailure) {
            switch work {
            case .protect(let files):
                return CompactionResult(.protected(try context.supersededSeqs(files, &pace)))
            case .list(let number, let byteCount):
                return CompactionResult(
                    .listed(
                        try findingDamage { () throws(CompactionFailure) in
                            try SegmentListing(context, number, byteCount, &pace)
                        }))
            case .rewrite(let listing, let marks, let form):
                return CompactionResult(.rewritten(try context.rewrite(listing, marks, form, &pace)))
            case .index(let work):
                try findingDamage { () throws(CompactionFailure) in try context.index(work, &pace) }
                return CompactionResult(.indexed)
            case .close(let file):
                file.close()
                return CompactionResult(.closed)
            }
        } catch { return CompactionResult(.failed(error)) }
    }

    /// What the disk does not give is damage: other segments can be rewritten all the same.
    private func findingDamage<R>(_ read: () throws(CompactionFailure) -> R) throws(CompactionFailure) -> R {
        do throws(CompactionFailure) { return try read() } catch {
            guard case .system(let error) = error, error.code == EIO, error.call == "pread" else { throw error }
            throw .damaged(reason: "\(error)")
        }
    }
}

/// How a segment is written anew.
struct RewriteForm: Sendable {
    var removesCheckpoint: Bool
    /// Blocks that get smaller by it are compressed.
    var compresses: Bool
}

/// The old file of a segment that was rewritten. It has no name any more: closing it gives its blocks and its pages back,
/// which takes tens of milliseconds.
final class LeftFile: Sendable {
    private let file: Mutex<ReadFile?>

    init(_ file: ReadFile) { self.file = Mutex(file) }

    /// Closes it, unless a read of it is under way.
    func close() { file.withLock { $0 = nil } }
}

/// What a job came to.
public struct CompactionResult: Sendable {
    enum Outcome {
        case protected(Set<UInt64>)
        case listed(SegmentListing)
        case rewritten(RewrittenSegment)
        case indexed
        case closed
        case failed(CompactionFailure)
    }

    let outcome: Outcome
    init(_ outcome: Outcome) { self.outcome = outcome }
}

/// Why a job ended.
enum CompactionFailure: Error {
    case cancelled
    /// The segment is in a form that is not written here, or not what it was: it stays as it is.
    case unfit(reason: String)
    /// The segment is not whole: it stays as it is.
    case damaged(reason: String)
    case full(reason: String)
    /// Nothing was changed.
    case system(SystemError)
    /// It is not known which file has the segment's name, or whether for good.
    case unsettled(SystemError)
}

/// Keeps a job to its rate, and lets it be cancelled.
struct Pace {
    private let bytesPerSecond: Int
    private let cancelled: CancelFlag
    private var byteCount = 0
    private var start = Pace.now

    init(_ context: CompactionContext) {
        bytesPerSecond = context.bytesPerSecond
        cancelled = context.cancelled
    }

    /// Of a job's own checks, which take no time worth speaking of.
    init(unlimited cancelled: CancelFlag) {
        bytesPerSecond = 0
        self.cancelled = cancelled
    }

    private static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// Counts bytes that were read or written; waits where they came too soon.
    mutating func pass(_ count: Int) throws(CompactionFailure) {
        if cancelled.isSet { throw .cancelled }
        guard bytesPerSecond > 0 else { return }
        byteCount += count
        while !cancelled.isSet {
            let due = UInt64(byteCount) * 1_000_000_000 / UInt64(bytesPerSecond)
            let passed = Pace.now - start
            guard due > passed else { break }
            usleep(UInt32(min((due - passed) / 1000 + 1, 50_000)))
        }
        if cancelled.isSet { throw .cancelled }
        if byteCount > bytesPerSecond {
            // A pause in between does not count as room for a burst.
            byteCount = 0
            start = Pace.now
        }
    }
}

extension CompactionContext {
    /// Shows the blocks of a segment, each checked whole and unpacked.
    ///
    /// - Parameters:
    ///   - byteCount: where its last block ends.
    ///   - body: gets the block and where it begins in the segment's image.
    func eachBlock(
        _ path: String, _ number: UInt32, _ byteCount: Int, _ pace: inout Pace,
        _ body: (ScannedBlock, Int) throws(CompactionFailure) -> Void
    ) throws(CompactionFailure) {
        let scanner: SegmentScanner
        do throws(StoreError) {
            scanner = try SegmentScanner(files: files, path: path, number: number, byteCountMax: byteCount)
        } catch { throw CompactionFailure(error) }
        defer { scanner.close() }
        guard scanner.size == byteCount else { throw .damaged(reason: "\(path) is shorter than it was") }
        var offset = 0
        var start = 0
        while offset < byteCount {
            var block: ScannedBlock?
            do throws(StoreError) {
                if let header = try scanner.header(offset, epoch: epoch) { block = try scanner.block(header, offset) }
            } catch { throw CompactionFailure(error) }
            guard let block, block.isWhole else {
                throw .damaged(reason: "no whole block at offset \(offset) of \(path)")
            }
            try body(block, start)
            offset += Int(block.header.blockByteCount)
            start += block.header.plainBlockByteCount
            try pace.pass(Int(block.header.blockByteCount))
        }
    }

    /// Shows the entries of a whole block.
    func eachEntry(
        _ block: ScannedBlock,
        _ body: (EntryView, _ commit: Int, _ offset: Int) throws(CompactionFailure) -> Void
    ) throws(CompactionFailure) {
        guard let base = block.bytes.baseAddress else { return }
        var at = block.header.byteCount
        for (index, commit) in block.header.commits.enumerated() {
            let end = at + Int(commit.plainByteCount)
            while at < end {
                guard
                    let entry = try? readEntry(
                        base: base, offset: at, end: end, commitFirstSeq: commit.firstSeq, commitTime: commit.time,
                        isVerified: false)
                else { throw .damaged(reason: "an entry does not parse") }
                try body(entry, index, at)
                at += entry.byteCount
            }
        }
    }

    /// Shows the entries that check of a segment that is not whole.
    private func eachLeftEntry(
        _ path: String, _ number: UInt32, _ byteCount: Int, _ pace: inout Pace, _ body: (EntryView) -> Void
    ) throws(CompactionFailure) {
        do throws(StoreError) {
            let scanner = try SegmentScanner(files: files, path: path, number: number, byteCountMax: byteCount)
            defer { scanner.close() }
            var offset = 0
            while offset < scanner.size {
                guard let header = try scanner.header(offset, epoch: epoch) else {
                    offset += BlockHeader.alignment
                    continue
                }
                try BlockContents(try scanner.block(header, offset)).entries { entry, _, _ in body(entry) }
                offset += Int(header.blockByteCount)
            }
        } catch { throw CompactionFailure(error) }
        try pace.pass(byteCount)
    }

    /// Seqs below the history's beginning that entries at and above it supersede. What an entry that is lost superseded
    /// is not known, and cannot be undone.
    func supersededSeqs(
        _ ends: [(number: UInt32, end: Int)], _ pace: inout Pace
    ) throws(CompactionFailure) -> Set<UInt64> {
        var seqs: Set<UInt64> = []
        for (number, end) in ends where end > 0 {
            let path = logPath + "/" + Segment.name(number)
            func take(_ entry: EntryView) {
                guard entry.type <= EntryType.deleted, entry.seq >= historySeq else { return }
                if entry.previousSeq != 0, entry.previousSeq < historySeq { seqs.insert(entry.previousSeq) }
            }
            do throws(CompactionFailure) {
                try eachBlock(path, number, end, &pace) { block, _ throws(CompactionFailure) in
                    try eachEntry(block) { entry, _, _ in take(entry) }
                }
            } catch {
                guard case .damaged = error else { throw error }
                try eachLeftEntry(path, number, end, &pace, take)
            }
        }
        return seqs
    }
}

extension CompactionFailure {
    init(_ error: StoreError) {
        switch error {
        case .system(let error): self = error.isFull ? .full(reason: "\(error)") : .system(error)
        case .damaged: self = .damaged(reason: "\(error)")
        default: self = .unfit(reason: "\(error)")
        }
    }
}

// A segment written anew: the entries that stay, in large blocks, beside the old file and then in its place. FORMAT.md
// section 18.

import Glibc
import LarderFormat

/// A segment as it lies now.
struct RewrittenSegment: Sendable {
    var byteCount = 0
    var lastBlockOffset = 0
    /// It was to be compressed.
    var isCompressed = false
    /// Nil where no block got smaller by that.
    var image: PlainImage?
    var commits: ContiguousArray<CommitPlace> = []
    /// Where the entries of the listing lie now, in the image; what means nothing for those that are gone.
    var offsets: ContiguousArray<UInt32> = []
}

/// Writes the file. One thread.
private struct RepackedFile {
    /// A block is closed when the next commit would take its payload past this.
    static let payloadByteCountTarget = 1_048_576

    let number: UInt32
    let epoch: UInt64
    /// Blocks that get smaller by it are compressed.
    private let compresses: Bool
    private var file: AlignedFile
    private var header: BlockHeader
    /// The payload of the block that is being filled.
    private var payload: ContiguousArray<UInt8> = []
    /// Of its commits: whether all entries are of records, and the last seq.
    private var facts: [(isPlain: Bool, lastSeq: UInt64)] = []
    /// Entries of the listing in it, with their offsets in the payload.
    private var placed: [(index: Int, offset: Int)] = []
    private var isFirst = true
    private(set) var result = RewrittenSegment()

    init(
        _ context: CompactionContext, number: UInt32, path: String, listedCount: Int, compresses: Bool
    ) throws(SystemError) {
        self.number = number
        self.compresses = compresses
        epoch = context.epoch
        file = try AlignedFile(context.files, path: path)
        header = RepackedFile.emptyHeader(epoch, number, 0)
        result.offsets = ContiguousArray(repeating: 0, count: listedCount)
        result.isCompressed = compresses
    }

    private static func emptyHeader(_ epoch: UInt64, _ number: UInt32, _ offset: Int) -> BlockHeader {
        let position = LogPosition(segment: number, offset: UInt32(truncatingIfNeeded: offset))
        return BlockHeader(epoch: epoch, position: position, synced: position)
    }

    var isEmpty: Bool { isFirst && header.commits.isEmpty }

    /// Adds a commit whose entries lie one after the other.
    mutating func append(_ commit: PendingCommit, isContinued: Bool) throws(SystemError) {
        let whole = BlockHeader.byteCount(commitCount: header.commits.count + 1) + payload.count + commit.bytes.count
        if !header.commits.isEmpty,
            payload.count + commit.bytes.count > Self.payloadByteCountTarget || whole > BlockHeader.byteCountMax
                || header.commits.count == Int(UInt16.max)
        {
            try close(lastFlags: 0, isContinued: isContinued)
        }
        for entry in commit.placed { placed.append((entry.index, payload.count + entry.offset)) }
        payload.append(contentsOf: commit.bytes)
        facts.append((commit.isPlain, commit.lastSeq))
        header.commits.append(
            CommitHeader(
                firstSeq: commit.firstSeq, time: commit.time, entryCount: UInt32(commit.entryCount),
                plainByteCount: UInt32(commit.bytes.count)))
    }

    private mutating func close(lastFlags: UInt8, isContinued: Bool) throws(SystemError) {
        let fileOffset = file.byteCount
        header.flags = BlockHeader.repacked | lastFlags | (isFirst && isContinued ? BlockHeader.continued : 0)
        header.plainByteCount = UInt32(payload.count)
        header.entryCount = header.commits.reduce(0) { $0 + $1.entryCount }
        let start = result.image?.byteCount ?? fileOffset
        var at = start + header.byteCount
        for entry in placed { result.offsets[entry.index] = UInt32(truncatingIfNeeded: at + entry.offset) }
        for (commit, fact) in zip(header.commits, facts) {
            let end = at + Int(commit.plainByteCount)
            result.commits.append(
                CommitPlace(
                    firstSeq: commit.firstSeq, time: commit.time, start: UInt32(truncatingIfNeeded: at),
                    end: UInt32(truncatingIfNeeded: end),
                    seqSpan: UInt32(truncatingIfNeeded: fact.lastSeq - commit.firstSeq), isPlain: fact.isPlain))
            at = end
        }
        if let packed = packed() {
            header.flags |= BlockHeader.compressed
            header.storedCRC = packed.withUnsafeBytes { crc32c($0) }
            try write(packed)
            let pieces = packed.withUnsafeBytes { try? PayloadPieces($0, plainByteCount: payload.count) }
            if result.image == nil { result.image = PlainImage(plainEnd: fileOffset) }
            _ = result.image?.append(header, pieces, at: fileOffset)
        } else {
            try write(payload)
            _ = result.image?.append(header, nil, at: fileOffset)
        }
        result.lastBlockOffset = fileOffset
        isFirst = false
        payload.removeAll(keepingCapacity: true)
        facts.removeAll(keepingCapacity: true)
        placed.removeAll(keepingCapacity: true)
        header = RepackedFile.emptyHeader(epoch, number, file.byteCount)
    }

    /// The payload compressed, where that takes fewer pages.
    private func packed() -> ContiguousArray<UInt8>? {
        guard compresses else { return nil }
        let most = IndexFileHead.padded(header.byteCount + payload.count) - BlockHeader.alignment - header.byteCount
        return most > 0 ? payload.withUnsafeBytes { PayloadPieces.pack($0, byteCountMax: most) } : nil
    }

    /// Writes the block with this stored payload.
    private mutating func write(_ stored: ContiguousArray<UInt8>) throws(SystemError) {
        let used = header.byteCount + stored.count
        let byteCount = IndexFileHead.padded(used)
        header.blockByteCount = UInt32(byteCount)
        header.storedByteCount = UInt32(stored.count)
        let head = Window(capacity: header.byteCount)
        header.write(at: head.memory)
        try file.append(UnsafeRawBufferPointer(start: head.memory, count: header.byteCount))
        var failure: SystemError?
        stored.withUnsafeBytes { bytes in
            do throws(SystemError) { try file.append(bytes) } catch { failure = error }
        }
        if let failure { throw failure }
        let padding = Window(capacity: BlockHeader.alignment)
        padding.memory.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount - used)
        try file.append(UnsafeRawBufferPointer(start: padding.memory, count: byteCount - used))
    }

    /// Writes the last block and makes the file durable.
    mutating func finish(isContinued: Bool, continues: Bool) throws(SystemError) -> RewrittenSegment {
        try close(lastFlags: BlockHeader.ends | (continues ? BlockHeader.continues : 0), isContinued: isContinued)
        result.byteCount = file.byteCount
        try file.finish()
        return result
    }

    func abandon() { file.abandon() }
}

/// What stays of one commit.
private struct PendingCommit {
    var firstSeq: UInt64 = 0
    var time: Int64 = 0
    var bytes: ContiguousArray<UInt8> = []
    var entryCount = 0
    var lastSeq: UInt64 = 0
    var isPlain = true
    /// Entries of the listing in it, with their offsets in `bytes`.
    var placed: [(index: Int, offset: Int)] = []

    mutating func begin(_ commit: CommitHeader) {
        (firstSeq, time) = (commit.firstSeq, commit.time)
        bytes.removeAll(keepingCapacity: true)
        placed.removeAll(keepingCapacity: true)
        (entryCount, lastSeq, isPlain) = (0, 0, true)
    }

    mutating func append(_ entry: EntryView, _ raw: UnsafeRawBufferPointer, index: Int?) {
        if let index { placed.append((index, bytes.count)) } else { isPlain = false }
        bytes.append(contentsOf: raw)
        entryCount += 1
        lastSeq = entry.seq
    }
}

extension CompactionContext {
    /// Writes a segment anew and puts it in its place, durably.
    func rewrite(
        _ listing: SegmentListing, _ marks: Marks, _ form: RewriteForm, _ pace: inout Pace
    ) throws(CompactionFailure) -> RewrittenSegment {
        let temporary = listing.path + ".tmp"
        let rewritten: RewrittenSegment
        do throws(CompactionFailure) {
            rewritten = try write(listing, marks, compresses: form.compresses, to: temporary, &pace)
            try check(rewritten, listing, temporary)
            if !purged.isEmpty || form.removesCheckpoint {
                try system { () throws(SystemError) in
                    try files.remove(path + "/checkpoint")
                    try files.syncDirectory(path)
                }
            }
            try system { () throws(SystemError) in try files.remove(logPath + "/" + Segment.sidecarName(listing.number))
            }
        } catch {
            try? files.remove(temporary)
            throw error
        }
        let hold = try holdAlone(temporary)
        defer { files.close(hold) }
        // A call that failed may have been done all the same: the caller keeps the old file open.
        do throws(SystemError) {
            try files.rename(temporary, to: listing.path)
            try files.syncDirectory(logPath)
        } catch {
            try? files.remove(temporary)
            throw .unsettled(error)
        }
        return rewritten
    }

    /// Waits for those who read the log from outside: a backup, or who verifies.
    private func holdAlone(_ temporary: String) throws(CompactionFailure) -> FileHandle {
        do throws(SystemError) {
            while !cancelled.isSet {
                if let hold = try files.hold(logPath, alone: true) { return hold }
                usleep(20_000)
            }
        } catch {
            try? files.remove(temporary)
            throw .system(error)
        }
        try? files.remove(temporary)
        throw .cancelled
    }

    private func system(_ body: () throws(SystemError) -> Void) throws(CompactionFailure) {
        do throws(SystemError) { try body() } catch {
            if error.isFull { throw .full(reason: "\(error)") }
            throw .system(error)
        }
    }

    private func write(
        _ listing: SegmentListing, _ marks: Marks, compresses: Bool, to temporary: String, _ pace: inout Pace
    ) throws(CompactionFailure) -> RewrittenSegment {
        var file: RepackedFile
        do throws(SystemError) {
            file = try RepackedFile(
                self, number: listing.number, path: temporary, listedCount: listing.entries.count,
                compresses: compresses)
        } catch { throw CompactionFailure(.system(error)) }
        var isDone = false
        defer { if !isDone { file.abandon() } }
        var index = 0
        var isContinued: Bool?
        var continues = false
        var pending = PendingCommit()
        try eachBlock(listing.path, listing.number, listing.byteCount, &pace) {
            block, _ throws(CompactionFailure) in
            let header = block.header
            let begins = isContinued ?? (header.flags & BlockHeader.continued != 0)
            isContinued = begins
            continues = header.flags & BlockHeader.continues != 0
            var commit = -1
            func flush() throws(CompactionFailure) {
                guard commit >= 0, pending.entryCount > 0 else { return }
                do throws(SystemError) { try file.append(pending, isContinued: begins) } catch {
                    throw CompactionFailure(.system(error))
                }
            }
            try eachEntry(block) { entry, at, offset throws(CompactionFailure) in
                if at != commit {
                    try flush()
                    commit = at
                    pending.begin(header.commits[at])
                }
                let raw = UnsafeRawBufferPointer(rebasing: block.bytes[offset..<offset + entry.byteCount])
                if entry.type <= EntryType.deleted {
                    let listed = index
                    index += 1
                    guard listed < listing.entries.count, listing.entries[listed].seq == entry.seq else {
                        throw .unfit(reason: "\(listing.path) changed while it was read")
                    }
                    if !marks.isDropped[listed] { pending.append(entry, raw, index: listed) }
                } else if keeps(entry) {
                    pending.append(entry, raw, index: nil)
                }
            }
            try flush()
        }
        guard index == listing.entries.count else { throw .unfit(reason: "\(listing.path) changed while it was read") }
        do throws(SystemError) {
            if file.isEmpty { try file.append(filler(listing), isContinued: isContinued ?? false) }
            isDone = true
            return try file.finish(isContinued: isContinued ?? false, continues: continues)
        } catch { throw CompactionFailure(.system(error)) }
    }

    /// What is left of a segment of which nothing stays.
    private func filler(_ listing: SegmentListing) -> PendingCommit {
        var body = ByteWriter()
        body.varint(floor)
        var commit = PendingCommit()
        commit.begin(
            CommitHeader(firstSeq: listing.lastSeq, time: listing.lastTime, entryCount: 1, plainByteCount: 0))
        commit.bytes = ContiguousArray(repeating: 0, count: body.count + EntryWriter.headByteCountMax)
        let count = commit.bytes.withUnsafeMutableBytes { target in
            body.bytes.withUnsafeBytes { source in
                target.baseAddress.map {
                    EntryWriter.other(
                        at: $0, type: EntryType.floor, seq: listing.lastSeq, commitFirstSeq: listing.lastSeq,
                        body: source)
                } ?? 0
            }
        }
        commit.bytes.removeLast(commit.bytes.count - count)
        (commit.entryCount, commit.lastSeq, commit.isPlain) = (1, listing.lastSeq, false)
        return commit
    }

    /// Reads what was written: nothing takes the old file's place that is not as it has to be.
    private func check(
        _ rewritten: RewrittenSegment, _ listing: SegmentListing, _ temporary: String
    ) throws(CompactionFailure) {
        var free = Pace(unlimited: cancelled)
        var commits = rewritten.commits[...]
        try eachBlock(temporary, listing.number, rewritten.byteCount, &free) { block, _ throws(CompactionFailure) in
            for commit in block.header.commits {
                guard commits.popFirst()?.firstSeq == commit.firstSeq else {
                    throw .unfit(reason: "\(temporary) is not what was written")
                }
            }
        }
        guard commits.isEmpty else { throw .unfit(reason: "\(temporary) is not what was written") }
    }
}

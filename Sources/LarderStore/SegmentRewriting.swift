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
            // For good: what it says would fit a segment that ends with the same block as one that was rewritten before.
            try system { () throws(SystemError) in
                try files.remove(logPath + "/" + Segment.sidecarName(listing.number))
                try files.syncDirectory(logPath)
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

// Writing the checkpoint: beside the one that is there, then in its place. FORMAT.md section 11.

import LarderFormat

extension StoreCore {
    var checkpointPath: String { path + "/checkpoint" }

    /// Bytes of the log that the next opening would have to read.
    var replayByteCount: Int {
        segments.reduce(0) { sum, segment in
            if segment.number < replayStart.segment { return sum }
            return sum + segment.byteCount - (segment.number == replayStart.segment ? Int(replayStart.offset) : 0)
        }
    }

    /// Writes the index to the checkpoint where that saves the next opening enough. For the end: nothing may be staged
    /// or under way. A failure changes nothing, since nothing is meant by a checkpoint.
    mutating func writeCheckpointIfWorthIt() {
        guard !options.isReadOnly, failure == nil, replayByteCount > options.replayByteCountMax else { return }
        _ = writeCheckpoint()
    }

    /// Writes the index to the checkpoint. Blocks for as long as 20 bytes a record take to be written and synced.
    ///
    /// - Returns: false when it was not written: something is staged or under way, or the disk refused it.
    mutating func writeCheckpoint() -> Bool {
        // What a job of a compaction came to, and nobody took in, may be in the segment's place: the index is of before.
        guard inFlight == nil, staged.blocks.isEmpty, open.entryCount == 0, clear == nil, orphans.isEmpty,
            compaction?.isJobOut != true,
            mayBeIndexed, failure == nil, compactionIsOver == nil, let last = segment(durable.segment),
            last.byteCount == Int(durable.offset),
            segments.allSatisfy({ $0.number <= durable.segment || $0.commits.isEmpty })
        else { return false }
        do throws(SystemError) {
            let output = try IndexFileOutput(files: files, path: checkpointPath)
            defer { output.close() }
            let head = try writeParts(output)
            try output.finish(head, isSynced: true)
            try files.syncDirectory(path)
            replayStart = durable
            removeSidecars(through: durable.segment)
            return true
        } catch { return false }
    }

    /// What the checkpoint and the sidecars say was found to be no longer so: the next opening is to read the whole log.
    mutating func distrustIndexFiles() {
        isDistrusted = true
        sealed = []
        guard !options.isReadOnly else { return }
        // What stays is found out again by whoever reads what is damaged.
        try? files.remove(checkpointPath)
        try? files.syncDirectory(path)
        removeAllSidecars()
    }

    private func writeParts(_ output: IndexFileOutput) throws(SystemError) -> IndexFileHead {
        var head = IndexFileHead(.checkpoint, of: identity, position: durable, lastSeq: publishedSeq)
        head.floor = floor
        head.ordinalCount = table.count
        head.recordCount = index.count
        let kept = segments.filter { $0.number <= durable.segment }
        var library = CheckpointLibrary()
        for segment in kept {
            let lastBlock = try BlockMark(files: files, lastOf: segment)
            library.segments.append(NamedSegment(segment, lastBlock: lastBlock))
        }
        library.kinds = kinds
        library.liveCounts = liveCounts
        library.origins = origins
        library.gaps = recoveredGaps
        try output.append(library.encoded)
        try output.endPart(.small, &head)
        for segment in kept {
            for commit in segment.commits { try output.append(commit) }
        }
        try output.endPart(.commits, &head)
        try table.eachChunk { (chunk) throws(SystemError) in try output.append(chunk) }
        try output.endPart(.records, &head)
        try index.eachSlot { (slot) throws(SystemError) in try output.append(slot) }
        try output.endPart(.keys, &head)
        return head
    }
}

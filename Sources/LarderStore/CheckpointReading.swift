// Opening from the checkpoint: whether it is one of this log, and taking over what it holds. FORMAT.md section 11.

import LarderFormat

extension StoreCore {
    /// Takes over the index as the checkpoint has it, if it is whole and of this log; else takes it away.
    ///
    /// - Parameter numbers: the segments that are there.
    /// - Returns: where the log has to be read from, or nil: all of it.
    mutating func restoreCheckpoint(_ numbers: [UInt32]) throws(StoreError) -> LogPosition? {
        let input: IndexFileInput
        do throws(SystemError) { input = try IndexFileInput(.checkpoint, files: files, path: checkpointPath) } catch {
            return error.isOfMissingFile ? nil : try dropCheckpoint()
        }
        defer { input.close() }
        let isTaken = try restore(from: input, numbers)
        guard isTaken else { return try dropCheckpoint() }
        replayStart = input.head?.position ?? replayStart
        return replayStart
    }

    /// What is read from the whole log can end in a cut: a checkpoint of before must not be there when the log has
    /// grown again.
    private func dropCheckpoint() throws(StoreError) -> LogPosition? {
        guard !options.isReadOnly else { return nil }
        try system { () throws(SystemError) in
            try files.remove(checkpointPath)
            try files.syncDirectory(path)
        }
        return nil
    }

    private mutating func restore(from input: IndexFileInput, _ numbers: [UInt32]) throws(StoreError) -> Bool {
        guard !options.readsWholeLog, let head = input.head, head.isOf(identity), let small = input.bytes(.small),
            let library = small.withUnsafeBytes({ CheckpointLibrary($0) }),
            head.byteCount(.keys) == head.recordCount * 8, isOfThisLog(library.segments, head, numbers),
            let commits = input.readCommits(of: library.segments)
        else { return false }
        if let packed = library.segments.first(where: { $0.image != nil }), !Zstandard.isInstalled {
            throw .needsZstd(path: logPath + "/" + Segment.name(packed.number))
        }
        let reading = RecordsReading(
            input, kindCount: library.kinds.schemas.count, isBeside: files is SystemFiles)
        var keys = KeyIndex(expected: head.recordCount + head.recordCount / 4)
        var isGood = true
        let ordinalCount = UInt64(head.ordinalCount)
        let isRead = input.read(.keys) { piece in
            for at in stride(from: 0, to: piece.count &- 7, by: 8) {
                let slot = UInt64(littleEndian: piece.loadUnaligned(fromByteOffset: at, as: UInt64.self))
                let ordinal = (slot & 0xFFFF_FFFF) &- 1
                if ordinal < ordinalCount { keys.insert(slot: slot) } else { isGood = false }
            }
        }
        guard let records = reading.join(), isRead, isGood, records.count &- records.holeCount == keys.count else {
            return false
        }

        table = records
        index = keys
        kinds = library.kinds
        liveCounts = library.liveCounts
        origins = library.origins
        recoveredGaps = library.gaps
        publishedSeq = head.lastSeq
        floor = head.floor
        segments = zip(library.segments, commits).map { found, commits in
            let segment = Segment(number: found.number, path: logPath + "/" + Segment.name(found.number))
            segment.byteCount = found.byteCount
            segment.lastBlockOffset = found.lastBlock?.offset
            segment.saveCount = found.saveCount
            segment.liveCount = found.liveCount
            segment.commits = commits
            segment.image = found.image
            return segment
        }
        return true
    }

    /// Whether the log has the segments that the checkpoint names, no others before its end, each with the bytes that
    /// it had and the same last block. An older copy of the log, or one that was cut since, differs in that.
    private func isOfThisLog(_ named: [NamedSegment], _ head: IndexFileHead, _ numbers: [UInt32]) -> Bool {
        guard let last = named.last, last.number == head.position.segment, last.byteCount == Int(head.position.offset),
            numbers.prefix(while: { $0 <= last.number }).elementsEqual(named.map(\.number))
        else { return false }
        return named.allSatisfy { isThere($0, withMore: true) }
    }

    /// Whether the log has a segment as it was named: with that last block, and with no fewer bytes or just as many.
    func isThere(_ named: NamedSegment, withMore mayHaveMore: Bool) -> Bool {
        do throws(SystemError) {
            let file = try files.openForReading(logPath + "/" + Segment.name(named.number))
            defer { files.close(file) }
            let size = try files.size(file)
            guard mayHaveMore ? size >= named.byteCount : size == named.byteCount else { return false }
            guard let block = named.lastBlock else { return true }
            return try BlockMark(files: files, file, at: block.offset, end: named.byteCount) == block
        } catch { return false }
    }
}

extension SystemError {
    /// ENOENT.
    var isOfMissingFile: Bool { code == 2 }
}

// Opening from the checkpoint: whether it is one of this log, and taking over what it holds. FORMAT.md section 11.

import LarderFormat

extension StoreCore {
    /// Takes over the index as the checkpoint has it, if it is whole and of this log; else takes it away.
    ///
    /// - Parameter numbers: the segments that are there.
    /// - Returns: where the log has to be read from, or nil: all of it.
    mutating func restoreCheckpoint(_ numbers: [UInt32]) throws(StoreError) -> LogPosition? {
        let input: CheckpointInput
        do throws(SystemError) { input = try CheckpointInput(files: files, path: checkpointPath) } catch {
            if error.code == larderNoSuchFile { return nil }
            return try dropCheckpoint()
        }
        let isTaken = restore(from: input, numbers)
        input.close()
        guard isTaken else { return try dropCheckpoint() }
        replayStart = input.head?.replay ?? replayStart
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

    private mutating func restore(from input: CheckpointInput, _ numbers: [UInt32]) -> Bool {
        guard !options.readsWholeLog, let head = input.head, head.epoch == identity.epoch,
            head.keyCRC == CheckpointHead.checksum(ofKey: identity.fingerprintKey)
        else { return false }
        var small: [UInt8] = []
        guard input.read(.library, { piece in small.append(contentsOf: piece) }),
            let library = small.withUnsafeBytes({ CheckpointLibrary($0) }),
            isOfThisLog(library.segments, head, numbers), let commits = readCommits(input, library.segments)
        else { return false }
        guard let records = input.readRecords(kindCount: library.kinds.schemas.count) else { return false }
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
        guard isRead, isGood, records.count &- records.holeCount == keys.count else { return false }

        table = records
        index = keys
        kinds = library.kinds
        liveCounts = library.liveCounts
        origins = library.origins
        recoveredGaps = library.gaps
        report.lostSpans = library.lostSpans
        publishedSeq = head.lastSeq
        floor = head.floor
        segments = zip(library.segments, commits).map { found, commits in
            let segment = Segment(number: found.number, path: logPath + "/" + Segment.name(found.number))
            segment.byteCount = found.byteCount
            segment.lastBlockOffset = found.lastBlock?.offset
            segment.saveCount = found.saveCount
            segment.liveCount = found.liveCount
            segment.commits = commits
            return segment
        }
        return true
    }

    /// Whether the log has the segments that the checkpoint names, no others before its end, each with the bytes that
    /// it had and the same last block. An older copy of the log, or one that was cut since, differs in that.
    private func isOfThisLog(_ named: [CheckpointSegment], _ head: CheckpointHead, _ numbers: [UInt32]) -> Bool {
        guard let last = named.last, last.number == head.replay.segment, last.byteCount == Int(head.replay.offset),
            numbers.prefix(while: { $0 <= last.number }).elementsEqual(named.map(\.number))
        else { return false }
        return named.allSatisfy { segment in
            do throws(SystemError) {
                let file = try files.openForReading(logPath + "/" + Segment.name(segment.number))
                defer { files.close(file) }
                guard try files.size(file) >= segment.byteCount else { return false }
                guard let block = segment.lastBlock else { return true }
                guard let found = try blockHead(file, block.offset) else { return false }
                return found.checksum == block.checksum && block.offset + found.blockByteCount == segment.byteCount
            } catch { return false }
        }
    }

    private func readCommits(
        _ input: CheckpointInput, _ segments: [CheckpointSegment]
    ) -> [ContiguousArray<CommitPlace>]? {
        let total = segments.reduce(0) { $0 + $1.commitCount }
        guard input.head?.byteCounts[CheckpointHead.Part.commits.rawValue] == total * 32 else { return nil }
        var places = segments.map { segment in
            var commits = ContiguousArray<CommitPlace>()
            commits.reserveCapacity(segment.commitCount)
            return commits
        }
        var at = 0
        var end: UInt32 = 0
        var isGood = true
        let isRead = input.read(.commits) { piece in
            func word(_ offset: Int) -> UInt64 {
                UInt64(littleEndian: piece.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            }
            for offset in stride(from: 0, to: piece.count &- 31, by: 32) {
                while at < segments.count && places[at].count == segments[at].commitCount {
                    at += 1
                    end = 0
                }
                guard at < segments.count else { return }
                let (bounds, rest) = (word(offset &+ 16), word(offset &+ 24))
                let commit = CommitPlace(
                    firstSeq: word(offset), time: Int64(bitPattern: word(offset &+ 8)),
                    start: UInt32(truncatingIfNeeded: bounds), end: UInt32(truncatingIfNeeded: bounds &>> 32),
                    seqSpan: UInt32(truncatingIfNeeded: rest), isPlain: rest &>> 32 & 1 == 1)
                // Readers count on this.
                isGood =
                    isGood && commit.start >= end && commit.end > commit.start
                    && Int(commit.end) <= segments[at].byteCount && commit.firstSeq > 0
                    && commit.firstSeq < UInt64(Int64.max)
                end = commit.end
                places[at].append(commit)
            }
        }
        return isRead && isGood ? places : nil
    }
}

/// ENOENT.
private let larderNoSuchFile: Int32 = 2

/// A checkpoint that is being read, part by part.
private final class CheckpointInput {
    private let files: any StoreFiles
    private let file: FileHandle
    private let window = Window(capacity: 1_048_576)
    /// Nil when it is none that can be read.
    let head: CheckpointHead?

    init(files: any StoreFiles, path: String) throws(SystemError) {
        self.files = files
        let file = try files.openForReading(path)
        self.file = file
        do throws(SystemError) {
            let size = try files.size(file)
            files.willRead(file, at: 0, count: size)
            let page = window.buffer(CheckpointHead.byteCount)
            let count = try files.read(file, at: 0, into: page)
            head = CheckpointHead(UnsafeRawBufferPointer(rebasing: page[..<count]), fileByteCount: size)
        } catch {
            files.close(file)
            throw error
        }
    }

    func close() { files.close(file) }

    /// Shows a part piece by piece; true when it was there to the end and its CRC holds. Pieces are multiples of 32
    /// bytes, but for the last.
    func read(_ part: CheckpointHead.Part, _ show: (UnsafeRawBufferPointer) -> Void) -> Bool {
        guard let head else { return false }
        let byteCount = head.byteCounts[part.rawValue]
        let (start, padded) = (head.offset(part), CheckpointHead.padded(byteCount))
        var (at, checksum) = (0, UInt32(0))
        while at < padded {
            let piece = window.buffer(min(window.capacity, padded - at))
            guard read(piece, at: start + at, &checksum) else { return false }
            if at < byteCount { show(UnsafeRawBufferPointer(rebasing: piece[..<min(piece.count, byteCount - at)])) }
            at += piece.count
        }
        return checksum == head.checksums[part.rawValue]
    }

    /// The table of records, read in where it stays.
    func readRecords(kindCount: Int) -> RecordTable? {
        guard let head else { return nil }
        let part = CheckpointHead.Part.records
        var (at, checksum) = (head.offset(part), UInt32(0))
        let filled = RecordTable.filled(count: head.ordinalCount, kindCount: kindCount) { chunk in
            defer { at += chunk.count }
            return read(chunk, at: at, &checksum)
        }
        guard let table = filled else { return nil }
        let padding = window.buffer(CheckpointHead.padded(head.byteCounts[part.rawValue]) + head.offset(part) - at)
        guard read(padding, at: at, &checksum), checksum == head.checksums[part.rawValue] else { return nil }
        return table
    }

    private func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int, _ checksum: inout UInt32) -> Bool {
        do throws(SystemError) {
            guard try files.read(file, at: offset, into: buffer) == buffer.count else { return false }
        } catch { return false }
        checksum = crc32c(UnsafeRawBufferPointer(buffer), seed: checksum)
        return true
    }
}

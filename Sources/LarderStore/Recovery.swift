// Opening: the log is read from its beginning or from the checkpoint on, checked, and its tail mended. FORMAT.md
// section 10.

import LarderFormat

extension StoreCore {
    /// Reads the log, or what of it no checkpoint covers, fills the index, and finds where the log ends.
    mutating func recover() throws(StoreError) {
        let names: [String]
        do throws(SystemError) { names = try files.list(logPath) ?? [] } catch { throw .system(error) }
        let numbers = names.compactMap { Segment.number(ofName: $0) }.sorted()
        let replay = try restoreCheckpoint(numbers)
        reserveIndex(numbers.lazy.filter { $0 >= replay?.segment ?? 0 })
        var progress = try OpeningProgress(options.onReading) { () throws(StoreError) in
            try logByteCount(numbers, from: replay)
        }
        var previousEnd = replay ?? LogPosition(segment: numbers.first ?? 1, offset: 0)
        // All that a checkpoint covers was durable before it was written.
        var knownSynced = replay ?? LogPosition(segment: 0, offset: 0)
        var isCut = false
        var isRunOpen = false
        var isLastRepacked: UInt32 = 0
        scan: for (at, number) in numbers.enumerated() where number >= replay?.segment ?? 0 {
            let scanner = try SegmentScanner(files: files, path: logPath + "/" + Segment.name(number), number: number)
            defer { scanner.close() }
            let isCovered = number == replay?.segment
            if at == 0, number > 1, replay == nil { try loseMissing(scanner) }
            if !isCovered, let hole = hole(before: at, numbers) {
                if try isSynced(hole, numbers, at, 0) {
                    try loseMissing(scanner)
                } else if hole.segment > numbers[at - 1] {
                    try cut(numbers, at - 1, Int(previousEnd.offset))
                    isCut = true
                    break scan
                }
            }
            if !isCovered { segments.append(Segment(number: number, path: scanner.path)) }
            previousEnd = LogPosition(segment: number, offset: isCovered ? previousEnd.offset : 0)
            var offset = Int(previousEnd.offset)
            let start = offset
            defer { progress.pass(scanner.size - start) }
            var end = RepackedEnd()
            gathered = SegmentChanges(segment: number, start: previousEnd.offset)
            if at + 1 < numbers.count, numbers[at + 1] == number + 1, !isRunOpen, let segment = segments.last,
                let end = restoreSidecar(segment, from: offset)
            {
                // It was written when all of the segment was durable.
                previousEnd = LogPosition(segment: number, offset: UInt32(end))
                knownSynced = max(knownSynced, previousEnd)
                continue
            }
            while offset < scanner.size {
                let header = try scanner.header(offset, epoch: identity.epoch)
                if let header {
                    end.pass(header)
                    knownSynced = max(knownSynced, header.synced)
                    let continues = header.flags & BlockHeader.continues != 0
                    let isContinued = header.flags & BlockHeader.continued != 0
                    let isWhole: Bool
                    if isContinued && !isRunOpen {
                        // The beginning of its run is gone: it counts only where it was durable.
                        isWhole = try isSynced(
                            LogPosition(segment: number, offset: UInt32(offset)), numbers, at, offset)
                    } else {
                        isWhole = try continues && !isContinued ? isWholeRun(numbers, at, offset) : true
                    }
                    isRunOpen = continues
                    if isWhole, try apply(scanner, header, offset) {
                        offset += Int(header.blockByteCount)
                        progress.reach(offset - start)
                        previousEnd = LogPosition(segment: number, offset: UInt32(offset))
                        continue
                    }
                    if !isWhole {
                        try cut(numbers, at, offset)
                        isCut = true
                        break scan
                    }
                }
                knownSynced = max(knownSynced, try syncedBehind(numbers, at, offset))
                if LogPosition(segment: number, offset: UInt32(offset)) >= knownSynced {
                    if at == numbers.count - 1, try scanner.isZero(from: offset) { break scan }
                    try cut(numbers, at, offset)
                    isCut = true
                    break scan
                }
                offset = try salvage(numbers, at, scanner, header, offset)
                previousEnd = LogPosition(segment: number, offset: UInt32(offset))
            }
            if end.isRepacked {
                isLastRepacked = number
                if !end.isThere { try loseRepackedEnd(numbers, at, scanner.size) }
            } else {
                try loseCutEnd(numbers, at, scanner.size)
            }
        }
        position = previousEnd
        // Nothing is written behind its end, nor where offsets are not those of the file.
        if isLastRepacked == position.segment
            || segments.last?.image != nil && segments.last?.number == position.segment
        {
            position = LogPosition(segment: position.segment + 1, offset: 0)
        }
        firstUnsyncedSegment = knownSynced.segment
        try dropEmptyTail()
        if gathered.segment != position.segment {
            gathered = SegmentChanges(segment: position.segment, start: 0)
            gathered.isIncomplete = position.offset > 0
        }
        adoptOrphans()
        guard publishedSeq <= Self.publishedSeqMax else {
            throw .notALibrary(path: path, reason: "its log ends at seq \(publishedSeq), behind which there are none")
        }
        floor = min(floor, publishedSeq + 1)
        nextSeq = publishedSeq + 1
        if !isCut { isCut = try wasCutHere() }
        if isCut {
            report.gapFrom = nextSeq
            nextSeq += recoverySeqJump
            report.gapThrough = nextSeq - 1
        }
        generation += 1
        for segment in segments { report.byteCount += segment.byteCount }
    }

    /// Where the log has a hole before a segment: the numbers between are missing, or the one before it is empty.
    private func hole(before at: Int, _ numbers: [UInt32]) -> LogPosition? {
        guard at > 0 else { return nil }
        let previous = numbers[at - 1]
        if numbers[at] != previous + 1 { return LogPosition(segment: previous + 1, offset: 0) }
        return segments.last?.byteCount == 0 ? LogPosition(segment: previous, offset: 0) : nil
    }

    /// Only the last segment may be empty: of several that were made and never filled, the first is kept.
    private mutating func dropEmptyTail() throws(StoreError) {
        while segments.count > 1, position.offset == 0, let last = segments.last, last.commits.isEmpty,
            segments[segments.count - 2].commits.isEmpty
        {
            segments.removeLast()
            position = LogPosition(segment: segments[segments.count - 1].number, offset: 0)
            if !options.isReadOnly { try system { () throws(SystemError) in try files.remove(last.path) } }
        }
    }

    /// Segments between the last one and this are gone though nothing says that they were removed.
    private mutating func loseMissing(_ scanner: SegmentScanner) throws(StoreError) {
        guard let first = try scanner.header(0, epoch: identity.epoch)?.commits.first?.firstSeq else { return }
        guard first > publishedSeq, first - 1 > publishedSeq else { return }
        report.lostSpans.append(LostSpan(after: publishedSeq, through: first - 1, segment: scanner.number, offset: 0))
        publishedSeq = first - 1
    }

    /// A segment that ends before a position in it which a later block says was durable has lost its end, be it at a
    /// block's end, where nothing looks cut.
    private mutating func loseCutEnd(_ numbers: [UInt32], _ at: Int, _ size: Int) throws(StoreError) {
        guard at + 1 < numbers.count else { return }
        let next = try SegmentScanner(
            files: files, path: logPath + "/" + Segment.name(numbers[at + 1]), number: numbers[at + 1])
        defer { next.close() }
        var offset = 0
        while offset < next.size {
            guard let header = try next.header(offset, epoch: identity.epoch) else {
                offset += BlockHeader.alignment
                continue
            }
            guard header.synced.segment <= numbers[at] else { return }
            if header.synced.segment == numbers[at], Int(header.synced.offset) > size {
                let first = header.commits.first?.firstSeq ?? 0
                // Before a later block than the segment's first the walk says what is lost.
                guard offset == 0, first > publishedSeq, first - 1 > publishedSeq else { return }
                report.lostSpans.append(
                    LostSpan(after: publishedSeq, through: first - 1, segment: numbers[at], offset: size))
                publishedSeq = first - 1
                return
            }
            offset += Int(header.blockByteCount)
        }
    }

    /// A repacked segment says where it ends; what lay behind the last block that is there is lost.
    private mutating func loseRepackedEnd(_ numbers: [UInt32], _ at: Int, _ size: Int) throws(StoreError) {
        guard at + 1 < numbers.count else { return }
        let next = try SegmentScanner(
            files: files, path: logPath + "/" + Segment.name(numbers[at + 1]), number: numbers[at + 1])
        defer { next.close() }
        guard let first = try next.header(0, epoch: identity.epoch)?.commits.first?.firstSeq,
            first > publishedSeq, first - 1 > publishedSeq
        else { return }
        report.lostSpans.append(LostSpan(after: publishedSeq, through: first - 1, segment: numbers[at], offset: size))
        publishedSeq = first - 1
    }

    /// Whether a crash came between the cut of a tail and the entry that says so.
    private func wasCutHere() throws(StoreError) -> Bool {
        let names = try system { () throws(SystemError) in try files.list(path + "/aside") } ?? []
        return names.contains { $0.hasSuffix(".\(publishedSeq)") }
    }

    /// Whether the run that begins here is there to its last block. A block that is not whole counts where a later one
    /// vouches for it: what it held is for the walk to judge.
    private func isWholeRun(_ numbers: [UInt32], _ first: Int, _ start: Int) throws(StoreError) -> Bool {
        var offset = start
        var expected = numbers[first]
        for number in numbers[first...] {
            guard number == expected else {
                return try isSynced(LogPosition(segment: expected, offset: 0), numbers, first, start)
            }
            expected += 1
            let scanner = try SegmentScanner(files: files, path: logPath + "/" + Segment.name(number), number: number)
            defer { scanner.close() }
            while offset < scanner.size {
                let place = LogPosition(segment: number, offset: UInt32(offset))
                guard let header = try scanner.header(offset, epoch: identity.epoch),
                    number == numbers[first] && offset == start || header.flags & BlockHeader.continued != 0,
                    try isWholeBlock(scanner, header, offset)
                else { return try isSynced(place, numbers, first, start) }
                if header.flags & BlockHeader.continues == 0 { return true }
                offset += Int(header.blockByteCount)
            }
            offset = 0
        }
        return false
    }

    private func isSynced(_ place: LogPosition, _ numbers: [UInt32], _ first: Int, _ start: Int) throws(StoreError)
        -> Bool
    {
        try syncedBehind(numbers, first, start) > place
    }

    /// The highest synced position that any whole header from here on names.
    private func syncedBehind(_ numbers: [UInt32], _ first: Int, _ start: Int) throws(StoreError) -> LogPosition {
        var highest = LogPosition(segment: 0, offset: 0)
        var offset = start
        for number in numbers[first...] {
            let scanner = try SegmentScanner(files: files, path: logPath + "/" + Segment.name(number), number: number)
            defer { scanner.close() }
            while offset < scanner.size {
                let header = try scanner.header(offset, epoch: identity.epoch)
                if let header { highest = max(highest, header.synced) }
                // What lies inside a block may look like one.
                offset += header.map { Int($0.blockByteCount) } ?? BlockHeader.alignment
            }
            offset = 0
        }
        return highest
    }

    // MARK: Blocks

    private func isWholeBlock(_ scanner: SegmentScanner, _ header: BlockHeader, _ offset: Int) throws(StoreError)
        -> Bool
    {
        try scanner.block(header, offset).isWhole
    }

    /// Puts the entries of a whole block into the index; false when the block is not whole.
    private mutating func apply(_ scanner: SegmentScanner, _ header: BlockHeader, _ offset: Int) throws(StoreError)
        -> Bool
    {
        guard header.commits.first?.firstSeq ?? 0 > publishedSeq, let segment = segments.last else { return false }
        let block = try scanner.block(header, offset)
        guard block.isWhole, let base = block.bytes.baseAddress else { return false }
        guard let place = segment.place(block, at: offset) else { throw .tooLarge(scanner) }
        var at = header.byteCount
        for commit in header.commits {
            let start = at
            let end = at + Int(commit.plainByteCount)
            var lastSeq = commit.firstSeq
            var isPlain = true
            while at < end {
                guard
                    let entry = try? readEntry(
                        base: base, offset: at, end: end, commitFirstSeq: commit.firstSeq, commitTime: commit.time,
                        isVerified: false)
                else { return false }
                if entry.type > EntryType.deleted { isPlain = false }
                try applyEntry(entry, commit.time, segment, place + at)
                lastSeq = entry.seq
                at += entry.byteCount
            }
            segment.commits.append(
                CommitPlace(
                    firstSeq: commit.firstSeq, time: commit.time, start: UInt32(place + start),
                    end: UInt32(place + end),
                    seqSpan: UInt32(truncatingIfNeeded: lastSeq - commit.firstSeq), isPlain: isPlain))
            publishedSeq = max(publishedSeq, lastSeq)
        }
        segment.byteCount = offset + Int(header.blockByteCount)
        segment.lastBlockOffset = offset
        return true
    }
}

// Damage: what can be had of a stretch that is not whole, and what is cut away. FORMAT.md section 10.

import LarderFormat

extension StoreCore {
    /// Saves what can be had of a damaged stretch; returns where the walk goes on.
    mutating func salvage(
        _ numbers: [UInt32], _ at: Int, _ scanner: SegmentScanner, _ header: BlockHeader?, _ offset: Int
    ) throws(StoreError) -> Int {
        let before = publishedSeq
        gathered.isIncomplete = true
        guard let header, let segment = segments.last else {
            let (next, first) = try goodBehind(numbers, at, scanner, offset + BlockHeader.alignment)
            let through = first.map { $0 - 1 } ?? before
            segments.last?.byteCount = next
            segments.last?.image?.pass(next - offset)
            segments.last?.lastBlockOffset = nil
            report.lostSpans.append(
                LostSpan(after: before, through: max(through, before), segment: scanner.number, offset: offset))
            publishedSeq = max(publishedSeq, through)
            return next
        }
        let block = try scanner.block(header, offset)
        guard let base = block.bytes.baseAddress else { return offset + Int(header.blockByteCount) }
        guard let place = segment.place(block, at: offset) else { throw .tooLarge(scanner) }
        var start = header.byteCount
        let behind = offset + Int(header.blockByteCount)
        for (index, commit) in header.commits.enumerated() {
            let end = start + Int(commit.plainByteCount)
            var nextFirst: UInt64?
            // What a compaction has left of a commit can have any of its seqs.
            if header.flags & BlockHeader.repacked != 0 {
                nextFirst =
                    if index + 1 < header.commits.count { header.commits[index + 1].firstSeq } else {
                        try goodBehind(numbers, at, scanner, behind).first
                    }
            }
            try salvage(commit, nextFirst, base, start, min(end, block.bytes.count), segment, place) {
                header.isCompressed ? offset : offset + $0
            }
            start = end
        }
        segment.byteCount = behind
        segment.lastBlockOffset = offset
        return behind
    }

    /// The next header that checks, looked for from an offset on: where it lies, at the most the segment's end, and the
    /// first seq behind it, which may be of a later segment. A log goes on behind damage that is vouched for.
    private func goodBehind(
        _ numbers: [UInt32], _ at: Int, _ scanner: SegmentScanner, _ start: Int
    ) throws(StoreError) -> (offset: Int, first: UInt64?) {
        var next = start
        var first: UInt64?
        while next < scanner.size {
            first = try scanner.header(next, epoch: identity.epoch)?.commits.first?.firstSeq
            if first != nil { break }
            next += BlockHeader.alignment
        }
        for number in numbers[(at + 1)...] where first == nil {
            let later = try SegmentScanner(files: files, path: logPath + "/" + Segment.name(number), number: number)
            defer { later.close() }
            // Its first block can be damaged too.
            var offset = 0
            while first == nil, offset < later.size {
                first = try later.header(offset, epoch: identity.epoch)?.commits.first?.firstSeq
                offset += BlockHeader.alignment
            }
        }
        return (min(next, scanner.size), first)
    }

    /// - Parameters:
    ///   - nextFirst: seqs of this commit lie below it; nil: each is one more than the one before.
    ///   - place: of the block in the segment's image.
    ///   - fileOffset: where bytes of the block lie in the file.
    private mutating func salvage(
        _ commit: CommitHeader, _ nextFirst: UInt64?, _ base: UnsafeRawPointer, _ start: Int, _ end: Int,
        _ segment: Segment, _ place: Int, _ fileOffset: (_ offsetInBlock: Int) -> Int
    ) throws(StoreError) {
        let seqBefore = publishedSeq
        var at = start
        var pieceStart = start
        var lastSeq: UInt64?
        var lostFrom: Int?
        func close(_ core: inout StoreCore, _ pieceEnd: Int) {
            guard let lastSeq, pieceEnd > pieceStart else { return }
            segment.commits.append(
                CommitPlace(
                    firstSeq: commit.firstSeq, time: commit.time, start: UInt32(place + pieceStart),
                    end: UInt32(place + pieceEnd), seqSpan: UInt32(truncatingIfNeeded: lastSeq - commit.firstSeq),
                    isPlain: false))
            core.publishedSeq = max(core.publishedSeq, lastSeq)
        }
        while at < end {
            let entry = try? readEntry(
                base: base, offset: at, end: end, commitFirstSeq: commit.firstSeq, commitTime: commit.time)
            if let entry, entry.seq > (lastSeq ?? max(seqBefore, commit.firstSeq - 1)),
                entry.seq - commit.firstSeq <= UInt64(UInt32.max)
            {
                if let from = lostFrom {
                    report.lostSpans.append(
                        LostSpan(
                            after: lastSeq ?? max(publishedSeq, commit.firstSeq - 1), through: entry.seq - 1,
                            segment: segment.number, offset: fileOffset(from)))
                    lostFrom = nil
                    pieceStart = at
                }
                try applyEntry(entry, commit.time, segment, place + at)
                lastSeq = entry.seq
                at += entry.byteCount
                continue
            }
            if lostFrom == nil {
                close(&self, at)
                lostFrom = at
            }
            at += 1
        }
        if let from = lostFrom {
            // How many entries the commit's end held is known; how many seqs they spanned is not, but it is no fewer.
            let after = lastSeq ?? max(seqBefore, commit.firstSeq - 1)
            let counted = commit.firstSeq - 1 + min(UInt64(commit.entryCount), UInt64.max - commit.firstSeq)
            let through = max(after, counted, nextFirst.map { $0 - min($0, 1) } ?? 0)
            report.lostSpans.append(
                LostSpan(after: after, through: through, segment: segment.number, offset: fileOffset(from)))
            publishedSeq = max(publishedSeq, through)
        } else {
            close(&self, end)
        }
    }

    /// Copies everything from here on aside and takes it out of the log.
    mutating func cut(_ numbers: [UInt32], _ at: Int, _ offset: Int) throws(StoreError) {
        if at == 0, offset == 0 { try refuseStrangers(numbers) }
        let number = numbers[at]
        let segmentPath = logPath + "/" + Segment.name(number)
        let asideName = "\(Segment.name(number)).\(offset).\(publishedSeq)"
        report.asidePath = path + "/aside/" + asideName
        let scanner = try SegmentScanner(files: files, path: segmentPath, number: number)
        defer { scanner.close() }
        report.cutByteCount = scanner.size - offset
        guard !options.isReadOnly else { return }
        guard try putAside(scanner, offset) else { return }
        do throws(SystemError) {
            // Last first: a crash in between leaves a log that is cut further back, never one with a hole.
            for later in numbers[(at + 1)...].reversed() {
                try files.rename(logPath + "/" + Segment.name(later), to: path + "/aside/" + Segment.name(later))
                try files.syncDirectory(logPath)
            }
            try files.syncDirectory(path + "/aside")
            let file = try files.openForWriting(segmentPath)
            defer { files.close(file) }
            try files.truncate(file, to: offset)
            try files.sync(file)
        } catch { throw .system(error) }
    }

    /// A log of which nothing is whole, though blocks lie in it that are whole elsewhere or in another library, is not
    /// this library's, or its segments were changed about: that is for a person to judge, not to be put aside.
    private func refuseStrangers(_ numbers: [UInt32]) throws(StoreError) {
        for number in numbers {
            let scanner = try SegmentScanner(files: files, path: logPath + "/" + Segment.name(number), number: number)
            defer { scanner.close() }
            for offset in stride(from: 0, to: scanner.size, by: BlockHeader.alignment) {
                guard let place = try scanner.claimedPlace(offset),
                    place.epoch != identity.epoch
                        || place.position != LogPosition(segment: number, offset: UInt32(truncatingIfNeeded: offset))
                else { continue }
                throw .notALibrary(
                    path: path,
                    reason:
                        "no block of its log is where it belongs: the one at \(Segment.name(number)):\(offset) is of "
                        + (place.epoch == identity.epoch
                            ? "segment \(place.position.segment), offset \(place.position.offset)" : "another history"))
            }
        }
    }

    /// Copies what will be cut. False when the disk has no room for the copy: then nothing is cut, and nothing written.
    private mutating func putAside(_ scanner: SegmentScanner, _ offset: Int) throws(StoreError) -> Bool {
        // The second time without the reserve, which is laid out behind the file's end.
        for isSecond in [false, true] {
            do throws(SystemError) {
                if isSecond {
                    let file = try files.openForWriting(scanner.path)
                    defer { files.close(file) }
                    try files.truncate(file, to: scanner.size)
                }
                try files.makeDirectory(path + "/aside")
                try copyAside(scanner, offset, report.asidePath)
                return true
            } catch {
                guard error.isFull else { throw .system(error) }
                try? files.remove(report.asidePath)
                if isSecond {
                    failure = "the log's torn end could not be put aside: \(error); make room and start again"
                    failureCode = error.code
                }
            }
        }
        return false
    }

    private func copyAside(_ scanner: SegmentScanner, _ start: Int, _ target: String) throws(SystemError) {
        let copy = try files.openForWriting(target)
        defer { files.close(copy) }
        let piece = Window(capacity: 1_048_576)
        var offset = start
        while offset < scanner.size {
            let count = try files.read(scanner.file, at: offset, into: piece.buffer(1_048_576))
            guard count > 0 else { break }
            // Aligned writes only: the last piece is padded and the copy cut to size.
            let padded = (count + BlockHeader.alignment - 1) & ~(BlockHeader.alignment - 1)
            (piece.memory + count).initializeMemory(as: UInt8.self, repeating: 0, count: padded - count)
            try files.write(copy, at: offset - start, UnsafeRawBufferPointer(start: piece.memory, count: padded))
            offset += count
        }
        try files.truncate(copy, to: scanner.size - start)
        try files.sync(copy)
    }
}

// The steps of a compaction on the store's thread: it raises the floor, then takes the segments from the oldest to the
// newest. design/compaction.md.

import LarderFormat

extension StoreCore {
    /// Entries that a step judges, or moves; each takes up to a microsecond.
    private static let sliceCount = 2_048

    mutating func stepCompaction(now: Int64) -> CompactionStep {
        guard var run = compaction else { return .failed(reason: "no compaction is under way", isFull: false) }
        // One owner: else every slice would copy what it adds to.
        compaction = nil
        defer { if !run.isOver { compaction = run } }
        if run.isJobOut {
            guard let result = run.result else { return .progress(run.report) }
            run.isJobOut = false
            run.result = nil
            take(result, &run)
        }
        if let file = run.leftFile {
            run.leftFile = nil
            return hand(.close(file), &run)
        }
        if run.cancelled.isSet, !isEnding(run) { end(&run, "it was cancelled") }
        if let failure, !isEnding(run) { end(&run, "the store only reads: \(failure)") }
        return step(&run, now: now)
    }

    private func isEnding(_ run: CompactionRun) -> Bool {
        if case .ending = run.phase { return true }
        return false
    }

    private func end(_ run: inout CompactionRun, _ reason: String?, isFull: Bool = false) {
        run.phase = .ending(reason: reason, isFull: isFull)
    }

    private mutating func step(_ run: inout CompactionRun, now: Int64) -> CompactionStep {
        switch run.phase {
        case .beginning: return raiseFloor(&run, now: now)
        case .raisingFloor(let number):
            guard lastFinishedCommit >= number else { return .commit }
            return protect(&run)
        case .choosing: return choose(&run)
        case .marking(let listing, var marks):
            run.phase = .choosing
            let isDone = judge(listing, &marks, run)
            run.phase = .marking(listing, marks)
            if isDone { decide(listing, marks, &run) }
            return .progress(run.report)
        case .rewriting(let listing, let marks):
            return hand(.rewrite(listing, marks, removesCheckpoint: !run.hasDroppedCheckpoint), &run)
        case .lending(let listing, let marks):
            guard inFlight == nil, staged.blocks.isEmpty, !open.isOpen else { return .commit }
            lendReserve()
            return hand(.rewrite(listing, marks, removesCheckpoint: !run.hasDroppedCheckpoint), &run)
        case .protecting, .listing:
            return .progress(run.report)
        case .ending(let reason, let isFull):
            for segment in segments where segment.pinnedFile != nil && compactionIsOver == nil {
                segment.pinnedFile = nil
            }
            run.isOver = true
            run.report.floor = floor
            run.report.byteCountAfter = segments.reduce(0) { $0 + $1.byteCount }
            if let reason { return .failed(reason: reason, isFull: isFull) }
            return .finished(run.report)
        }
    }

    private var lastFinishedCommit: UInt64 { (inFlight?.number ?? staged.number) - 1 }

    private func hand(_ work: CompactionJob.Work, _ run: inout CompactionRun) -> CompactionStep {
        run.isJobOut = true
        return .job(CompactionJob(context: context(run), work: work))
    }

    private func context(_ run: CompactionRun) -> CompactionContext {
        CompactionContext(
            files: files, path: path, epoch: identity.epoch,
            schemas: run.request.purged.isEmpty
                ? [:] : Dictionary(kinds.schemas.map { ($0.kind.number, $0) }) { $1 },
            purged: run.request.purged, purgeSeq: run.purgeSeq, historySeq: run.historySeq, floor: floor,
            lastBatch: origins.lastBatch, bytesPerSecond: run.request.bytesPerSecond, cancelled: run.cancelled)
    }

    // MARK: The floor

    /// Stages the floor. With the last segment included it is the first entry of the next.
    private mutating func raiseFloor(_ run: inout CompactionRun, now: Int64) -> CompactionStep {
        guard inFlight == nil, !open.isOpen, staged.blocks.isEmpty else { return .commit }
        guard run.floor > floor || run.request.includesLast && position.offset > 0 else {
            run.phase = .raisingFloor(0)
            return .progress(run.report)
        }
        endsSegment = run.request.includesLast && position.offset > 0
        defer { endsSegment = false }
        var writer = ByteWriter()
        writer.varint(max(run.floor, floor))
        do throws(StoreError) {
            guard
                case .ready = try makeRoom(
                    writer.count + EntryWriter.headByteCountMax, isRun: false, mayUseReserve: true, now: now)
            else { return .commit }
            try stageOther(EntryType.floor, writer.bytes)
        } catch {
            if case .full(let reason) = error {
                end(&run, reason, isFull: true)
            } else {
                failWriting(error)
                end(&run, "\(error)")
            }
            return .progress(run.report)
        }
        run.phase = .raisingFloor(staged.number)
        return .commit
    }

    /// Whether a record with the key is in the library, as far as its fingerprint says.
    func isLive(_ purged: PurgedKey) -> Bool {
        let fingerprint = purged.key.withUnsafeBytes { hasher.fingerprint(kind: purged.kind, key: $0) }
        var probe = 0
        while let ordinal = index.next(fingerprint, &probe) {
            if kinds[table[ordinal].kindIndex].kind.number == purged.kind { return true }
        }
        return false
    }

    private mutating func protect(_ run: inout CompactionRun) -> CompactionStep {
        run.numbers = segments.filter { $0.number < durable.segment }.map(\.number)
        run.report.totalCount = run.numbers.count
        let files = segments.filter { ($0.commits.last?.lastSeq ?? 0) >= run.historySeq }.map {
            (number: $0.number, end: $0.byteCount)
        }
        guard run.historySeq > 1, !files.isEmpty else {
            run.phase = .choosing
            return .progress(run.report)
        }
        run.phase = .protecting
        return hand(.protect(files), &run)
    }

    // MARK: A segment

    private mutating func choose(_ run: inout CompactionRun) -> CompactionStep {
        guard clear == nil else {
            end(&run, "a clear began")
            return .progress(run.report)
        }
        while run.next < run.numbers.count, let segment = segment(run.numbers[run.next]) {
            run.report.doneCount = run.next
            run.next += 1
            if !report.isWhole, report.lostSpans.contains(where: { $0.segment == segment.number }) {
                run.isOlderClean = false
                continue
            }
            guard isWorthReading(segment, run.request) else {
                if mayHoldDead(segment) { run.isOlderClean = false }
                continue
            }
            run.phase = .listing(segment)
            return hand(.list(number: segment.number, byteCount: segment.byteCount), &run)
        }
        run.report.doneCount = run.report.totalCount
        if !run.request.purged.isEmpty { purgeAside(&run) }
        end(&run, nil)
        return .progress(run.report)
    }

    /// Whether a segment that is not read may hold saves that may go: deletes of them have to stay then.
    private func mayHoldDead(_ segment: Segment) -> Bool { segment.liveCount < segment.saveCount }

    private mutating func take(_ result: CompactionResult, _ run: inout CompactionRun) {
        switch (result.outcome, run.phase) {
        case (.protected(let seqs), .protecting):
            run.protected.formUnion(seqs)
            run.phase = .choosing
        case (.listed(let listing), .listing):
            var marks = Marks()
            marks.renumberCount = renumberCount
            marks.keptByteCount = listing.otherByteCount
            marks.ordinals.reserveCapacity(listing.entries.count)
            marks.isDropped.reserveCapacity(listing.entries.count)
            run.phase = .marking(listing, marks)
        case (.rewritten(let rewritten), .rewriting(let listing, let marks)),
            (.rewritten(let rewritten), .lending(let listing, let marks)):
            run.hasDroppedCheckpoint = true
            replayStart = LogPosition(segment: 0, offset: 0)
            run.leftFile = segment(listing.number)?.pinnedFile.map { LeftFile($0) }
            put(rewritten, listing, marks)
            run.report.rewrittenCount += 1
            run.report.droppedCount += marks.droppedCount + listing.droppedOtherCount
            returnReserve(run)
            leave(&run, isClean: !marks.hasLaterDrops)
        case (.closed, _): break
        case (.failed(let failure), _):
            take(failure, &run)
        default:
            end(&run, "a job ended out of turn")
        }
    }

    private mutating func take(_ failure: CompactionFailure, _ run: inout CompactionRun) {
        let phase = run.phase
        returnReserve(run)
        switch failure {
        case .cancelled:
            end(&run, "it was cancelled")
        case .unfit(let reason):
            if case .protecting = phase { return end(&run, reason) }
            run.report.unfitCount += 1
            leave(&run, isClean: false)
        case .full(let reason):
            if case .rewriting(let listing, let marks) = phase, canLend(marks) {
                run.phase = .lending(listing, marks)
                return
            }
            end(&run, reason, isFull: true)
        case .system(let error):
            end(&run, "\(error)")
        case .unsettled(let error):
            // Reads go on with the old file, which is open.
            compactionIsOver = "\(error)"
            end(&run, "\(error)")
        }
    }

    /// Goes on with the next segment.
    private mutating func leave(_ run: inout CompactionRun, isClean: Bool) {
        if !isClean { run.isOlderClean = false }
        if run.next > 0, let segment = segment(run.numbers[run.next - 1]) { segment.pinnedFile = nil }
        run.phase = .choosing
    }

    /// Judges a slice of a listing's entries; true when all are judged.
    private func judge(_ listing: SegmentListing, _ marks: inout Marks, _ run: CompactionRun) -> Bool {
        let start = marks.ordinals.count
        let end = min(start + Self.sliceCount, listing.entries.count)
        for at in start..<end {
            let entry = listing.entries[at]
            var ordinal = Marks.none
            var isDropped = false
            let isPast = entry.seq < run.historySeq
            if entry.isSave {
                let found = table.ordinal(firstSeq: entry.firstSeq, near: marks.lastOrdinal)
                marks.lastOrdinal = found ?? marks.lastOrdinal
                if let found, table[found].segment == listing.number, table[found].offset == entry.offset,
                    !table[found].isHole
                {
                    ordinal = found
                } else {
                    isDropped = entry.isPurged || isPast && !run.protected.contains(entry.seq)
                    if !isDropped { marks.hasLaterDrops = true }
                }
            } else {
                isDropped = entry.isPurged || isPast && run.isOlderClean && !run.protected.contains(entry.seq)
            }
            if isDropped {
                marks.droppedCount += 1
                if entry.isPurged { marks.hasPurged = true }
            } else {
                marks.keptByteCount += entry.byteCount
            }
            marks.ordinals.append(ordinal)
            marks.isDropped.append(isDropped)
        }
        return end == listing.entries.count
    }

    private mutating func decide(_ listing: SegmentListing, _ marks: Marks, _ run: inout CompactionRun) {
        guard let segment = segment(listing.number), segment.byteCount == listing.byteCount else {
            return leave(&run, isClean: false)
        }
        let commitBytes = CommitHeader.byteCount * min(listing.commitCount, listing.entries.count + 1)
        let kept = marks.keptByteCount + (marks.keptByteCount == 0 ? 0 : commitBytes)
        let byteCount = max(IndexFileHead.padded(kept + kept / 256 + BlockHeader.fixedByteCount), BlockHeader.alignment)
        let gain = listing.byteCount - byteCount
        let isWorthIt = gain > 0 && Double(gain) >= run.request.deadShareMin * Double(listing.byteCount)
        let isWanted = run.request.deadShareMin <= 0 && marks.droppedCount > 0
        guard marks.hasPurged || isWorthIt || isWanted else {
            // A save that could go stays.
            let isClean = !marks.hasLaterDrops && !zip(listing.entries, marks.isDropped).contains { $0.isSave && $1 }
            segment.lookedAtLiveCount = segment.liveCount
            return leave(&run, isClean: isClean)
        }
        if segment.pinnedFile == nil { segment.pinnedFile = segment.readFile }
        do throws(SystemError) {
            if segment.pinnedFile == nil { segment.pinnedFile = try ReadFile(files, segment.path) }
        } catch { return end(&run, "\(error)") }
        run.phase = .rewriting(listing, marks)
    }

    /// Puts the new places of a rewritten segment into the index, in one go.
    private mutating func put(_ rewritten: RewrittenSegment, _ listing: SegmentListing, _ marks: Marks) {
        guard let segment = segment(listing.number) else { return }
        let isRenumbered = marks.renumberCount != renumberCount
        var saveCount = 0
        var liveCount = 0
        for at in 0..<listing.entries.count where !marks.isDropped[at] && listing.entries[at].isSave {
            saveCount &+= 1
            let entry = listing.entries[at]
            var ordinal = marks.ordinals[at]
            guard ordinal != Marks.none else { continue }
            if isRenumbered {
                guard let found = table.ordinal(firstSeq: entry.firstSeq) else { continue }
                ordinal = found
            }
            let place = table[ordinal]
            // What changed meanwhile stays changed.
            guard !place.isHole, place.segment == listing.number, place.offset == entry.offset else { continue }
            table.set(ordinal, place.moved(to: rewritten.offsets[at]))
            liveCount &+= 1
        }
        segment.commits = rewritten.commits
        segment.byteCount = rewritten.byteCount
        segment.lastBlockOffset = rewritten.lastBlockOffset
        segment.saveCount = saveCount
        segment.liveCount = liveCount
        segment.lookedAtLiveCount = liveCount
        segment.incarnation &+= 1
        segment.readFile = nil
        reader.forget(segment: segment.number)
        for slab in slabs.slabs where slab.segment == segment.number { slab.forget() }
        layoutCount &+= 1
        generation &+= 1
    }

    // MARK: A full disk

    /// Whether a rewrite that found no room fits into the reserve.
    private func canLend(_ marks: Marks) -> Bool {
        guard room.end != LaidOutRoom.unknown, writeHandle != nil, room.end > Int(position.offset) else { return false }
        return marks.keptByteCount + 65_536 < room.end - Int(position.offset)
    }

    /// Gives the room behind the log's end away for as long as a rewrite takes. Nothing is staged or under way.
    private mutating func lendReserve() {
        guard let file = writeHandle, durable == position else { return }
        do throws(SystemError) {
            try files.truncate(file, to: Int(position.offset))
            room.end = Int(position.offset)
        } catch {
            // It stays as it is, and the rewrite finds no room again.
        }
    }

    private mutating func returnReserve(_ run: CompactionRun) {
        guard case .lending = run.phase else { return }
        // Refused saves tell whether it is there.
        try? layOutReserve()
    }

    // MARK: What lies aside

    /// Takes away what was put aside and holds a purged key.
    private func purgeAside(_ run: inout CompactionRun) {
        let directory = path + "/aside"
        guard let names = try? files.list(directory) else { return }
        for name in names {
            guard let bytes = try? files.readWhole(directory + "/" + name) else { continue }
            guard run.request.purged.contains(where: { holds(bytes, $0.key) }) else { continue }
            do throws(SystemError) {
                try files.remove(directory + "/" + name)
                try files.syncDirectory(directory)
                run.report.removedAsideCount += 1
            } catch { end(&run, "\(error)") }
        }
    }

    private func holds(_ bytes: [UInt8], _ key: [UInt8]) -> Bool {
        guard let first = key.first, bytes.count >= key.count else { return false }
        return (0...(bytes.count - key.count)).contains { at in
            bytes[at] == first && bytes[at..<at + key.count].elementsEqual(key)
        }
    }
}

// The steps of a compaction on the store's thread: it raises the floor, then takes the segments from the oldest to the
// newest. design/compaction.md.

import LarderFormat

extension StoreCore {
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
        if run.cancelled.isSet || failure != nil, !isEnding(run) {
            let reason = failure.map { "the store only reads: \($0)" } ?? "it was cancelled"
            // Behind the last rewrite all is done that was asked for.
            if case .indexing = run.phase { end(&run, nil) } else { end(&run, reason) }
        }
        return step(&run, now: now)
    }

    private func isEnding(_ run: CompactionRun) -> Bool {
        if case .ending = run.phase { return true }
        return false
    }

    func end(_ run: inout CompactionRun, _ reason: String?, isFull: Bool = false) {
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
            return rewrite(listing, marks, &run)
        case .lending(let listing, let marks):
            guard inFlight == nil, staged.blocks.isEmpty, !open.isOpen else { return .commit }
            // What can be made anew makes room first.
            removeSidecars(through: .max)
            lendReserve()
            return rewrite(listing, marks, &run)
        case .protecting, .listing:
            return .progress(run.report)
        case .indexing(let tells):
            run.phase = .indexing(tells: false)
            return tells ? .progress(run.report) : stepIndexing(&run)
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

    func hand(_ work: CompactionJob.Work, _ run: inout CompactionRun) -> CompactionStep {
        run.isJobOut = true
        return .job(CompactionJob(context: context(run), work: work))
    }

    private mutating func rewrite(
        _ listing: SegmentListing, _ marks: Marks, _ run: inout CompactionRun
    ) -> CompactionStep {
        // The checkpoint may be gone however the job ends.
        replayStart = LogPosition(segment: 0, offset: 0)
        let form = RewriteForm(
            removesCheckpoint: !run.hasDroppedCheckpoint, compresses: compresses(listing.number, run.request))
        return hand(.rewrite(listing, marks, form), &run)
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
        let isPurge = !run.request.purged.isEmpty
        let last = position
        endsSegment = (run.request.includesLast || isPurge) && last.offset > 0
        defer { endsSegment = false }
        guard run.floor > floor || endsSegment else {
            run.phase = .raisingFloor(0)
            return .progress(run.report)
        }
        var writer = ByteWriter()
        writer.varint(max(run.floor, floor))
        do throws(StoreError) {
            guard
                case .ready = try makeRoom(
                    writer.count + EntryWriter.headByteCountMax, isRun: false, mayUseReserve: true, now: now)
            else { return .commit }
            if isPurge, endsSegment, position.segment == last.segment {
                throw .full(reason: room.fullReason ?? "the segment that is written cannot be ended")
            }
        } catch {
            // Nothing was staged: the log is as it was.
            if case .full(let reason) = error { end(&run, reason, isFull: true) } else { end(&run, "\(error)") }
            return .progress(run.report)
        }
        do throws(StoreError) { try stageOther(EntryType.floor, writer.bytes) } catch {
            failWriting(error)
            end(&run, "\(error)")
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
        // Part of it may have gone into the next segment's beginning.
        if room.fullReason != nil { layOutReserveAgain() }
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
            run.report.doneCount = run.report.totalCount - (run.numbers.count - run.next)
            run.next += 1
            if !report.isWhole, report.lostSpans.contains(where: { $0.segment == segment.number }) {
                leaveUnfit(&run, "segment \(segment.number) is damaged")
                continue
            }
            guard isWorthReading(segment, run.request) else {
                if mayHoldDead(segment) { run.isOlderClean = false }
                continue
            }
            run.phase = .listing(segment)
            return hand(.list(number: segment.number, byteCount: segment.byteCount), &run)
        }
        if run.hasMadeRoom, !run.unroomed.isEmpty {
            // Behind what a purge had to leave it has left deletes, which hold the key too.
            let isPurge = !run.request.purged.isEmpty
            (run.numbers, run.next) = (isPurge ? run.numbers.filter { $0 >= run.unroomed[0] } : run.unroomed, 0)
            (run.unroomed, run.hasMadeRoom) = ([], false)
            return .progress(run.report)
        }
        conclude(&run)
        return .progress(run.report)
    }

    /// All segments were looked at. A purge that could not take what it should have must not pass for one that did.
    private mutating func conclude(_ run: inout CompactionRun) {
        let isPurge = !run.request.purged.isEmpty
        if isPurge { purgeAside(&run) }
        if isEnding(run) { return }
        if !run.unroomed.isEmpty, isPurge || run.report.rewrittenCount == 0 {
            return end(&run, run.fullReason, isFull: true)
        }
        if isPurge, let reason = run.unpurgedReason {
            return end(&run, "\(reason) and stays as it is; it may hold what was to be purged")
        }
        run.report.doneCount = run.report.totalCount - run.unroomed.count
        beginIndexing(&run)
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
            run.hasMadeRoom = true
            let phase = run.phase
            leave(&run, isClean: !marks.hasLaterDrops)
            // The old file's room is there as soon as nobody reads it.
            if case .lending = phase { run.leftFile = nil }
            if room.fullReason != nil { run.leftFile = nil }
            returnReserve(phase)
        case (.closed, _): break
        case (.indexed, .indexing): indexed(&run, nil)
        case (.failed(let failure), .indexing): indexed(&run, failure)
        case (.failed(let failure), _):
            take(failure, &run)
        default:
            end(&run, "a job ended out of turn")
        }
    }

    private mutating func take(_ failure: CompactionFailure, _ run: inout CompactionRun) {
        let phase = run.phase
        returnReserve(phase)
        switch failure {
        case .cancelled:
            end(&run, "it was cancelled")
        case .unfit(let reason), .damaged(let reason):
            if case .damaged = failure { foundDamage(reason, &run) }
            if case .protecting = phase { return end(&run, reason) }
            leaveUnfit(&run, reason)
            leave(&run, isClean: false)
        case .full(let reason):
            switch phase {
            case .rewriting(let listing, let marks) where canLend(marks): run.phase = .lending(listing, marks)
            case .rewriting(let listing, _), .lending(let listing, _):
                run.unroomed.append(listing.number)
                run.fullReason = reason
                leave(&run, isClean: false)
            default: end(&run, reason, isFull: true)
            }
        case .system(let error):
            end(&run, "\(error)")
        case .unsettled(let error):
            // Reads go on with the old file, which is open.
            compactionIsOver = "\(error)"
            end(&run, "\(error)")
        }
    }

    /// A segment stays as it is: deletes behind it stay too.
    private func leaveUnfit(_ run: inout CompactionRun, _ reason: String) {
        run.report.unfitCount += 1
        run.unpurgedReason = run.unpurgedReason ?? reason
        run.isOlderClean = false
    }

    /// Goes on with the next segment.
    mutating func leave(_ run: inout CompactionRun, isClean: Bool) {
        if !isClean { run.isOlderClean = false }
        if run.next > 0, let segment = segment(run.numbers[run.next - 1]) { segment.pinnedFile = nil }
        run.phase = .choosing
    }
}

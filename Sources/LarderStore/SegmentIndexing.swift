// The sidecars of segments that are not written any more. A compaction takes the checkpoint away, and with it what spared
// the next opening from reading the log: at its end it reads the segments that have no sidecar, and writes theirs.

import LarderFormat

/// What it takes to index a segment. Immutable; any thread.
struct SegmentIndexing: Sendable {
    /// In which nothing is gathered yet.
    let sidecar: Sidecar
    let kinds: KindTable
    let hasher: FingerprintHasher
}

extension StoreCore {
    /// Whether the next opening may go by what files of the index say: not where it would pass over what it has to say or
    /// to know. A lost declaration of an origin is known from the entries alone.
    var mayBeIndexed: Bool { report.isWhole && !isDistrusted && !origins.hasLostLast }

    /// Lets the sealed segments be indexed where no checkpoint covers them; on a full disk the room is for other things.
    mutating func beginIndexing(_ run: inout CompactionRun) {
        guard replayStart.segment == 0, mayBeIndexed, room.fullReason == nil, run.unroomed.isEmpty else {
            return end(&run, nil)
        }
        // Those that begin behind the checkpoint are of no use without it.
        sealed.removeAll { $0.gathered.start > 0 }
        run.numbers = segments.filter { $0.number < durable.segment }.map(\.number)
        run.report.toIndexCount = run.numbers.count
        (run.phase, run.next) = (.indexing(tells: true), 0)
        // Nothing is dropped any more: what is superseded meanwhile need not be noted.
        (run.protected, run.historySeq) = ([], 0)
    }

    /// Hands out the next segment to be indexed.
    mutating func stepIndexing(_ run: inout CompactionRun) -> CompactionStep {
        while run.next < run.numbers.count, mayBeIndexed, room.fullReason == nil {
            let number = run.numbers[run.next]
            run.next += 1
            if let work = segment(number).flatMap({ indexing($0) }) { return hand(.index(work), &run) }
        }
        end(&run, nil)
        return .progress(run.report)
    }

    /// Takes in what became of a segment's job. Where it failed the next opening reads the segment.
    mutating func indexed(_ run: inout CompactionRun, _ failure: CompactionFailure?) {
        run.report.indexedCount += 1
        // What was found meanwhile came before what the job wrote.
        if isDistrusted { removeAllSidecars() }
        switch failure {
        case nil, .unfit, .system, .unsettled: run.phase = .indexing(tells: true)
        case .cancelled, .full: end(&run, nil)
        case .damaged(let reason):
            run.report.unfitCount += 1
            foundDamage(reason, &run)
            end(&run, nil)
        }
    }

    /// A compaction came upon damage that the opening did not see.
    mutating func foundDamage(_ reason: String, _ run: inout CompactionRun) {
        run.report.damage = run.report.damage ?? reason
        distrustIndexFiles()
    }

    /// For a sealed segment, whose present file was put in its place by now. Nil where it has no block that is known.
    private func indexing(_ segment: Segment) -> SegmentIndexing? {
        guard let block = segment.lastBlockOffset, let last = segment.commits.last else { return nil }
        let sidecar = Sidecar(
            files: files, path: sidecarPath(segment.number), segmentPath: segment.path, lastBlockOffset: block,
            identity: identity, lastSeq: last.lastSeq, named: NamedSegment(segment, lastBlock: nil),
            commits: segment.commits, kinds: kinds.schemas.map(\.kind.number), isOfFirstForm: false,
            gathered: SegmentChanges(segment: segment.number, start: 0))
        return SegmentIndexing(sidecar: sidecar, kinds: kinds, hasher: hasher)
    }
}

extension CompactionContext {
    /// Reads a segment and writes its sidecar. One that has a sidecar of all of it, and one whose first or last run goes
    /// on in another, are left as they are.
    func index(_ work: SegmentIndexing, _ pace: inout Pace) throws(CompactionFailure) {
        var sidecar = work.sidecar
        guard !sidecar.isWritten else { return }
        var flags: (first: UInt8, last: UInt8)?
        try eachBlock(
            sidecar.segmentPath, sidecar.named.number, sidecar.named.byteCount, &pace
        ) { block, start throws(CompactionFailure) in
            flags = (flags?.first ?? block.header.flags, block.header.flags)
            try eachEntry(block) { entry, commit, offset in
                sidecar.gathered.append(
                    entry, time: block.header.commits[commit].time, at: start + offset, work.kinds, work.hasher)
            }
        }
        guard let flags, flags.first & BlockHeader.continued == 0, flags.last & BlockHeader.continues == 0,
            !sidecar.gathered.isIncomplete
        else { return }
        // A later segment may have declared those behind.
        let known = sidecar.gathered.changes.reduce(0) { $1.place.isHole ? $0 : max($0, Int($1.place.kindIndex) + 1) }
        sidecar.kinds.removeLast(sidecar.kinds.count - known)
        if let error = sidecar.write(), error.isFull { throw .full(reason: "\(error)") }
    }
}

extension SegmentChanges {
    /// Takes in an entry at an offset of the segment's image.
    fileprivate mutating func append(
        _ entry: EntryView, time: Int64, at offset: Int, _ kinds: KindTable, _ hasher: FingerprintHasher
    ) {
        guard entry.type <= EntryType.deleted else {
            others.append(OtherEntry(seq: entry.seq, type: entry.type, time: time, body: Array(entry.payload)))
            return
        }
        guard let kindIndex = kinds.index(entry.kind), let key = entry.key(of: kinds[kindIndex]) else {
            isIncomplete = true
            return
        }
        let fingerprint = hasher.fingerprint(kind: entry.kind, key: key)
        changes.append(IndexChange(entry, fingerprint, segment: segment, offset: offset, kindIndex: kindIndex))
    }
}

extension IndexChange {
    /// What an entry of a record does to the index.
    @inline(__always)
    init(_ entry: EntryView, _ fingerprint: UInt32, segment: UInt32, offset: Int, kindIndex: UInt8) {
        isCreated = entry.type == EntryType.created
        firstSeq = isCreated ? entry.seq : entry.firstSeq
        place =
            entry.type == EntryType.deleted
            ? .hole
            : Place(
                segment: segment, offset: UInt32(truncatingIfNeeded: offset), kindIndex: kindIndex,
                entryByteCount: entry.byteCount)
        self.fingerprint = fingerprint
    }
}

extension EntryView {
    /// The key of a record's entry; nil where its record does not parse so far.
    @inline(__always)
    func key(of schema: RecordSchema) -> UnsafeRawBufferPointer? {
        if type == EntryType.deleted { return payload }
        guard let range = try? schema.keyRange(ofChecked: payload) else { return nil }
        return UnsafeRawBufferPointer(rebasing: payload[range])
    }
}

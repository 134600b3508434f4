// A compaction's judgement of one segment: which entries stay, whether it is worth rewriting, and where they lie then.

import LarderFormat

extension StoreCore {
    /// Entries that a step judges; each takes up to a microsecond.
    private static let sliceCount = 2_048

    /// Judges a slice of a listing's entries; true when all are judged.
    func judge(_ listing: SegmentListing, _ marks: inout Marks, _ run: CompactionRun) -> Bool {
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
                isDropped =
                    entry.isPurged && run.hasTakenAllPurged
                    || isPast && (run.isOlderClean || options.dropsDeletesEarly) && !run.protected.contains(entry.seq)
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

    mutating func decide(_ listing: SegmentListing, _ judged: Marks, _ run: inout CompactionRun) {
        var marks = judged
        guard let segment = segment(listing.number), segment.byteCount == listing.byteCount else {
            return leave(&run, isClean: false)
        }
        let commitBytes = CommitHeader.byteCount * min(listing.commitCount, listing.entries.count + 1)
        let kept = marks.keptByteCount + (marks.keptByteCount == 0 ? 0 : commitBytes)
        let byteCount = max(IndexFileHead.padded(kept + kept / 256 + BlockHeader.fixedByteCount), BlockHeader.alignment)
        // What is compressed, and stays so, shrinks about as its image does.
        let isKept = segment.image != nil && compresses(listing.number, run.request)
        marks.fileByteCount = isKept ? byteCount * listing.byteCount / max(listing.imageByteCount, 1) : byteCount
        let gain = listing.imageByteCount - byteCount
        let isWorthIt = gain > 0 && Double(gain) >= run.request.deadShareMin * Double(listing.imageByteCount)
        let isWanted = run.request.deadShareMin <= 0 && marks.droppedCount > 0
        guard marks.hasPurged || isWorthIt || isWanted || changesForm(segment, run.request) else {
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
    mutating func put(_ rewritten: RewrittenSegment, _ listing: SegmentListing, _ marks: Marks) {
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
        if rewritten.isCompressed, rewritten.image == nil { segment.isIncompressible = true }
        segment.image = rewritten.image
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

    // MARK: What lies aside

    /// Takes away what was put aside and holds a purged key.
    func purgeAside(_ run: inout CompactionRun) {
        let directory = path + "/aside"
        guard let names = try? files.list(directory) else { return }
        for name in names {
            guard let bytes = try? files.readWhole(directory + "/" + name) else { continue }
            guard isPurged(run, bytes) else { continue }
            do throws(SystemError) {
                try files.remove(directory + "/" + name)
                try files.syncDirectory(directory)
                run.report.removedAsideCount += 1
            } catch { end(&run, "\(error)") }
        }
    }

    /// Whether a purged key lies in what was put aside, or may: in what cannot be unpacked it may.
    private func isPurged(_ run: CompactionRun, _ bytes: [UInt8]) -> Bool {
        func holdsKey(_ bytes: [UInt8]) -> Bool { run.request.purged.contains { holds(bytes, $0.key) } }
        if holdsKey(bytes) { return true }
        // What is put aside begins where a block did.
        return bytes.withUnsafeBytes { bytes in
            stride(from: 0, to: bytes.count, by: BlockHeader.alignment).contains { offset in
                let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
                guard BlockHeader.hasChecksum(rest), rest[5] & BlockHeader.compressed != 0 else { return false }
                var reader = ByteReader(rest)
                reader.offset = 8
                guard let epoch = try? reader.u64(), let segment = try? reader.u32(), let at = try? reader.u32(),
                    let header = try? BlockHeader(
                        rest, epoch: epoch, position: LogPosition(segment: segment, offset: at)), Zstandard.isInstalled
                else { return true }
                let window = Window(capacity: 0)
                return withExtendedLifetime(window) {
                    let block = ScannedBlock(header, packed: rest, in: window)
                    return !block.isUnpacked || holdsKey(Array(block.bytes))
                }
            }
        }
    }

    private func holds(_ bytes: [UInt8], _ key: [UInt8]) -> Bool {
        guard let first = key.first, bytes.count >= key.count else { return false }
        return (0...(bytes.count - key.count)).contains { at in
            bytes[at] == first && bytes[at..<at + key.count].elementsEqual(key)
        }
    }
}

// Filling blocks: the only place where bytes of the log are made.

import LarderFormat

extension StoreCore {
    /// What staging came to.
    enum Room {
        case ready
        /// A commit must be taken, or finished, first.
        case full
    }

    /// Makes room in one open block for entries of at most `byteCount` bytes.
    ///
    /// - Parameters:
    ///   - isRun: they may go on in further blocks, as a run; the commit then holds nothing else.
    ///   - mayUseReserve: they give room back, or end what was begun.
    /// - Throws: `full`, when the disk has no room; `system`. Nothing is staged then.
    mutating func makeRoom(
        _ byteCount: Int, isRun: Bool, mayUseReserve: Bool = false, now: Int64
    ) throws(StoreError) -> Room {
        room.mayUseReserve = mayUseReserve
        // One that nothing came into is in nobody's way.
        if open.entryCount == 0 { open = .none }
        if open.isOpen {
            let fits = !isRun && open.room >= byteCount && open.byteCount < options.commitByteCountTarget
            // Only a new block lays out more.
            let end = Int(position.offset) + aligned(open.byteCount + byteCount)
            return fits && hasRoom(through: end) ? .ready : .full
        }
        if !staged.blocks.isEmpty { return .full }
        staged.time = now
        let whole = byteCount + owedByteCount
        try begin(byteCount: min(whole, Self.payloadByteCountMax), whole: whole, isContinued: false)
        if !room.owed.isEmpty { try stageOwed() }
        return .ready
    }

    /// The largest payload that a block of one commit can have.
    static let payloadByteCountMax = BlockHeader.byteCountMax - BlockHeader.byteCount(commitCount: 1)

    /// Opens a block at the log's end.
    ///
    /// - Parameters:
    ///   - byteCount: payload that the block must take.
    ///   - whole: bytes that should lie in the same segment.
    mutating func begin(byteCount: Int, whole: Int, isContinued: Bool) throws(StoreError) {
        let head = BlockHeader.byteCount(commitCount: 1)
        let needed = aligned(byteCount + head)
        if position.offset > 0,
            endsSegment || Int(position.offset) + aligned(whole + head) > options.segmentByteCountMax
                || isMostlyPadding()
        {
            try moveOn(needed: max(needed, min(aligned(whole + head), options.segmentByteCountMax)))
        }
        if writeHandle == nil { try openSegment() }
        let at = Int(position.offset)
        if let file = writeHandle {
            // Of a run as much as this segment takes of it: it is refused early where it can be, not in its midst.
            let end = at + max(needed, min(aligned(whole + head), options.segmentByteCountMax - at))
            room.end = try layOut(file, through: end, laidOut: room.end)
        }
        var slab = slabs.current
        if let current = slab,
            current.segment != position.segment || current.fileOffset + current.used != at
                || Slab.byteCount - current.used < needed
        {
            slab = nil
        }
        if slab == nil {
            let busy = busySlabs
            slab = slabs.advance(segment: position.segment, fileOffset: at) { candidate in
                busy.contains { $0 === candidate }
            }
        }
        guard let slab else { throw .system(SystemError("mmap", "a slab", code: 12)) }
        var limit = Slab.byteCount
        if at > 0 { limit = min(limit, slab.used + max(needed, options.segmentByteCountMax - at)) }
        let roomEnd = room.end - (room.mayUseReserve ? 0 : options.reserveByteCount)
        limit = min(limit, slab.used + max(needed, (roomEnd - at) & ~(BlockHeader.alignment - 1)))
        open = OpenBlock(slab: slab, at: slab.base + slab.used, room: limit - slab.used)
        open.cursor += head
        open.firstSeq = nextSeq
        open.isContinued = isContinued
    }

    /// Whether the last segment is better ended, so that a compaction can join its blocks: small commits have filled it
    /// with padding. Looked at once a megabyte.
    private mutating func isMostlyPadding() -> Bool {
        guard position.offset >= Self.paddingByteCountMin, position >= nextPaddingLook,
            let segment = segments.last, segment.number == position.segment
        else { return false }
        nextPaddingLook = LogPosition(segment: position.segment, offset: position.offset &+ 1_048_576)
        let head = BlockHeader.byteCount(commitCount: 1)
        let used = segment.commits.reduce(0) { $0 + Int($1.end - $1.start) + head }
        // What is staged or under way is in neither.
        let padding = segment.byteCount - used
        return padding >= Self.paddingByteCountMin && padding > segment.byteCount / 2
    }

    private static let paddingByteCountMin = 4_194_304

    /// Slabs that a pending commit writes from.
    private var busySlabs: [Slab] {
        var busy = staged.blocks.map(\.slab) + (inFlight?.blocks.map(\.slab) ?? [])
        if let slab = open.slab { busy.append(slab) }
        return busy
    }

    /// Opens the file of the segment at the log's end.
    mutating func openSegment() throws(StoreError) {
        writeHandle = try openSegment(position.segment)
        room.end = Int(position.offset)
    }

    private mutating func openSegment(_ number: UInt32) throws(StoreError) -> FileHandle {
        let segmentPath = logPath + "/" + Segment.name(number)
        let file: FileHandle
        do throws(SystemError) { file = try files.openForWriting(segmentPath) } catch {
            if error.isFull {
                room.fullReason = "\(error)"
                throw .full(reason: "\(error)")
            }
            throw .system(error)
        }
        hasNewFile = true
        if segment(number) == nil { segments.append(Segment(number: number, path: segmentPath)) }
        return file
    }

    /// Goes on in the next segment. The room of the one before is kept until there is room in the next; where there is
    /// none, what may use the reserve goes on in the one before, past its limit.
    private mutating func moveOn(needed: Int) throws(StoreError) {
        if writeHandle == nil { try openSegment() }
        var found: (next: FileHandle, end: Int)?
        do throws(StoreError) { found = try openNext(needed) } catch {
            guard case .full = error, room.mayUseReserve else { throw error }
            if !endsSegment { return }
        }
        if found == nil {
            // A compaction wants the segment ended: the next one begins in half of the reserve.
            shrinkReserve(to: options.reserveByteCount / 2)
            do throws(StoreError) { found = try openNext(needed) } catch {
                layOutReserveAgain()
                guard case .full = error else { throw error }
            }
        }
        guard let (next, end) = found else { return }
        if let handle = writeHandle {
            retiredHandles.append(handle)
            if room.end != LaidOutRoom.unknown { staged.sealed.append((handle, Int(position.offset))) }
        }
        writeHandle = next
        room.end = end
        position = LogPosition(segment: position.segment + 1, offset: 0)
    }

    /// The next segment, with room for so many bytes.
    private mutating func openNext(_ needed: Int) throws(StoreError) -> (next: FileHandle, end: Int) {
        let next = try openSegment(position.segment + 1)
        do throws(StoreError) { return (next, try layOut(next, through: needed, laidOut: 0)) } catch {
            files.close(next)
            // Left empty it would be the log's end at the next opening, away from the reserve.
            if let last = segments.last, last.number > position.segment {
                try? files.remove(last.path)
                segments.removeLast()
            }
            throw error
        }
    }

    /// Makes sure that the next entry fits, going on in a further block of the same run if it does not.
    @inline(__always)
    mutating func reserve(_ byteCount: Int) throws(StoreError) {
        if open.room < byteCount { try continueRun(byteCount) }
    }

    private mutating func continueRun(_ byteCount: Int) throws(StoreError) {
        closeBlock(continues: true)
        try begin(byteCount: byteCount, whole: byteCount, isContinued: true)
    }

    /// Counts an entry that was written at `open.cursor`; returns its offset in the segment.
    @inline(__always)
    mutating func advance(_ byteCount: Int, seq: UInt64, isPlain: Bool) -> UInt32 {
        let offset = position.offset &+ UInt32(truncatingIfNeeded: open.cursor - open.start)
        open.cursor += byteCount
        open.entryCount &+= 1
        open.lastSeq = seq
        if !isPlain { open.isPlain = false }
        nextSeq = seq &+ 1
        return offset
    }

    /// Stages an entry that is of no record. Room was made.
    mutating func stageOther(_ type: UInt8, _ body: [UInt8]) throws(StoreError) {
        try reserve(body.count + EntryWriter.headByteCountMax)
        let seq = nextSeq
        let count = body.withUnsafeBytes { bytes in
            EntryWriter.other(
                at: open.cursor, type: type, seq: seq, commitFirstSeq: open.firstSeq, body: bytes)
        }
        _ = advance(count, seq: seq, isPlain: false)
        staged.others.append(OtherEntry(seq: seq, type: type, time: staged.time, body: body))
    }

    /// Writes the open block's header and padding, and puts it with the staged commit.
    mutating func closeBlock(continues: Bool) {
        guard let slab = open.slab, let file = writeHandle else { return }
        let block = open
        open = .none
        let head = BlockHeader.byteCount(commitCount: 1)
        let payload = block.byteCount - head
        let byteCount = aligned(block.byteCount)
        let slabOffset = block.start - slab.base
        block.cursor.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount - block.byteCount)
        var header = BlockHeader(epoch: identity.epoch, position: position, synced: durable)
        header.flags = (continues ? BlockHeader.continues : 0) | (block.isContinued ? BlockHeader.continued : 0)
        header.blockByteCount = UInt32(byteCount)
        header.storedByteCount = UInt32(payload)
        header.plainByteCount = UInt32(payload)
        header.entryCount = UInt32(block.entryCount)
        header.commits = [
            CommitHeader(
                firstSeq: block.firstSeq, time: staged.time, entryCount: UInt32(block.entryCount),
                plainByteCount: UInt32(payload))
        ]
        header.write(at: block.start)
        slab.used = slabOffset + byteCount
        let start = position.offset + UInt32(head)
        staged.blocks.append(
            ClosedBlock(
                slab: slab, slabOffset: slabOffset, byteCount: byteCount, file: file, segment: position.segment,
                place: CommitPlace(
                    firstSeq: block.firstSeq, time: staged.time, start: start, end: start + UInt32(payload),
                    seqSpan: UInt32(truncatingIfNeeded: block.lastSeq - block.firstSeq), isPlain: block.isPlain)))
        position.offset += UInt32(byteCount)
    }

    var stagedByteCount: Int {
        staged.blocks.reduce(0) { $0 + $1.byteCount } + (open.isOpen ? open.byteCount : 0)
    }

    private func aligned(_ count: Int) -> Int { (count + BlockHeader.alignment - 1) & ~(BlockHeader.alignment - 1) }
}

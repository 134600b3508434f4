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
    /// - Parameter isRun: they may go on in further blocks, as a run; the commit then holds nothing else.
    mutating func makeRoom(_ byteCount: Int, isRun: Bool, now: Int64) throws(StoreError) -> Room {
        // One that nothing came into is in nobody's way.
        if open.entryCount == 0 { open = .none }
        if open.isOpen {
            return !isRun && open.room >= byteCount && open.byteCount < options.commitByteCountTarget ? .ready : .full
        }
        if !staged.blocks.isEmpty { return .full }
        staged.time = now
        try begin(byteCount: min(byteCount, Self.payloadByteCountMax), whole: byteCount, isContinued: false)
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
        if position.offset > 0, Int(position.offset) + aligned(whole + head) > options.segmentByteCountMax {
            position = LogPosition(segment: position.segment + 1, offset: 0)
            if let handle = writeHandle { retiredHandles.append(handle) }
            writeHandle = nil
        }
        if writeHandle == nil { try openSegment() }
        let at = Int(position.offset)
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
        open = OpenBlock(slab: slab, at: slab.base + slab.used, room: limit - slab.used)
        open.cursor += head
        open.firstSeq = nextSeq
        open.isContinued = isContinued
    }

    /// Slabs that a pending commit writes from.
    private var busySlabs: [Slab] {
        var busy = staged.blocks.map(\.slab) + (inFlight?.blocks.map(\.slab) ?? [])
        if let slab = open.slab { busy.append(slab) }
        return busy
    }

    private mutating func openSegment() throws(StoreError) {
        let segmentPath = logPath + "/" + Segment.name(position.segment)
        do throws(SystemError) { writeHandle = try files.openForWriting(segmentPath) } catch { throw .system(error) }
        hasNewFile = true
        if segment(position.segment) == nil { segments.append(Segment(number: position.segment, path: segmentPath)) }
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

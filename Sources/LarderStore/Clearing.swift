// CLEAR: a run of tombstones, published only when its last block is durable.

import LarderFormat

/// A clear under way.
struct ClearRun {
    enum Phase {
        /// Waits for what was staged before it.
        case waiting
        case writing
        case publishing
    }
    var phase = Phase.waiting
    /// Nil: every kind.
    let kindIndex: UInt8?
    /// The kind that was named is not declared: there is nothing to clear.
    let isOfNoKind: Bool
    let programName: String
    var origin: UInt64 = 0
    let total: Int
    var done = 0
    var ordinal = 0
    var hasBlocks = false
    /// Where its first block lies.
    var start = LogPosition(segment: 1, offset: 0)
    /// Origins before it.
    var originCount = 0
    var deletedCount = 0
    var lastSeq: UInt64 = 0
    /// Slots to take out of the index; unused when every kind is cleared.
    var removals: [(fingerprint: UInt32, ordinal: UInt32)] = []
    var published = 0
    var blocks: [(segment: UInt32, place: CommitPlace, start: Int, end: Int)] = []

    mutating func finished(_ closed: [ClosedBlock]) {
        for block in closed {
            let start = block.slab.fileOffset + block.slabOffset
            blocks.append((block.segment, block.place, start, start + block.byteCount))
        }
    }
}

public enum ClearStep: Sendable {
    /// Take the commit, run it, finish it, then step again.
    case commit
    /// Run the read, supply its result, then step again.
    case cold(ColdRead)
    /// So far; step again.
    case progress(done: Int, total: Int)
    case finished(deleted: Int, lastSeq: UInt64)
    /// A write failed; nothing was cleared.
    case failed(reason: String)
    /// There was no room for the tombstones; nothing was cleared, and it can be tried again.
    case full(reason: String)
}

extension StoreCore {
    /// Begins to clear a kind (0: all). False when a clear is running.
    mutating func beginClear(kind: Int, programName: String) -> Bool {
        guard clear == nil else { return false }
        cancelCompaction()
        let kindIndex = kind == 0 ? nil : kinds.index(kind)
        let total = kindIndex.map { liveCounts[Int($0)] } ?? (kind == 0 ? liveCounts.reduce(0, +) : 0)
        clear = ClearRun(
            kindIndex: kindIndex, isOfNoKind: kind != 0 && kindIndex == nil, programName: programName, total: total)
        return true
    }

    mutating func stepClear(now: Int64) throws(StoreError) -> ClearStep {
        if let failure {
            clear = nil
            return .failed(reason: failure)
        }
        guard var run = clear else { return .failed(reason: "no clear is running") }
        switch run.phase {
        case .waiting:
            if inFlight != nil || open.isOpen || !staged.blocks.isEmpty { return .commit }
            if !room.owed.isEmpty {
                // Before anything else; it goes into a block of its own.
                do throws(StoreError) { _ = try makeRoom(0, isRun: false, mayUseReserve: true, now: now) } catch {
                    clear = nil
                    if case .full(let reason) = error { return .full(reason: reason) }
                    return .failed(reason: "\(error)")
                }
                return .commit
            }
            // What was staged before is in the index now.
            let kindIndex = run.kindIndex
            let total = run.isOfNoKind ? 0 : kindIndex.map { liveCounts[Int($0)] } ?? liveCounts.reduce(0, +)
            run = ClearRun(kindIndex: kindIndex, isOfNoKind: run.isOfNoKind, programName: run.programName, total: total)
            run.phase = total == 0 ? .publishing : .writing
            clear = run
            return .progress(done: 0, total: total)
        case .writing:
            if inFlight != nil { return .commit }
            do throws(StoreError) { return try writeClear(&run, now: now) } catch {
                if case .full(let reason) = error, abandonClear(run) { return .full(reason: reason) }
                // What lies behind a run without an end would be cut with it at the next opening.
                failWriting(error)
                return .failed(reason: "\(error)")
            }
        case .publishing:
            return publishClear(&run)
        }
    }

    private mutating func writeClear(_ run: inout ClearRun, now: Int64) throws(StoreError) -> ClearStep {
        room.mayUseReserve = true
        if !open.isOpen {
            if !run.hasBlocks { (run.start, run.originCount) = (position, origins.origins.count) }
            staged.time = now
            staged.isPartOfClear = true
            try begin(byteCount: 65_536, whole: 65_536, isContinued: run.hasBlocks)
            run.hasBlocks = true
            if run.origin == 0 {
                if let known = origins.number(name: run.programName, token: "") {
                    run.origin = known
                } else {
                    run.origin = try stageOrigin(name: run.programName, token: "")
                }
            }
            clear = run
        }
        while run.done < run.total, run.ordinal < table.count {
            let place = table[UInt32(truncatingIfNeeded: run.ordinal)]
            guard !place.isHole, run.kindIndex == nil || run.kindIndex == place.kindIndex else {
                run.ordinal += 1
                continue
            }
            let view: EntryView
            switch try entry(at: place) {
            case .cold(let read):
                clear = run
                return .cold(read)
            case .entry(let found): view = found
            }
            let schema = kinds[place.kindIndex]
            let range: Range<Int>
            do throws(FormatError) { range = try schema.keyRange(ofChecked: view.payload) } catch {
                throw .damaged(path: path, offset: Int(place.offset), fault: error)
            }
            let key = UnsafeRawBufferPointer(rebasing: view.payload[range])
            let needed = key.count + EntryWriter.headByteCountMax
            if open.entryCount == 0 && open.room < needed {
                // A key larger than a block of the usual room. The view goes with the slab that is used again.
                let isContinued = open.isContinued
                open = .none
                try begin(byteCount: needed, whole: needed, isContinued: isContinued)
                continue
            }
            guard open.entryCount == 0 || open.room >= needed && open.byteCount < options.commitByteCountTarget else {
                closeBlock(continues: true)
                clear = run
                return .commit
            }
            let seq = nextSeq
            let byteCount = EntryWriter.deleted(
                at: open.cursor, seq: seq, commitFirstSeq: open.firstSeq, kind: schema.kind.number,
                origin: run.origin, firstSeq: view.firstSeq, previousSeq: view.seq, key: key)
            if run.kindIndex != nil {
                run.removals.append(
                    (hasher.fingerprint(kind: schema.kind.number, key: key), UInt32(truncatingIfNeeded: run.ordinal)))
            }
            _ = advance(byteCount, seq: seq, isPlain: true)
            run.done += 1
            run.ordinal += 1
        }
        closeBlock(continues: false)
        run.phase = .publishing
        run.deletedCount = run.done
        run.lastSeq = nextSeq - 1
        clear = run
        return .commit
    }

    /// Takes the records out of the index, a slice at a call, then lets readers of the log see the run.
    private mutating func publishClear(_ run: inout ClearRun) -> ClearStep {
        if inFlight != nil || !staged.blocks.isEmpty { return .commit }
        if run.total == 0 {
            // Nothing was written.
        } else if run.kindIndex == nil {
            index.removeAll()
            table.removeAll()
            renumberCount += 1
            valueIndexes = [:]
            for at in liveCounts.indices { liveCounts[at] = 0 }
            for segment in segments { segment.liveCount = 0 }
        } else {
            let slice = run.removals[run.published..<min(run.published + 20_000, run.removals.count)]
            for removal in slice {
                let old = table[removal.ordinal]
                guard !old.isHole else { continue }
                segment(old.segment)?.liveCount -= 1
                liveCounts[Int(old.kindIndex)] -= 1
                index.remove(removal.fingerprint, ordinal: removal.ordinal)
                table.set(removal.ordinal, .hole)
            }
            run.published += slice.count
            if let kindIndex = run.kindIndex { valueIndexes[kindIndex] = nil }
            generation &+= 1
            if run.published < run.removals.count {
                clear = run
                return .progress(done: run.total, total: run.total)
            }
        }
        for block in run.blocks {
            guard let segment = segment(block.segment) else { continue }
            gather(block.segment)
            gathered.isIncomplete = true
            segment.commits.append(block.place)
            segment.lastBlockOffset = block.start
            segment.byteCount = block.end
            publishedSeq = block.place.lastSeq
        }
        generation &+= 1
        closeHolesIfWorthIt()
        clear = nil
        return .finished(deleted: run.deletedCount, lastSeq: publishedSeq)
    }
}

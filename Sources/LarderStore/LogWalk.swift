// Walks a log as it lies, block by block, and tells damage from a tail. FORMAT.md sections 9 and 10; changes nothing.

import LarderFormat

/// What a walk tells, in the order of the log. Bytes are borrowed until the call returns.
protocol LogVisitor {
    mutating func begin(segment: UInt32, byteCount: Int) throws(StoreError)
    /// A block that counts: whole, or with the entries that check.
    mutating func visit(_ contents: BlockContents) throws(StoreError)
    mutating func found(_ damage: LogDamage) throws(StoreError)
}

/// How far a walk goes.
enum LogReach {
    /// As opening does: it ends at a torn tail.
    case asOpened
    /// Everything that checks, also behind a tear.
    case everything
}

/// A walk over a log. One thread.
struct LogWalk {
    let source: LogSource
    let reach: LogReach
    let map: LogMap
    /// Seq of the last entry that was told.
    private(set) var lastSeq: UInt64 = 0
    /// Where the log ends before its files do, or nil.
    private(set) var tail: LogTail?
    /// Behind the last block that was told.
    private(set) var end = LogPosition(segment: 1, offset: 0)
    private var isRunOpen = false

    init(_ source: LogSource, reach: LogReach = .asOpened) throws(StoreError) {
        self.source = source
        self.reach = reach
        map = try LogMap(source)
    }

    mutating func run(_ visitor: inout some LogVisitor) throws(StoreError) {
        for at in map.parts.indices {
            guard try passHole(before: at, &visitor) else { return }
            let part = map.parts[at]
            try visitor.begin(segment: part.number, byteCount: part.file.byteCount)
            let scanner = try source.scanner(part.file)
            defer { scanner.close() }
            end = LogPosition(segment: part.number, offset: 0)
            guard try walk(at, scanner, &visitor) else { return }
            try passCutEnd(of: at, &visitor)
        }
    }

    /// A segment whose last block is there may have lost others behind it.
    private mutating func passCutEnd(of at: Int, _ visitor: inout some LogVisitor) throws(StoreError) {
        guard at + 1 < map.parts.count else { return }
        let part = map.parts[at]
        // An empty one is a hole.
        guard part.file.byteCount > 0 else { return }
        let repacked = part.repackedEnd
        let isCut =
            repacked.isRepacked
            ? !repacked.isThere : Int(map.syncedOffsets[part.number] ?? 0) > part.file.byteCount
        // A host may have written on since the files were listed.
        guard isCut, try source.byteCountNow(of: part.file) <= part.file.byteCount else { return }
        let through = map.firstSeq(from: at + 1, block: 0).map { $0 - 1 } ?? lastSeq
        try visitor.found(
            LogDamage(
                cause: .cutSegment, segment: part.number, offset: part.file.byteCount, byteCount: 0,
                reason: repacked.isRepacked
                    ? "no block says that the segment ends here" : "a later block says that it went on",
                after: lastSeq, through: max(through, lastSeq)))
        lastSeq = max(lastSeq, through)
    }

    /// False where the log ends.
    private mutating func walk(
        _ at: Int, _ scanner: SegmentScanner, _ visitor: inout some LogVisitor
    ) throws(StoreError) -> Bool {
        let part = map.parts[at]
        var offset = 0
        var index = 0
        while offset < part.file.byteCount {
            if index < part.blocks.count, part.blocks[index].offset == offset {
                guard try walk(at, block: index, scanner, &visitor) else { return false }
                offset = part.blocks[index].end
                index += 1
            } else {
                let next = index < part.blocks.count ? part.blocks[index].offset : part.file.byteCount
                guard try passStretch(at, index, scanner, offset..<next, &visitor) else { return false }
                offset = next
            }
            end = LogPosition(segment: part.number, offset: UInt32(truncatingIfNeeded: offset))
        }
        return true
    }

    private mutating func walk(
        _ at: Int, block index: Int, _ scanner: SegmentScanner, _ visitor: inout some LogVisitor
    ) throws(StoreError) -> Bool {
        let block = map.parts[at].blocks[index]
        let place = LogPosition(segment: map.parts[at].number, offset: UInt32(truncatingIfNeeded: block.offset))
        if let tail = try runTail(at, index, place) {
            self.tail = tail
            return false
        }
        isRunOpen = block.continues
        guard let header = try scanner.header(block.offset, epoch: source.epoch) else {
            // It changed since the map was made: only what is not durable yet does.
            return endsLog(at, block.offset, .torn)
        }
        let contents = BlockContents(try scanner.block(header, block.offset))
        if !contents.isWhole {
            if place >= map.synced, reach == .asOpened || !hasBlocks(behind: at, index) {
                return endsLog(at, block.offset, .torn)
            }
            for spoiled in contents.spoiled { try visitor.found(damage(spoiled, contents)) }
            if contents.spoiled.isEmpty { try visitor.found(damage(contents)) }
        }
        try visitor.visit(contents)
        lastSeq = max(lastSeq, contents.pieces.last?.lastSeq ?? 0, contents.spoiled.last?.through ?? 0)
        return true
    }

    private func damage(_ spoiled: SpoiledPiece, _ contents: BlockContents) -> LogDamage {
        LogDamage(
            cause: .badEntry, segment: contents.header.position.segment, offset: contents.fileOffset(spoiled.start),
            byteCount: contents.isCompressed ? contents.stored.count : spoiled.end - spoiled.start,
            reason: contents.isCompressed
                ? "what is compressed here does not unpack to entries that check"
                : "no entry checks here (length, seq or CRC)",
            after: max(spoiled.after, min(lastSeq, spoiled.through)), through: spoiled.through,
            keptEntryCount: contents.entryCount)
    }

    /// Of a compressed block of which all entries could be had all the same.
    private func damage(_ contents: BlockContents) -> LogDamage {
        LogDamage(
            cause: .badPayload, segment: contents.header.position.segment,
            offset: contents.fileOffset(0), byteCount: contents.stored.count,
            reason: "the compressed payload's CRC does not fit", keptEntryCount: contents.entryCount)
    }

    // MARK: What is no block

    /// Bytes at which no header checks. False where the log ends.
    private mutating func passStretch(
        _ at: Int, _ index: Int, _ scanner: SegmentScanner, _ range: Range<Int>, _ visitor: inout some LogVisitor
    ) throws(StoreError) -> Bool {
        let part = map.parts[at]
        let place = LogPosition(segment: part.number, offset: UInt32(clamping: range.lowerBound))
        if place >= map.synced {
            if at == map.parts.count - 1, range.upperBound == part.file.byteCount,
                try scanner.isZero(from: range.lowerBound)
            {
                return endsLog(at, range.lowerBound, .room)
            }
            if reach == .asOpened || map.firstSeq(from: at, block: index) == nil {
                return endsLog(at, range.lowerBound, .torn)
            }
        }
        let through = map.firstSeq(from: at, block: index).map { $0 - 1 } ?? lastSeq
        let found = try scanner.whyNoBlock(at: place, epoch: source.epoch)
        try visitor.found(
            LogDamage(
                cause: found.cause, segment: part.number, offset: range.lowerBound, byteCount: range.count,
                reason: found.reason, after: lastSeq, through: max(through, lastSeq)))
        lastSeq = max(lastSeq, through)
        return true
    }

    /// A number missing between two segments, or an empty one. False where the log ends.
    private mutating func passHole(before at: Int, _ visitor: inout some LogVisitor) throws(StoreError) -> Bool {
        let number = map.parts[at].number
        let previous = at == 0 ? 0 : map.parts[at - 1].number
        let isEmpty = at > 0 && map.parts[at - 1].file.byteCount == 0
        guard number != previous + 1 || isEmpty else { return true }
        let hole = LogPosition(segment: number != previous + 1 ? previous + 1 : previous, offset: 0)
        let next = map.firstSeq(from: at, block: 0)
        if hole >= map.synced {
            // Of several that were made and never filled only the first would stay.
            if isEmpty, next == nil { return true }
            if at > 0, reach == .asOpened { return endsLog(at, 0, .torn) }
        }
        let through = next.map { $0 - 1 } ?? lastSeq
        let isMissing = number != previous + 1
        try visitor.found(
            LogDamage(
                cause: isMissing ? .missingSegment : .emptySegment, segment: hole.segment, offset: 0,
                byteCount: 0,
                reason: isMissing && number - 1 > hole.segment
                    ? "segments \(hole.segment) to \(number - 1) are not there"
                    : "segment \(hole.segment) is \(isMissing ? "not there" : "empty")",
                lastSegment: isMissing ? number - 1 : 0, after: lastSeq, through: max(through, lastSeq)))
        lastSeq = max(lastSeq, through)
        return true
    }

    private mutating func endsLog(_ at: Int, _ offset: Int, _ cause: LogTail.Cause) -> Bool {
        let later = map.parts[(at + 1)...].reduce(0) { $0 + $1.file.byteCount }
        tail = LogTail(
            cause: cause, segment: map.parts[at].number, offset: offset,
            byteCount: map.parts[at].file.byteCount - offset + later)
        return false
    }

    private func hasBlocks(behind at: Int, _ index: Int) -> Bool { map.firstSeq(from: at, block: index + 1) != nil }

    // MARK: Runs

    /// The tail that begins at this block because its run does not count; nil where it does.
    private func runTail(_ at: Int, _ index: Int, _ place: LogPosition) throws(StoreError) -> LogTail? {
        let block = map.parts[at].blocks[index]
        let breakPlace: LogPosition?
        if block.isContinued {
            // The beginning of its run is gone: it counts only where it was durable.
            breakPlace = isRunOpen ? nil : place
        } else {
            breakPlace = block.continues ? try runBreak(at, index) : nil
        }
        guard let breakPlace, breakPlace >= map.synced else { return nil }
        if reach == .everything, block.isContinued || isInLog(breakPlace) { return nil }
        var walk = self
        _ = walk.endsLog(at, block.offset, .unfinishedRun)
        return walk.tail
    }

    private func isInLog(_ place: LogPosition) -> Bool {
        map.parts.contains { part in
            part.number > place.segment
                || part.number == place.segment && part.blocks.contains { $0.end > place.offset }
        }
    }

    /// Where the run that begins here breaks off, or nil where it is there to its last block.
    private func runBreak(_ first: Int, _ start: Int) throws(StoreError) -> LogPosition? {
        var expected = map.parts[first].number
        for at in first..<map.parts.count {
            let part = map.parts[at]
            guard part.number == expected else { return LogPosition(segment: expected, offset: 0) }
            let scanner = try source.scanner(part.file)
            defer { scanner.close() }
            var offset = at == first ? part.blocks[start].offset : 0
            var index = at == first ? start : 0
            while offset < part.file.byteCount {
                let place = LogPosition(segment: part.number, offset: UInt32(truncatingIfNeeded: offset))
                guard index < part.blocks.count, part.blocks[index].offset == offset,
                    at == first && index == start || part.blocks[index].isContinued,
                    try isWhole(scanner, part.blocks[index], place)
                else { return place }
                if !part.blocks[index].continues { return nil }
                offset = part.blocks[index].end
                index += 1
            }
            expected += 1
        }
        return LogPosition(segment: expected, offset: 0)
    }

    private func isWhole(
        _ scanner: SegmentScanner, _ block: LogMap.Block, _ place: LogPosition
    ) throws(StoreError) -> Bool {
        guard let header = try scanner.header(block.offset, epoch: source.epoch) else { return false }
        return try scanner.block(header, block.offset).isWhole
    }
}

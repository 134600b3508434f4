// Opening: the log is read from its beginning, checked, and its tail mended. FORMAT.md section 10.

import LarderFormat

/// What opening found.
public struct RecoveryReport: Equatable, Sendable {
    /// Bytes of an unfinished tail that were cut and put aside.
    public var cutByteCount = 0
    /// Where they are now, or empty.
    public var asidePath = ""
    /// Seqs whose entries were damaged where the log was known to be durable: (after, through).
    public var lostSpans: [LostSpan] = []
    /// Seqs that no entry has because of the cut; 0 … 0 if there was none.
    public var gapFrom: UInt64 = 0
    public var gapThrough: UInt64 = 0
    public var entryCount = 0
    public var byteCount = 0

    public init() {}
}

/// Entries in (after, through] are damaged.
public struct LostSpan: Equatable, Sendable {
    public var after: UInt64
    public var through: UInt64
    public var segment: UInt32
    public var offset: Int
}

/// How far the seqs jump over a cut tail.
let recoverySeqJump: UInt64 = 1 << 20

/// Reads one segment front to back in large pieces.
struct SegmentScanner {
    let files: any StoreFiles
    let file: FileHandle
    let path: String
    let number: UInt32
    let size: Int
    private let window = Window(capacity: 2 * BlockHeader.byteCountMax)

    init(files: any StoreFiles, path: String, number: UInt32) throws(StoreError) {
        self.files = files
        self.path = path
        self.number = number
        do throws(SystemError) {
            file = try files.openForReading(path)
            size = try files.size(file)
        } catch { throw .system(error) }
    }

    func close() { files.close(file) }

    /// Bytes from `offset`, at least `needed` of them unless the file ends before.
    func bytes(_ offset: Int, _ needed: Int) throws(StoreError) -> UnsafeRawBufferPointer {
        let available = min(needed, size - offset)
        if let found = window.bytes(segment: number, offset: offset, needed: available) { return found }
        window.segment = 0
        do throws(SystemError) {
            window.count = try files.read(
                file, at: offset, into: window.buffer(min(window.capacity, max(size - offset, 0))))
        } catch { throw .system(error) }
        window.segment = number
        window.offset = offset
        return UnsafeRawBufferPointer(start: window.memory, count: window.count)
    }

    /// The block header at `offset` if it checks, else nil.
    func header(_ offset: Int, epoch: UInt64) throws(StoreError) -> BlockHeader? {
        let fixed = try bytes(offset, BlockHeader.fixedByteCount)
        guard let byteCount = BlockHeader.peekByteCount(fixed), byteCount <= BlockHeader.byteCountMax else { return nil }
        let head = try bytes(offset, byteCount)
        guard head.count >= byteCount, offset <= Int(UInt32.max) else { return nil }
        let header: BlockHeader
        do throws(FormatError) {
            header = try BlockHeader(head, epoch: epoch, position: LogPosition(segment: number, offset: UInt32(offset)))
        } catch {
            // The CRC holds, so a newer writer made it.
            if error == FormatError(.badStructure, at: 4) {
                throw .newerFormat(path: path, found: Int(head[4]), supported: Int(BlockHeader.formatVersion))
            }
            return nil
        }
        return offset + Int(header.blockByteCount) <= size ? header : nil
    }

    func isZero(from offset: Int) throws(StoreError) -> Bool {
        var at = offset
        while at < size {
            let piece = try bytes(at, min(BlockHeader.byteCountMax, size - at))
            guard piece.allSatisfy({ $0 == 0 }) else { return false }
            at += piece.count
            if piece.isEmpty { return false }
        }
        return true
    }
}

extension StoreCore {
    /// Reads the whole log, fills the index, and finds where the log ends.
    mutating func recover() throws(StoreError) {
        let names: [String]
        do throws(SystemError) { names = try files.list(logPath) ?? [] } catch { throw .system(error) }
        let numbers = names.compactMap { Segment.number(ofName: $0) }.sorted()
        var previousEnd = LogPosition(segment: numbers.first ?? 1, offset: 0)
        var knownSynced = LogPosition(segment: 0, offset: 0)
        var isCut = false
        var isRunOpen = false
        scan: for (at, number) in numbers.enumerated() {
            let scanner = try SegmentScanner(files: files, path: logPath + "/" + Segment.name(number), number: number)
            defer { scanner.close() }
            if let hole = hole(before: at, numbers) {
                if try isSynced(hole, numbers, at, 0) {
                    try loseMissing(scanner)
                } else if hole.segment > numbers[at - 1] {
                    try cut(numbers, at - 1, Int(previousEnd.offset))
                    isCut = true
                    break scan
                }
            }
            segments.append(Segment(number: number, path: scanner.path))
            previousEnd = LogPosition(segment: number, offset: 0)
            var offset = 0
            while offset < scanner.size {
                let header = try scanner.header(offset, epoch: identity.epoch)
                if let header {
                    knownSynced = max(knownSynced, header.synced)
                    let continues = header.flags & BlockHeader.continues != 0
                    let isContinued = header.flags & BlockHeader.continued != 0
                    let isWhole: Bool
                    if isContinued && !isRunOpen {
                        // The beginning of its run is gone: it counts only where it was durable.
                        isWhole = try isSynced(LogPosition(segment: number, offset: UInt32(offset)), numbers, at, offset)
                    } else {
                        isWhole = try continues && !isContinued ? isWholeRun(numbers, at, offset) : true
                    }
                    isRunOpen = continues
                    if isWhole, try apply(scanner, header, offset) {
                        offset += Int(header.blockByteCount)
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
        }
        position = previousEnd
        firstUnsyncedSegment = knownSynced.segment
        try dropEmptyTail()
        if !report.lostSpans.isEmpty { try mendIndex() }
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
        return segments.last?.commits.isEmpty == true ? LogPosition(segment: previous, offset: 0) : nil
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
        guard first > publishedSeq + 1 else { return }
        report.lostSpans.append(LostSpan(after: publishedSeq, through: first - 1, segment: scanner.number, offset: 0))
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

    private func isSynced(_ place: LogPosition, _ numbers: [UInt32], _ first: Int, _ start: Int) throws(StoreError) -> Bool {
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

    private func isWholeBlock(_ scanner: SegmentScanner, _ header: BlockHeader, _ offset: Int) throws(StoreError) -> Bool {
        let block = try scanner.bytes(offset, Int(header.blockByteCount))
        guard block.count >= Int(header.blockByteCount), let base = block.baseAddress else { return false }
        var at = header.byteCount
        for commit in header.commits {
            let end = at + Int(commit.plainByteCount)
            var count: UInt32 = 0
            var lastSeq: UInt64 = 0
            while at < end {
                guard
                    let entry = try? readEntry(
                        base: base, offset: at, end: end, commitFirstSeq: commit.firstSeq, commitTime: commit.time),
                    entry.seq > lastSeq
                else { return false }
                lastSeq = entry.seq
                at += entry.byteCount
                count += 1
            }
            guard count == commit.entryCount else { return false }
        }
        return true
    }

    /// Puts the entries of a whole block into the index; false when the block is not whole.
    private mutating func apply(_ scanner: SegmentScanner, _ header: BlockHeader, _ offset: Int) throws(StoreError) -> Bool {
        guard header.flags & BlockHeader.compressed == 0 else {
            throw .notALibrary(path: path, reason: "block \(scanner.number):\(offset) is compressed; reading it needs zstd")
        }
        guard try isWholeBlock(scanner, header, offset), let segment = segments.last else { return false }
        let block = try scanner.bytes(offset, Int(header.blockByteCount))
        guard let base = block.baseAddress else { return false }
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
                applyEntry(entry, commit.time, segment, offset + at)
                lastSeq = entry.seq
                at += entry.byteCount
            }
            segment.commits.append(
                CommitPlace(
                    firstSeq: commit.firstSeq, time: commit.time, start: UInt32(offset + start), end: UInt32(offset + end),
                    seqSpan: UInt32(truncatingIfNeeded: lastSeq - commit.firstSeq), isPlain: isPlain))
            publishedSeq = max(publishedSeq, lastSeq)
        }
        segment.byteCount = offset + Int(header.blockByteCount)
        return true
    }

    private mutating func applyEntry(_ entry: EntryView, _ time: Int64, _ segment: Segment, _ offset: Int) {
        report.entryCount += 1
        switch entry.type {
        case EntryType.created, EntryType.updated:
            guard let kindIndex = kinds.index(entry.kind),
                let range = try? kinds[kindIndex].keyRange(ofChecked: entry.payload)
            else { return }
            let key = UnsafeRawBufferPointer(rebasing: entry.payload[range])
            let fingerprint = hasher.fingerprint(kind: entry.kind, key: key)
            let place = Place(
                segment: segment.number, offset: UInt32(offset), kindIndex: kindIndex, entryByteCount: entry.byteCount)
            segment.saveCount += 1
            segment.liveCount += 1
            if entry.type == EntryType.created {
                applyCreated(place, firstSeq: entry.seq, fingerprint: fingerprint)
            } else if isOfLostRecord(entry) {
                updateLost(place, firstSeq: entry.firstSeq, fingerprint: fingerprint)
            } else {
                applyUpdated(place, firstSeq: entry.firstSeq, fingerprint: fingerprint)
            }
        case EntryType.deleted where isOfLostRecord(entry):
            deleteLost(firstSeq: entry.firstSeq)
        case EntryType.deleted:
            applyDeleted(
                firstSeq: entry.firstSeq, fingerprint: hasher.fingerprint(kind: entry.kind, key: entry.payload))
        default:
            applyOther(entry, time)
        }
    }

    mutating func applyOther(_ entry: EntryView, _ time: Int64) {
        var reader = ByteReader(entry.payload)
        do throws(FormatError) {
            switch entry.type {
            case EntryType.kind:
                declare(try Kind(from: &reader))
            case EntryType.origin:
                origins.declare(try Origin(body: entry.payload, time: time))
            case EntryType.importBegan:
                origins.openImports.insert(try reader.varint())
            case EntryType.importEnded:
                origins.openImports.remove(try reader.varint())
            case EntryType.recovered:
                let from = try reader.varint()
                let through = try reader.varint()
                if from <= through { recoveredGaps.append(from...through) }
            case EntryType.token:
                let origin = try reader.varint()
                origins.lastBatch[origin] = try reader.varint()
            default:
                break
            }
        } catch {
            // The entry's CRC holds, so a newer writer made it: it is kept, and means nothing here.
        }
    }

    // MARK: Damage

    /// Saves what can be had of a damaged stretch; returns where the walk goes on.
    private mutating func salvage(
        _ numbers: [UInt32], _ at: Int, _ scanner: SegmentScanner, _ header: BlockHeader?, _ offset: Int
    ) throws(StoreError) -> Int {
        let before = publishedSeq
        guard let header, let segment = segments.last else {
            var next = offset + BlockHeader.alignment
            var first: UInt64?
            while next < scanner.size {
                first = try scanner.header(next, epoch: identity.epoch)?.commits.first?.firstSeq
                if first != nil { break }
                next += BlockHeader.alignment
            }
            next = min(next, scanner.size)
            // A log goes on behind damage that is vouched for: at the latest in a later segment.
            for number in numbers[(at + 1)...] where first == nil {
                let later = try SegmentScanner(files: files, path: logPath + "/" + Segment.name(number), number: number)
                defer { later.close() }
                first = try later.header(0, epoch: identity.epoch)?.commits.first?.firstSeq
            }
            let through = first.map { $0 - 1 } ?? before
            segments.last?.byteCount = next
            report.lostSpans.append(
                LostSpan(after: before, through: max(through, before), segment: scanner.number, offset: offset))
            publishedSeq = max(publishedSeq, through)
            return next
        }
        let block = try scanner.bytes(offset, Int(header.blockByteCount))
        guard let base = block.baseAddress else { return offset + Int(header.blockByteCount) }
        var start = header.byteCount
        for commit in header.commits {
            let end = start + Int(commit.plainByteCount)
            salvage(commit, base, start, min(end, block.count), segment, offset)
            start = end
        }
        segment.byteCount = offset + Int(header.blockByteCount)
        return offset + Int(header.blockByteCount)
    }

    private mutating func salvage(
        _ commit: CommitHeader, _ base: UnsafeRawPointer, _ start: Int, _ end: Int, _ segment: Segment, _ offset: Int
    ) {
        var at = start
        var pieceStart = start
        var lastSeq: UInt64?
        var lostFrom: Int?
        func close(_ core: inout StoreCore, _ pieceEnd: Int) {
            guard let lastSeq, pieceEnd > pieceStart else { return }
            segment.commits.append(
                CommitPlace(
                    firstSeq: commit.firstSeq, time: commit.time, start: UInt32(offset + pieceStart),
                    end: UInt32(offset + pieceEnd), seqSpan: UInt32(truncatingIfNeeded: lastSeq - commit.firstSeq),
                    isPlain: false))
            core.publishedSeq = max(core.publishedSeq, lastSeq)
        }
        while at < end {
            let entry = try? readEntry(
                base: base, offset: at, end: end, commitFirstSeq: commit.firstSeq, commitTime: commit.time)
            if let entry, entry.seq > (lastSeq ?? (commit.firstSeq - 1)) {
                if let from = lostFrom {
                    report.lostSpans.append(
                        LostSpan(
                            after: lastSeq ?? max(publishedSeq, commit.firstSeq - 1), through: entry.seq - 1,
                            segment: segment.number, offset: offset + from))
                    lostFrom = nil
                    pieceStart = at
                }
                applyEntry(entry, commit.time, segment, offset + at)
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
            let after = lastSeq ?? commit.firstSeq - 1
            report.lostSpans.append(
                LostSpan(
                    after: after, through: max(after, commit.firstSeq + UInt64(commit.entryCount) - 1),
                    segment: segment.number, offset: offset + from))
            publishedSeq = max(publishedSeq, commit.firstSeq + UInt64(commit.entryCount) - 1)
        } else {
            close(&self, end)
        }
    }

    /// Copies everything from here on aside and takes it out of the log.
    private mutating func cut(_ numbers: [UInt32], _ at: Int, _ offset: Int) throws(StoreError) {
        let number = numbers[at]
        let segmentPath = logPath + "/" + Segment.name(number)
        let asideName = "\(Segment.name(number)).\(offset).\(publishedSeq)"
        report.asidePath = path + "/aside/" + asideName
        let scanner = try SegmentScanner(files: files, path: segmentPath, number: number)
        defer { scanner.close() }
        report.cutByteCount = scanner.size - offset
        guard !options.isReadOnly else { return }
        do throws(SystemError) {
            try files.makeDirectory(path + "/aside")
            try copyAside(scanner, offset, report.asidePath)
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

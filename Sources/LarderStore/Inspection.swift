// A log shown as it lies, in the words of FORMAT.md: for people who look for what went wrong.

import LarderFormat

/// A stretch of a segment: a block, or bytes that are none.
public struct InspectedStretch: Sendable {
    public var segment: UInt32
    public var offset: Int
    public var byteCount: Int
    /// Nil where no header checks; then `reason` says what is there.
    public var header: BlockHeader?
    public var reason = ""
    /// Entries that check.
    public var entryCount = 0
    /// Their bytes, when they were asked for.
    public var entries: [InspectedEntry] = []
    /// Stretches of the payload in which no entry checks: offset in the file, bytes, seqs in (after, through].
    public var spoiled: [LogDamage] = []
}

/// An entry with its place. Its payload is its own.
public struct InspectedEntry: Sendable {
    /// In the file; of a compressed block, where the block begins.
    public var offset: Int
    public var byteCount: Int
    public var type: UInt8
    public var flags: UInt64
    public var seq: UInt64
    /// Of its commit, milliseconds since 1970.
    public var time: Int64
    public var commitFirstSeq: UInt64
    public var kind: Int
    public var origin: UInt64
    public var firstSeq: UInt64
    public var savedAt: Int64
    public var previousSeq: UInt64
    /// Record, key, or the whole body.
    public var payload: [UInt8]

    init(_ entry: EntryView, _ commit: CommitHeader, offset: Int) {
        self.offset = offset
        byteCount = entry.byteCount
        type = entry.type
        flags = entry.flags
        seq = entry.seq
        time = commit.time
        commitFirstSeq = commit.firstSeq
        kind = entry.kind
        origin = entry.origin
        firstSeq = entry.firstSeq
        savedAt = entry.savedAt
        previousSeq = entry.previousSeq
        payload = Array(entry.payload)
    }
}

extension LogSource {
    public var segmentNumbers: [UInt32] { files.map(\.number) }

    /// Shows the stretches of a segment in their order until `show` says false.
    ///
    /// - Parameters:
    ///   - holding: only the stretch that holds this offset; nil: all.
    ///   - withEntries: whether entries are decoded.
    /// - Throws: `newerFormat`, `system`; for a segment that is not there `notALibrary`.
    public func inspect(
        segment number: UInt32, holding: Int? = nil, withEntries: Bool, _ show: (InspectedStretch) -> Bool
    ) throws(StoreError) {
        guard let file = files.first(where: { $0.number == number }) else {
            throw .notALibrary(path: path, reason: "its log has no segment \(number)")
        }
        let scanner = try scanner(file)
        defer { scanner.close() }
        var offset = 0
        while offset < scanner.size {
            let stretch: InspectedStretch
            if let header = try scanner.header(offset, epoch: epoch) {
                let end = offset + Int(header.blockByteCount)
                let isWanted = holding.map { (offset..<end).contains($0) } ?? true
                stretch = isWanted ? try block(scanner, header, offset, withEntries) : .init(header, offset)
            } else {
                stretch = try gap(scanner, offset)
            }
            offset += stretch.byteCount
            if let holding, !(stretch.offset..<offset).contains(holding) { continue }
            if !show(stretch) { return }
        }
    }

    private func block(
        _ scanner: SegmentScanner, _ header: BlockHeader, _ offset: Int, _ withEntries: Bool
    ) throws(StoreError) -> InspectedStretch {
        let contents = BlockContents(try scanner.block(header, offset))
        var stretch = InspectedStretch(header, offset)
        stretch.entryCount = contents.entryCount
        stretch.spoiled = contents.spoiled.map { spoiled in
            LogDamage(
                cause: .badEntry, segment: scanner.number, offset: contents.fileOffset(spoiled.start),
                byteCount: spoiled.end - spoiled.start, reason: "no entry checks here", after: spoiled.after,
                through: spoiled.through, keptEntryCount: contents.entryCount)
        }
        if withEntries {
            try contents.entries { entry, commit, at in
                stretch.entries.append(InspectedEntry(entry, commit, offset: contents.fileOffset(at)))
            }
        }
        return stretch
    }

    private func gap(_ scanner: SegmentScanner, _ start: Int) throws(StoreError) -> InspectedStretch {
        var end = start + BlockHeader.alignment
        while end < scanner.size, try scanner.header(end, epoch: epoch) == nil { end += BlockHeader.alignment }
        end = min(end, scanner.size)
        let place = LogPosition(segment: scanner.number, offset: UInt32(clamping: start))
        let reason = try scanner.whyNoBlock(at: place, epoch: epoch).reason
        return InspectedStretch(
            segment: scanner.number, offset: start, byteCount: end - start, reason: reason)
    }

    /// The entry of a seq with the block that holds it; nil where none checks.
    public func inspect(seq: UInt64) throws(StoreError) -> (block: InspectedStretch, entry: InspectedEntry)? {
        for number in segmentNumbers {
            var found: InspectedStretch?
            try inspect(segment: number, withEntries: false) { stretch in
                guard let first = stretch.header?.commits.first?.firstSeq, first <= seq else { return true }
                found = stretch
                return true
            }
            guard let block = found else { continue }
            var entry: (InspectedStretch, InspectedEntry)?
            try inspect(segment: number, holding: block.offset, withEntries: true) { stretch in
                entry = stretch.entries.first { $0.seq == seq }.map { (stretch, $0) }
                return false
            }
            if let entry { return entry }
        }
        return nil
    }

    /// The kinds that the log declares, as far as it can be read.
    public func kinds() throws(StoreError) -> [Kind] {
        var collector = KindCollector()
        var walk = try LogWalk(self, reach: .everything)
        try walk.run(&collector)
        return Array(collector.kinds.values)
    }
}

extension InspectedStretch {
    init(_ header: BlockHeader, _ offset: Int) {
        self.init(
            segment: header.position.segment, offset: offset, byteCount: Int(header.blockByteCount), header: header)
    }
}

private struct KindCollector: LogVisitor {
    var kinds: [Int: Kind] = [:]

    mutating func begin(segment: UInt32, byteCount: Int) {}
    mutating func found(_ damage: LogDamage) {}

    mutating func visit(_ contents: BlockContents) throws(StoreError) {
        try contents.entries { entry, _, _ in
            guard entry.type == EntryType.kind else { return }
            var reader = ByteReader(entry.payload)
            guard let kind = try? Kind(from: &reader), kind.version > kinds[kind.number]?.version ?? 0 else { return }
            kinds[kind.number] = kind
        }
    }
}

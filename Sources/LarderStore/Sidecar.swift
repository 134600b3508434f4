// What one segment does to the index: gathered as its entries become visible, and written beside the segment when the
// log has moved on; read from the segment by a compaction (SegmentIndexing.swift). FORMAT.md section 11.

import LarderFormat

/// A change of the index.
struct IndexChange {
    /// 24 bytes of a sidecar: place, first seq, fingerprint, 1 for a record that is created.
    static let byteCount = 24

    /// A hole when the record was deleted.
    var place: Place
    var firstSeq: UInt64
    var fingerprint: UInt32
    var isCreated: Bool
}

/// An entry that is of no record, and means something to the store.
struct OtherEntry {
    var seq: UInt64
    var type: UInt8
    var time: Int64
    var body: [UInt8]
}

/// The changes by the entries of one segment, in their order.
struct SegmentChanges {
    let segment: UInt32
    /// From this offset on.
    let start: UInt32
    var changes: ContiguousArray<IndexChange> = []
    var others: [OtherEntry] = []
    /// Some are not here: nothing will be written.
    var isIncomplete = false
}

/// A sidecar to be written. Immutable; any thread.
struct Sidecar: Sendable {
    let files: any StoreFiles
    let path: String
    let segmentPath: String
    let lastBlockOffset: Int
    let identity: Identity
    let lastSeq: UInt64
    let named: NamedSegment
    let commits: ContiguousArray<CommitPlace>
    /// Numbers of the kinds, in the order of their indexes: of all whose index a place has, at least.
    var kinds: [Int]
    /// It was gathered while the segment was written: it is of no segment that a compaction has written anew since.
    var isOfFirstForm = true
    var gathered: SegmentChanges

    /// Writes it. Blocks, and does not wait for the disk to have it: nothing is meant by a sidecar.
    ///
    /// - Returns: what failed, which is no more than that the segment will be read instead.
    @discardableResult
    func write() -> SystemError? {
        do throws(SystemError) {
            let segment = try files.openForReading(segmentPath)
            defer { files.close(segment) }
            var named = named
            named.lastBlock = try BlockMark(files: files, segment, at: lastBlockOffset, end: named.byteCount)
            guard named.lastBlock != nil else { return nil }
            if isOfFirstForm, try isRepacked(segment) { return nil }
            let output = try IndexFileOutput(files: files, path: path)
            defer { output.close() }
            let position = LogPosition(segment: gathered.segment, offset: gathered.start)
            var head = IndexFileHead(.sidecar, of: identity, position: position, lastSeq: lastSeq)
            head.recordCount = max(0, gathered.changes.reduce(0) { $0 + ($1.isCreated ? 1 : $1.place.isHole ? -1 : 0) })
            head.ordinalCount = head.recordCount
            try output.append(SidecarSmallPart(named: named, kinds: kinds, others: gathered.others).encoded)
            try output.endPart(.small, &head)
            for commit in commits { try output.append(commit) }
            try output.endPart(.commits, &head)
            for change in gathered.changes {
                try output.append(change.place.raw)
                try output.append(change.firstSeq)
                try output.append(UInt64(change.fingerprint) | (change.isCreated ? 1 << 32 : 0))
            }
            try output.endPart(.records, &head)
            try output.finish(head, isSynced: false)
            return nil
        } catch { return error }
    }

    /// Whether one of all of the segment as it is now is there, and whole. Blocks for as long as reading it takes.
    var isWritten: Bool {
        guard let input = try? IndexFileInput(.sidecar, files: files, path: path) else { return false }
        defer { input.close() }
        guard let head = input.head, head.isOf(identity), head.position.segment == named.number,
            head.position.offset == 0, let small = input.bytes(.small),
            let found = small.withUnsafeBytes({ SidecarSmallPart($0) })?.named, found.number == named.number,
            found.byteCount == named.byteCount, found.lastBlock?.offset == lastBlockOffset,
            input.read(.commits, { _ in }), input.read(.records, { _ in })
        else { return false }
        do throws(SystemError) {
            let segment = try files.openForReading(segmentPath)
            defer { files.close(segment) }
            return try BlockMark(files: files, segment, at: lastBlockOffset, end: named.byteCount) == found.lastBlock
        } catch { return false }
    }

    /// Whether a compaction was faster: what was gathered is of the segment as it was, be it of the same size now.
    private func isRepacked(_ segment: FileHandle) throws(SystemError) -> Bool {
        let window = Window(capacity: BlockHeader.fixedByteCount)
        let count = try files.read(segment, at: lastBlockOffset, into: window.buffer(BlockHeader.fixedByteCount))
        return count < BlockHeader.fixedByteCount
            || window.memory.load(fromByteOffset: 5, as: UInt8.self) & BlockHeader.repacked != 0
    }
}

/// What of a sidecar has no fixed width.
struct SidecarSmallPart {
    var named: NamedSegment
    var kinds: [Int]
    var others: [OtherEntry]

    init(named: NamedSegment, kinds: [Int], others: [OtherEntry]) {
        self.named = named
        self.kinds = kinds
        self.others = others
    }

    var encoded: [UInt8] {
        var writer = ByteWriter()
        named.encode(into: &writer)
        writer.varint(kinds.count)
        for kind in kinds { writer.varint(kind) }
        writer.varint(others.count)
        for entry in others {
            writer.u8(entry.type)
            writer.varint(entry.seq)
            writer.svarint(entry.time)
            writer.byteString(entry.body)
        }
        writer.varint(named.image == nil ? 0 : 1)
        named.image?.encode(into: &writer)
        return writer.bytes
    }

    /// Whether the log has declared the kinds in that order, before the segment's other entries or with them.
    func fits(_ table: KindTable, isAfter: Bool) -> Bool {
        let declared = table.schemas.lazy.map(\.kind.number)
        return declared.starts(with: kinds) || !isAfter && kinds.starts(with: declared)
    }

    /// Nil when the bytes are not what `encoded` gives.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        do throws(FormatError) {
            named = try NamedSegment(from: &reader)
            kinds = []
            others = []
            for _ in 0..<(try reader.count(ofAtLeast: 1)) { kinds.append(try reader.varint(atMost: Int(Int32.max))) }
            for _ in 0..<(try reader.count(ofAtLeast: 4)) {
                let type = try reader.u8()
                let (seq, time) = (try reader.varint(), try reader.svarint())
                others.append(OtherEntry(seq: seq, type: type, time: time, body: Array(try reader.bytes())))
            }
            if try reader.varint(atMost: 1) == 1 {
                named.image = try PlainImage(from: &reader, fileByteCount: named.byteCount)
            }
            try reader.expectEnd()
        } catch { return nil }
    }
}

extension StoreCore {
    func sidecarPath(_ number: UInt32) -> String { logPath + "/" + Segment.sidecarName(number) }

    /// Notes what a commit did to the index. It is published, and its changes are still in flight.
    mutating func gather(_ commit: Commit) {
        var change = 0
        var other = 0
        for (at, block) in commit.blocks.enumerated() {
            // A run that goes on in the next segment is judged with its blocks before one.
            if at > 0 && block.segment != gathered.segment { gathered.isIncomplete = true }
            gather(block.segment)
            while change < inFlightOps.count, inFlightOps[change].seq <= block.place.lastSeq {
                let op = inFlightOps[change]
                gathered.changes.append(
                    IndexChange(
                        place: op.isDelete ? .hole : op.place, firstSeq: op.firstSeq, fingerprint: op.fingerprint,
                        isCreated: op.firstSeq == op.seq))
                change &+= 1
            }
            while other < commit.others.count, commit.others[other].seq <= block.place.lastSeq {
                gathered.others.append(commit.others[other])
                other += 1
            }
        }
    }

    /// Changes of another segment follow: the sidecar of the last goes with the next commit.
    mutating func gather(_ number: UInt32) {
        guard number != gathered.segment else { return }
        if !gathered.isIncomplete, mayBeIndexed, let segment = segment(gathered.segment),
            let block = segment.lastBlockOffset
        {
            var named = NamedSegment(segment, lastBlock: nil)
            let first = segment.commits.firstIndex { $0.start >= gathered.start } ?? segment.commits.count
            let commits = ContiguousArray(segment.commits[first...])
            named.commitCount = commits.count
            sealed.append(
                Sidecar(
                    files: files, path: sidecarPath(segment.number), segmentPath: segment.path, lastBlockOffset: block,
                    identity: identity, lastSeq: commits.last?.lastSeq ?? 0, named: named, commits: commits,
                    kinds: kinds.schemas.map(\.kind.number), gathered: gathered))
        }
        gathered = SegmentChanges(segment: number, start: 0)
    }

    /// Takes away the sidecars of the segments that a checkpoint covers.
    func removeSidecars(through number: UInt32) {
        guard let names = try? files.list(logPath) else { return }
        for name in names {
            guard let found = Segment.number(ofSidecarName: name), found <= number else { continue }
            // One that stays is of no use, and does no harm.
            try? files.remove(logPath + "/" + name)
        }
    }

    /// Takes all of them away, for good.
    func removeAllSidecars() {
        removeSidecars(through: .max)
        try? files.syncDirectory(logPath)
    }
}

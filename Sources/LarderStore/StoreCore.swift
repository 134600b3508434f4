// The state of an open store. A noncopyable struct, so that the inner loops over it carry no exclusivity checks.

import LarderFormat

/// How a store is opened.
public struct StoreOptions: Sendable {
    /// Make the library if there is none.
    public var creates = true
    /// Read only: no lock is taken, nothing is changed, torn tails are passed over.
    public var isReadOnly = false
    /// A new segment begins when the next block would take the file past this, in bytes.
    public var segmentByteCountMax = 67_108_864
    /// A commit is closed at this many staged bytes.
    public var commitByteCountTarget = 2_097_152
    /// Room kept behind the log's end, in bytes, for deletes on a full disk.
    public var reserveByteCount = 1_048_576
    /// Kinds that a new library is given, and that an older one learns.
    public var kinds: [Kind] = []
    /// The canary: commit jobs do not sync. For the test that must notice.
    public var skipsSyncs = false
    /// Likewise: a new segment's name is not made durable.
    public var skipsDirectorySyncs = false
    /// Likewise: an import's second save of a key is taken as anybody's.
    public var savesTwice = false
    /// Likewise: a compaction drops deletes though saves that they end are left.
    public var dropsDeletesEarly = false
    /// What a new library's identity is made from, for tests that are to be repeated; nil: it is random.
    public var identitySeed: UInt64?
    /// A store that is closed leaves the next opening at most this much of the log to read, in bytes, if need be by
    /// writing a checkpoint.
    public var replayByteCountMax = 4_194_304
    /// Opening passes over the checkpoint and checks every byte of the log.
    public var readsWholeLog = false
    /// Told how many percent of what is to be read of the log were, each number once and ascending, on the thread that
    /// opens; of a library with nothing to read, nothing.
    public var onReading: (@Sendable (Int) -> Void)?

    public init() {}
}

struct StoreCore: ~Copyable {
    let files: any StoreFiles
    let path: String
    let options: StoreOptions
    var identity: Identity
    let hasher: FingerprintHasher

    var kinds = KindTable()
    var origins = OriginTable()
    var index = KeyIndex()
    var table = RecordTable()
    /// Live records of each kind, by the kind's index.
    var liveCounts: [Int] = []

    var segments: [Segment] = []
    var slabs = SlabRing()
    var reader: LogReader
    /// Seq of the last entry that readers may see.
    var publishedSeq: UInt64 = 0
    /// The oldest seq from which every change is still there.
    var floor: UInt64 = 1
    /// Raised with every change of the index.
    var generation: UInt64 = 1

    // Staging.
    var nextSeq: UInt64 = 1
    var position = LogPosition(segment: 1, offset: 0)
    var durable = LogPosition(segment: 1, offset: 0)
    /// The first segment of which recovery does not know that all of it was durable.
    var firstUnsyncedSegment: UInt32 = 0
    /// From here on the log is not in the checkpoint that is there.
    var replayStart = LogPosition(segment: 0, offset: 0)
    /// What the entries of the log's last segment did to the index, and the sidecars of those before it that wait to be
    /// written.
    var gathered = SegmentChanges(segment: 0, start: 0)
    var sealed: [Sidecar] = []
    var writeHandle: FileHandle?
    var retiredHandles: [FileHandle] = []
    var room = LaidOutRoom()
    var hasNewFile = false
    var open = OpenBlock.none
    var staged: Commit
    var stagedOps = PendingOps()
    var inFlight: Commit?
    var inFlightOps = PendingOps()
    var nextCommitNumber: UInt64 = 2
    var failure: String?
    var failureCode: Int32 = 0
    var clear: ClearRun?
    var compaction: CompactionRun?
    /// Why there can be no compaction any more until a restart, or nil.
    var compactionIsOver: String?
    /// Where it is looked next at how much of the last segment is padding.
    var nextPaddingLook = LogPosition(segment: 0, offset: 0)
    /// The next block begins a segment.
    var endsSegment = false
    /// Raised when a segment was written anew.
    var layoutCount: UInt64 = 0
    /// Raised when ordinals were given anew.
    var renumberCount = 0
    /// By the kind's index; only of kinds that were asked for by value.
    var valueIndexes: [UInt8: ValueIndex] = [:]
    var merger = RecordMerger()

    var report = RecoveryReport()
    /// Damage was found behind the opening: no checkpoint and no sidecar is written any more.
    var isDistrusted = false
    /// While recovering: records whose first entry is lost, by first seq.
    var orphans: [UInt64: (place: Place, fingerprint: UInt32)] = [:]
    /// The first seqs of those, by fingerprint.
    var orphansByFingerprint: [UInt32: [UInt64]] = [:]
    /// Kinds that come with Larder and whose declaration is lost: the log is given it again.
    var undeclared: Set<Int> = []
    /// Spans of seqs that no entry has, from recoveries.
    var recoveredGaps: [ClosedRange<UInt64>] = []

    init(files: any StoreFiles, path: String, options: StoreOptions, identity: Identity) {
        self.files = files
        self.path = path
        self.options = options
        self.identity = identity
        hasher = FingerprintHasher(key: identity.fingerprintKey)
        reader = LogReader(files: files)
        staged = Commit(number: 1, time: 0)
    }

    var logPath: String { path + "/log" }
    /// A log that goes on behind this has no seqs left to give.
    static let publishedSeqMax = UInt64.max - (1 << 32)

    /// The segment of this number.
    @inline(__always)
    func segment(_ number: UInt32) -> Segment? {
        guard let first = segments.first, number >= first.number else { return nil }
        let at = Int(number - first.number)
        if at < segments.count, segments[at].number == number { return segments[at] }
        return segments.first { $0.number == number }
    }

    mutating func declare(_ kind: Kind) {
        guard kinds.declare(kind) else { return }
        if let index = kinds.index(kind.number), valueIndexes[index] != nil {
            // A field may be indexed now that was not.
            valueIndexes[index] = nil
        }
        stagedOps.forgetValues()
        while liveCounts.count < kinds.schemas.count { liveCounts.append(0) }
    }

    /// Writes what a library must have before it is served: the kinds that it lacks, and what recovery has to say.
    mutating func begin(now: Int64) throws(StoreError) {
        try system { () throws(SystemError) in try syncSurvivors() }
        // Not even what was torn could be put aside: nothing is written before it was.
        if failure != nil { return }
        try layOutReserve()
        var entries: [(type: UInt8, body: [UInt8])] = []
        if report.gapThrough > 0 {
            var writer = ByteWriter()
            writer.varint(report.gapFrom)
            writer.varint(report.gapThrough)
            entries.append((EntryType.recovered, writer.bytes))
            recoveredGaps.append(report.gapFrom...report.gapThrough)
        }
        let lacking = options.kinds.compactMap { additions($0) }
        for kind in lacking { entries.append((EntryType.kind, kind.encoded)) }
        guard !entries.isEmpty else { return }
        (room.owed, room.owedKinds) = (entries, lacking)
        do throws(StoreError) { _ = try makeRoom(0, isRun: false, mayUseReserve: true, now: now) } catch {
            guard case .full = error else { throw error }
            // Whatever is staged next goes behind their declarations.
            for kind in lacking { declare(kind) }
            return
        }
        guard let job = takeCommit() else { return }
        let failure = job.run()
        finish(failure)
        if let failure { throw .system(failure) }
    }

    /// The declaration that the library lacks of a kind that comes with Larder: all of it, or what a later version adds
    /// to what is there and what the owner added; nil where it has everything.
    private func additions(_ kind: Kind) -> Kind? {
        guard let index = kinds.index(kind.number) else { return kind }
        if undeclared.contains(kind.number) { return kinds[index].kind.grown(toHold: kind) ?? kinds[index].kind }
        return kinds[index].kind.grown(toHold: kind)
    }

    /// What was read may not have been durable yet; from here on it is.
    private mutating func syncSurvivors() throws(SystemError) {
        for segment in segments where segment.number >= firstUnsyncedSegment {
            let file = try files.openForWriting(segment.path)
            defer { files.close(file) }
            // What is laid out behind the end stays: on a full disk it would be lost.
            if segment === segments.last, failure == nil, try files.size(file) != segment.byteCount {
                try files.truncate(file, to: segment.byteCount)
            }
            try files.sync(file)
        }
        try files.syncDirectory(logPath)
        // Who put the identity there may have died before it was durable.
        try files.syncDirectory(path)
        durable = position
    }

    mutating func closeFiles() {
        giveBackRoom()
        if let writeHandle { files.close(writeHandle) }
        for handle in retiredHandles { files.close(handle) }
        reader.closeFiles()
        writeHandle = nil
        retiredHandles = []
    }

    // MARK: Reading one entry

    enum EntryRead {
        case entry(EntryView)
        case cold(ColdRead)
    }

    /// The entry at a place, its CRC checked. The view is valid until the next read.
    mutating func entry(at place: Place) throws(StoreError) -> EntryRead {
        let (segment, commit) = try locate(place)
        return try entry(segment, commit, place)
    }

    /// The segment and the commit that a place lies in.
    @inline(__always)
    func locate(_ place: Place) throws(StoreError) -> (Segment, CommitPlace) {
        guard let segment = segment(place.segment), let at = segment.commitIndex(holding: place.offset) else {
            throw .damaged(
                path: path, offset: Int(place.offset), fault: FormatError(.badStructure, at: Int(place.offset)))
        }
        return (segment, segment.commits[at])
    }

    mutating func entry(
        _ segment: Segment, _ commit: CommitPlace, _ place: Place
    ) throws(StoreError) -> EntryRead {
        let offset = Int(place.offset)
        if let bytes = slabs.bytes(segment: segment.number, offset: offset), let base = bytes.baseAddress {
            return .entry(try decode(base, bytes.count, segment, commit, place, isVerified: false))
        }
        let end = Int(commit.end)
        var needed = min(place.likelyByteCount, end - offset)
        while true {
            let read: LogBytes
            do throws(SystemError) {
                read = try reader.bytes(segment, offset: offset, needed: needed, end: end, isSequential: false)
            } catch { throw .system(error) }
            guard case .bytes(let bytes) = read, let base = bytes.baseAddress else {
                if case .cold(let cold) = read { return .cold(cold) }
                throw .damaged(
                    path: segment.path, offset: segment.fileOffset(offset), fault: FormatError(.truncated, at: offset))
            }
            let whole = try wholeByteCount(bytes, segment, offset, end)
            if whole <= bytes.count {
                return .entry(
                    try decode(base, min(bytes.count, end - offset), segment, commit, place, isVerified: true))
            }
            needed = whole
        }
    }

    /// Bytes of the entry that begins here, from its length.
    private func wholeByteCount(
        _ bytes: UnsafeRawBufferPointer, _ segment: Segment, _ offset: Int, _ end: Int
    ) throws(StoreError) -> Int {
        var head = ByteReader(bytes)
        do throws(FormatError) {
            let length = try head.varint()
            guard length <= UInt64(entryByteCountMax), head.offset + Int(length) <= end - offset else {
                throw FormatError(.tooLarge, at: offset)
            }
            return head.offset + Int(length)
        } catch { throw .damaged(path: segment.path, offset: segment.fileOffset(offset), fault: error) }
    }

    private func decode(
        _ base: UnsafeRawPointer, _ count: Int, _ segment: Segment, _ commit: CommitPlace, _ place: Place,
        isVerified: Bool
    ) throws(StoreError) -> EntryView {
        let offset = Int(place.offset)
        do throws(FormatError) {
            let view = try readEntry(
                base: base, offset: 0, end: count, commitFirstSeq: commit.firstSeq, commitTime: commit.time,
                isVerified: isVerified)
            // The index is not believed: it may come from a checkpoint.
            guard isSave(view, place) else { throw FormatError(.badStructure, at: offset) }
            return view
        } catch { throw .damaged(path: segment.path, offset: segment.fileOffset(offset), fault: error) }
    }

    /// Whether an entry brought a record of the kind that the place says.
    @inline(__always)
    func isSave(_ view: EntryView, _ place: Place) -> Bool {
        view.isSave && kinds.index(view.kind) == place.kindIndex
    }
}

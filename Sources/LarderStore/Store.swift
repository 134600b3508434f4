// The store: a library's records, its log, and its index. A Swift library usable alone; the host drives it.

import LarderFormat

/// An open library.
///
/// Confined to one thread. What may wait for the disk is handed out as values to be run elsewhere: a `CommitJob` (its
/// result goes to `finish`) and a `ColdRead` (its result goes to `supply`). Reads see only what is durable.
public final class Store {
    /// Entered by one thread and never while it is entered: dynamic checks of that cost a twentieth of an import.
    @exclusivity(unchecked) var core: StoreCore
    private var lockHandle: FileHandle?
    private var isClosed = false

    /// The files, for callers that keep some of their own beside the library's.
    public let files: any StoreFiles

    /// Opens the library at `path`, making it if need be, and reads its log.
    ///
    /// - Parameter now: milliseconds since 1970, for what has to be written.
    /// - Throws: `locked`, `noLibrary`, `notALibrary`, `newerFormat`, `damaged`, `system`.
    /// - Returns: with everything durable that was found, and with the kinds of the options declared.
    public convenience init(
        path: String, options: StoreOptions = StoreOptions(), files: any StoreFiles = SystemFiles(), now: Int64
    ) throws(StoreError) {
        let library = try LockedLibrary(path: path, options: options, files: files, now: now)
        do throws(StoreError) { try self.init(library, now: now) } catch {
            library.giveUp()
            throw error
        }
    }

    /// Reads the log of a library whose lock is held, as above; the lock is the store's from then on. If this throws it
    /// is still the caller's.
    public init(_ library: LockedLibrary, now: Int64) throws(StoreError) {
        files = library.files
        core = StoreCore(
            files: files, path: library.path, options: library.options, identity: library.identity)
        do throws(StoreError) {
            try core.recover()
            if !library.options.isReadOnly { try core.begin(now: now) }
        } catch {
            core.closeFiles()
            throw error
        }
        lockHandle = library.lock
    }

    deinit { close() }

    /// Something of the log was found to be damaged: the next opening reads all of it, names what is lost, and serves the
    /// rest. Until then what needs the damaged bytes fails.
    public func distrustIndexFiles() { core.distrustIndexFiles() }

    /// Closes the files and gives up the lock, leaving a checkpoint where that is worth it. What was staged and not
    /// committed is gone; take and finish commits first. May wait for the disk.
    public func close() {
        guard !isClosed else { return }
        isClosed = true
        if lockHandle != nil { core.writeCheckpointIfWorthIt() }
        core.closeFiles()
        if let lockHandle { files.close(lockHandle) }
    }
}

// MARK: What is there

extension Store {
    public var path: String { core.path }
    public var identity: Identity { core.identity }
    public var epoch: UInt64 { core.identity.epoch }
    /// Seq of the last entry that is durable and visible.
    public var lastSeq: UInt64 { core.publishedSeq }
    /// The oldest seq from which every change is still there.
    public var floor: UInt64 { core.floor }
    public var report: RecoveryReport { core.report }
    /// Why nothing can be written any more, or nil.
    public var failure: String? { core.failure }
    /// Why saves are refused for want of room, or nil. Looks again whether there is room, and stages what opening owes.
    public func fullReason(now: Int64) -> String? { core.fullReason(now: now) }
    /// errno of the failed call, or 0.
    public var failureCode: Int32 { core.failureCode }
    public var kinds: [Kind] { core.kinds.schemas.map(\.kind) }
    public var origins: [Origin] { core.origins.origins }
    public var segmentCount: Int { core.segments.count }
    public var logByteCount: Int { core.segments.reduce(0) { $0 + $1.byteCount } }
    /// Raised whenever something became visible.
    public var generation: UInt64 { core.generation }

    public func kind(_ number: Int) -> Kind? { core.kinds.index(number).map { core.kinds[$0].kind } }
    public func schema(_ number: Int) -> RecordSchema? { core.kinds.index(number).map { core.kinds[$0] } }
    /// Live records by kind number; kind 0 asks for all kinds that have any.
    public func counts(kind: Int) -> [(kind: Int, count: Int)] { core.counts(kind: kind) }

    /// Has the index's memory fetched for a `get` that comes soon. Returns what `prefetchRecord` takes after others.
    public func prefetch(kind: Int, key: UnsafeRawBufferPointer) -> UInt32 { core.prefetch(kind: kind, key: key) }
    public func prefetchRecord(_ fingerprint: UInt32) { core.prefetchRecord(fingerprint) }

    /// - Throws: `damaged`, when what lies at the key's place is not its record.
    public func get(kind: Int, key: UnsafeRawBufferPointer) throws(StoreError) -> GetResult {
        try core.get(kind: kind, key: key)
    }

    /// The record that was first saved with that seq.
    public func get(firstSeq: UInt64) throws(StoreError) -> GetResult { try core.get(firstSeq: firstSeq) }

    /// Goes on with a page; `show` is called once for each record, in saved order.
    public func page(_ cursor: inout PageCursor, _ show: (StoredRecord) -> Void) throws(StoreError) -> PageStep {
        try core.page(&cursor, show)
    }

    /// Goes on with a walk over up to `slice` records; `visit` says whether it goes on behind the record.
    public func walk(
        _ walk: inout RecordWalk, slice: Int, _ visit: (StoredRecord) -> Bool
    ) throws(StoreError) -> WalkStep {
        try core.walk(&walk, slice: slice, visit)
    }

    /// Begins a search for the durable records of a kind with a value in an indexed field; nil where the field is none, or
    /// not indexed, or the value is none of it.
    ///
    /// - Parameter value: in its encoding; text is compared folded.
    public func search(kind: Int, field: Int, value: UnsafeRawBufferPointer) -> ValueSearch? {
        core.search(kind: kind, field: field, value: value)
    }

    /// Goes on with a search: at its end the records' keys in saved order, at most `limit`.
    public func keys(_ search: inout ValueSearch, limit: Int) throws(StoreError) -> KeysWithValue {
        try core.keys(&search, limit: limit)
    }

    /// Whether a record has what a search looks for: it may have changed since its key was found.
    public func has(_ record: UnsafeRawBufferPointer, _ search: ValueSearch) -> Bool { core.has(record, search) }

    /// Whether a record has this key.
    public static func hasKey(_ record: UnsafeRawBufferPointer, _ key: UnsafeRawBufferPointer) -> Bool {
        LarderStore.hasKey(record, key)
    }

    /// Declares a kind, or adds to one.
    public func define(_ draft: KindDraft, now: Int64) throws(StoreError) -> Defined {
        try core.define(draft, now: now)
    }

    /// Takes in what a `ColdRead` brought. Its failure, if any, is thrown where it is asked for again.
    public func supply(_ result: ColdResult) { core.reader.supply(result) }
}

// MARK: Writing

extension Store {
    /// Checks an operation and puts it with the batch; a bad one is refused there.
    @inline(__always)
    public func add(_ operation: WriteOperation, to batch: WriteBatch) { core.add(operation, to: batch) }

    /// Finds what is there of a batch's keys. After a cold read was supplied call `keep(for:)`, then this again.
    public func resolve(_ batch: WriteBatch) throws(StoreError) -> Resolution { try core.resolve(batch) }

    /// Holds what a cold read brought for the batch that asked for it.
    public func keep(for batch: WriteBatch) throws(StoreError) { try core.keep(for: batch) }

    /// Decides a resolved batch and puts its changes into the open block.
    public func stage(_ batch: WriteBatch, now: Int64) throws(StoreError) -> Staged { try core.stage(batch, now: now) }

    /// Bytes staged and not handed out yet.
    public var stagedByteCount: Int { core.stagedByteCount }
    public var hasStaged: Bool { core.open.isOpen || !core.staged.blocks.isEmpty }
    public var isCommitting: Bool { core.inFlight != nil }

    /// Closes what is staged and hands it out; nil when there is nothing, or a commit is under way.
    public func takeCommit() -> CommitJob? { core.takeCommit() }

    /// Takes in what a commit job came to: on success its changes become visible, in one step; on failure nothing can
    /// be written any more, and every commit not finished has failed.
    public func finish(_ failure: SystemError?) { core.finish(failure) }

    /// Number of the newest commit that answers may wait for.
    public var lastFinishedCommit: UInt64 { (core.inFlight?.number ?? core.staged.number) - 1 }

    public func beginClear(kind: Int, programName: String) -> Bool {
        core.beginClear(kind: kind, programName: programName)
    }
    public func stepClear(now: Int64) throws(StoreError) -> ClearStep { try core.stepClear(now: now) }
    public var isClearing: Bool { core.clear != nil }
}

// MARK: The stream

extension Store {
    /// A cursor behind `seq`. With a snapshot, up to `snapshotSeq` only what is current is given.
    public func cursor(after seq: UInt64, snapshotSeq: UInt64 = 0) -> LogCursor {
        LogCursor(seq: seq, snapshotSeq: snapshotSeq)
    }

    public func check(epoch: UInt64, seq: UInt64) -> CursorCheck { core.check(epoch: epoch, seq: seq) }

    /// Gathers entries for a subscriber; the runs are borrowed until the next call of the store.
    ///
    /// - Throws: what cannot be read. The cursor stays where it was, and the runs as they were.
    public func stream(
        _ cursor: inout LogCursor, _ filter: EntryFilter, byteBudget: Int, into runs: inout [EventRun]
    ) throws(StoreError) -> StreamStep {
        let (start, count) = (cursor, runs.count)
        do throws(StoreError) {
            return try core.stream(&cursor, filter, byteBudget: byteBudget, into: &runs)
        } catch {
            cursor = start
            runs.removeLast(runs.count - count)
            throw error
        }
    }
}

// MARK: Imports

extension Store {
    /// The origin of an import, declared in the log if need be.
    ///
    /// - Returns: its number, the last durable batch, whether it goes on; nil when there is no room (`Staged.full`).
    public func beginImport(
        programName: String, source: String, token: String, now: Int64
    ) throws(StoreError) -> (origin: UInt64, lastBatch: UInt64, isResumed: Bool)? {
        try core.beginImport(programName: programName, source: source, token: token, now: now)
    }

    /// Notes the end of an import; the seq of its entry, nil when there is no room.
    public func endImport(origin: UInt64, outcome: UInt8, counts: [UInt64], now: Int64) throws(StoreError) -> UInt64? {
        try core.endImport(origin: origin, outcome: outcome, counts: counts, now: now)
    }

    public func isOpenImport(_ origin: UInt64) -> Bool { core.origins.openImports.contains(origin) }
    public func origin(_ number: UInt64) -> Origin? { core.origins.origin(number) }
    public func originNumber(name: String) -> UInt64? { core.origins.number(name: name, token: "") }
    /// The number of the commit being staged: what was staged last waits for it.
    public var stagedCommit: UInt64 { core.staged.number }
}

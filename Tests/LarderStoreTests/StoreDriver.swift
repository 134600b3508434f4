// Runs a store as a host does, on one thread, and holds every answer against the model.

import LarderFormat
import Testing

@testable import LarderStore

/// The store said something that the model does not.
struct Mismatch: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}

/// A store with its model. A commit is under way from `take` to `finish`.
final class StoreDriver {
    let files: any StoreFiles
    let path: String
    let options: StoreOptions
    private(set) var store: Store
    var model: Model
    /// Milliseconds; moves on with every commit taken, so that all of one commit have the same.
    private(set) var now: Int64
    private(set) var inFlight: CommitJob?
    private(set) var failure: SystemError?
    /// After a failure the batches that were not answered are forgotten; a power cut may have kept them.
    var forgetsUnanswered = true
    /// The clear that is under way.
    private(set) var clearing: (kind: Int, program: String)?
    /// The job of the compaction that is under way.
    var compactionJob: CompactionJob?
    var compactionCount = 0
    var compactionFailureCount = 0
    /// Why the last one that failed did.
    var compactionFailure = ""
    /// Operations that were decided.
    var operationCount = 0
    /// Batches that are begun anew for the next.
    var spareBatches: [WriteBatch] = []

    init(
        _ files: any StoreFiles, path: String = "library", options: StoreOptions = StoreDriver.options(),
        model: Model = Model(),
        now: Int64 = 1_000_000
    ) throws(StoreError) {
        self.files = files
        self.path = path
        self.options = options
        self.model = model
        self.now = now
        store = try Store(path: path, options: options, files: files, now: now)
        self.now += 10
    }

    static func options(segment: Int = 262_144) -> StoreOptions {
        var options = StoreOptions()
        options.kinds = TestKinds.all
        options.segmentByteCountMax = segment
        // Every close leaves a checkpoint.
        options.replayByteCountMax = 0
        return options
    }

    // MARK: Commits

    /// Takes a commit if there is one to take.
    @discardableResult
    func take() -> Bool {
        guard inFlight == nil, let job = store.takeCommit() else { return false }
        inFlight = job
        now += 10
        return true
    }

    /// Runs and finishes the commit that is under way.
    func finish() {
        guard let job = inFlight else { return }
        inFlight = nil
        failure = job.run()
        store.finish(failure)
        if failure == nil { model.finish(commit: job.number) } else if forgetsUnanswered { model.rollBack() }
    }

    /// Makes everything durable that was staged.
    func commitAll() throws {
        repeat { finish() } while failure == nil && take()
        if let failure { throw StoreError.system(failure) }
    }

    func read(_ cold: ColdRead) throws(StoreError) {
        let result = cold.run()
        if let failure = result.failure { throw .system(failure) }
        store.supply(result)
    }

    /// Clears a kind (0: all), also taking commits where a host might.
    func clear(kind: Int, program: String = "test") throws {
        guard store.beginClear(kind: kind, programName: program) else { throw Mismatch("a clear is running") }
        clearing = (kind, program)
        for _ in 0..<1_000_000 {
            switch try store.stepClear(now: now) {
            case .commit:
                if inFlight == nil, let job = store.takeCommit() { inFlight = job }
                finish()
            case .cold(let cold):
                // A host takes commits whenever something is staged.
                if inFlight == nil, let job = store.takeCommit() { inFlight = job }
                try read(cold)
            case .progress: continue
            case .finished(let deleted, let lastSeq):
                return try concludeClear(kind, program, deleted, lastSeq)
            case .full(let reason): throw StoreError.full(reason: reason)
            case .failed: throw StoreError.readOnly(reason: store.failure ?? "")
            }
        }
        throw Mismatch("a clear does not end")
    }

    /// The entries that a clear would write if it ended with this seq.
    func clearEvents(_ kind: Int, _ program: String, lastSeq: UInt64) -> [ModelEvent] {
        var events = model.clearEvents(kind: kind, origin: store.originNumber(name: program) ?? 0)
        for at in events.indices {
            events[at].seq = lastSeq - UInt64(events.count - 1 - at)
            events[at].time = now
            events[at].savedAt = now
        }
        return events
    }

    private func concludeClear(_ kind: Int, _ program: String, _ deleted: Int, _ lastSeq: UInt64) throws {
        let events = clearEvents(kind, program, lastSeq: lastSeq)
        guard events.count == deleted else { throw Mismatch("cleared \(deleted), not \(events.count)") }
        for event in events { model.append(event, seq: event.seq, time: now, commit: store.lastFinishedCommit) }
        model.endBatch()
        model.finish(commit: store.lastFinishedCommit)
        clearing = nil
        now += 10
    }

    // MARK: Reopening

    /// Closes in good order and opens again.
    ///
    /// - Parameter meanwhile: what happens to the files while they are closed.
    func reopen(meanwhile: () -> Void = {}) throws {
        try commitAll()
        compactionJob = nil
        store.close()
        meanwhile()
        store = try Store(path: path, options: options, files: files, now: now)
        now += 10
    }
}

// Many segments: opening stays linear, and the open files stay few. Clocks that go back.

import Glibc
import LarderFormat
import Testing

@testable import LarderStore

@Suite struct ManySegmentsTests {
    /// A library of so many segments with a record each.
    static func library(_ count: Int, now: Int64) throws -> SimulatedFiles {
        let files = SimulatedFiles(seed: 1)
        var options = StoreDriver.options(segment: 4096)
        options.reserveByteCount = 4096
        options.skipsSyncs = true
        let store = try Store(path: "library", options: options, files: files, now: now)
        let batch = WriteBatch()
        // The first segment holds the kinds.
        for id in 2...count {
            let record = TestOp.book(id, "b").payload
            try record.withUnsafeBytes { bytes in
                batch.begin(origin: 0, programName: "test", batchNumber: 0, isDryRun: false, isAtomic: false)
                store.add(WriteOperation(mode: .insert, kind: 2, payload: bytes), to: batch)
                guard case .ready = try store.resolve(batch), case .staged = try store.stage(batch, now: now) else {
                    throw Mismatch("record \(id) is not staged")
                }
            }
            guard let job = store.takeCommit() else { throw Mismatch("no commit") }
            store.finish(job.run())
        }
        store.close()
        return files
    }

    /// 32,768 segments with LARDER_FAULTS=1, else 2,048.
    @Test("a library of thousands of segments is opened in time that grows with them, and with few open files")
    func many() throws {
        let count = getenv("LARDER_FAULTS") != nil ? 32_768 : 2048
        let files = try Self.library(count, now: 1_000_000)
        var options = StoreDriver.options(segment: 4096)
        options.reserveByteCount = 4096
        let clock = ContinuousClock()
        let begun = clock.now
        let store = try Store(path: "library", options: options, files: files, now: 2_000_000)
        // Ten times what it takes in a debug build: a time that grows with the square is far above.
        #expect(begun.duration(to: clock.now) < .milliseconds(2 * count))
        #expect(store.segmentCount == count)
        let driver = files.openFileCount
        for id in 2...count {
            let key = Encode.key(TestOp.book(id, "").fields, TestKinds.book)
            let found = try key.withUnsafeBytes { bytes in
                var result = try store.get(kind: 2, key: bytes)
                while case .cold(let read) = result {
                    store.supply(read.run())
                    result = try store.get(kind: 2, key: bytes)
                }
                if case .found = result { return true }
                return false
            }
            guard found else { throw Mismatch("record \(id) is not found") }
        }
        #expect(files.openFileCount - driver <= LogReader.openFileCountMax)
        store.close()
        #expect(files.openFileCount == 0)
    }

    @Test("a clock that goes back ten years takes times back, and no seq")
    func clockGoesBack() throws {
        let files = SimulatedFiles(seed: 1)
        let later: Int64 = 1_800_000_000_000
        let earlier = later - 10 * 365 * 86_400_000
        let driver = try StoreDriver(files, now: later)
        try driver.write([.book(1, "one"), .book(2, "two")])
        try driver.commitAll()
        driver.store.close()
        let again = try StoreDriver(files, model: driver.model, now: earlier)
        let lastSeq = again.store.lastSeq
        let answer = try again.write([.book(1, "changed"), .book(3, "three"), .deleteBook(2)])
        #expect(answer.outcomes == [.updated, .created, .deleted])
        #expect(answer.seqs.allSatisfy { $0 > lastSeq })
        try again.commitAll()
        try again.compareVisible()
        let changed = try #require(try again.get(FailedWriteTests.keys[0]))
        #expect(changed.changedAt < changed.savedAt)
        try again.reopen()
        try again.compareVisible()
        #expect(try again.get(FailedWriteTests.keys[0]) == changed)
    }
}

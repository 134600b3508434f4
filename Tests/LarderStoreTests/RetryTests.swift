// A batch is sent again because its answer was lost: no record is doubled.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct RetryTests {
    private func begin(_ driver: StoreDriver) throws -> UInt64 {
        let begun = try driver.store.beginImport(programName: "i", source: "f", token: "t", now: driver.now)
        return try #require(begun).origin
    }

    @Test(
        "the same numbered batch again comes out as duplicates, whatever became of the first", arguments: 0..<4)
    func numbered(state: Int) throws {
        let driver = try Books.library([(2, "by hand")])
        let origin = try begin(driver)
        let jokes = (0..<3).map { TestOp.save(TestKinds.joke, [2: Encode.text("no id \($0 % 2)")]) }
        let ops = [TestOp.book(1, "a"), .book(2, "b")] + jokes
        let first = try driver.write(ops, origin: origin, batchNumber: 1)
        #expect(first.outcomes == [.created, .updated, .created, .created, .created])
        #expect(Set(first.madeKeys.compactMap { $0 }).count == 3)
        // Staged, being written, durable, after a restart.
        if state == 1 { driver.take() }
        if state >= 2 { try driver.commitAll() }
        if state == 3 { try driver.reopen() }
        let again = try driver.write(ops, origin: try begin(driver), batchNumber: 1)
        #expect(again.outcomes == [.duplicate, .duplicate, .duplicate, .duplicate, .duplicate])
        #expect(again.seqs == first.seqs && again.madeKeys == first.madeKeys)
        try driver.settle()
        #expect(driver.store.counts(kind: 3).map(\.count) == [3])
    }

    @Test("made keys differ between batches, imports, positions and records, and are uuids")
    func madeKeys() throws {
        let driver = try Books.library([])
        let joke = TestOp.save(TestKinds.joke, [2: Encode.text("ha")])
        let origin = try begin(driver)
        let answers = [
            try driver.write([joke, joke], origin: origin, batchNumber: 1),
            try driver.write([joke], origin: origin, batchNumber: 2), try driver.write([joke]),
            try driver.write([joke]),
            try driver.write([.save(TestKinds.joke, [2: Encode.text("ho")])], origin: origin, batchNumber: 1),
        ]
        let keys = answers.flatMap(\.madeKeys).compactMap { $0 }
        #expect(Set(keys).count == 6 && keys.allSatisfy { $0.count == 16 && $0[8] & 0xC0 == 0x80 })
        #expect(keys.map { $0[6] >> 4 } == [8, 8, 8, 4, 4, 8])
    }

    @Test("a lower batch number that is decided again does not set the import back, also after a restart")
    func lowerNumber() throws {
        let driver = try Books.library([])
        let origin = try begin(driver)
        for batch in 1...3 { try driver.write([.book(batch, "b")], origin: origin, batchNumber: UInt64(batch)) }
        try driver.write([.book(9, "late")], origin: origin, batchNumber: 1)
        try driver.commitAll()
        #expect(driver.store.core.origins.lastBatch[origin] == 3)
        try driver.reopen()
        #expect(driver.store.core.origins.lastBatch[origin] == 3)
    }
}

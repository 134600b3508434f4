// Imports: whose origin they have, what is a duplicate, and from which batch they go on.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct ImportTests {
    private func begin(_ driver: StoreDriver, _ token: String) throws -> (
        origin: UInt64, lastBatch: UInt64, isResumed: Bool
    ) {
        let begun = try driver.store.beginImport(programName: "importer", source: "file", token: token, now: driver.now)
        return try #require(begun)
    }

    @Test("an import goes on behind its last durable batch, also after a restart")
    func resumed() throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 1))
        let first = try begin(driver, "t")
        #expect(!first.isResumed && first.lastBatch == 0)
        for batch in 1...3 as ClosedRange<UInt64> {
            try driver.write([.book(Int(batch), "b")], origin: first.origin, batchNumber: batch)
            if batch == 2 { try driver.commitAll() }
        }
        // The third is staged and not durable.
        let second = try begin(driver, "t")
        #expect(second.isResumed && second.origin == first.origin && second.lastBatch == 2)
        try driver.commitAll()
        #expect(try begin(driver, "t").lastBatch == 3)
        try driver.reopen()
        let third = try begin(driver, "t")
        #expect(third.isResumed && third.origin == first.origin && third.lastBatch == 3)
        #expect(driver.store.isOpenImport(first.origin))
    }

    @Test("an import that ended begins anew, with an origin of its own")
    func ended() throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 1))
        let first = try begin(driver, "t")
        try driver.write([.book(1, "b")], origin: first.origin, batchNumber: 1)
        _ = try driver.store.endImport(
            origin: first.origin, outcome: 1, counts: [1, 1, 0, 0, 0, 0, 0, 0], now: driver.now)
        let second = try begin(driver, "t")
        #expect(!second.isResumed && second.origin != first.origin && second.lastBatch == 0)
        try driver.reopen()
        #expect(!driver.store.isOpenImport(first.origin) && driver.store.isOpenImport(second.origin))
        #expect(try begin(driver, "t").origin == second.origin)
    }

    @Test("the first row of a key in an import wins, wherever it lies")
    func duplicates() throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 1))
        try driver.write([.book(1, "by hand"), .book(2, "by hand")])
        try driver.commitAll()
        let origin = try begin(driver, "").origin
        // In the batch, in what is staged, in what is under way, in what is durable.
        #expect(
            try driver.write([.book(1, "a"), .book(1, "b"), .book(3, "c")], origin: origin).outcomes == [
                .updated, .duplicate, .created,
            ])
        #expect(try driver.write([.book(1, "d"), .book(3, "d")], origin: origin).outcomes == [.duplicate, .duplicate])
        driver.take()
        #expect(try driver.write([.book(1, "e")], origin: origin).outcomes == [.duplicate])
        driver.finish()
        #expect(try driver.write([.book(3, "f"), .book(2, "g")], origin: origin).outcomes == [.duplicate, .updated])
        // Another import is not bound by it.
        let other = try begin(driver, "").origin
        #expect(other != origin)
        #expect(try driver.write([.book(1, "h")], origin: other).outcomes == [.updated])
        try driver.reopen()
        #expect(try driver.write([.book(2, "i"), .book(1, "j")], origin: origin).outcomes == [.duplicate, .updated])
        try driver.commitAll()
        try driver.compareAll([])
    }
}

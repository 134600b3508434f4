// The stream of events from the disk, where it lies far apart or is read in pieces.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct StreamTests {
    /// Books far apart among jokes, over many windows of the log.
    private func sparse(_ files: SimulatedFiles, segment: Int) throws -> StoreDriver {
        let driver = try StoreDriver(files, options: StoreDriver.options(segment: segment))
        let body = Encode.text(String(repeating: "ha ", count: 20_000))
        for n in 0..<60 {
            try driver.write([.book(n + 1, "book")])
            try driver.write((0..<3).map { .save(TestKinds.joke, [1: Encode.uuid(UInt64(n * 3 + $0)), 2: body]) })
            if n % 5 == 0 { try driver.commitAll() }
        }
        try driver.reopen()
        return driver
    }

    @Test(
        "events far apart are given as they lie, in one call or many", arguments: [65_536, 67_108_864],
        [100, 1_000_000])
    func sparse(segment: Int, budget: Int) throws {
        let files = SimulatedFiles(seed: 1)
        let driver = try sparse(files, segment: segment)
        for percent in [0, 50] {
            files.setBlockingReads(percent: percent)
            var filter = EntryFilter(types: 3)
            filter.kinds = [2]
            var reader = Subscriber(driver.store, after: 0, filter)
            try reader.readToEnd(driver, budget: budget)
            try reader.compare(driver.model, isAtEnd: true)
            #expect(reader.received.count == 60)
        }
    }

    @Test("a subscriber with a budget of one byte gets every entry, one at a time")
    func smallestBudget() throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 1))
        try driver.write((1...50).map { .book($0, "b") })
        try driver.commitAll()
        var reader = Subscriber(driver.store, after: 0)
        var calls = 0
        while try !reader.step(driver, budget: 1) { calls += 1 }
        #expect(calls >= 49)
        try reader.compare(driver.model, isAtEnd: true)
    }

    @Test("a snapshot gives what is current when it is sent, and all that changed after it began")
    func snapshot() throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 1), options: StoreDriver.options(segment: 8192))
        for round in 0..<6 {
            try driver.write((1...20).map { .book($0, "round \(round)") })
            try driver.commitAll()
        }
        let start = driver.store.lastSeq
        var reader = Subscriber(driver.store, after: 0, snapshotSeq: start)
        for round in 0..<20 {
            _ = try reader.step(driver, budget: 200)
            try driver.write([.book(round + 1, "during"), .deleteBook(20 - round), .book(100 + round, "new")])
            try driver.commitAll()
        }
        try reader.readToEnd(driver)
        try reader.compare(driver.model, isAtEnd: true)
        // Nothing that had been superseded long before.
        #expect(reader.received.filter { $0.seq <= start }.count <= 20)
    }

    @Test("a cursor of another history, or beyond the end, has expired")
    func expired() throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 1))
        try driver.write([.book(1, "b")])
        try driver.commitAll()
        let (epoch, last) = (driver.store.epoch, driver.store.lastSeq)
        #expect(driver.store.check(epoch: epoch, seq: last) == .good)
        #expect(driver.store.check(epoch: epoch, seq: 0) == .good)
        #expect(driver.store.check(epoch: epoch, seq: last + 1) == .expired)
        #expect(driver.store.check(epoch: epoch, seq: UInt64.max) == .expired)
        #expect(driver.store.check(epoch: epoch &+ 1, seq: last) == .expired)
    }
}

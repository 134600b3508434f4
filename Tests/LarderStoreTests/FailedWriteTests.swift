// A failed write or sync is final: nothing of it is seen, reads go on, and a restart says what became of it.

import Glibc
import Testing

@testable import LarderStore

@Suite struct FailedWriteTests {
    static let keys = (1...3).map { RecordKey(kind: 2, bytes: Encode.key(TestOp.book($0, "").fields, TestKinds.book)) }

    /// A library with two records, on a disk that then fails so.
    static func failing(_ fault: SimulatedFault, then ops: [TestOp]) throws -> (SimulatedFiles, StoreDriver) {
        let files = SimulatedFiles(seed: 1)
        let driver = try StoreDriver(files)
        try driver.write([.book(1, "one"), .book(2, "two")])
        try driver.commitAll()
        files.inject(fault)
        try driver.write(ops)
        #expect(driver.take())
        driver.finish()
        #expect(driver.failure?.code == fault.code)
        return (files, driver)
    }

    static func expectReadOnly(_ driver: StoreDriver) {
        #expect(driver.store.failure != nil)
        #expect(throws: StoreError.readOnly(reason: driver.store.failure ?? "")) {
            try driver.write([.book(9, "nine")])
        }
        #expect(driver.store.takeCommit() == nil)
    }

    @Test(
        "after a failed call nothing is visible, reads go on, and writes are refused",
        arguments: ["pwrite", "fdatasync"])
    func nothingIsVisible(call: String) throws {
        let (_, driver) = try Self.failing(SimulatedFault(call: call, pathSuffix: ".seg"), then: [.book(3, "three")])
        try driver.compareAll(Self.keys)
        #expect(try driver.get(Self.keys[2]) == nil)
        var reader = Subscriber(driver.store, after: 0)
        try reader.readToEnd(driver)
        try reader.compare(driver.model, isAtEnd: true)
        #expect(reader.received.count == 2)
        Self.expectReadOnly(driver)
    }

    @Test("a failed delete emits nothing and the record stays listed", arguments: ["pwrite", "fdatasync"])
    func failedDelete(call: String) throws {
        let (_, driver) = try Self.failing(SimulatedFault(call: call, pathSuffix: ".seg"), then: [.deleteBook(1)])
        #expect(try driver.list(kind: 2, isReverse: false, pageLimit: 10).count == 2)
        var reader = Subscriber(driver.store, after: 0)
        try reader.readToEnd(driver)
        #expect(!reader.received.contains { $0.type == 3 })
        Self.expectReadOnly(driver)
    }

    @Test("what was staged behind a failed commit fails with it")
    func stagedBehind() throws {
        let files = SimulatedFiles(seed: 2)
        let driver = try StoreDriver(files)
        try driver.write([.book(1, "one")])
        #expect(driver.take())
        let answer = try driver.write([.book(1, "one"), .book(2, "two")])
        #expect(answer.outcomes == [.unchanged, .created])
        files.inject(SimulatedFault(call: "fdatasync"))
        driver.finish()
        #expect(driver.failure != nil)
        try driver.compareAll(Self.keys)
        Self.expectReadOnly(driver)
    }

    @Test("a block that survived a failed sync is an ordinary entry after a restart")
    func survivor() throws {
        let (files, driver) = try Self.failing(
            SimulatedFault(call: "fdatasync", pathSuffix: ".seg"), then: [.book(3, "three")])
        driver.store.close()
        let again = try StoreDriver(files, model: driver.model, now: 2_000_000)
        #expect(try again.get(Self.keys[2]) != nil)
        var reader = Subscriber(again.store, after: again.model.events.last?.seq ?? 0)
        try reader.readToEnd(again)
        #expect(reader.received.map(\.key) == [Self.keys[2]])
        #expect(again.store.report.cutByteCount == 0)
    }

    @Test("a short write leaves a tail that is cut and kept aside, and its seqs are not used again")
    func shortWrite() throws {
        let large = String(repeating: "x", count: 20_000)
        let (files, driver) = try Self.failing(
            SimulatedFault(call: "pwrite", code: ENOSPC, isShort: true), then: [.book(3, large)])
        #expect(driver.store.failureCode == ENOSPC)
        let lastSeq = driver.store.lastSeq
        driver.store.close()
        let again = try StoreDriver(files, model: driver.model, now: 2_000_000)
        try again.compareAll(Self.keys)
        let report = again.store.report
        #expect(report.cutByteCount > 0)
        #expect(files.content(report.asidePath)?.count == report.cutByteCount)
        #expect(report.gapFrom == lastSeq + 1 && report.gapThrough == lastSeq + (1 << 20))
        let answer = try again.write([.book(3, "three")])
        #expect(answer.seqs[0] > report.gapThrough)
    }

    @Test("a clear whose write fails clears nothing, also after a restart", arguments: 0..<4)
    func failedClear(before: Int) throws {
        let files = SimulatedFiles(seed: 3)
        var options = StoreDriver.options()
        options.commitByteCountTarget = 400
        let driver = try StoreDriver(files, options: options)
        try driver.write((1...60).map { .book($0, "b") })
        try driver.commitAll()
        files.inject(SimulatedFault(call: "pwrite", callsBefore: before))
        #expect(throws: StoreError.self) { try driver.clear(kind: 0) }
        try driver.compareAll([])
        driver.store.close()
        let again = try StoreDriver(files, options: options, model: driver.model, now: 2_000_000)
        try again.compareAll([])
        #expect(again.store.counts(kind: 2).first?.count == 60)
    }
}

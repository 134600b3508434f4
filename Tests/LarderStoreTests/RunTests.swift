// Batches and clears that lie in several blocks: all of a run counts, or nothing.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct RunTests {
    /// Books of about 300 kB; from 14 on they are over 4 MiB, so a run.
    private func large(_ count: Int) -> [TestOp] {
        (0..<count).map { .book(100 + $0, String(repeating: "0123456789", count: 30_000)) }
    }

    private func library(_ segment: Int) throws -> DamagedLibrary {
        try DamagedLibrary([[.book(1, "before")], large(30)], options: StoreDriver.options(segment: segment))
    }

    private func segments(_ files: SimulatedFiles) throws -> [String] {
        try (files.list("library/log") ?? []).sorted().map { "library/log/" + $0 }
    }

    @Test("a run is read whole, within a segment and across several", arguments: [67_108_864, 4_194_304, 65_536])
    func whole(segment: Int) throws {
        let library = try library(segment)
        let driver = try library.open()
        #expect(driver.store.report.cutByteCount == 0)
        try driver.compareAll([])
        var reader = Subscriber(driver.store, after: 0)
        try reader.readToEnd(driver)
        try reader.compare(driver.model, isAtEnd: true)
    }

    @Test("a run without its last block is cut from its first on", arguments: [67_108_864, 4_194_304, 65_536])
    func unfinished(segment: Int) throws {
        var library = try library(segment)
        guard let last = try segments(library.files).last else { return }
        library.spoil(last) { $0.removeLast(4096) }
        library.expectLast(30)
        let driver = try library.open()
        #expect(driver.store.report.cutByteCount > 0 && driver.store.report.lostSpans.isEmpty)
        try driver.compareAll([])
        var reader = Subscriber(driver.store, after: 0)
        try reader.readToEnd(driver)
        #expect(reader.received.count == 1)
        try driver.write([.book(2, "after")])
        try driver.reopen()
        try driver.compareAll([])
    }

    @Test("a run with a torn block in its midst is cut from its first on", arguments: [67_108_864, 4_194_304])
    func tornMiddle(segment: Int) throws {
        var library = try library(segment)
        let files = try segments(library.files)
        let middle = files[files.count / 2]
        library.spoil(middle) { $0[$0.count / 2] ^= 0x10 }
        library.expectLast(30)
        let driver = try library.open()
        try driver.compareAll([])
        #expect(driver.store.counts(kind: 2).map(\.count) == [1])
    }

    @Test("a run of which a whole file is missing is cut from its first on")
    func missingFile() throws {
        var library = try library(4_194_304)
        let files = try segments(library.files)
        #expect(files.count >= 3)
        try library.files.remove(files[files.count - 2])
        library.expectLast(30)
        let driver = try library.open()
        try driver.compareAll([])
        #expect(driver.store.report.lostSpans.isEmpty)
    }

    @Test("a batch whose result may pass 16 MiB is refused as a whole")
    func tooLarge() throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 1))
        #expect(try driver.write(large(60)).staged == .tooLarge)
        try driver.write(large(40))
        try driver.commitAll()
        try driver.compareAll([])
    }

    @Test("small merges onto a large record that is pending count as what they become")
    func mergesOntoPending() throws {
        let text = String(repeating: "0123456789", count: 90_000)
        let merges = (0..<100).map { number in
            TestOp.save(
                TestKinds.book, [1: Encode.text("isbn"), 2: Encode.identifier(7), 5: Encode.int(Int64(number))], .merge)
        }
        let driver = try StoreDriver(SimulatedFiles(seed: 1))
        #expect(try driver.write([.book(7, text)] + merges).staged == .tooLarge)
        try driver.write([.book(7, text)])
        #expect(try driver.write(merges).staged == .tooLarge)
        try driver.write(Array(merges.prefix(10)))
        try driver.commitAll()
        try driver.compareAll([])
    }

    @Test("a record of exactly 1 MiB is stored, one byte more is refused")
    func largestRecord() throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 1))
        var op = TestOp.book(1, "")
        let rest = op.payload.count + 2
        op.fields[3] = Encode.text(String(repeating: "x", count: recordByteCountMax - rest))
        #expect(op.payload.count == recordByteCountMax)
        var larger = TestOp.book(2, "")
        larger.fields[3] = Encode.text(String(repeating: "x", count: recordByteCountMax - rest + 1))
        let answer = try driver.write([op, larger])
        #expect(answer.outcomes == [.created, .refused])
        try driver.reopen()
        try driver.compareAll([])
    }

    @Test("clearing a kind that is not declared clears nothing")
    func clearUnknownKind() throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 1))
        try driver.write([.book(1, "a"), .book(2, "b")])
        try driver.clear(kind: 77)
        try driver.compareAll([])
        #expect(driver.store.counts(kind: 2).map(\.count) == [2])
    }

    @Test("a commit asked for while a clear waits for the disk does not end its run")
    func commitDuringClear() throws {
        let files = SimulatedFiles(seed: 1)
        let driver = try StoreDriver(files)
        try driver.write((1...50).map { .book($0, "b") })
        try driver.reopen()
        files.setBlockingReads(percent: 100)
        try driver.clear(kind: 0)
        files.setBlockingReads(percent: 0)
        try driver.compareAll([])
        try driver.reopen()
        try driver.compareAll([])
    }

    @Test("records with keys larger than a block's room are cleared", arguments: [65_536, 67_108_864])
    func clearLargeKeys(segment: Int) throws {
        var options = StoreDriver.options(segment: segment)
        options.commitByteCountTarget = 100_000
        let driver = try StoreDriver(SimulatedFiles(seed: 1), options: options)
        for id in 1...5 {
            var op = TestOp.book(id, "large key")
            op.fields[1] = Encode.text(String(repeating: "k", count: id % 3 == 0 ? 900_000 : 100_000))
            try driver.write([op])
            try driver.commitAll()
        }
        try driver.clear(kind: 2)
        try driver.compareAll([])
        try driver.reopen()
        try driver.compareAll([])
        var reader = Subscriber(driver.store, after: 0)
        try reader.readToEnd(driver)
        try reader.compare(driver.model, isAtEnd: true)
    }

    @Test("a run that cannot go on in another file fails, and nothing of it is there after a restart")
    func failedInMidst() throws {
        let files = SimulatedFiles(seed: 1)
        let driver = try StoreDriver(files, options: StoreDriver.options(segment: 1 << 20))
        try driver.write([.book(1, "before")])
        #expect(driver.take())
        files.inject(SimulatedFault(call: "open", callsBefore: 2, code: 24))
        #expect(throws: StoreError.self) { try driver.write(large(30)) }
        driver.finish()
        #expect(driver.failure == nil && driver.store.failureCode == 24)
        #expect(throws: StoreError.self) { try driver.write([.book(2, "after")]) }
        #expect(!driver.take())
        try driver.compareAll([])
        driver.store.close()
        let again = try StoreDriver(files, options: driver.options, model: driver.model, now: 5_000_000)
        try again.compareAll([])
        #expect(again.store.counts(kind: 2).map(\.count) == [1])
    }
}

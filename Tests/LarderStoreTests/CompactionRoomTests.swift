// Compaction on a full disk: it makes room out of the reserve, leaves what does not fit into it, and deletes go on.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct CompactionRoomTests {
    private static let large = String(repeating: "x", count: 20_000)

    private func library(reserve: Int = 65_536) throws -> StoreDriver {
        var options = StoreDriver.options(segment: 262_144)
        options.reserveByteCount = reserve
        return try StoreDriver(SimulatedFiles(seed: 1), options: options)
    }

    private func commit(_ driver: StoreDriver, _ ops: [TestOp]) throws {
        try driver.write(ops)
        try driver.commitAll()
    }

    /// Leaves no byte of room, and fills what is laid out with versions of one record.
    private func fillDisk(_ driver: StoreDriver) throws -> SimulatedFiles {
        let files = try #require(driver.files as? SimulatedFiles)
        files.setRoom(byteCountMax: files.usedByteCount)
        for round in 0..<100 {
            do { try commit(driver, [.book(9_000, "\(round) \(Self.large)")]) } catch StoreError.full {
                #expect(driver.store.fullReason(now: driver.now) != nil)
                return files
            }
        }
        throw Mismatch("the disk is never full")
    }

    private func all(_ change: (inout CompactionRequest) -> Void = { _ in }) -> CompactionRequest {
        var request = CompactionRequest()
        request.includesLast = true
        change(&request)
        return request
    }

    private func expectSaving(_ driver: StoreDriver) throws {
        #expect(driver.store.fullReason(now: driver.now) == nil)
        try commit(driver, (1...3).map { .book(8_000 + $0, Self.large) })
        try driver.compareAll([])
        try driver.reopen()
        try driver.compareAll([])
    }

    @Test("what stays of a segment is written in the room of the reserve, and saving goes on by itself")
    func makesRoom() throws {
        let driver = try library()
        for round in 0..<14 { try commit(driver, (1...8).map { .book($0, "\(round) \(Self.large)") }) }
        let files = try fillDisk(driver)
        let used = files.usedByteCount
        let segmentCount = driver.store.segmentCount
        let report = try driver.compact(all())
        #expect(report.rewrittenCount >= segmentCount - 1)
        #expect(files.usedByteCount * 2 < used)
        try expectSaving(driver)
    }

    @Test("deletes are taken before, during and after", arguments: [65_536, 262_144])
    func deletes(reserve: Int) throws {
        let driver = try library(reserve: reserve)
        for first in stride(from: 1, to: 400, by: 10) {
            try commit(driver, (first..<first + 10).map { .book($0, "b") })
        }
        for round in 0..<14 { try commit(driver, (1...8).map { .book($0, "\(round) \(Self.large)") }) }
        _ = try fillDisk(driver)
        let request = all()
        #expect(driver.store.beginCompaction(request) == nil)
        driver.model.historySeq = driver.store.floor(for: request)
        var next = 20
        var refused = 0
        while driver.store.isCompacting {
            // Once between any two steps, with a job out too.
            do { try commit(driver, [.deleteBook(next)]) } catch StoreError.full { refused += 1 }
            next += 1
            try driver.stepCompaction()
        }
        #expect(next > 60 && refused == 0)
        #expect(driver.compactionFailureCount == 0, "\(driver.compactionFailure)")
        try commit(driver, [.deleteBook(next)])
        try expectSaving(driver)
    }

    @Test("a segment that does not fit into the reserve is left until others have made room")
    func leavesLarge() throws {
        let driver = try library()
        // The first segments are as good as current: more stays of each than the reserve has.
        for id in 100..<148 { try commit(driver, [.book(id, Self.large)]) }
        for id in stride(from: 100, to: 148, by: 6) { try commit(driver, [.deleteBook(id)]) }
        for round in 0..<14 { try commit(driver, (1...8).map { .book($0, "\(round) \(Self.large)") }) }
        let files = try fillDisk(driver)
        let used = files.usedByteCount
        let segmentCount = driver.store.segmentCount
        let report = try driver.compact(all())
        #expect(report.rewrittenCount == segmentCount && report.doneCount == segmentCount)
        #expect(files.usedByteCount < used)
        try expectSaving(driver)
    }

    @Test("a purge that leaves a segment until there is room takes the deletes behind it then")
    func purgesLarge() throws {
        let driver = try library()
        try commit(driver, [.book(777, "a secret title")])
        for id in 100..<148 { try commit(driver, [.book(id, Self.large)]) }
        for round in 0..<14 {
            try commit(driver, (1...8).map { .book($0, "\(round) \(Self.large)") })
            // In a segment of which nothing else stays.
            if round == 4 { try commit(driver, [.deleteBook(777)]) }
        }
        let files = try fillDisk(driver)
        let key = TestOp.book(777, "").key
        let request = all { $0.purged = [PurgedKey(kind: key.kind, key: key.bytes)] }
        #expect(driver.store.beginCompaction(request) == nil)
        driver.model.historySeq = driver.store.floor(for: request)
        driver.model.purged[key] = driver.store.lastSeq
        var rewrites: [UInt32] = []
        while driver.store.isCompacting {
            switch driver.store.stepCompaction(now: driver.now) {
            case .commit: if driver.inFlight != nil { driver.finish() } else { _ = driver.take() }
            case .job(let job):
                if case .rewrite(let listing, _, _) = job.work {
                    // What the end of the last segment has given back is gone when the first is to be rewritten.
                    if rewrites.isEmpty { files.setRoom(byteCountMax: files.usedByteCount) }
                    rewrites.append(listing.number)
                }
                driver.store.finish(job.run())
            case .progress, .finished: break
            case .failed(let reason, _): throw Mismatch(reason)
            }
        }
        #expect(rewrites.count { $0 == 1 } == 2)
        try driver.checkWholeLog()
        for name in try #require(try files.list("library/log")) {
            let bytes = files.content("library/log/" + name) ?? []
            let isThere = (0..<max(0, bytes.count - key.bytes.count)).contains {
                bytes[$0] == key.bytes[0] && bytes[$0..<$0 + key.bytes.count].elementsEqual(key.bytes)
            }
            #expect(!isThere, "\(name)")
        }
        try expectSaving(driver)
    }

    @Test("where nothing fits and nothing is freed, it ends for want of room, and nothing has changed")
    func nothingFits() throws {
        let driver = try library(reserve: 32_768)
        for id in 100..<148 { try commit(driver, [.book(id, Self.large)]) }
        let files = try #require(driver.files as? SimulatedFiles)
        files.setRoom(byteCountMax: files.usedByteCount)
        var id = 200
        while (try? commit(driver, [.book(id, Self.large)])) != nil { id += 1 }
        for id in stride(from: 100, to: 148, by: 6) { try commit(driver, [.deleteBook(id)]) }
        var request = all()
        request.includesLast = false
        #expect(driver.store.beginCompaction(request) == nil)
        driver.model.historySeq = driver.store.floor(for: request)
        while driver.store.isCompacting { try driver.stepCompaction() }
        #expect(driver.compactionFailureCount == 1 && driver.compactionFailure.contains("No space left"))
        #expect(driver.store.failure == nil)
        try driver.checkWholeLog()
        try commit(driver, [.deleteBook(101)])
        files.setRoom(byteCountMax: nil)
        try driver.compact(all())
        try expectSaving(driver)
    }

    @Test("a purge ends the segment that is written in half of the reserve, and takes every byte")
    func purges() throws {
        let driver = try library()
        try commit(driver, [.book(777, "a secret title")])
        for round in 0..<14 { try commit(driver, (1...8).map { .book($0, "\(round) \(Self.large)") }) }
        let files = try fillDisk(driver)
        try commit(driver, [.deleteBook(777)])
        let key = TestOp.book(777, "").key
        try driver.compact(all { $0.purged = [PurgedKey(kind: key.kind, key: key.bytes)] })
        for name in try #require(try files.list("library/log")) {
            let bytes = files.content("library/log/" + name) ?? []
            let isThere = (0..<max(0, bytes.count - 14)).contains {
                bytes[$0] == UInt8(ascii: "a") && bytes[$0..<$0 + 14].elementsEqual("a secret title".utf8)
            }
            #expect(!isThere, "\(name)")
        }
        try expectSaving(driver)
    }

    @Test("a purge that cannot end the segment that is written says so, instead of leaving the key there")
    func purgeWithoutReserve() throws {
        let driver = try library(reserve: 0)
        try commit(driver, [.book(777, "a secret title"), .deleteBook(777)])
        try commit(driver, [.book(777, "a secret title")])
        try commit(driver, [.deleteBook(777)])
        let files = try #require(driver.files as? SimulatedFiles)
        let path = "library/log/" + Segment.name(1)
        // Not even what is laid out would be had again.
        files.setRoom(byteCountMax: 4096)
        let key = TestOp.book(777, "").key
        var request = all()
        request.purged = [PurgedKey(kind: key.kind, key: key.bytes)]
        let before = files.content(path)
        #expect(driver.store.beginCompaction(request) == nil)
        while driver.store.isCompacting { try driver.stepCompaction() }
        #expect(driver.compactionFailureCount == 1 && driver.store.failure == nil)
        #expect(files.content(path) == before)
    }
}

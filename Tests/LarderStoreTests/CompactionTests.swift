// Compaction by itself: what goes, what stays, what it costs, and what a purge leaves.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct CompactionTests {
    private func books(_ range: Range<Int>, _ title: String) -> [TestOp] { range.map { .book($0, "\(title) \($0)") } }

    /// A library of some segments, most of which is not current any more.
    private func churned() throws -> StoreDriver {
        let driver = try StoreDriver(SimulatedFiles(seed: 1), options: StoreDriver.options(segment: 65_536))
        for round in 0..<6 {
            for first in stride(from: 1, to: 401, by: 40) {
                try driver.write(books(first..<first + 40, "title of round \(round)"))
                try driver.commitAll()
            }
        }
        try driver.write((1..<301).map { .deleteBook($0) })
        try driver.commitAll()
        return driver
    }

    private func all(_ change: (inout CompactionRequest) -> Void = { _ in }) -> CompactionRequest {
        var request = CompactionRequest()
        request.includesLast = true
        change(&request)
        return request
    }

    private func liveByteCount(_ driver: StoreDriver) -> Int {
        driver.model.visible.values.reduce(0) { $0 + Encode.record($1.fields).count + 24 }
    }

    @Test("what is not current goes, also the deletes, and everything is read as before")
    func everything() throws {
        let driver = try churned()
        let segmentCount = driver.store.segmentCount
        #expect(segmentCount > 3)
        let report = try driver.compact(all())
        #expect(report.byteCountBefore > 4 * report.byteCountAfter)
        #expect(report.rewrittenCount == segmentCount && report.droppedCount >= 2400 + 300 - 100)
        #expect(driver.model.events.count == 100, "the records that are there, and no delete")
        try driver.compareAll(OperationSource.keys)
        try driver.reopen()
        try driver.compareAll(OperationSource.keys)
        let verified = try LogSource(library: driver.path, files: driver.files).verify()
        #expect(verified.damages == [] && verified.recordCount == 100)
        // Nothing is left to gain.
        #expect(try driver.compact(all { $0.includesLast = false }).rewrittenCount == 0)
    }

    @Test("a segment that small commits have filled with padding ends early, and is joined")
    func padding() throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 1), options: StoreDriver.options(segment: 64 << 20))
        for number in 1...1_400 {
            try driver.write([.book(1 + number % 900, "title \(number)")])
            try driver.commitAll()
        }
        // Blocks of 4 KiB with 0.2 KiB in them: it ends behind the fifth megabyte.
        #expect(driver.store.segmentCount == 2)
        let report = try driver.compact(all { $0.includesLast = false })
        #expect(report.byteCountAfter < report.byteCountBefore / 4)
        try driver.compareAll(OperationSource.keys)
        try driver.reopen()
        try driver.compareAll(OperationSource.keys)
    }

    @Test("a cursor behind the floor expires, one at it goes on")
    func floor() throws {
        let driver = try churned()
        let before = driver.store.lastSeq
        let report = try driver.compact(all())
        #expect(report.floor == before + 1 && driver.store.floor == before + 1)
        #expect(driver.store.check(epoch: driver.store.epoch, seq: before) == .good)
        #expect(driver.store.check(epoch: driver.store.epoch, seq: before - 1) == .expired)
        try driver.reopen()
        #expect(driver.store.check(epoch: driver.store.epoch, seq: before - 1) == .expired)
    }

    @Test("what is superseded in the history that is kept stays")
    func history() throws {
        let driver = try churned()
        try driver.write(books(350..<401, "later"))
        try driver.commitAll()
        let since = driver.now
        try driver.write(books(350..<360, "latest"))
        try driver.commitAll()
        try driver.compact(all { $0.keepsHistorySince = since })
        let titles = driver.model.events.filter { $0.type != EntryType.deleted }.count
        // 100 records, and the ten versions that the latest ten superseded.
        #expect(titles == 110)
    }

    @Test("a subscriber that has not had everything keeps the floor down")
    func bound() throws {
        let driver = try churned()
        var subscriber = Subscriber(driver.store, after: 100)
        _ = try subscriber.step(driver, budget: 1)
        let had = subscriber.cursor.seq
        let report = try driver.compact(all { $0.floorMax = had + 1 })
        #expect(report.floor == had + 1)
        try subscriber.readToEnd(driver)
        try subscriber.compare(driver.model, isAtEnd: true)
    }

    @Test("a purged key is in no byte of the library any more")
    func purge() throws {
        let driver = try churned()
        try driver.write([.book(777, "a secret title"), .book(778, "another one")])
        try driver.commitAll()
        try driver.write([.book(777, "a secret title, changed")])
        try driver.write([.deleteBook(777)])
        try driver.commitAll()
        try driver.reopen()
        let key = TestOp.book(777, "").key
        let request = all {
            $0.purged = [PurgedKey(kind: key.kind, key: key.bytes)]
            $0.keepsHistorySince = 0
            $0.deadShareMin = 0.9
        }
        try driver.compact(request)
        let files = try #require(driver.files as? SimulatedFiles)
        for name in try #require(try files.list("library/log")).map({ "log/" + $0 }) + ["checkpoint", "larder"] {
            let bytes = files.content("library/" + name) ?? []
            #expect(!holds(bytes, Array("a secret title".utf8)), "\(name)")
            #expect(!holds(bytes, key.bytes), "\(name)")
        }
        #expect(driver.model.events.contains { $0.key == TestOp.book(778, "").key })
        try driver.reopen()
        try driver.compareAll([key])
    }

    private func holds(_ bytes: [UInt8], _ wanted: [UInt8]) -> Bool {
        guard bytes.count >= wanted.count else { return false }
        return (0...bytes.count - wanted.count).contains {
            bytes[$0] == wanted[0] && bytes[$0..<$0 + wanted.count].elementsEqual(wanted)
        }
    }

    @Test("a purge that has to leave a segment leaves the deletes behind it: nothing rises from what was left")
    func purgeBehindDamage() throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 1), options: StoreDriver.options(segment: 65_536))
        try driver.write([.book(777, "a secret title")])
        for round in 0..<6 {
            for first in stride(from: 1, to: 401, by: 40) {
                try driver.write(books(first..<first + 40, "title of round \(round)"))
                try driver.commitAll()
            }
        }
        try driver.write([.deleteBook(777)])
        try driver.commitAll()
        #expect(driver.store.segmentCount > 2)
        let key = TestOp.book(777, "").key
        let request = all { $0.purged = [PurgedKey(kind: key.kind, key: key.bytes)] }
        #expect(driver.store.beginCompaction(request) == nil)
        driver.model.historySeq = driver.store.floor(for: request)
        let files = try #require(driver.files as? SimulatedFiles)
        let first = "library/log/" + Segment.name(1)
        var failure: String?
        while failure == nil {
            switch driver.store.stepCompaction(now: driver.now) {
            case .commit: if driver.inFlight != nil { driver.finish() } else { _ = driver.take() }
            case .job(let job):
                guard case .list(1, _) = job.work, var bytes = files.content(first) else {
                    driver.store.finish(job.run())
                    continue
                }
                // What the disk did not give once it gives again.
                let whole = bytes
                bytes[100] ^= 1
                files.setContent(first, bytes)
                driver.store.finish(job.run())
                files.setContent(first, whole)
            case .progress: break
            case .failed(let reason, _): failure = reason
            case .finished: throw Mismatch("nothing was left")
            }
        }
        #expect(failure?.contains("may hold what was to be purged") == true)
        try driver.checkWholeLog()
        try driver.reopen()
        try driver.compareAll([key])
        // Once it can be read everything goes.
        try driver.compact(request)
        for name in try #require(try files.list("library/log")) {
            #expect(!holds(files.content("library/log/" + name) ?? [], key.bytes), "\(name)")
        }
    }

    @Test("a key that is in the library is not purged")
    func purgeOfLive() throws {
        let driver = try churned()
        let key = TestOp.book(399, "").key
        #expect(throws: Mismatch.self) {
            try driver.compact(all { $0.purged = [PurgedKey(kind: key.kind, key: key.bytes)] })
        }
        #expect(!driver.store.isCompacting)
        driver.model.purged = [:]
        try driver.compareAll([key])
    }

    @Test("a segment with damage stays as it is, and so do the deletes behind it", arguments: [false, true])
    func damage(isInHistory: Bool) throws {
        let driver = try churned()
        let since = driver.store.core.segments[1].commits.first?.time ?? 0
        let files = try #require(driver.files as? SimulatedFiles)
        driver.store.close()
        let path = "library/log/00000002.seg"
        var bytes = try #require(files.content(path))
        bytes[10_000] ^= 1
        files.setContent(path, bytes)
        try files.remove("library/checkpoint")
        let again = try StoreDriver(files, options: driver.options, model: driver.model, now: driver.now)
        let lost = again.store.report.lostSpans
        #expect(lost.count == 1)
        var request = all()
        request.deadShareMin = 0
        if isInHistory { request.keepsHistorySince = since }
        #expect(again.store.beginCompaction(request) == nil)
        var isDone = false
        while !isDone {
            switch again.store.stepCompaction(now: again.now) {
            case .commit: if again.inFlight != nil { again.finish() } else { again.take() }
            case .job(let job): again.store.finish(job.run())
            case .progress: break
            case .finished(let report):
                isDone = true
                #expect(report.droppedCount > 0 && report.unfitCount >= 1)
            case .failed(let reason, _):
                isDone = true
                Issue.record("\(reason)")
            }
        }
        #expect(files.content(path) == bytes)
        var reader = Subscriber(again.store, after: 0)
        try reader.readToEnd(again)
        #expect(reader.received.filter { $0.type == EntryType.deleted }.count == 300)
        again.store.close()
        let third = try StoreDriver(files, options: driver.options, model: driver.model, now: driver.now)
        #expect(third.store.report.lostSpans.map(\.segment) == lost.map(\.segment))
        try third.compareAll([])
    }

    @Test("a rewritten segment that has lost its end is told from a whole one")
    func cutEnd() throws {
        let options = StoreDriver.options(segment: 4_194_304)
        let driver = try StoreDriver(SimulatedFiles(seed: 1), options: options)
        // A rewritten segment of several blocks, and another one behind it.
        for first in stride(from: 1, to: 9_000, by: 400) {
            try driver.write(books(first..<first + 400, String(repeating: "long ", count: 100)))
            try driver.write((first..<first + 40).map { .deleteBook($0) })
            try driver.commitAll()
        }
        try driver.compact(all())
        driver.store.close()
        let files = try #require(driver.files as? SimulatedFiles)
        try files.remove("library/checkpoint")
        let path = try #require(
            try files.list("library/log")?.filter { $0.hasSuffix(".seg") }.sorted().map { "library/log/" + $0 }.first {
                (files.content($0)?.count ?? 0) > 4096
            })
        let bytes = try #require(files.content(path))
        // Everything but the last block's flag of the end.
        var last = 0
        for at in stride(from: 0, to: bytes.count, by: 4096) {
            let isBlock = Array(bytes[at..<at + 4]) == [0x4C, 0x52, 0x44, 0x42]
            if isBlock && bytes[at + 5] & 16 != 0 { last = at }
        }
        files.setContent(path, Array(bytes[..<last]))
        let verified = try LogSource(library: "library", files: files).verify()
        #expect(last > 0)
        #expect(verified.damages.map(\.cause) == [.cutSegment])
        let again = try StoreDriver(files, options: options, model: driver.model, now: driver.now)
        #expect(again.store.report.lostSpans.count == 1)
    }

    @Test("a cancelled compaction, and one that a clear ends, leave the library as good as before")
    func ended() throws {
        let driver = try churned()
        for isClear in [false, true] {
            #expect(driver.store.beginCompaction(all()) == nil)
            driver.model.historySeq = driver.store.lastSeq + 10
            for _ in 0..<20 { try driver.stepCompaction() }
            if isClear { try driver.clear(kind: 2) } else { driver.store.cancelCompaction() }
            for _ in 0..<20 where driver.store.isCompacting { try driver.stepCompaction() }
            #expect(!driver.store.isCompacting)
            try driver.checkWholeLog()
            try driver.compareAll([])
        }
        try driver.reopen()
        try driver.compareAll([])
    }

    @Test("a close while a rewritten segment waits to be taken in leaves what opens to the same")
    func closedInTheMidst() throws {
        for stepCount in 1...40 {
            let driver = try churned()
            let request = all()
            #expect(driver.store.beginCompaction(request) == nil)
            driver.model.historySeq = driver.store.floor(for: request)
            for _ in 0..<stepCount where driver.store.isCompacting { try driver.stepCompaction() }
            try driver.reopen()
            try driver.compareAll([])
            try driver.checkWholeLog()
        }
    }

    @Test("what it would free is known without reading")
    func reclaimable() throws {
        let driver = try churned()
        let before = driver.store.reclaimableByteCount
        #expect(before > driver.store.logByteCount / 2)
        let report = try driver.compact(all { $0.deadShareMin = 0.3 })
        #expect(driver.store.reclaimableByteCount < before / 10)
        #expect(report.byteCountBefore - report.byteCountAfter > before / 2)
    }
}

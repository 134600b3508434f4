// The sidecars that a compaction leaves: after a crash behind it the log is not read as a whole.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct SegmentIndexingTests: CrashCase {
    private func write(_ driver: StoreDriver, _ books: Range<Int>) throws {
        for first in stride(from: books.lowerBound, to: books.upperBound, by: 200) {
            try driver.write((first..<first + 200).map { .book($0 + 1, "the book of number \($0)") })
            try driver.write([.book(first + 7, "changed"), .deleteBook(first + 9)])
            try driver.commitAll()
        }
    }

    /// A library of several segments, some of which hold little that is current, and closed once: a checkpoint covers most
    /// of it.
    private func library() throws -> StoreDriver {
        let driver = try StoreDriver(SimulatedFiles(seed: 7), options: StoreDriver.options(segment: 16_384))
        try write(driver, 0..<2000)
        try driver.reopen()
        try write(driver, 2000..<2400)
        try driver.write((400..<900).map { .deleteBook($0) })
        try driver.commitAll()
        return driver
    }

    private func request(_ compression: BlockCompression = .kept) -> CompactionRequest {
        var request = CompactionRequest()
        request.includesLast = true
        request.compression = compression
        return request
    }

    private func path(_ segment: Int) -> String { "library/log/" + Segment.sidecarName(UInt32(segment)) }

    /// The library after a crash, which has all that it had.
    private func opened(_ driver: StoreDriver) throws -> StoreDriver {
        let opened = try StoreDriver(
            try crashed(driver), options: driver.options, model: driver.model, now: driver.now + 1000)
        try opened.compareAll([])
        try opened.checkWholeLog()
        return opened
    }

    /// Opens it after a crash, and says how many entries were read for that.
    private func entriesRead(_ driver: StoreDriver) throws -> Int { try opened(driver).store.report.entryCount }

    @Test("all segments but the last have one, rewritten or not, and what is read of them is what is there")
    func everySegment() throws {
        let driver = try library()
        var some = some
        some.includesLast = false
        let report = try driver.compact(some)
        #expect(report.rewrittenCount > 0 && report.rewrittenCount < report.totalCount)
        let files = try disk(driver)
        #expect(files.content("library/checkpoint") == nil)
        for number in 1..<driver.store.segmentCount { #expect(files.content(path(number)) != nil, "segment \(number)") }
        #expect(try entriesRead(driver) * 5 < driver.model.events.count)
        // Of a library that goes on, is compacted once more, crashes and is closed at last.
        let opened = try self.opened(driver)
        try CheckpointTests.write(opened, 40..<46)
        try opened.compact(request())
        #expect(try entriesRead(opened) * 5 < opened.model.events.count)
        let again = try self.opened(opened)
        try again.reopen()
        #expect(again.store.report.entryCount == 0)
        try again.compareAll([])
        #expect(try disk(again).content(path(1)) == nil)
    }

    @Test("where nothing is rewritten nothing is read for it")
    func nothingToDo() throws {
        let driver = try library()
        try driver.reopen()
        var request = request()
        request.includesLast = false
        request.deadShareMin = 1
        #expect(try driver.compact(request).rewrittenCount == 0)
        #expect(try disk(driver).content("library/checkpoint") != nil)
        #expect(try disk(driver).content(path(1)) == nil)
    }

    @Test("one of a compressed segment knows where its pieces lie", .enabled(if: Zstandard.isInstalled))
    func compressed() throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 7), options: StoreDriver.options(segment: 65_536))
        for first in stride(from: 1, to: 1201, by: 60) {
            let text = String(repeating: "told at some length ", count: 12)
            try driver.write((first..<first + 60).map { .book($0, "\($0) \(text)") })
            try driver.commitAll()
        }
        try driver.compact(request(.zstd))
        let source = try LogSource(library: driver.path, files: driver.files)
        #expect(try source.verify().compressedBlockCount > 3)
        let opened = try self.opened(driver)
        #expect(opened.store.report.entryCount <= 1)
        // The images are right: everything is read through them, rewritten from them, and opened again.
        try opened.write((1..<300).map { .deleteBook($0) })
        try opened.commitAll()
        #expect(try opened.compact(request()).droppedCount >= 299)
        try opened.compareAll([])
        #expect(try entriesRead(opened) <= 1)
        // It says nothing where its segment has another form.
        let files = try disk(opened)
        let old = try #require(files.content(path(4)))
        try opened.compact(request(.none))
        try disk(opened).setContent(path(4), old)
        #expect(try entriesRead(opened) > 1)
    }

    @Test("a kind that is declared behind a segment does not matter to the segment's")
    func lateKind() throws {
        let driver = try library()
        let fields = [Field(1, "id", .identifier, [.required, .notZero]), Field(2, "name", .text)]
        let kind = try Kind(
            number: 64, name: "film", version: 1, keyFieldCount: 1, fields: fields, labelFields: [2])
        guard case .staged = try driver.store.define(KindDraft(kind, number: 0, version: 0), now: driver.now) else {
            throw Mismatch("not declared")
        }
        try driver.commitAll()
        try write(driver, 2400..<2800)
        try driver.compact(request())
        #expect(try entriesRead(driver) <= 1)
    }

    /// A library that was compacted, and grew and lost records since; with the sidecars, or without.
    private func grown(keepsSidecars: Bool) throws -> StoreDriver {
        let driver = try library()
        try driver.compact(request())
        try write(driver, 2400..<2800)
        try driver.write((1200..<1700).map { .deleteBook($0) })
        try driver.commitAll()
        if !keepsSidecars { for number in 1..<driver.store.segmentCount { try disk(driver).remove(path(number)) } }
        return driver
    }

    private var some: CompactionRequest {
        var some = request()
        some.deadShareMin = 0.4
        return some
    }

    @Test("damage that a compaction comes upon, listing or indexing, has the next opening read everything")
    func damaged() throws {
        for number in 1...6 {
            let driver = try grown(keepsSidecars: false)
            let files = try disk(driver)
            let segment = "library/log/" + Segment.name(UInt32(number))
            var bytes = try #require(files.content(segment))
            bytes[BlockHeader.fixedByteCount + 20] ^= 1
            files.setContent(segment, bytes)
            #expect(driver.store.beginCompaction(some) == nil)
            var last: CompactionReport?
            while last == nil {
                switch driver.store.stepCompaction(now: driver.now) {
                case .commit: if driver.inFlight != nil { driver.finish() } else { _ = driver.take() }
                case .job(let job): driver.store.finish(job.run())
                case .progress: break
                case .failed(let reason, _): throw Mismatch(reason)
                case .finished(let report): last = report
                }
            }
            #expect(last?.unfitCount == 1 && last?.damage?.contains(Segment.name(UInt32(number))) == true)
            driver.store.close()
            for number in 1...driver.store.segmentCount { #expect(files.content(path(number)) == nil) }
            let opened = try Store(path: "library", options: driver.options, files: files, now: driver.now)
            #expect(opened.report.lostSpans.allSatisfy { $0.segment == number } && opened.report.lostSpans.count == 1)
        }
    }

    @Test("one that was spoilt is made anew")
    func spoilt() throws {
        let driver = try grown(keepsSidecars: true)
        let files = try disk(driver)
        var bytes = try #require(files.content(path(4)))
        let whole = bytes
        // Its head is there, and the last of its changes are not: as a power cut can leave it.
        bytes.replaceSubrange(bytes.count - 4096..<bytes.count, with: [UInt8](repeating: 0, count: 4096))
        files.setContent(path(4), bytes)
        try driver.compact(some)
        #expect(files.content(path(4)) == whole)
        #expect(try entriesRead(driver) <= 1)
    }

    @Test("what waited to be written when damage was found is not, and what was being written goes")
    func distrustedCommit() throws {
        for takesFirst in [false, true] {
            let driver = try library()
            // The log moves on while nothing is committed: the sidecar of the segment before goes with the next commit.
            let before = driver.store.segmentCount
            while driver.store.segmentCount == before {
                try driver.write([.book(9_000, "number \(driver.now)")])
                try driver.commitAll()
            }
            try driver.write([.book(9_001, "behind")])
            if takesFirst { _ = driver.take() }
            driver.store.distrustIndexFiles()
            try driver.commitAll()
            for number in 1...driver.store.segmentCount { #expect(try disk(driver).content(path(number)) == nil) }
        }
    }

    @Test("a disk that is full is not filled further")
    func full() throws {
        let driver = try library()
        let files = try disk(driver)
        var jobCount = 0
        let report = try compact(driver) {
            jobCount += 1
            files.setRoom(byteCountMax: 1)
        }
        #expect(report.rewrittenCount > 0 && jobCount == 1)
        #expect(files.content(path(1)) == nil && files.content(path(1) + ".tmp") == nil)
    }

    /// Does a compaction, and something before each of the jobs that index.
    private func compact(_ driver: StoreDriver, atIndexing act: () -> Void) throws -> CompactionReport {
        let wanted = request()
        #expect(driver.store.beginCompaction(wanted) == nil)
        driver.model.historySeq = max(driver.model.historySeq, driver.store.floor(for: wanted))
        for _ in 0..<10_000 {
            switch driver.store.stepCompaction(now: driver.now) {
            case .commit: if driver.inFlight != nil { driver.finish() } else { _ = driver.take() }
            case .job(let job):
                if case .index = job.work { act() }
                driver.store.finish(job.run())
            case .progress: break
            case .failed(let reason, _): throw Mismatch(reason)
            case .finished(let report):
                try driver.checkWholeLog()
                return report
            }
        }
        throw Mismatch("a compaction does not end")
    }

    @Test("a compaction that is cut off while it indexes has done what it was to do")
    func cutOff() throws {
        let driver = try library()
        #expect(try compact(driver) { driver.store.cancelCompaction() }.rewrittenCount > 0)
        #expect(try disk(driver).content(path(1)) == nil)
        #expect(try entriesRead(driver) > 1)
    }

    @Test("none is left where damage was found meanwhile")
    func distrusted() throws {
        let driver = try library()
        var jobCount = 0
        let report = try compact(driver) {
            jobCount += 1
            if jobCount == 3 { driver.store.distrustIndexFiles() }
        }
        #expect(report.rewrittenCount > 0 && jobCount == 3)
        for number in 1...driver.store.segmentCount { #expect(try disk(driver).content(path(number)) == nil) }
    }
}

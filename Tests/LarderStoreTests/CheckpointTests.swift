// Opening from the checkpoint: what is read then, when it is not trusted, and that it is never believed.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct CheckpointTests: CrashCase {
    static let checkpoint = "library/checkpoint"

    /// Ten books a batch, some of them changed and deleted again.
    static func write(_ driver: StoreDriver, _ batches: Range<Int>) throws {
        for n in batches {
            try driver.write((1...10).map { .book(n * 10 + $0, "book \(n) \($0)") })
            if n > 0 { try driver.write([.book(n * 10 - 3, "changed by \(n)"), .deleteBook(n * 10 - 5)]) }
            try driver.commitAll()
        }
    }

    /// A driver whose library was closed and opened again.
    static func reopened(batches: Int = 6, segment: Int = 16_384, seed: UInt64 = 3) throws -> StoreDriver {
        let driver = try StoreDriver(SimulatedFiles(seed: seed), options: StoreDriver.options(segment: segment))
        try write(driver, 0..<batches)
        try driver.reopen()
        return driver
    }

    @Test("after a close no entry is read, and everything is there")
    func afterClose() throws {
        let driver = try Self.reopened()
        #expect(driver.store.report.entryCount == 0 && driver.store.segmentCount > 2)
        try compare(driver)
        try Self.write(driver, 6..<8)
        try compare(driver)
        try driver.reopen()
        #expect(driver.store.report.entryCount == 0)
        try compare(driver)
    }

    @Test("after a crash only what was written since the close is read")
    func afterCrash() throws {
        let driver = try Self.reopened()
        let before = driver.store.lastSeq
        try Self.write(driver, 6..<7)
        let opened = try open(try crashed(driver), like: driver)
        #expect(opened.store.report.entryCount == Int(driver.store.lastSeq - before))
    }

    @Test("a store that has little to read behind the checkpoint leaves it as it is")
    func littleToRead() throws {
        let driver = try Self.reopened()
        let before = try disk(driver).content(Self.checkpoint)
        var options = driver.options
        options.replayByteCountMax = 1 << 20
        let again = try StoreDriver(try crashed(driver), options: options, model: driver.model, now: driver.now + 1)
        try Self.write(again, 6..<7)
        again.store.close()
        #expect(try disk(again).content(Self.checkpoint) == before)
    }

    @Test("origins, open imports with their batches, and kinds outlive a close")
    func imports() throws {
        let driver = try Self.reopened()
        let begun = try #require(
            try driver.store.beginImport(programName: "importer", source: "file", token: "t", now: driver.now))
        var sending = Sending(program: "importer")
        sending.origin = begun.origin
        sending.batchNumber = 7
        try driver.stage(driver.prepare([.book(9000, "imported")], sending))
        let (kinds, origins) = (driver.store.kinds, driver.store.origins)
        try driver.reopen()
        #expect(driver.store.report.entryCount == 0)
        let resumed = try driver.store.beginImport(programName: "importer", source: "file", token: "t", now: driver.now)
        #expect(resumed?.origin == begun.origin && resumed?.lastBatch == 7 && resumed?.isResumed == true)
        #expect(driver.store.kinds == kinds && driver.store.origins.count > 0)
        #expect(Array(driver.store.origins.prefix(origins.count)) == origins)
    }

    @Test("a power cut at any step of a close leaves what opens to the same", arguments: PowerCutMode.allCases)
    func powerCuts(mode: PowerCutMode) throws {
        var random = SplitMix64(seed: 77)
        for mutation in 0..<40 {
            let driver = try Self.reopened(batches: 3, seed: UInt64(mutation))
            try Self.write(driver, 3..<5)
            let files = try disk(driver)
            files.cutPower(afterMutations: mutation)
            driver.store.close()
            let isWhole = files.hasPower
            let opened = try open(files.powerCut(mode, using: &random), like: driver)
            try opened.reopen()
            try compare(opened)
            if isWhole {
                #expect(mutation > 5)
                return
            }
        }
        Issue.record("a close does not end")
    }

    @Test("a write, a sync or a rename that fails leaves the checkpoint of before")
    func failures() throws {
        for call in ["pwrite", "fdatasync", "ftruncate", "rename"] {
            let driver = try Self.reopened()
            let files = try disk(driver)
            let before = files.content(Self.checkpoint)
            try Self.write(driver, 6..<7)
            files.inject(SimulatedFault(call: call, pathSuffix: "checkpoint.tmp"))
            driver.store.close()
            #expect(files.content(Self.checkpoint) == before && files.content(Self.checkpoint + ".tmp") == nil)
            _ = try open(files, like: driver)
        }
    }

    // MARK: Not trusted

    /// Whether opening passes over the checkpoint that lies there.
    private func isIgnored(_ files: SimulatedFiles, _ options: StoreOptions) throws(StoreError) -> Bool {
        var options = options
        options.isReadOnly = true
        return try Store(path: "library", options: options, files: files, now: 1).report.entryCount > 0
    }

    private func expectTakenAway(_ files: SimulatedFiles, _ driver: StoreDriver) throws {
        let opened = try open(files, like: driver)
        #expect(files.content(Self.checkpoint) == nil)
        opened.store.close()
        #expect(try !isIgnored(files, driver.options))
    }

    @Test("a bit that flipped anywhere in the checkpoint has it ignored")
    func flips() throws {
        let driver = try Self.reopened(batches: 2)
        let files = try crashed(driver)
        let bytes = try #require(files.content(Self.checkpoint))
        #expect(try !isIgnored(files, driver.options))
        for at in bytes.indices {
            // Of stretches of zeros, a bit here and there.
            let isPlain = bytes[max(0, at - 8)...min(bytes.count - 1, at + 8)].allSatisfy { $0 == 0 }
            if isPlain && at % 509 != 0 { continue }
            for bit in isPlain ? at % 8...at % 8 : 0...7 {
                var spoilt = bytes
                spoilt[at] ^= 1 << bit
                files.setContent(Self.checkpoint, spoilt)
                if try !isIgnored(files, driver.options) { Issue.record("bit \(bit) of byte \(at) is not seen") }
            }
        }
        files.setContent(Self.checkpoint, bytes.dropLast(4096))
        #expect(try isIgnored(files, driver.options))
        try expectTakenAway(files, driver)
    }

    @Test("the checkpoint of another library, or of another history, is ignored and taken away")
    func anotherLibrary() throws {
        let driver = try Self.reopened(seed: 1)
        let other = try Self.reopened(seed: 2)
        let files = try crashed(driver)
        files.setContent(Self.checkpoint, try #require(disk(other).content(Self.checkpoint)))
        #expect(try isIgnored(files, driver.options))
        try expectTakenAway(files, driver)
    }

    @Test("an older copy of the log beside a newer checkpoint is read as a whole")
    func olderLog() throws {
        let driver = try Self.reopened(batches: 3, segment: 1 << 20)
        let older = try crashed(driver)
        let model = driver.model
        try Self.write(driver, 3..<6)
        try driver.reopen()
        older.setContent(Self.checkpoint, try #require(disk(driver).content(Self.checkpoint)))
        #expect(try isIgnored(older, driver.options))
        let opened = try StoreDriver(older, options: driver.options, model: model, now: driver.now + 1)
        try compare(opened)
    }

    @Test("a log that went on otherwise from an older copy, past the checkpoint's end, is read as a whole")
    func otherHistory() throws {
        let driver = try Self.reopened(batches: 3, segment: 1 << 20)
        let branch = try open(try crashed(driver), like: driver)
        try Self.write(driver, 3..<5)
        try driver.reopen()
        for n in 0..<8 {
            try branch.write([.book(7000 + n, "otherwise")])
            try branch.commitAll()
        }
        let files = try crashed(branch)
        #expect(
            try disk(driver).content("library/log/00000001.seg")?.count ?? 0
                < files.content("library/log/00000001.seg")?.count ?? 0)
        files.setContent(Self.checkpoint, try #require(disk(driver).content(Self.checkpoint)))
        #expect(try isIgnored(files, driver.options))
        _ = try open(files, like: branch)
    }

    @Test("a segment that is missing or short has the log read as a whole")
    func segments() throws {
        let second = "library/log/00000002.seg"
        for isMissing in [true, false] {
            let driver = try Self.reopened()
            let files = try crashed(driver)
            if isMissing { try files.remove(second) }
            if !isMissing { files.setContent(second, files.content(second)?.dropLast(4096) ?? []) }
            #expect(try isIgnored(files, driver.options))
        }
    }

    @Test("a log that has lost something gets no checkpoint, so that every opening names what is lost")
    func lostSpans() throws {
        let library = try DamagedLibrary.threeBlocks()
        let block = try library.blocks()[2]
        library.spoil { $0[block.entries[4].offset + 3] ^= 1 }
        let driver = try library.open()
        let lost = driver.store.report.lostSpans
        #expect(lost.count == 1)
        driver.store.close()
        let again = try library.open()
        #expect(again.store.report.lostSpans == lost && again.store.report.entryCount > 0)
        #expect(library.files.content("library/checkpoint") == nil)
        var reader = Subscriber(again.store, after: 0)
        try reader.readToEnd(again)
        #expect(reader.lost.map(\.after) == lost.map(\.after))
    }

    @Test("the whole log is read where that is asked for")
    func wholeLog() throws {
        let driver = try Self.reopened()
        var options = driver.options
        options.readsWholeLog = true
        #expect(try isIgnored(try crashed(driver), options))
    }
}

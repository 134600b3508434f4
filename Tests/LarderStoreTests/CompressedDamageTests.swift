// Compressed blocks that are damaged, or lie beside plain ones: what is lost, what is served, and what is said.

import Glibc
import LarderFormat
import Testing

@testable import LarderStore

@Suite(.enabled(if: Zstandard.isInstalled, "zstd is not installed")) struct CompressedDamageTests {
    private static let path = "library/log/00000001.seg"
    private static let options = StoreDriver.options(segment: 4_194_304)

    private func books(_ range: Range<Int>) -> [TestOp] {
        range.map { .book($0, String(repeating: "a tale \($0) of ", count: 40)) }
    }

    private func compress(_ driver: StoreDriver) throws {
        var request = CompactionRequest()
        request.compression = .zstd
        request.includesLast = true
        request.keepsHistorySince = .min
        #expect(try driver.compact(request).rewrittenCount >= 1)
    }

    /// A library whose first segment was rewritten, with a block more behind it.
    ///
    /// - Parameter parts: so many times 1,600 books.
    private func library(_ parts: Int) throws -> StoreDriver {
        let driver = try StoreDriver(SimulatedFiles(seed: 4), options: Self.options)
        for first in stride(from: 1, to: 1 + parts * 1_600, by: 100) {
            try driver.write(books(first..<first + 100))
            try driver.commitAll()
        }
        try compress(driver)
        try driver.write([.book(90_000, "behind it")])
        try driver.commitAll()
        return driver
    }

    private func headers(_ driver: StoreDriver) throws -> [BlockHeader] {
        var headers: [BlockHeader] = []
        try LogSource(library: "library", files: driver.files).inspect(segment: 1, withEntries: false) { stretch in
            if let header = stretch.header { headers.append(header) }
            return true
        }
        return headers
    }

    /// Spoils the first segment and opens again, the whole log being read.
    private func spoilt(
        _ driver: StoreDriver, _ change: (inout [UInt8]) -> Void
    ) throws -> (StoreDriver, VerifyReport) {
        driver.store.close()
        let files = try #require(driver.files as? SimulatedFiles)
        try? files.remove("library/checkpoint")
        var bytes = try #require(files.content(Self.path))
        change(&bytes)
        files.setContent(Self.path, bytes)
        let report = try LogSource(library: "library", files: files).verify()
        return (try StoreDriver(files, options: Self.options, model: driver.model, now: driver.now), report)
    }

    private func recordCount(_ driver: StoreDriver) throws -> Int {
        try driver.list(kind: 0, isReverse: false, pageLimit: 500).count
    }

    @Test("plain and compressed blocks of one segment are read, whichever comes first", arguments: [true, false])
    func mixed(isPlainFirst: Bool) throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 4), options: Self.options)
        // A commit that fills a block by itself, and one whose block is a page as it is.
        let large = books(1..<2_000)
        let small = [TestOp.book(5_000, "short")]
        for ops in isPlainFirst ? [small, large] : [large, small] {
            try driver.write(ops)
            try driver.commitAll()
        }
        try compress(driver)
        // The kinds' declarations come first.
        #expect(try headers(driver).map(\.isCompressed) == (isPlainFirst ? [false, true] : [false, true, false]))
        let keys = (large + small).map(\.key)
        try driver.compareAll(keys)
        try driver.reopen()
        try driver.compareAll(keys)
        let (again, report) = try spoilt(driver) { _ in }
        #expect(report.damages.isEmpty)
        try again.compareAll(keys)
    }

    @Test("a table of pieces that is not what was written costs nothing, and verifying names it")
    func table() throws {
        let driver = try library(1)
        let header = try #require(try headers(driver).first)
        // The stored size of the second piece.
        let (again, report) = try spoilt(driver) { $0[header.byteCount + 12] ^= 4 }
        #expect(report.damages.map(\.cause) == [.badPayload] && report.lostSeqCount == 0)
        #expect(again.store.report.lostSpans.isEmpty)
        try again.compareAll((1...1_600).map { TestOp.book($0, "").key })
    }

    @Test("a frame that does not unpack costs the entries of its piece")
    func frame() throws {
        let driver = try library(1)
        let header = try #require(try headers(driver).first)
        let files = try #require(driver.files as? SimulatedFiles)
        let bytes = try #require(files.content(Self.path))
        let stored = Array(bytes[header.byteCount..<header.byteCount + Int(header.storedByteCount)])
        let pieces = try stored.withUnsafeBytes { try PayloadPieces($0, plainByteCount: Int(header.plainByteCount)) }
        let middle = header.byteCount + pieces.stored(2).lowerBound + pieces.stored(2).count / 2
        let (again, report) = try spoilt(driver) { $0[middle] ^= 0x55 }
        #expect(report.damages.map(\.cause) == [.badEntry])
        let lost = report.lostSeqCount
        // 65,536 bytes of entries of 0.6 KiB, of which some may be what they were.
        #expect((1...120).contains(lost))
        #expect(again.store.report.lostSpans.map(\.segment) == [1])
        #expect(try recordCount(again) == 1_601 - Int(lost))
    }

    @Test("a compressed block whose header is gone costs itself; blocks behind it are read where they lie")
    func header() throws {
        let driver = try library(3)
        let found = try headers(driver)
        #expect(found.count >= 3 && found.allSatisfy(\.isCompressed))
        let hit = found[1]
        let (again, report) = try spoilt(driver) { $0[Int(hit.position.offset) + 8] ^= 1 }
        #expect(report.damages.map(\.cause) == [.misplaced] || report.damages.map(\.cause) == [.badHeader])
        #expect(try recordCount(again) == 4_801 - Int(hit.entryCount))
        var reader = Subscriber(again.store, after: 0)
        try reader.readToEnd(again)
        #expect(!reader.lost.isEmpty)
    }

    @Test("damage that comes when the library is open is told with the block's place in the file")
    func late() throws {
        let driver = try library(2)
        let files = try #require(driver.files as? SimulatedFiles)
        let hit = try #require(try headers(driver).last)
        try driver.reopen()
        var bytes = try #require(files.content(Self.path))
        for at in 0..<Int(hit.storedByteCount) { bytes[Int(hit.position.offset) + hit.byteCount + at] = 0xAA }
        files.setContent(Self.path, bytes)
        do {
            _ = try driver.get(TestOp.book(3_200, "").key)
            Issue.record("a record was read")
        } catch StoreError.damaged(_, let offset, _) {
            #expect(offset == Int(hit.position.offset))
        }
        #expect(try driver.get(TestOp.book(1, "").key) != nil)
    }

    @Test("what salvage makes of a library with compressed blocks can be written to")
    func salvaged() throws {
        let driver = try library(1)
        let header = try #require(try headers(driver).first)
        let (again, _) = try spoilt(driver) { $0[header.byteCount + 12] ^= 4 }
        again.store.close()
        let source = try LogSource(library: "library", files: again.files)
        _ = try source.salvage(to: "salvaged", now: driver.now)
        for round in 0..<2 {
            let store = try Store(path: "salvaged", options: Self.options, files: again.files, now: driver.now)
            #expect(store.counts(kind: 0).reduce(0) { $0 + $1.count } == 1_601 + round)
            let batch = WriteBatch()
            batch.begin(origin: 0, programName: "test", batchNumber: 0, isDryRun: false, isAtomic: false)
            let record = Encode.record(TestOp.book(95_000 + round, "later").fields)
            try record.withUnsafeBytes { bytes in
                store.add(
                    WriteOperation(mode: .replace, isPersonal: false, kind: 2, known: 256, payload: bytes), to: batch)
                _ = try store.resolve(batch)
                _ = try store.stage(batch, now: driver.now)
            }
            while let job = store.takeCommit() { store.finish(job.run()) }
            store.close()
        }
    }

    @Test("an image in a checkpoint whose frames do not lie behind their table, one after the other, is refused")
    func image() throws {
        func decoded(_ frames: [Int]) throws -> PlainImage {
            var writer = ByteWriter()
            for value in [0, 1, 88, 65_537, 4_096, 2] + frames { writer.varint(value) }
            return try writer.bytes.withUnsafeBytes { bytes in
                var reader = ByteReader(bytes)
                return try PlainImage(from: &reader, fileByteCount: 4_096)
            }
        }
        // The table of two frames has 16 bytes.
        let good = try decoded([17, 1])
        var writer = ByteWriter()
        good.encode(into: &writer)
        #expect(
            writer.bytes.withUnsafeBytes { bytes in
                var reader = ByteReader(bytes)
                return (try? PlainImage(from: &reader, fileByteCount: 4_096)) == good
            })
        #expect(good.stretch(from: 88, needed: 1, wanted: 1)?.fileByteCount == 1)
        for frames in [[16, 1], [0, 1], [17, 0], [17, 4_000], [17]] {
            #expect(throws: FormatError.self) { try decoded(frames) }
        }
    }

    @Test("a checkpoint of real files is read on two threads")
    func realFiles() throws {
        let path = "/tmp/larder-checkpoint-\(getpid())"
        let files = SystemFiles()
        defer {
            for name in (try? files.list(path + "/log")) ?? [] { try? files.remove(path + "/log/" + name) }
            for name in ["larder", "lock", "checkpoint"] { try? files.remove(path + "/" + name) }
            for directory in [path + "/log", path] { rmdir(directory) }
        }
        let driver = try StoreDriver(files, path: path, options: Self.options)
        try driver.write(books(1..<400))
        try driver.commitAll()
        for _ in 0..<3 {
            try driver.reopen()
            try driver.compareAll((1..<400).map { TestOp.book($0, "").key })
        }
    }
}

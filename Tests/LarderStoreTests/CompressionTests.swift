// Segments whose blocks are compressed: everything is read, streamed, opened and rewritten as if they were not.

import LarderFormat
import Testing

@testable import LarderStore

@Suite(.enabled(if: Zstandard.isInstalled, "zstd is not installed")) struct CompressionTests {
    private func books(_ range: Range<Int>, _ title: String) -> [TestOp] {
        range.map { .book($0, "\(title) \($0), which is told at some length: \(String(repeating: title, count: 12))") }
    }

    /// A library of some segments, a part of it changed and deleted.
    private func library(_ files: SimulatedFiles = SimulatedFiles(seed: 3)) throws -> StoreDriver {
        let driver = try StoreDriver(files, options: StoreDriver.options(segment: 131_072))
        for first in stride(from: 1, to: 1201, by: 60) {
            try driver.write(books(first..<first + 60, "a book"))
            try driver.commitAll()
        }
        try driver.write(books(100..<160, "a changed book"))
        try driver.write((300..<340).map { .deleteBook($0) })
        // One that takes several pieces by itself.
        try driver.write([.book(5_000, String(repeating: "long ", count: 40_000))])
        try driver.commitAll()
        return driver
    }

    private func request(_ compression: BlockCompression) -> CompactionRequest {
        var request = CompactionRequest()
        request.includesLast = true
        request.compression = compression
        // All of the history is kept: segments are rewritten for the sake of their form.
        request.keepsHistorySince = .min
        return request
    }

    private var keys: [RecordKey] { (1..<1201).map { TestOp.book($0, "").key } + [TestOp.book(5_000, "").key] }

    private func compressedBlockCount(_ driver: StoreDriver) throws -> Int {
        try LogSource(library: driver.path, files: driver.files).verify().compressedBlockCount
    }

    @Test("everything is read and streamed as before, after a restart too")
    func everything() throws {
        let driver = try library()
        let report = try driver.compact(request(.zstd))
        #expect(report.rewrittenCount == driver.store.segmentCount - 1)
        #expect(report.byteCountAfter * 3 < report.byteCountBefore)
        #expect(report.droppedCount == 0)
        try driver.compareAll(keys)
        try driver.write(books(2_000..<2_060, "a new book"))
        try driver.commitAll()
        for _ in 0..<2 {
            try driver.reopen()
            try driver.compareAll(keys)
        }
        let verified = try LogSource(library: driver.path, files: driver.files).verify()
        #expect(verified.damages == [] && verified.compressedBlockCount > 1 && verified.recordCount == 1_221)
        // Nothing is left to be done.
        #expect(try driver.compact(request(.zstd)).rewrittenCount <= 1)
        #expect(try driver.compact(request(.kept)).rewrittenCount == 0)
    }

    @Test("what is compressed stays so when a part of it goes, and is plain again when it is asked for")
    func forms() throws {
        let driver = try library()
        try driver.compact(request(.zstd))
        let blockCount = try compressedBlockCount(driver)
        try driver.write((1..<600).map { .deleteBook($0) })
        try driver.commitAll()
        var kept = request(.kept)
        kept.keepsHistorySince = .max
        let report = try driver.compact(kept)
        #expect(report.droppedCount > 600 && report.byteCountAfter < report.byteCountBefore)
        let left = try compressedBlockCount(driver)
        #expect(left > 0 && left <= blockCount)
        try driver.compareAll(keys)
        try driver.compact(request(.none))
        #expect(try compressedBlockCount(driver) == 0)
        try driver.compareAll(keys)
        try driver.reopen()
        try driver.compareAll(keys)
    }

    @Test("the checkpoint knows where the pieces lie")
    func checkpoint() throws {
        let driver = try library()
        try driver.compact(request(.zstd))
        try driver.reopen()
        let files = try #require(driver.files as? SimulatedFiles)
        #expect(files.content("library/checkpoint") != nil)
        try driver.reopen()
        try driver.compareAll(keys)
        // Rewritten once more, from what the checkpoint says.
        try driver.write((700..<760).map { .deleteBook($0) })
        try driver.commitAll()
        var all = request(.kept)
        all.keepsHistorySince = .max
        #expect(try driver.compact(all).droppedCount >= 60)
        try driver.compareAll(keys)
        try driver.reopen()
        try driver.compareAll(keys)
    }

    @Test("only what is old enough is compressed, and what gets no smaller is not tried again")
    func chosen() throws {
        let driver = try library()
        var young = request(.zstd)
        young.includesLast = false
        young.deadShareMin = 0.9
        young.compressesUntil = driver.now - 1_000_000
        #expect(driver.store.compressibleByteCount(young) == 0)
        #expect(try driver.compact(young).rewrittenCount == 0)
        young.compressesUntil = driver.now
        #expect(driver.store.compressibleByteCount(young) > 0)
        #expect(try driver.compact(young).rewrittenCount > 0)
        #expect(driver.store.compressibleByteCount(young) == 0)

        // Bytes drawn by lot.
        let noise = try StoreDriver(SimulatedFiles(seed: 9), options: StoreDriver.options(segment: 65_536))
        var random = SplitMix64(seed: 7)
        for number in 1..<40 {
            var blob = ByteWriter()
            blob.byteString((0..<4_000).map { _ in UInt8.random(in: 0...255, using: &random) })
            let fields = [
                1: [1], 2: Encode.date(2000, 1, 1), 3: Encode.int(Int64(number)), 100: Encode.text("x"),
                256: blob.bytes,
            ]
            try noise.write([.save(TestKinds.odd, fields)])
            try noise.commitAll()
        }
        var again = request(.zstd)
        again.deadShareMin = 0.9
        #expect(try noise.compact(again).rewrittenCount > 2)
        #expect(try compressedBlockCount(noise) == 0)
        #expect(noise.store.compressibleByteCount(again) == 0)
        // The last segment alone is new.
        #expect(try noise.compact(again).rewrittenCount <= 1)
        try noise.compareAll(keys)
    }

    @Test("a purged key is in no frame any more")
    func purge() throws {
        let driver = try library()
        try driver.write([.book(777, "a secret title")])
        try driver.commitAll()
        try driver.compact(request(.zstd))
        try driver.write([.deleteBook(777)])
        try driver.commitAll()
        let key = TestOp.book(777, "").key
        var purge = request(.kept)
        purge.purged = [PurgedKey(kind: key.kind, key: key.bytes)]
        try driver.compact(purge)
        #expect(try compressedBlockCount(driver) > 0)
        let source = try LogSource(library: driver.path, files: driver.files)
        var found = 0
        for number in source.segmentNumbers {
            try source.inspect(segment: number, withEntries: true) { stretch in
                found += stretch.entries.filter { $0.payload.starts(with: key.bytes) }.count
                return true
            }
        }
        #expect(found == 0)
        try driver.compareAll(keys)
    }
}

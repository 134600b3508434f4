// What a power cut can leave at the log's end: it is cut, kept aside, and its seqs are not given again.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct TornTailTests {
    /// Opens and checks that the last block is cut, whatever it looks like.
    private func expectCut(_ library: DamagedLibrary, at offset: Int, lastSeq: UInt64, _ note: Comment) throws {
        let size = library.bytes().count
        let tail = Array(library.bytes()[offset...])
        let driver = try library.open()
        let report = driver.store.report
        #expect(report.cutByteCount == size - offset, note)
        #expect(library.files.content(report.asidePath) == tail, note)
        #expect(report.lostSpans.isEmpty, note)
        #expect(report.gapFrom == lastSeq + 1 && report.gapThrough == lastSeq + (1 << 20), note)
        try driver.compareAll([])
        #expect(driver.store.check(epoch: library.epoch, seq: lastSeq) == .good, note)
        #expect(driver.store.check(epoch: library.epoch, seq: lastSeq + 1) == .expired, note)
        try driver.write([.book(99, "again")])
        try driver.reopen()
        #expect(driver.store.report.cutByteCount == 0, note)
        #expect(driver.store.check(epoch: library.epoch, seq: lastSeq + 5) == .expired, note)
        try driver.compareAll([])
    }

    private func torn() throws -> (DamagedLibrary, DamagedLibrary.Block, UInt64) {
        var library = try DamagedLibrary.threeBlocks()
        let blocks = try library.blocks()
        library.expectLast(10)
        return (library, blocks[3], blocks[2].entries[9].seq)
    }

    @Test("a header that is torn anywhere is cut")
    func tornHeader() throws {
        for byte in [0, 4, 5, 6, 8, 16, 20, 24, 28, 32, 36, 40, 44, 48, 56, 60, 64, 72, 80, 84] {
            let (library, block, lastSeq) = try torn()
            library.spoil { $0[block.offset + byte] ^= 0x41 }
            try expectCut(library, at: block.offset, lastSeq: lastSeq, "byte \(byte)")
        }
    }

    @Test("a block of which one sector is missing is cut, unless the sector is padding", arguments: [UInt8(0), 0xA5])
    func tornSectors(fill: UInt8) throws {
        let first = DamagedLibrary.book(1)
        var sector = 0
        while true {
            var library = try DamagedLibrary([[.book(1, "one")], [.book(2, String(repeating: "two", count: 3000))]])
            let blocks = try library.blocks()
            let at = blocks[2].offset + sector * 512
            guard at < library.bytes().count else { break }
            library.spoil { bytes in for byte in at..<at + 512 { bytes[byte] = fill } }
            if at < blocks[2].payloadEnd {
                library.expectLast(1)
                try expectCut(
                    library, at: blocks[2].offset, lastSeq: blocks[1].entries.last?.seq ?? 0, "sector \(sector)")
            } else {
                let driver = try library.open()
                #expect(driver.store.report.cutByteCount == 0)
                try driver.compareAll([first])
            }
            sector += 1
        }
        #expect(sector == 24)
    }

    @Test("a tail that ends within the last block is cut")
    func truncated() throws {
        for left in [1, 63, 64, 87, 88, 500, 4095] {
            let (library, block, lastSeq) = try torn()
            library.spoil { $0.removeLast($0.count - block.offset - left) }
            try expectCut(library, at: block.offset, lastSeq: lastSeq, "\(left) bytes left")
        }
    }

    @Test("garbage behind the last block is cut", arguments: [1, 511, 4096, 70_000])
    func garbage(count: Int) throws {
        let library = try DamagedLibrary.threeBlocks()
        let end = library.bytes().count
        var random = SplitMix64(seed: UInt64(count))
        library.spoil { bytes in bytes += (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next() | 1) } }
        try expectCut(library, at: end, lastSeq: library.lastSeq, "\(count)")
    }

    @Test("zeros behind the last block are its end, and are written over", arguments: [1, 4096, 100_000])
    func zeros(count: Int) throws {
        let library = try DamagedLibrary.threeBlocks()
        library.spoil { $0 += [UInt8](repeating: 0, count: count) }
        let driver = try library.open()
        let report = driver.store.report
        #expect(
            report.cutByteCount == 0 && report.asidePath.isEmpty && report.gapThrough == 0 && report.lostSpans.isEmpty)
        let answer = try driver.write([.book(99, "next")])
        #expect(answer.seqs == [library.lastSeq + 1])
        try driver.reopen()
        try driver.compareAll([])
    }

    @Test("a flipped bit in the last block is taken for a tear, wherever it is")
    func flippedBits() throws {
        var random = SplitMix64(seed: 3)
        for _ in 0..<40 {
            let (library, block, lastSeq) = try torn()
            let byte = Int.random(in: block.offset..<block.payloadEnd, using: &random)
            let bit = UInt8(1) << UInt8.random(in: 0..<8, using: &random)
            library.spoil { $0[byte] ^= bit }
            try expectCut(library, at: block.offset, lastSeq: lastSeq, "byte \(byte - block.offset), bit \(bit)")
        }
    }

    @Test("a block copied from elsewhere to the log's end is cut")
    func misplacedTail() throws {
        let library = try DamagedLibrary.threeBlocks()
        let block = try library.blocks()[2]
        let end = library.bytes().count
        library.spoil { $0 += $0[block.offset..<block.offset + block.byteCount] }
        try expectCut(library, at: end, lastSeq: library.lastSeq, "misplaced")
    }

    @Test("a block of another library at the log's end is cut")
    func foreignTail() throws {
        let (library, block, lastSeq) = try torn()
        let other = try DamagedLibrary.threeBlocks()
        library.spoil { $0.replaceSubrange(block.offset..., with: other.bytes()[block.offset...]) }
        try expectCut(library, at: block.offset, lastSeq: lastSeq, "another epoch")
    }

    @Test("a crash between the cut and the entry that says so jumps all the same")
    func crashAfterCut() throws {
        let (library, block, lastSeq) = try torn()
        library.spoil { $0[block.offset + 100] ^= 1 }
        let size = library.bytes().count
        library.files.inject(SimulatedFault(call: "pwrite", pathSuffix: ".seg"))
        #expect(throws: StoreError.self) { _ = try library.open() }
        #expect(library.bytes().count < size)
        let driver = try library.open()
        #expect(driver.store.report.gapFrom == lastSeq + 1)
        try driver.compareAll([])
    }

    @Test("a reader leaves a torn tail where it is")
    func readOnly() throws {
        let (library, block, _) = try torn()
        library.spoil { $0[block.offset + 100] ^= 1 }
        let before = library.bytes()
        let count = library.files.mutationCount
        var options = library.options
        options.isReadOnly = true
        let driver = try StoreDriver(library.files, options: options, model: library.model)
        try driver.compareAll([])
        #expect(library.bytes() == before && library.files.mutationCount == count)
    }
}

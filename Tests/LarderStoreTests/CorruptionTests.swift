// Damage where a later block vouches for the bytes: it costs what it hits, is named, and the rest is served.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct CorruptionTests {
    /// Reads everything and checks that exactly these seqs are missing, and told as lost.
    private func expectLost(_ driver: StoreDriver, _ seqs: ClosedRange<UInt64>, _ note: Comment) throws {
        let spans = driver.store.report.lostSpans.map { ($0.after + 1)...max($0.through, $0.after + 1) }
        #expect(spans == [seqs], note)
        #expect(driver.store.report.cutByteCount == 0, note)
        var reader = Subscriber(driver.store, after: 0)
        try reader.readToEnd(driver, budget: 100)
        #expect(reader.received.map(\.seq) == driver.model.events.map(\.seq).filter { !seqs.contains($0) }, note)
        #expect(
            reader.lost.map(\.after) == [seqs.lowerBound - 1] && reader.lost.map(\.through) == [seqs.upperBound], note)
        // One that had passed the damage, or begins behind it, is told nothing.
        var later = Subscriber(driver.store, after: seqs.upperBound)
        try later.readToEnd(driver)
        #expect(later.lost.isEmpty, note)
        for event in driver.model.events {
            let found = try driver.get(event.key)
            #expect((found == nil) == seqs.contains(event.seq), note)
        }
        let live = driver.model.events.count { !seqs.contains($0.seq) }
        #expect(try driver.list(kind: 0, isReverse: false, pageLimit: 7).count == live, note)
        #expect(driver.store.counts(kind: 0).reduce(0) { $0 + $1.count } == live, note)
    }

    /// Opens twice, with a write in between: the damage is told the same.
    private func expectLost(_ library: DamagedLibrary, _ seqs: ClosedRange<UInt64>, _ note: Comment) throws {
        let driver = try library.open()
        try expectLost(driver, seqs, note)
        let answer = try driver.write([.book(500, "behind")])
        #expect(answer.seqs == [library.lastSeq + 1], note)
        try driver.reopen()
        try expectLost(driver, seqs, note)
    }

    @Test("a flipped bit in a block that is vouched for costs the entry that it hits")
    func flippedEntry() throws {
        for at in [0, 4, 9] {
            let library = try DamagedLibrary.threeBlocks()
            let entry = try library.blocks()[2].entries[at]
            library.spoil { $0[entry.offset + 12] ^= 4 }
            try expectLost(library, entry.seq...entry.seq, "entry \(at)")
        }
    }

    @Test("a flipped bit in an entry's length costs that entry")
    func flippedLength() throws {
        for bit in 0..<8 {
            let library = try DamagedLibrary.threeBlocks()
            let entry = try library.blocks()[2].entries[4]
            library.spoil { $0[entry.offset] ^= 1 << UInt8(bit) }
            try expectLost(library, entry.seq...entry.seq, "bit \(bit)")
        }
    }

    @Test("a header that is vouched for and does not check costs its block")
    func flippedHeader() throws {
        for byte in [0, 5, 9, 17, 25, 41, 61, 65] {
            let library = try DamagedLibrary.threeBlocks()
            let block = try library.blocks()[2]
            library.spoil { $0[block.offset + byte] ^= 8 }
            try expectLost(library, block.entries[0].seq...block.entries[9].seq, "byte \(byte)")
        }
    }

    @Test("a block copied over another costs the one that it covers")
    func misplaced() throws {
        let library = try DamagedLibrary.threeBlocks()
        let blocks = try library.blocks()
        library.spoil { bytes in
            bytes.replaceSubrange(
                blocks[2].offset..<blocks[2].offset + 4096, with: bytes[blocks[3].offset..<blocks[3].offset + 4096])
        }
        try expectLost(library, blocks[2].entries[0].seq...blocks[2].entries[9].seq, "misplaced")
    }

    @Test("a block of another library costs the one that it covers")
    func foreign() throws {
        let library = try DamagedLibrary.threeBlocks()
        let other = try DamagedLibrary.threeBlocks()
        let block = try library.blocks()[2]
        library.spoil {
            $0.replaceSubrange(
                block.offset..<block.offset + 4096, with: other.bytes()[block.offset..<block.offset + 4096])
        }
        try expectLost(library, block.entries[0].seq...block.entries[9].seq, "another epoch")
    }

    @Test("the last block of a segment that is vouched for by the next is lost and named")
    func endOfSegment() throws {
        let library = try DamagedLibrary(
            (0..<3).map { n in (1...10).map { .book(n * 10 + $0, "book \($0)") } },
            options: StoreDriver.options(segment: 16_384))
        let block = try library.blocks()[2]
        #expect(block.offset + block.byteCount == library.bytes().count)
        library.spoil { $0[block.offset + 9] ^= 8 }
        let driver = try library.open()
        try expectLost(driver, block.entries[0].seq...block.entries[9].seq, "end of a segment")
    }

    @Test("what was durable at opening is vouched for by the first block that follows")
    func vouchedAfterReopening() throws {
        let library = try DamagedLibrary.threeBlocks()
        let driver = try library.open()
        try driver.write([.book(40, "new")])
        try driver.commitAll()
        driver.store.close()
        let block = try library.blocks()[3]
        library.spoil { $0[block.offset + 9] ^= 8 }
        try library.files.remove("library/checkpoint")
        let again = try StoreDriver(library.files, options: library.options, model: driver.model, now: 6_000_000)
        try expectLost(again, block.entries[0].seq...block.entries[9].seq, "the last block before opening")
    }

    @Test("a record whose first entry is lost is there once, by its later ones")
    func lostCreation() throws {
        var batches = (0..<4).map { n in (1...5).map { TestOp.book($0, "version \(n)") } }
        batches[1] = [.book(6, "other")]
        batches.append([.deleteBook(5)])
        let library = try DamagedLibrary(batches)
        let block = try library.blocks()[1]
        library.spoil { $0[block.offset + 9] ^= 8 }
        let driver = try library.open()
        for id in 1...6 {
            let found = try driver.get(DamagedLibrary.book(id))
            #expect(found == driver.model.visible[DamagedLibrary.book(id)], "book \(id)")
        }
        #expect(driver.store.counts(kind: 2).map(\.count) == [5])
        for isReverse in [false, true] {
            let listed = try driver.list(kind: 0, isReverse: isReverse, pageLimit: 2)
            let expected = driver.model.visible(kind: 0).map(\.1.seq)
            #expect(listed.map(\.seq) == (isReverse ? expected.reversed() : expected))
        }
        try driver.write([.book(1, "after"), .deleteBook(2)])
        try driver.commitAll()
        #expect(try driver.get(DamagedLibrary.book(1))?.fields == driver.model.visible[DamagedLibrary.book(1)]?.fields)
        #expect(try driver.get(DamagedLibrary.book(2)) == nil)
        #expect(driver.store.counts(kind: 2).map(\.count) == [4])
    }

    @Test("a key that was saved again is there once, though its delete is lost")
    func lostDelete() throws {
        let library = try DamagedLibrary([
            [.book(1, "a"), .book(2, "b")], [.deleteBook(1)], [.book(1, "c")], [.book(3, "d")],
        ])
        let block = try library.blocks()[2]
        library.spoil { $0[block.offset + 9] ^= 8 }
        let driver = try library.open()
        #expect(driver.store.counts(kind: 2).map(\.count) == [3])
        let found = try driver.get(DamagedLibrary.book(1))
        #expect(found == driver.model.visible[DamagedLibrary.book(1)])
        #expect(try driver.list(kind: 2, isReverse: false, pageLimit: 9).count == 3)
    }
}

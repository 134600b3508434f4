// The index of values: made in slices while records change, worn out and made anew, and what it costs.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct ValueIndexTests {
    @Test("while the index is made records come, change, move, go and come back")
    func changesMeanwhile() throws {
        let driver = try Books.library([])
        let count = 45_000
        for start in stride(from: 1, to: count, by: 5000) {
            try driver.write((start..<start + 5000).map { .book($0, "t\($0 % 1000)") })
        }
        try driver.commitAll()
        let gone = try #require(try driver.get(RecordKey(kind: 2, bytes: Books.key(40_000).bytes)))
        try driver.write([.deleteBook(40_000)])
        try driver.commitAll()
        let begun = Encode.text("t7").withUnsafeBytes { driver.store.search(kind: 2, field: 3, value: $0) }
        var search = try #require(begun)
        var slices = 0
        while case .more = try driver.store.keys(&search, limit: 9) {
            slices += 1
            // Behind the walk and before it.
            for id in [5, 44_000] {
                let id = id + slices
                try driver.write([
                    .book(id, "changed"), .deleteBook(id + 100), Books.move(id + 200, 100_000 + id, "moved"),
                    .book(200_000 + id, "came"),
                ])
            }
            if slices == 1 { try driver.write([Books.restore(40_000, "back", firstSeq: gone.firstSeq)]) }
            try driver.commitAll()
        }
        #expect(slices >= 2)
        #expect(try driver.find(2, 3, Encode.text("changed")).count == 2 * slices)
        #expect(try driver.find(2, 3, Encode.text("moved")).count == 2 * slices)
        #expect(try driver.find(2, 3, Encode.text("came")).count == 2 * slices)
        #expect(try driver.find(2, 3, Encode.text("back")).count == 1)
        for title in ["t7", "t6", "t106", "t206", "t0"] {
            let expected = driver.model.holders(2, 3, ModelText.folded(title), in: driver.model.visible).map(\.0)
            #expect(try driver.find(2, 3, Encode.text(title)) == expected)
        }
    }

    @Test("it is made anew when too much is stale, not by updates that leave the values alone")
    func wornOut() throws {
        let driver = try Books.library((1...2000).map { ($0, "t\($0)") })
        _ = try driver.find(2, 3, Encode.text("t1"))
        func stale() -> Int? { driver.store.core.valueIndexes.values.first?.staleCount }
        try driver.write((1...2000).map { .save(TestKinds.book, Books.fields($0, "t\($0)", [5: Encode.int(1)])) })
        try driver.commitAll()
        // The price is a value too; the second time nothing of it is new.
        let before = stale()
        try driver.write(
            (1...2000).map { id in
                var op = TestOp.save(TestKinds.book, Books.fields(id, "t\(id)", [4: Encode.text("note")]))
                op.isPersonal = true
                return op
            })
        try driver.commitAll()
        #expect(stale() == before)
        try driver.write((1...2000).map { .book($0, "u\($0)") })
        try driver.commitAll()
        #expect(try driver.find(2, 3, Encode.text("u7")) == [Books.key(7)])
        #expect(try driver.find(2, 3, Encode.text("t7")) == [])
        #expect(stale() == 0)
    }

    @Test("a clear takes the values with the records", arguments: [0, 2])
    func cleared(kind: Int) throws {
        let driver = try Books.library((1...50).map { ($0, "t") })
        #expect(try driver.find(2, 3, Encode.text("t")).count == 50)
        try driver.clear(kind: kind)
        #expect(driver.store.core.valueIndexes.isEmpty)
        #expect(try driver.find(2, 3, Encode.text("t")) == [])
        try driver.write([TestOp.book(7, "t").unlessExists(3)])
        try driver.settle()
        #expect(try driver.find(2, 3, Encode.text("t")) == [Books.key(7)])
    }

    @Test("bytes that are no value of the field, and fields that are not indexed, find nothing to look up")
    func notIndexed() throws {
        let driver = try Books.library([(1, "a")])
        let asked: [(Int, Int, [UInt8])] = [
            (2, 3, []), (2, 3, [5, 97]), (2, 3, [1, 97, 0]), (2, 3, [1, 0xFF]), (2, 4, Encode.text("a")),
            (2, 1, Encode.text("a")),
            (2, 256, []), (77, 3, Encode.text("a")), (1, 9, [3]), (1, 9, [0xFF]),
        ]
        for (kind, field, value) in asked {
            let found = value.withUnsafeBytes { driver.store.search(kind: kind, field: field, value: $0) }
            #expect(found == nil, "\(value) in field \(field) of kind \(kind) is looked up")
        }
    }

    @Test("a search goes on where it was, though more records wait for the disk than are held at once")
    func coldRecords() throws {
        let driver = try Books.library([])
        let note = Encode.text(String(repeating: "n", count: 90_000))
        for start in stride(from: 1, to: 61, by: 10) {
            try driver.write(
                (start..<start + 10).map { id in
                    var op = TestOp.save(TestKinds.book, Books.fields(id, "t", [4: note]))
                    op.isPersonal = true
                    return op
                })
            try driver.commitAll()
        }
        try driver.reopen()
        (driver.files as? SimulatedFiles)?.setBlockingReads(percent: 100)
        #expect(try driver.find(2, 3, Encode.text("t")).count == 60)
    }

    @Test("a value costs at most 12 bytes, and looking one up is short, whether values are shared or not")
    func cost() {
        let count = Int(Setting.number("LARDER_VALUES") ?? 300_000)
        for sharing in [1, 10, 1000, count] {
            let index = ValueIndex()
            var random = SplitMix64(seed: 1)
            var fingerprints: [UInt32] = []
            for ordinal in 0..<count {
                if ordinal % sharing == 0 { fingerprints.append(UInt32(truncatingIfNeeded: random.next())) }
                index.insert(fingerprints[fingerprints.count - 1], ordinal: UInt32(ordinal))
            }
            #expect(index.count == count)
            // Two tables lie side by side for a while.
            var extra = 0
            while index.isGrowing, extra < count / 10 {
                index.insert(UInt32(truncatingIfNeeded: random.next()), ordinal: UInt32(count + extra))
                extra += 1
            }
            let perValue = Double(index.byteCount) / Double(count)
            print(
                "value index: \(count) values, \(sharing) records a value: \(index.byteCount) bytes, \(perValue) each")
            #expect(perValue <= 12 || count < 100_000)
            #expect(!index.isGrowing)
            let found = fingerprints.prefix(100).map { index.candidates($0).count }
            #expect(found.allSatisfy { $0 >= min(sharing, count) })
        }
    }
}

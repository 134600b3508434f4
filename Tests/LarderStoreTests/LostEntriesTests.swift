// Damage that hits what other entries hang on: declarations, moves, deletes, and the log as a whole.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct LostEntriesTests {
    /// Spoils the entry of this seq in segment 1.
    private func spoil(_ library: DamagedLibrary, seq: UInt64) throws {
        let entry = try #require(try library.blocks().flatMap(\.entries).first { $0.seq == seq })
        library.spoil { $0[entry.offset + 3] ^= 0x10 }
    }

    private func types(_ library: DamagedLibrary) throws -> [(seq: UInt64, type: UInt8)] {
        let bytes = library.bytes()
        return try library.blocks().flatMap(\.entries).map { ($0.seq, bytes[$0.offset + 1]) }
    }

    @Test("records of a kind that comes with Larder are served though its declaration is lost, and it is written again")
    func shippedKind() throws {
        let library = try DamagedLibrary.threeBlocks()
        // The kinds are the first entries: book is the second.
        try spoil(library, seq: 2)
        let driver = try library.open()
        #expect(driver.store.report.lostSpans.map(\.through) == [2] && driver.store.report.undeclaredKinds.isEmpty)
        try driver.compareAll([])
        let seq = driver.store.lastSeq
        #expect(seq == library.lastSeq + 1, "the declaration is written again")
        try driver.reopen()
        try driver.compareAll([])
        #expect(driver.store.lastSeq == seq, "and once only")
    }

    @Test("entries of a kind of one's own whose declaration is lost are counted, and its number is not given again")
    func ownKind() throws {
        let own = try Kind(
            number: 64, name: "own", version: 1, keyFieldCount: 1,
            fields: [Field(1, "id", .identifier, .required), Field(2, "name", .text)], labelFields: [2])
        let library = try DamagedLibrary.threeBlocks()
        let driver = try library.open()
        guard case .staged = try driver.store.define(KindDraft(own, number: 0, version: 0), now: 5_000_000) else {
            Issue.record("not defined")
            return
        }
        let declared = driver.store.core.nextSeq - 1
        try driver.commitAll()
        let record = Encode.record([1: Encode.identifier(7), 2: Encode.text("mine")])
        let batch = WriteBatch()
        batch.begin(origin: 0, programName: "test", batchNumber: 0, isDryRun: false, isAtomic: false)
        try record.withUnsafeBytes { bytes in
            driver.store.add(
                WriteOperation(mode: .replace, isPersonal: true, kind: 64, known: 256, payload: bytes), to: batch)
            _ = try driver.store.resolve(batch)
            _ = try driver.store.stage(batch, now: 5_000_100)
        }
        try driver.commitAll()
        try driver.write([.book(300, "behind")])
        try driver.commitAll()
        driver.store.close()
        try library.files.remove("library/checkpoint")
        try spoil(library, seq: declared)
        let again = try library.open()
        #expect(again.store.report.undeclaredKinds == [64: 1])
        guard case .staged(let kind, _) = try again.store.define(KindDraft(own, number: 0, version: 0), now: 6_000_000)
        else {
            Issue.record("not defined again")
            return
        }
        #expect(kind.number == 65)
    }

    @Test("the number of an origin whose declaration is lost is not given to another program")
    func origin() throws {
        let library = try DamagedLibrary.threeBlocks()
        let declared = try #require(try types(library).first { $0.type == EntryType.origin })
        try spoil(library, seq: declared.seq)
        let driver = try library.open()
        #expect(driver.store.originNumber(name: "test") == nil)
        driver.model = Model()
        try driver.write([.book(400, "by another")], program: "another")
        #expect(driver.store.originNumber(name: "another") == 2)
    }

    @Test("nor behind a close of the library that was salvaged, or a compaction of it")
    func originOfSalvaged() throws {
        for compacts in [false, true] {
            let library = try DamagedLibrary.threeBlocks()
            let declared = try #require(try types(library).first { $0.type == EntryType.origin })
            try spoil(library, seq: declared.seq)
            _ = try LogSource(library: "library", files: library.files)
                .salvage(to: "new", identityLoss: "", now: 5_000_000)
            func opened() throws -> StoreDriver {
                try StoreDriver(library.files, path: "new", options: library.options, now: 6_000_000)
            }
            let first = try opened()
            #expect(first.store.report.isWhole)
            var request = CompactionRequest()
            request.includesLast = true
            if compacts {
                #expect(first.store.beginCompaction(request) == nil)
                while first.store.isCompacting {
                    switch first.store.stepCompaction(now: first.now) {
                    case .commit: if first.inFlight != nil { first.finish() } else { _ = first.take() }
                    case .job(let job): first.store.finish(job.run())
                    case .progress, .finished: break
                    case .failed(let reason, _): throw Mismatch(reason)
                    }
                }
            }
            first.store.close()
            let second = try opened()
            try second.write([.book(400, "by another")], program: "another")
            #expect(second.store.originNumber(name: "another") == 2)
        }
    }

    @Test("a record whose move is lost is found under the key of its next entry, and under no other")
    func lostMove() throws {
        let library = try DamagedLibrary([
            [.book(1, "a"), .book(2, "b")],
            [.move(TestKinds.book, from: TestOp.book(1, "").fields, TestOp.book(9, "a").fields)],
            [.book(9, "again")], [.book(3, "c")],
        ])
        let block = try library.blocks()[2]
        library.spoil { $0[block.offset + 9] ^= 8 }
        let driver = try library.open()
        #expect(try driver.get(DamagedLibrary.book(1)) == nil)
        let found = try driver.get(DamagedLibrary.book(9))
        #expect(found == driver.model.visible[DamagedLibrary.book(9)])
        #expect(driver.store.counts(kind: 2).map(\.count) == [3])
        try driver.write([.deleteBook(9)])
        try driver.commitAll()
        #expect(try driver.get(DamagedLibrary.book(9)) == nil)
        #expect(driver.store.counts(kind: 2).map(\.count) == [2])
    }

    @Test("a record whose delete is lost does not come back when the one after it under its key is deleted")
    func risenDead() throws {
        let library = try DamagedLibrary([
            [.book(1, "a"), .book(2, "b")], [.deleteBook(1)], [.book(1, "c")], [.deleteBook(1)], [.book(3, "d")],
        ])
        let block = try library.blocks()[2]
        library.spoil { $0[block.offset + 9] ^= 8 }
        let driver = try library.open()
        #expect(try driver.get(DamagedLibrary.book(1)) == nil)
        #expect(driver.store.counts(kind: 2).map(\.count) == [2])
        #expect(try driver.list(kind: 2, isReverse: false, pageLimit: 9).count == 2)
    }

    @Test("a log of which no block is where it belongs is refused, and left as it is")
    func strangers() throws {
        let library = try DamagedLibrary(
            (0..<4).map { n in (1...10).map { .book(n * 10 + $0, "book \($0)") } },
            options: StoreDriver.options(segment: 16_384))
        let second = "library/log/00000002.seg"
        let content = (library.bytes(), library.bytes(second))
        library.files.setContent(DamagedLibrary.first, content.1)
        library.files.setContent(second, content.0)
        do throws(StoreError) {
            _ = try Store(path: "library", options: library.options, files: library.files, now: 1)
            Issue.record("segments that changed places were opened")
        } catch {
            #expect("\(error)".contains("no block of its log is where it belongs"))
        }
        #expect(library.bytes() == content.1 && library.bytes(second) == content.0)
    }

    @Test("a log whose seqs end is refused")
    func lastSeq() throws {
        let library = try DamagedLibrary([[.book(1, "a")]])
        library.spoil { bytes in
            bytes.withUnsafeMutableBytes { raw in
                guard let base = raw.baseAddress else { return }
                let body: [UInt8] = [1, 2, 3]
                let seq = UInt64.max
                let count = body.withUnsafeBytes {
                    EntryWriter.other(at: base + 88, type: 77, seq: seq, commitFirstSeq: seq, body: $0)
                }
                var header = BlockHeader(
                    epoch: library.epoch, position: LogPosition(segment: 1, offset: 0),
                    synced: LogPosition(segment: 0, offset: 0))
                header.blockByteCount = 4096
                header.storedByteCount = UInt32(count)
                header.plainByteCount = UInt32(count)
                header.entryCount = 1
                header.commits = [
                    CommitHeader(firstSeq: seq, time: 1, entryCount: 1, plainByteCount: UInt32(count))
                ]
                header.write(at: base)
            }
            bytes.removeLast(bytes.count - 4096)
        }
        #expect(throws: StoreError.self) { _ = try library.open() }
    }
}

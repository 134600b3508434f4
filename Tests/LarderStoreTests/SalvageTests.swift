// Salvage: a new library of everything that can be read, with its seqs, and a name for everything that can't.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct SalvageTests {
    /// Salvages, opens the new library, and compares it with the model without the entries of these seqs.
    private func expectSalvaged(
        _ library: DamagedLibrary, without seqs: Set<UInt64>, _ note: Comment
    ) throws {
        let before = library.bytes()
        let (source, loss) = try LogSource.damaged(library: "library", files: library.files)
        let report = try source.salvage(to: "new", identityLoss: loss, now: 77)
        let named = Set(report.damages.flatMap { $0.through > $0.after ? Array(($0.after + 1)...$0.through) : [] })
        #expect(named == seqs, note)
        #expect(report.lostSomething == (!seqs.isEmpty || !loss.isEmpty), note)
        #expect(library.bytes() == before, note)
        let new = try LogSource(library: "new", files: library.files)
        #expect(new.epoch != library.epoch, note)
        let verified = try new.verify()
        #expect(verified.damages == [] && verified.tail == nil, note)
        var model = Model()
        for event in library.model.events where !seqs.contains(event.seq) {
            model.append(event, seq: event.seq, time: event.time, commit: 0)
        }
        model.endBatch()
        model.finish(commit: 0)
        let driver = try StoreDriver(library.files, path: "new", options: library.options, model: model, now: 5_000_000)
        #expect(driver.store.report.lostSpans.isEmpty && driver.store.report.cutByteCount == 0, note)
        try driver.compareAll([])
        #expect(driver.store.check(epoch: library.epoch, seq: 1) == .expired, note)
        try driver.write([.book(500, "behind")])
        try driver.reopen()
        try driver.compareAll([])
        driver.store.close()
        for name in try library.files.list("new/log") ?? [] { try library.files.remove("new/log/" + name) }
        try library.files.remove("new/larder")
    }

    @Test("a sound library is salvaged whole")
    func sound() throws {
        try expectSalvaged(DamagedLibrary.threeBlocks(), without: [], "sound")
    }

    @Test("what a bad entry and a bad header hold is lost, and nothing else")
    func damage() throws {
        for at in 1...2 {
            let library = try DamagedLibrary.threeBlocks()
            let block = try library.blocks()[at]
            let entry = block.entries[block.entries.count - 4]
            library.spoil { $0[entry.offset + 9] ^= 4 }
            try expectSalvaged(library, without: [entry.seq], "entry of block \(at)")
            library.spoil { $0[block.offset + 9] ^= 4 }
            guard at == 2 else { continue }
            try expectSalvaged(library, without: Set(block.entries.map(\.seq)), "block \(at)")
        }
    }

    @Test("whole blocks behind a tear are saved too")
    func behindTear() throws {
        let library = try DamagedLibrary.threeBlocks()
        let block = try library.blocks()[2]
        // The last block no longer vouches for it: what it names as durable lies before.
        let last = try library.blocks()[3]
        library.spoil { bytes in
            bytes[block.offset + 9] ^= 4
            let position = LogPosition(segment: 1, offset: UInt32(last.offset))
            bytes.withUnsafeMutableBytes { raw in
                guard let base = raw.baseAddress,
                    var header = try? BlockHeader(
                        UnsafeRawBufferPointer(rebasing: raw[last.offset...]), epoch: library.epoch, position: position)
                else { return }
                header.synced = LogPosition(segment: 1, offset: UInt32(block.offset))
                header.write(at: base + last.offset)
            }
        }
        #expect(try LogSource(library: "library", files: library.files).verify().tail?.offset == block.offset)
        try expectSalvaged(library, without: Set(block.entries.map(\.seq)), "tear")
    }

    @Test("without its identity the blocks say the epoch; the new library has an id of its own")
    func identityLost() throws {
        let library = try DamagedLibrary.threeBlocks()
        try library.files.remove("library/larder")
        try expectSalvaged(library, without: [], "lost")
        library.files.setContent("library/larder", [1, 2, 3])
        try expectSalvaged(library, without: [], "broken")
    }

    @Test("blocks of two epochs are refused, with both, until one is named")
    func twoEpochs() throws {
        let library = try DamagedLibrary.threeBlocks()
        let other = try DamagedLibrary.threeBlocks()
        let range = try library.blocks()[2].offset..<library.blocks()[3].offset
        library.spoil { $0.replaceSubrange(range, with: other.bytes()[range]) }
        try library.files.remove("library/larder")
        do {
            _ = try LogSource.damaged(library: "library", files: library.files)
            Issue.record("an epoch was guessed")
        } catch StoreError.notALibrary(_, let reason) {
            #expect(reason.contains(hexadecimal(library.epoch)) && reason.contains(hexadecimal(other.epoch)))
        }
        let (source, _) = try LogSource.damaged(library: "library", epoch: other.epoch, files: library.files)
        #expect(source.epoch == other.epoch)
    }

    @Test("a missing segment is lost and named; segments are numbered anew")
    func missingSegment() throws {
        let library = try DamagedLibrary(
            (0..<9).map { n in (1...5).map { .book(n * 5 + $0, "book") } }, options: StoreDriver.options(segment: 8192))
        let path = "library/log/00000003.seg"
        let held = try library.blocks(path, segment: 3).flatMap { $0.entries.map(\.seq) }
        try library.files.remove(path)
        try expectSalvaged(library, without: Set(held), "segment 3")
    }

    @Test("a place that is taken is refused, and a failed write leaves no library")
    func targets() throws {
        let library = try DamagedLibrary.threeBlocks()
        let source = try LogSource(library: "library", files: library.files)
        #expect(throws: StoreError.self) { try source.salvage(to: "library", now: 1) }
        for call in ["pwrite", "fdatasync", "fsync", "rename"] {
            library.files.inject(SimulatedFault(call: call, code: 28))
            #expect(throws: StoreError.self) { try source.salvage(to: "new", now: 1) }
            library.files.clearFaults()
            #expect(library.files.content("new/larder") == nil, "\(call)")
        }
        _ = try source.salvage(to: "new", now: 1)
        #expect(try LogSource(library: "new", files: library.files).verify().isSound)
    }
}

// Verifying finds every kind of damage that FORMAT.md section 17 lists, names what it costs, and finds none elsewhere.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct VerifyTests {
    private func verify(_ library: DamagedLibrary) throws -> VerifyReport {
        try LogSource(library: "library", files: library.files).verify()
    }

    /// Verifying and opening agree about what is lost.
    private func expectSame(_ library: DamagedLibrary, _ note: Comment) throws {
        let report = try verify(library)
        var options = library.options
        options.isReadOnly = true
        let store = try Store(path: "library", options: options, files: library.files, now: 1)
        defer { store.close() }
        let lost = report.damages.filter { $0.lostSeqCount > 0 }.map { ($0.after + 1)...$0.through }
        let told = store.report.lostSpans.filter { $0.through > $0.after }.map { ($0.after + 1)...$0.through }
        #expect(lost == told, note)
        #expect(report.isSound == store.report.lostSpans.isEmpty, note)
        let tail = report.tail.map { $0.cause == .room ? 0 : $0.byteCount } ?? 0
        #expect(tail == store.report.cutByteCount, note)
        #expect(report.lastSeq == store.lastSeq, note)
    }

    private func blocksAndAll() throws -> (DamagedLibrary, [DamagedLibrary.Block]) {
        let library = try DamagedLibrary.threeBlocks()
        return (library, try library.blocks())
    }

    @Test("a sound library is sound, with its counts")
    func sound() throws {
        let (library, blocks) = try blocksAndAll()
        let report = try verify(library)
        #expect(report.isSound && report.tail == nil && report.damages.isEmpty)
        #expect(report.blockCount == 4 && report.recordCount == 30 && report.lastSeq == library.lastSeq)
        #expect(report.entryCount == blocks.reduce(0) { $0 + $1.entries.count })
        #expect(report.unusedSeqCount == 0 && report.segments.count == 1)
    }

    @Test("any flipped bit is found as opening finds it, unless it lies in padding")
    func everyByte() throws {
        let (clean, blocks) = try blocksAndAll()
        for (at, block) in blocks.enumerated() {
            for offset in stride(from: block.offset, to: block.offset + 400, by: 3) {
                let library = try DamagedLibrary.threeBlocks()
                library.spoil { $0[offset] ^= 1 << UInt8(offset % 8) }
                try expectSame(library, "block \(at), offset \(offset)")
                let report = try verify(library)
                let isPadding = offset >= block.payloadEnd
                #expect(isPadding == (report.isSound && report.tail == nil), "block \(at), offset \(offset)")
            }
        }
        #expect(clean.bytes().count == 4 * 4096)
    }

    @Test("a bad entry costs itself, and the others of its block are said to be served")
    func badEntry() throws {
        let (library, blocks) = try blocksAndAll()
        let entry = blocks[2].entries[4]
        library.spoil { $0[entry.offset + 9] ^= 4 }
        let report = try verify(library)
        let damage = try #require(report.damages.first)
        #expect(
            report.damages.count == 1 && damage.cause == .badEntry && damage.offset == entry.offset, "\(report.damages)"
        )
        #expect(damage.after == entry.seq - 1 && damage.through == entry.seq && damage.keptEntryCount == 9)
    }

    @Test("a bad header, a misplaced block and one of another library cost their blocks, and are told apart")
    func headers() throws {
        let (_, blocks) = try blocksAndAll()
        let seqs = blocks[2].entries.map(\.seq)
        func expect(_ cause: LogDamage.Cause, _ reason: String, _ change: (DamagedLibrary) throws -> Void) throws {
            let library = try DamagedLibrary.threeBlocks()
            try change(library)
            let report = try verify(library)
            #expect(report.damages.map(\.cause) == [cause])
            let damage = try #require(report.damages.first)
            #expect(damage.reason.contains(reason), "\(damage.reason)")
            #expect(damage.after == seqs[0] - 1 && damage.through == seqs[9] && damage.offset == blocks[2].offset)
            try expectSame(library, "\(reason)")
        }
        let range = blocks[2].offset..<blocks[2].offset + 4096
        try expect(.badHeader, "does not check") { $0.spoil { $0[range.lowerBound + 9] ^= 1 } }
        try expect(.badHeader, "zeros") {
            $0.spoil { $0.replaceSubrange(range, with: [UInt8](repeating: 0, count: 4096)) }
        }
        try expect(.badHeader, "no block") { $0.spoil { $0[range.lowerBound] ^= 1 } }
        try expect(.misplaced, "offset \(blocks[3].offset)") {
            $0.spoil { $0.replaceSubrange(range, with: $0[blocks[3].offset..<blocks[3].offset + 4096]) }
        }
        let other = try DamagedLibrary.threeBlocks()
        try expect(.misplaced, hexadecimal(other.epoch)) {
            $0.spoil { $0.replaceSubrange(range, with: other.bytes()[range]) }
        }
    }

    @Test("a torn tail and room laid out ahead are the end, and no damage")
    func tails() throws {
        let (torn, blocks) = try blocksAndAll()
        torn.spoil { $0.removeLast(100) }
        let report = try verify(torn)
        #expect(report.isSound)
        #expect(
            report.tail == LogTail(cause: .torn, segment: 1, offset: blocks[3].offset, byteCount: 3996))
        try expectSame(torn, "torn")
        let (roomy, _) = try blocksAndAll()
        roomy.spoil { $0 += [UInt8](repeating: 0, count: 8192) }
        let second = try verify(roomy)
        #expect(second.isSound && second.tail?.cause == .room && second.tail?.byteCount == 8192)
        try expectSame(roomy, "room")
    }

    @Test("missing and empty segments are damage with the seqs that they held")
    func segments() throws {
        func library() throws -> DamagedLibrary {
            try DamagedLibrary(
                (0..<9).map { n in (1...5).map { .book(n * 5 + $0, "book") } },
                options: StoreDriver.options(segment: 8192))
        }
        let path = "library/log/00000003.seg"
        let held = try library().blocks(path, segment: 3).flatMap { $0.entries.map(\.seq) }
        let missing = try library()
        try missing.files.remove(path)
        let empty = try library()
        empty.files.setContent(path, [])
        for (library, cause) in [(missing, LogDamage.Cause.missingSegment), (empty, .emptySegment)] {
            let report = try verify(library)
            #expect(report.damages.map(\.cause) == [cause])
            #expect(report.damages.first.map { ($0.after + 1)...$0.through } == held[0]...(held.last ?? 0))
            try expectSame(library, "\(cause)")
        }
        let first = try library()
        try first.files.remove(DamagedLibrary.first)
        #expect(try verify(first).damages.first?.cause == .missingSegment)
        // The kinds were declared there: every kind that is used now is undeclared.
        #expect(try verify(first).damages.contains { $0.cause == .undeclaredKind })
    }

    @Test("a run without its last block is the end; a hole in one that is vouched for is damage")
    func runs() throws {
        func large(_ from: Int) -> [TestOp] {
            (0..<30).map { .book(from + $0, String(repeating: "0123456789", count: 30_000)) }
        }
        let open = try DamagedLibrary(
            [[.book(1, "before")], large(100)], options: StoreDriver.options(segment: 1 << 26))
        open.spoil { $0.removeLast(4096) }
        #expect(try verify(open).tail?.cause == .unfinishedRun)
        #expect(try verify(open).isSound)
        try expectSame(open, "unfinished")
        let hole = try DamagedLibrary(
            [[.book(1, "before")], large(100), [.book(2, "behind")], [.book(3, "behind")]],
            options: StoreDriver.options(segment: 1 << 26))
        let run = try hole.blocks()[2]
        hole.spoil { $0[run.offset + 9] ^= 1 }
        #expect(try verify(hole).damages.map(\.cause) == [.badHeader])
        try expectSame(hole, "hole")
    }

    @Test("an identity that is lost, broken or newer is refused, and says so")
    func identity() throws {
        let (library, _) = try blocksAndAll()
        let path = "library/larder"
        let good = library.bytes(path)
        library.spoil(path) { $0[40] ^= 1 }
        #expect(throws: StoreError.self) { try verify(library) }
        library.files.setContent(path, good)
        library.spoil(path) { $0[8] = 9 }
        #expect(throws: StoreError.newerFormat(path: "library", found: 9, supported: 1)) { try verify(library) }
        try library.files.remove(path)
        do {
            _ = try verify(library)
            Issue.record("an unowned log was read")
        } catch StoreError.notALibrary {}
        #expect(throws: StoreError.noLibrary(path: "nowhere")) {
            _ = try LogSource(library: "nowhere", files: library.files)
        }
    }

    @Test("an entry that contradicts those before it is found, unless what is lost may explain it")
    func contradictions() throws {
        let library = try DamagedLibrary([
            [.book(1, "a"), .book(2, "b")], [.deleteBook(1)], [.book(1, "c")], [.book(2, "d")], [.deleteBook(2)],
        ])
        // Block 2 has the delete: without it, what follows brings anew a key that is there.
        for (left, cause) in [(2, LogDamage.Cause.contradiction), (4, .contradiction)] {
            let source = try LogSource(library: "library", files: library.files)
            let files = SimulatedFiles(seed: 1)
            try files.makeDirectory("other/log")
            var relay = Leaving(
                relay: LogRelay(files, directory: "other/log", epoch: 5, places: .dense), left: left)
            var walk = try LogWalk(source)
            try walk.run(&relay)
            try relay.relay.finish(lost: [])
            let other = LogSource(
                files, path: "other", identity: nil, epoch: 5, files: try LogSource.list("other/log", files))
            #expect(try other.verify().damages.map(\.cause) == [cause], "without block \(left)")
        }
        // The same hole, made by damage that is named: no contradiction beside it.
        let block = try library.blocks()[2]
        library.spoil { $0[block.offset + 9] ^= 1 }
        #expect(try verify(library).damages.map(\.cause) == [.badHeader])
    }

    @Test("any bytes at all are read without a trap", arguments: 0..<20)
    func noise(seed: Int) throws {
        let (library, blocks) = try blocksAndAll()
        var random = SplitMix64(seed: UInt64(seed))
        library.spoil { bytes in
            for _ in 0..<Int.random(in: 1...200, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            if Bool.random(using: &random) { bytes.removeLast(Int.random(in: 0..<9000, using: &random)) }
        }
        try expectSame(library, "seed \(seed)")
        let source = try LogSource(library: "library", files: library.files)
        var seen = 0
        try source.inspect(segment: 1, withEntries: true) { stretch in
            #expect(stretch.offset == seen)
            seen += stretch.byteCount
            return true
        }
        #expect(seen == library.bytes().count)
        _ = try source.salvage(to: "new", now: 1)
        #expect(
            try LogSource(library: "new", files: library.files).verify().damages.allSatisfy { $0.lostSeqCount == 0 })
        #expect(blocks.count == 4)
    }
}

/// A relay that leaves a block out without a word.
private struct Leaving: LogVisitor {
    var relay: LogRelay
    let left: Int
    var at = 0

    mutating func begin(segment: UInt32, byteCount: Int) throws(StoreError) {
        try relay.begin(segment: segment, byteCount: byteCount)
    }
    mutating func found(_ damage: LogDamage) { relay.found(damage) }
    mutating func visit(_ contents: BlockContents) throws(StoreError) {
        if at != left { try relay.visit(contents) }
        at += 1
    }
}

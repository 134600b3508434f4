// Opening from sidecars after a crash, and files of the index that are nonsense.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct SidecarTests: CrashCase {
    /// A library of several segments that was never closed.
    private func unclosed(batches: Int = 20, seed: UInt64 = 5) throws -> StoreDriver {
        let driver = try StoreDriver(SimulatedFiles(seed: seed), options: StoreDriver.options(segment: 8192))
        try CheckpointTests.write(driver, 0..<batches)
        return driver
    }

    /// Entries that opening reads when nothing is changed by it.
    private func entriesRead(_ files: SimulatedFiles, _ options: StoreOptions) throws(StoreError) -> Int {
        var options = options
        options.isReadOnly = true
        return try Store(path: "library", options: options, files: files, now: 1).report.entryCount
    }

    private static func path(_ segment: UInt32) -> String { "library/log/" + Segment.sidecarName(segment) }

    @Test("a sidecar says how many records more its changes create than they delete")
    func createdCount() throws {
        let files = try crashed(try unclosed())
        let source = try LogSource(library: "library", files: files)
        var total = 0
        for number in source.segmentNumbers {
            guard let input = try? IndexFileInput(.sidecar, files: files, path: Self.path(number)) else { continue }
            defer { input.close() }
            var created = 0
            try source.inspect(segment: number, withEntries: true) { stretch in
                created += stretch.entries.reduce(0) {
                    $0 + ($1.type == EntryType.created ? 1 : $1.type == EntryType.deleted ? -1 : 0)
                }
                return true
            }
            #expect(input.head?.recordCount == max(0, created))
            total += created
        }
        #expect(total > 0)
    }

    @Test("after a crash only the last segments are read, and everything is there")
    func afterCrash() throws {
        let driver = try unclosed()
        #expect(driver.store.segmentCount > 6)
        let opened = try open(try crashed(driver), like: driver)
        #expect(opened.store.report.entryCount * 2 < Int(driver.store.lastSeq))
        // What goes on there, crashes again and is closed at last is the same library.
        try CheckpointTests.write(opened, 20..<26)
        let again = try open(try crashed(opened), like: opened)
        #expect(again.store.report.entryCount * 3 < Int(again.store.lastSeq))
        try again.reopen()
        #expect(again.store.report.entryCount == 0)
        try compare(again)
        #expect(try disk(again).content(Self.path(1)) == nil)
        // Behind a checkpoint in the middle of a segment too.
        try CheckpointTests.write(again, 26..<32)
        let last = try open(try crashed(again), like: again)
        #expect(last.store.report.entryCount * 3 < Int(last.store.lastSeq))
    }

    @Test("random operations and crashes leave the store equal to a plain model")
    func randomCrashes() throws {
        let first = Setting.seed
        for round in 0..<UInt64(Setting.number("LARDER_SEED") == nil ? 4 : 1) {
            let seed = first &+ round
            do { try live(seed: seed) } catch { Issue.record("\(error) (LARDER_SEED=\(seed))") }
        }
    }

    private func live(seed: UInt64) throws {
        var source = OperationSource(seed: seed)
        var driver = try StoreDriver(
            SimulatedFiles(seed: seed), options: StoreDriver.options(segment: [8192, 16_384, 65_536][Int(seed % 3)]))
        var spared = 0
        for _ in 0..<Setting.steps(12) {
            for _ in 0..<20 {
                let count = 1 + source.below(12)
                try driver.write(
                    (0..<count).map { _ in source.op(model: driver.model) }, program: "p\(source.below(3))",
                    isAtomic: source.chance(10))
                if source.chance(30) { try driver.commitAll() }
            }
            if source.chance(20) { try driver.clear(kind: [0, 1, 2][source.below(3)]) }
            if source.chance(15) { try driver.reopen() }
            try driver.commitAll()
            let events = driver.model.events.count
            driver = try StoreDriver(
                try crashed(driver), options: driver.options, model: driver.model, now: driver.now + 10)
            spared += driver.store.report.entryCount < events ? 1 : 0
            try driver.compareAll(OperationSource.keys)
            try driver.compareFinds(TestKinds.all[source.below(4)])
            var reader = Subscriber(driver.store, after: 0)
            try reader.readToEnd(driver)
            try reader.compare(driver.model, isAtEnd: true)
        }
        #expect(spared > 0)
    }

    @Test("a bit that flipped anywhere in a sidecar has it ignored")
    func flips() throws {
        let driver = try unclosed(batches: 5)
        let files = try crashed(driver)
        let bytes = try #require(files.content(Self.path(1)))
        let best = try entriesRead(files, driver.options)
        for at in bytes.indices {
            let isPlain = bytes[max(0, at - 8)...min(bytes.count - 1, at + 8)].allSatisfy { $0 == 0 }
            if isPlain && at % 509 != 0 { continue }
            var spoilt = bytes
            spoilt[at] ^= 1 << (at % 8)
            files.setContent(Self.path(1), spoilt)
            if try entriesRead(files, driver.options) <= best { Issue.record("a flip in byte \(at) is not seen") }
        }
        files.setContent(Self.path(1), bytes.dropLast(4096))
        _ = try open(files, like: driver)
    }

    @Test("a sidecar of another segment or another library is ignored")
    func others() throws {
        let driver = try unclosed()
        let files = try crashed(driver)
        let best = try entriesRead(files, driver.options)
        let own = try #require(files.content(Self.path(2)))
        let stranger = try unclosed(seed: 6)
        let others = [files.content(Self.path(3)), try crashed(stranger).content(Self.path(2))]
        for (at, other) in others.enumerated() {
            files.setContent(Self.path(2), try #require(other))
            #expect(try entriesRead(files, driver.options) > best, "\(at)")
        }
        files.setContent(Self.path(2), own)
        #expect(try entriesRead(files, driver.options) == best)
        // The last segment is read whatever lies beside it.
        let last = UInt32(driver.store.segmentCount)
        files.setContent(Self.path(last), own)
        #expect(try entriesRead(files, driver.options) == best)
        _ = try open(files, like: driver)
    }

    @Test("a segment that grew behind its sidecar's back is read")
    func grown() throws {
        let driver = try unclosed()
        let files = try crashed(driver)
        let best = try entriesRead(files, driver.options)
        let path = "library/log/" + Segment.name(2)
        let bytes = try #require(files.content(path))
        files.setContent(path, bytes + [UInt8](repeating: 0, count: 4096))
        #expect(try entriesRead(files, driver.options) > best)
    }

    @Test("a sidecar that is written after a compaction was faster is not taken for the segment's")
    func overtaken() throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 3), options: StoreDriver.options(segment: 65_536))
        try driver.write([.book(9, "nine")])
        try driver.commitAll()
        var request = CompactionRequest()
        request.includesLast = true
        for round in 0..<2 {
            #expect(driver.store.beginCompaction(request) == nil)
            driver.model.historySeq = driver.store.floor(for: request)
            guard case .commit = driver.store.stepCompaction(now: driver.now) else { throw Mismatch("no floor") }
            // A segment of one block, of the same size with the old version and without.
            if round == 0 { try driver.write([.book(1, "the old version"), .book(1, "new"), .book(2, "two")]) }
            while driver.store.isCompacting { try driver.stepCompaction() }
        }
        #expect(driver.compactionCount == 2, "\(driver.compactionFailure)")
        // This commit writes the sidecar of the segment that the second compaction has ended.
        try driver.write([.book(3, "three")])
        try driver.commitAll()
        let opened = try StoreDriver(try crashed(driver), options: driver.options, model: driver.model, now: driver.now)
        try opened.compareAll([])
        try opened.checkWholeLog()
    }

    // MARK: Nonsense with the right CRCs

    private func resealed(_ content: IndexFileHead.Content, _ bytes: [UInt8]) -> [UInt8]? {
        var bytes = bytes
        let page = bytes.withUnsafeBytes { raw in
            IndexFileHead(content, UnsafeRawBufferPointer(rebasing: raw[..<4096]), fileByteCount: raw.count)
        }
        guard var head = page else { return nil }
        for (at, count) in head.byteCounts.enumerated() {
            guard let part = IndexFileHead.Part(rawValue: at) else { return nil }
            let start = head.offset(part)
            head.checksums[at] = bytes[start..<start + IndexFileHead.padded(count)].withUnsafeBytes { crc32c($0) }
        }
        bytes.replaceSubrange(..<4096, with: head.encoded)
        return bytes
    }

    /// Asks for everything; what is shown has the key that was asked for.
    private func exercise(_ files: SimulatedFiles, _ driver: StoreDriver) throws {
        let opened: StoreDriver
        do throws(StoreError) {
            opened = try StoreDriver(files, options: driver.options, model: driver.model, now: driver.now + 1000)
        } catch { return }
        for (key, expected) in driver.model.visible {
            guard let found = try? opened.get(key) else { continue }
            #expect(found.fields[1] == expected.fields[1])
        }
        for isReverse in [false, true] { _ = try? opened.page(kind: 0, isReverse: isReverse, limit: 500, after: nil) }
        var reader = Subscriber(opened.store, after: 0)
        _ = try? reader.readToEnd(opened)
        _ = try? opened.write([.book(1, "again"), .deleteBook(2), .book(99_999, "new")])
        _ = try? opened.commitAll()
        opened.store.close()
    }

    @Test("nonsense with the right CRCs ends nothing", arguments: [IndexFileHead.Content.checkpoint, .sidecar])
    func nonsense(content: IndexFileHead.Content) throws {
        let driver = try unclosed(batches: 4)
        if content == .checkpoint { try driver.reopen() }
        let path = content == .checkpoint ? CheckpointTests.checkpoint : Self.path(1)
        let bytes = try #require(disk(driver).content(path))
        let used = bytes.indices.filter { at in
            at >= 4096 && bytes[max(0, at - 4)...min(bytes.count - 1, at + 4)].contains { $0 != 0 }
        }
        let seed = Setting.seed
        var random = SplitMix64(seed: seed)
        for round in 0..<Setting.steps(400) {
            var spoilt = bytes
            for _ in 0...Int(random.next() % 3) {
                let at = try #require(used.randomElement(using: &random))
                let bytes: [UInt8] = [0, 1, 0x7F, 0x80, 0xFF, UInt8(truncatingIfNeeded: random.next())]
                spoilt[at] = bytes.randomElement(using: &random) ?? 0
            }
            let files = try crashed(driver)
            files.setContent(path, try #require(resealed(content, spoilt)))
            do { try exercise(files, driver) } catch {
                Issue.record("round \(round): \(error) (LARDER_SEED=\(seed))")
            }
        }
    }
}

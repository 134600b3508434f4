// Opening a library: what is refused, and with which facts.

import LarderFormat
import Synchronization
import Testing

@testable import LarderStore

@Suite struct OpeningTests {
    private func error(_ files: SimulatedFiles, _ change: (inout StoreOptions) -> Void = { _ in }) -> StoreError? {
        var options = StoreDriver.options()
        change(&options)
        do throws(StoreError) {
            _ = try Store(path: "library", options: options, files: files, now: 1)
            return nil
        } catch { return error }
    }

    @Test("a second open is refused with the process of the first, until that one closes")
    func locked() throws {
        let files = SimulatedFiles(seed: 1, processIdentifier: 777)
        let store = try Store(path: "library", options: StoreDriver.options(), files: files, now: 1)
        #expect(error(files) == .locked(path: "library", holder: 777))
        #expect(error(files) { $0.isReadOnly = true } == nil)
        store.close()
        #expect(error(files) == nil)
    }

    @Test("a library that a dying process made is as durable as any, wherever it died")
    func madeByTheDead() throws {
        for cut in 0..<100 {
            let files = SimulatedFiles(seed: 1)
            files.cutPower(afterMutations: cut)
            let first = try? Store(path: "library", options: StoreDriver.options(), files: files, now: 1)
            let isMade = files.hasPower
            first?.close()
            files.processDies()
            let driver = try StoreDriver(files, options: StoreDriver.options())
            try driver.write([.book(1, "saved")], program: "test")
            try driver.commitAll()
            driver.store.close()
            var generator = SplitMix64(seed: 1)
            let found = files.powerCut(.losesAll, using: &generator)
            let store = try Store(path: "library", options: StoreDriver.options(), files: found, now: 2)
            #expect(store.lastSeq == driver.store.lastSeq, "it died at change \(cut)")
            store.close()
            if isMade { return }
        }
        Issue.record("the library takes over a hundred changes to make")
    }

    @Test("no library is made where none is asked for")
    func noLibrary() {
        #expect(error(SimulatedFiles()) { $0.creates = false } == .noLibrary(path: "library"))
        #expect(error(SimulatedFiles()) { $0.isReadOnly = true } == .noLibrary(path: "library"))
    }

    /// Percents, as they come.
    private final class Told: Sendable {
        let percents = Mutex<[Int]>([])
    }

    @Test(
        "how far the log is read is told in percent, also from a checkpoint on and past sidecars", arguments: [0, 1, 2])
    func progress(form: Int) throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 1), options: StoreDriver.options(segment: 65_536))
        for first in stride(from: 1, to: 4_000, by: 40) {
            try driver.write((first..<first + 40).map { .book($0, "title \($0)") })
            try driver.commitAll()
            if form == 1, first == 2_001 { try driver.reopen() }
        }
        let files = try #require(driver.files as? SimulatedFiles)
        var random = SplitMix64(seed: 1)
        let found = files.powerCut(.keepsAll, using: &random)
        let told = Told()
        var options = driver.options
        options.readsWholeLog = form == 0
        options.onReading = { percent in told.percents.withLock { $0.append(percent) } }
        let store = try Store(path: "library", options: options, files: found, now: 1)
        let percents = told.percents.withLock { $0 }
        #expect(percents.count > (form == 0 ? 50 : 2) && percents.last == 100)
        #expect(zip(percents, percents.dropFirst()).allSatisfy { $0 < $1 } && (0...100).contains(percents[0]))
        store.close()
        // From a checkpoint nothing is left to read.
        told.percents.withLock { $0 = [] }
        options.readsWholeLog = false
        let again = try Store(path: "library", options: options, files: found, now: 1)
        #expect(told.percents.withLock { $0 } == [])
        again.close()
    }

    @Test("a log without an identity is not a library, and is left alone")
    func missingIdentity() throws {
        let library = try DamagedLibrary.threeBlocks()
        try library.files.remove("library/larder")
        let before = library.bytes()
        guard case .notALibrary("library", _) = error(library.files) else {
            Issue.record("it was opened")
            return
        }
        #expect(library.bytes() == before)
    }

    @Test("a newer format is refused with both numbers, in the identity and in a block")
    func newerFormat() throws {
        var library = try DamagedLibrary.threeBlocks()
        library.spoil("library/larder") { $0[8] = 9 }
        #expect(error(library.files) == .newerFormat(path: "library", found: 9, supported: 1))

        library = try DamagedLibrary.threeBlocks()
        let block = try library.blocks()[2]
        library.spoil { bytes in
            bytes[block.offset + 4] = 7
            let header = Array(bytes[block.offset..<block.offset + 88])
            let crc = (header[..<60] + header[64...]).withUnsafeBytes { crc32c($0) }
            for at in 0..<4 { bytes[block.offset + 60 + at] = UInt8(truncatingIfNeeded: crc >> UInt32(8 * at)) }
        }
        guard case .newerFormat(_, 7, 1) = error(library.files) else {
            Issue.record("a newer block is not refused")
            return
        }
    }

    @Test("an identity that does not check is damaged, at every bit")
    func damagedIdentity() throws {
        let library = try DamagedLibrary.threeBlocks()
        let bytes = library.bytes("library/larder")
        for byte in 12..<128 {
            library.files.setContent("library/larder", bytes)
            library.spoil("library/larder") { $0[byte] ^= 1 }
            guard case .damaged = error(library.files) else {
                Issue.record("a flip in byte \(byte) is not seen")
                continue
            }
        }
    }

    @Test("an empty last segment is where the log goes on")
    func emptyLastSegment() throws {
        let library = try DamagedLibrary.threeBlocks()
        library.files.setContent("library/log/00000002.seg", [])
        let driver = try library.open()
        #expect(driver.store.report.cutByteCount == 0 && driver.store.report.gapThrough == 0)
        try driver.write([.book(99, "next")])
        try driver.reopen()
        try driver.compareAll([])
        #expect(library.bytes("library/log/00000002.seg").count == 4096)
    }

    @Test("a segment that is missing where the log was durable is named as lost")
    func missingSegment() throws {
        let library = try DamagedLibrary(
            (0..<9).map { n in (1...10).map { .book(n * 10 + $0, "book \($0)") } },
            options: StoreDriver.options(segment: 16_384))
        let lost = try library.blocks("library/log/00000002.seg", segment: 2).flatMap(\.entries).map(\.seq)
        try library.files.remove("library/log/00000002.seg")
        let driver = try library.open()
        #expect(driver.store.report.lostSpans.map(\.after) == [lost[0] - 1])
        #expect(driver.store.report.lostSpans.map(\.through) == [lost[lost.count - 1]])
        var reader = Subscriber(driver.store, after: 0)
        try reader.readToEnd(driver)
        #expect(reader.lost.count == 1 && reader.received.count == 90 - lost.count)
    }

    @Test("an unfinished replacement is removed")
    func leftovers() throws {
        let library = try DamagedLibrary.threeBlocks()
        library.files.setContent("library/consumers.tmp", [1, 2, 3])
        _ = try library.open()
        #expect(library.files.content("library/consumers.tmp") == nil)
    }

    @Test("names that are no segments are left alone")
    func otherNames() throws {
        let library = try DamagedLibrary.threeBlocks()
        for name in ["1.seg", "00000002.idx", "0000000x.seg", "00000000.seg"] {
            library.files.setContent("library/log/" + name, [1])
        }
        let driver = try library.open()
        try driver.compareAll([])
        #expect(library.bytes("library/log/1.seg") == [1])
    }

    private func kind(_ version: Int, _ more: [Field], label: [Int] = [2]) throws -> Kind {
        try Kind(
            number: 1, name: "title", version: version, keyFieldCount: 1,
            fields: [Field(1, "id", .identifier, .required), Field(2, "title", .text)] + more, labelFields: label)
    }

    @Test("a library gets what a later version of a shipped kind adds, once, and keeps what its owner added")
    func laterVersion() throws {
        let files = SimulatedFiles(seed: 1)
        func open(_ kind: Kind) throws -> Store {
            var options = StoreDriver.options()
            options.kinds = [kind]
            return try Store(path: "library", options: options, files: files, now: 1)
        }
        let own = Field(129, "shelf", .text)
        let first = try open(try kind(1, []))
        guard case .staged = try first.define(KindDraft(try kind(2, [own])), now: 2), let job = first.takeCommit()
        else {
            Issue.record("the owner's field was not taken")
            return
        }
        first.finish(job.run())
        first.close()

        let also = Field(34, "also", .list, [.indexed, .personal])
        let later = try kind(2, [also], label: [2, 34])
        let second = try open(later)
        #expect(second.kinds == [try kind(3, [also, own], label: [2, 34])])
        let seq = second.lastSeq
        second.close()
        let third = try open(later)
        #expect(third.kinds == [try kind(3, [also, own], label: [2, 34])])
        #expect(third.lastSeq == seq)
        third.close()
        // An earlier Larder finds all that it knows.
        let fourth = try open(try kind(1, []))
        #expect(fourth.lastSeq == seq)
    }
}

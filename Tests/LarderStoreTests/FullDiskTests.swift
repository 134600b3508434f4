// A full disk: saves are refused as whole batches, deletes go on, and saving goes on when there is room.

import Glibc
import LarderFormat
import Testing

@testable import LarderStore

@Suite struct FullDiskTests {
    private static let large = String(repeating: "x", count: 30_000)

    /// Whether it was refused for want of room; other errors are thrown.
    private static func isFull(_ body: () throws -> Void) throws -> Bool {
        do { try body() } catch {
            if let error = error as? StoreError, case .full = error { return true }
            throw error
        }
        return false
    }

    /// Fills the disk with records; returns how many were taken.
    private static func fill(_ driver: StoreDriver, from first: Int = 1000) throws -> Int {
        for at in first..<first + 2000 {
            let isRefused = try isFull {
                try driver.write([.book(at, large)])
                try driver.commitAll()
            }
            if isRefused { return at - first }
        }
        throw Mismatch("the disk is never full")
    }

    private static func options(segment: Int = 67_108_864) -> StoreOptions {
        var options = StoreDriver.options(segment: segment)
        options.reserveByteCount = 65_536
        return options
    }

    @Test(
        "saves are refused, deletes are taken, and saving goes on when there is room", arguments: [262_144, 67_108_864])
    func resumes(segment: Int) throws {
        let files = SimulatedFiles(seed: 1)
        files.setRoom(byteCountMax: 3_000_000)
        let driver = try StoreDriver(files, options: Self.options(segment: segment))
        let count = try Self.fill(driver)
        #expect(count > 40)
        let lastSeq = driver.store.lastSeq
        #expect(driver.store.fullReason(now: 3_000_000)?.contains("No space left") == true)
        #expect(driver.store.failure == nil)
        let isRefused = try Self.isFull { try driver.write((1...9).map { .book($0, Self.large) }) }
        #expect(isRefused && driver.store.stagedByteCount == 0)
        for at in 0..<10 {
            #expect(try driver.write([.deleteBook(1000 + at)]).outcomes == [.deleted])
            try driver.commitAll()
        }
        #expect(driver.store.lastSeq == lastSeq + 10)
        try driver.compareVisible()
        files.setRoom(byteCountMax: 6_000_000)
        #expect(driver.store.fullReason(now: 3_000_000) == nil)
        try driver.write((1...9).map { .book($0, Self.large) })
        try driver.commitAll()
        try driver.compareVisible()
        try driver.reopen()
        try driver.compareVisible()
        #expect(driver.store.report.asidePath.isEmpty)
    }

    @Test("a batch of several blocks for which there is no room leaves nothing")
    func run() throws {
        let files = SimulatedFiles(seed: 1)
        var options = Self.options(segment: 4_194_304)
        options.segmentByteCountMax = 5_000_000
        let driver = try StoreDriver(files, options: options)
        try driver.write([.book(1, "one")])
        try driver.commitAll()
        let huge = String(repeating: "y", count: 900_000)
        // Each room that the run needs is refused once: from none to all of it.
        for room in stride(from: 0, to: 20_000_000, by: 300_000) {
            files.setRoom(byteCountMax: 3_000_000 + room)
            let isRefused = try Self.isFull {
                let answer = try driver.write((10..<22).map { .book($0, huge) })
                #expect(answer.outcomes == Array(repeating: .created, count: 12), "\(answer.staged)")
            }
            if !isRefused { break }
            #expect(driver.store.stagedByteCount == 0 && driver.store.failure == nil)
            try driver.write([.deleteBook(1)])
            try driver.commitAll()
            try driver.compareVisible()
        }
        try driver.commitAll()
        #expect(driver.model.visible.count == 12)
        try driver.reopen()
        try driver.compareVisible()
    }

    @Test("a clear for which there is no room clears nothing and can be done later", arguments: [8192, 67_108_864])
    func clear(segment: Int) throws {
        let files = SimulatedFiles(seed: 1)
        var options = Self.options(segment: segment)
        options.reserveByteCount = 12_288
        options.commitByteCountTarget = 4000
        let driver = try StoreDriver(files, options: options)
        try driver.write((1...6000).map { .book($0, "b") })
        try driver.commitAll()
        files.setRoom(byteCountMax: files.usedByteCount + 100_000)
        _ = try Self.fill(driver, from: 10_000)
        #expect(try Self.isFull { try driver.clear(kind: 0) })
        #expect(driver.store.failure == nil && driver.store.fullReason(now: 3_000_000) != nil)
        try driver.compareVisible()
        // The reserve is there again.
        #expect(try driver.write([.deleteBook(1)]).outcomes == [.deleted])
        try driver.commitAll()
        try driver.reopen()
        try driver.compareVisible()
        #expect(driver.store.report.cutByteCount == 0)
        files.setRoom(byteCountMax: nil)
        try driver.clear(kind: 0)
        #expect(driver.model.visible.isEmpty)
        try driver.reopen()
        try driver.compareVisible()
    }

    @Test("a library is opened on a full disk, and deletes are taken there")
    func opening() throws {
        let files = SimulatedFiles(seed: 1)
        files.setRoom(byteCountMax: 3_000_000)
        var options = Self.options()
        options.kinds = Array(TestKinds.all.dropLast())
        let driver = try StoreDriver(files, options: options)
        _ = try Self.fill(driver)
        driver.store.close()
        // The next version has a kind more.
        let again = try StoreDriver(files, options: Self.options(), model: driver.model, now: 2_000_000)
        #expect(try Self.isFull { try again.write([.book(1, Self.large)]) })
        #expect(again.store.fullReason(now: 3_000_000) != nil && again.store.failure == nil)
        #expect(again.store.kinds.count == TestKinds.all.count)
        #expect(try again.write([.deleteBook(1000)]).outcomes == [.deleted])
        try again.commitAll()
        try again.compareVisible()
    }

    @Test("what opening owes on a full disk without a reserve is written when there is room")
    func owed() throws {
        let files = SimulatedFiles(seed: 1)
        var options = Self.options()
        options.reserveByteCount = 0
        options.kinds = Array(TestKinds.all.dropLast())
        let driver = try StoreDriver(files, options: options)
        try driver.write([.book(1, "one")])
        try driver.commitAll()
        driver.store.close()
        files.setRoom(byteCountMax: files.usedByteCount)
        let again = try StoreDriver(files, options: Self.options(), model: driver.model, now: 2_000_000)
        // They are known at once, so that a save of them is refused for want of room and for nothing else.
        func declared() throws -> Int { try LogSource(library: again.path, files: files).kinds().count }
        #expect(try declared() == TestKinds.all.count - 1 && again.store.kinds.count == TestKinds.all.count)
        #expect(try Self.isFull { try again.write([.book(2, "two")]) })
        #expect(try Self.isFull { try again.write([.deleteBook(1)]) })
        try again.compareVisible()
        files.setRoom(byteCountMax: nil)
        #expect(again.store.fullReason(now: 3_000_000) == nil)
        try again.commitAll()
        #expect(try declared() == TestKinds.all.count)
        try again.write([.book(2, "two")])
        try again.commitAll()
        try again.reopen()
        try again.compareVisible()
    }

    @Test("a torn end that cannot be put aside is not cut: the library is read until there is room")
    func tornOnFullDisk() throws {
        var files = SimulatedFiles(seed: 1)
        let driver = try StoreDriver(files, options: Self.options())
        try driver.write([.book(1, "one")])
        try driver.commitAll()
        files.inject(SimulatedFault(call: "pwrite", isShort: true))
        try driver.write((2...40).map { .book($0, Self.large) })
        #expect(throws: StoreError.self) { try driver.commitAll() }
        driver.store.close()
        // With the power goes what is laid out behind the end, in which there would be room.
        var random = SplitMix64(seed: 1)
        files = files.powerCut(.keepsAll, using: &random)
        let path = "library/log/00000001.seg"
        let torn = try #require(files.content(path))
        files.setRoom(byteCountMax: files.usedByteCount)
        let reading = try StoreDriver(files, options: Self.options(), model: driver.model, now: 2_000_000)
        #expect(reading.store.failure?.contains("put aside") == true)
        #expect(reading.store.failureCode == ENOSPC)
        try reading.compareVisible()
        reading.store.close()
        let isUncut = files.content(path) == torn
        #expect(isUncut)
        #expect(try files.list("library/aside")?.isEmpty ?? true)
        files.setRoom(byteCountMax: nil)
        let again = try StoreDriver(files, options: Self.options(), model: driver.model, now: 3_000_000)
        #expect(files.content(again.store.report.asidePath)?.count == again.store.report.cutByteCount)
        try again.write([.book(2, "two")])
        try again.commitAll()
        try again.compareVisible()
    }

    @Test("on a disk that fills up and is emptied again no write ever fails")
    func random() throws {
        let seed = Setting.seed
        var refusedCount = 0
        for round in 0..<UInt64(8) {
            let files = SimulatedFiles(seed: seed &+ round)
            var source = OperationSource(seed: seed &+ round)
            var options = Self.options(segment: [16_384, 131_072, 67_108_864][Int(round % 3)])
            options.reserveByteCount = [0, 8192, 65_536][Int(round / 3)]
            options.commitByteCountTarget = 8192
            let driver = try StoreDriver(files, options: options)
            do {
                for _ in 0..<Setting.steps(400) {
                    if source.chance(10) { files.setRoom(byteCountMax: files.usedByteCount + source.below(100_000)) }
                    if source.chance(4) { files.setRoom(byteCountMax: nil) }
                    do {
                        switch source.below(12) {
                        case 0: try driver.clear(kind: source.below(3))
                        case 1: try driver.reopen()
                        case 2..<6: driver.take()
                        case 6..<8: driver.finish()
                        default:
                            let count = 1 + source.below(20)
                            try driver.write((0..<count).map { _ in source.op(model: driver.model) })
                        }
                    } catch let error as StoreError {
                        guard case .full = error else { throw error }
                        refusedCount += 1
                        try driver.compareVisible()
                    }
                    #expect(driver.failure == nil && driver.store.failure == nil)
                }
                files.setRoom(byteCountMax: nil)
                try driver.reopen()
                try driver.compareVisible()
            } catch { Issue.record("\(error) (LARDER_SEED=\(seed &+ round))") }
        }
        #expect(refusedCount > 20)
    }

    @Test("a library made where there was no room takes saves as soon as there is some", arguments: [true, false])
    func madeWithoutRoom(forLong: Bool) throws {
        var refusedCount = 0
        var owedCount = 0
        for call in 0..<20 {
            let files = SimulatedFiles(seed: 1)
            files.inject(SimulatedFault(call: nil, callsBefore: call, code: ENOSPC, isSticky: forLong))
            // Without the files that it consists of there is no library.
            guard let driver = try? StoreDriver(files, options: StoreDriver.options()) else { continue }
            guard driver.store.failure == nil else { continue }
            if !driver.store.core.room.owed.isEmpty { owedCount += 1 }
            if try Self.isFull({ try driver.write([.book(1, "as it can be")]) }) { refusedCount += 1 }
            files.clearFaults()
            guard driver.store.fullReason(now: driver.now + 1_000_000) == nil else {
                Issue.record("call \(call): there is room, and it is not seen")
                continue
            }
            // What the library was owed.
            try driver.commitAll()
            try driver.write([.book(1, "saved")])
            try driver.reopen()
            try driver.compareAll([TestOp.book(1, "").key])
        }
        #expect(owedCount > 0 && (refusedCount > 0) == forLong)
    }
}

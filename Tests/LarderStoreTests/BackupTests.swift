// Backup and restore: a durable prefix, each file whole or absent, and the same library back under a new epoch.

import Glibc
import LarderFormat
import Testing

@testable import LarderStore

@Suite struct BackupTests {
    private func books(_ from: Int, _ count: Int) -> [TestOp] { (from..<from + count).map { .book($0, "book \($0)") } }

    /// An open library of several segments.
    private func library(_ files: SimulatedFiles = SimulatedFiles(seed: 3)) throws -> StoreDriver {
        let driver = try StoreDriver(files, options: StoreDriver.options(segment: 16_384))
        for n in 0..<8 {
            try driver.write(books(n * 5 + 1, 5) + [.deleteBook(n * 5 + 1)])
            try driver.commitAll()
        }
        return driver
    }

    private func files(_ driver: StoreDriver) throws -> SimulatedFiles {
        try #require(driver.files as? SimulatedFiles)
    }

    private func source(_ files: SimulatedFiles) throws -> LogSource { try LogSource(library: "library", files: files) }

    private func content(_ files: SimulatedFiles, _ directory: String) throws -> [String: [UInt8]] {
        var found: [String: [UInt8]] = [:]
        for name in try files.list(directory) ?? [] { found[name] = files.content(directory + "/" + name) }
        return found
    }

    private func expectRestored(_ files: SimulatedFiles, _ driver: StoreDriver, _ model: Model) throws {
        let epoch = driver.store.epoch
        _ = try LogSource.restore(backup: "backup", to: "restored", files: files)
        let verified = try LogSource(library: "restored", files: files).verify()
        #expect(verified.isSound && verified.tail == nil)
        let restored = try StoreDriver(files, path: "restored", options: driver.options, model: model, now: 9_000_000)
        #expect(restored.store.identity.library == driver.store.identity.library)
        #expect(restored.store.check(epoch: epoch, seq: 1) == .expired)
        try restored.compareAll([])
        try restored.write([.book(700, "after")])
        try restored.reopen()
        try restored.compareAll([])
        restored.store.close()
    }

    @Test("a backup beside an open library holds what was answered, and comes back the same")
    func roundTrip() throws {
        let driver = try library()
        let files = try files(driver)
        let durable = driver.store.lastSeq
        let model = driver.model
        let before = try content(files, "library/log")
        var options = BackupOptions()
        options.durableSeq = durable
        let report = try source(files).backup(to: "backup", options: options, now: 5)
        #expect(report.manifest.lastSeq == durable && report.leftOutByteCount == 0)
        #expect(report.linkedCount > 0 && report.copiedCount == 1)
        #expect(try LogSource.checkBackup("backup", files: files).isSound)
        #expect(try content(files, "library/log") == before)
        try expectRestored(files, driver, model)
    }

    @Test("a block that is written and not known to be durable stays out")
    func notDurable() throws {
        let driver = try library()
        let files = try files(driver)
        let model = driver.model
        var options = BackupOptions()
        options.durableSeq = driver.store.lastSeq
        try driver.write([.book(900, "in the air")])
        driver.take()
        files.inject(SimulatedFault(call: "fdatasync"))
        driver.finish()
        files.clearFaults()
        let report = try source(files).backup(to: "backup", options: options, now: 5)
        #expect(report.leftOutByteCount == 4096)
        try expectRestored(files, driver, model)
    }

    @Test("without a host's word only what blocks vouch for is taken; of a closed library all is")
    func vouched() throws {
        let driver = try library()
        let files = try files(driver)
        let report = try source(files).backup(to: "backup", now: 5)
        #expect(report.manifest.lastSeq < driver.store.lastSeq && report.leftOutByteCount == 4096)
        driver.store.close()
        let closed = try source(files).backup(to: "backup", now: 6)
        #expect(closed.manifest.lastSeq == driver.store.lastSeq && closed.leftOutByteCount == 0)
    }

    @Test("a second backup writes only what is new, and copies the segment that grew")
    func incremental() throws {
        let driver = try library()
        let files = try files(driver)
        driver.store.close()
        for copies in [false, true] {
            var options = BackupOptions()
            options.copiesAll = copies
            let target = copies ? "copies" : "backup"
            let first = try source(files).backup(to: target, options: options, now: 5)
            #expect(copies == (first.linkedCount == 0))
            let count = first.manifest.segments.count
            #expect(count > 2)
            let second = try source(files).backup(to: target, options: options, now: 6)
            #expect(second.keptCount == count && second.copiedCount == 0 && second.linkedCount == 0)
            let again = try StoreDriver(
                files, options: driver.options, model: driver.model, now: 6_000_000 + (copies ? 1 : 0))
            try again.write([.book(copies ? 801 : 800, "new")])
            try again.commitAll()
            again.store.close()
            driver.model = again.model
            let third = try source(files).backup(to: target, options: options, now: 7)
            #expect(third.copiedCount + third.linkedCount <= 2 && third.keptCount >= count - 1)
            #expect(try LogSource.checkBackup(target, files: files).isSound)
            // Nothing is left that the manifest does not name.
            #expect(try files.list(target + "/log")?.count == third.manifest.segments.count)
        }
    }

    @Test("on a real file system sealed segments are links, the last one is a copy, and all comes back")
    func realFiles() throws {
        let directory = try temporaryDirectory()
        defer { Self.removeAll(directory) }
        let files = SystemFiles()
        let driver = try StoreDriver(
            files, path: directory + "/library", options: StoreDriver.options(segment: 16_384))
        for n in 0..<12 {
            try driver.write(books(n * 5 + 1, 5))
            try driver.commitAll()
        }
        #expect(try files.isLocked(directory + "/library/lock"))
        var options = BackupOptions()
        options.durableSeq = driver.store.lastSeq
        let source = try LogSource(library: directory + "/library", files: files)
        let report = try source.backup(to: directory + "/backup", options: options, now: 5)
        #expect(report.copiedCount == 1 && report.linkedCount == report.manifest.segments.count - 1)
        #expect(report.linkedCount > 1)
        for segment in report.manifest.segments {
            let isLink = try files.isSameFile(
                directory + "/library/log/" + Segment.name(segment.number),
                directory + "/backup/log/" + segment.fileName)
            #expect(isLink == (segment.number != report.manifest.segments.last?.number))
        }
        #expect(
            try source.backup(to: directory + "/backup", options: options, now: 6).keptCount
                == report.manifest.segments.count)
        let verified = try LogSource.restore(
            backup: directory + "/backup", to: directory + "/restored", files: files)
        #expect(verified.recordCount == 60 && verified.lastSeq == driver.store.lastSeq)
        let restored = try StoreDriver(
            files, path: directory + "/restored", options: driver.options, model: driver.model, now: 9_000_000)
        try restored.compareAll([])
        restored.store.close()
        driver.store.close()
        #expect(try !files.isLocked(directory + "/library/lock"))
    }

    private func temporaryDirectory() throws -> String {
        var name = Array("/tmp/larder-backup-XXXXXX".utf8CString)
        return try #require(mkdtemp(&name).map { String(cString: $0) })
    }

    private static func removeAll(_ directory: String) {
        for name in (try? SystemFiles().list(directory)) ?? [] {
            let path = directory + "/" + name
            if unlink(path) != 0 { removeAll(path) }
        }
        rmdir(directory)
    }

    @Test("where there are no links, copies are made")
    func noLinks() throws {
        let driver = try library()
        let files = try files(driver)
        files.inject(SimulatedFault(call: "link", code: 18, isSticky: true))
        let report = try source(files).backup(to: "backup", now: 5)
        #expect(report.linkedCount == 0 && report.copiedCount == report.manifest.segments.count)
        #expect(try LogSource.checkBackup("backup", files: files).isSound)
    }

    @Test("a rotten copy is found by a check, refused by a restore, and replaced by the next backup")
    func rot() throws {
        let driver = try library()
        let files = try files(driver)
        var options = BackupOptions()
        options.copiesAll = true
        let report = try source(files).backup(to: "backup", options: options, now: 5)
        let path = "backup/log/" + report.manifest.segments[0].fileName
        var bytes = try #require(files.content(path))
        bytes[5000] ^= 1
        files.setContent(path, bytes)
        let check = try LogSource.checkBackup("backup", files: files)
        #expect(!check.isSound && check.faults.count == 1)
        #expect(throws: StoreError.self) { try LogSource.restore(backup: "backup", to: "restored", files: files) }
        #expect(files.content("restored/larder") == nil)
        _ = try source(files).backup(to: "backup", options: options, now: 6)
        #expect(try LogSource.checkBackup("backup", files: files).isSound)
        try files.remove(path)
        #expect(try !LogSource.checkBackup("backup", files: files).isSound)
    }

    @Test("every flipped byte of the manifest and the identity is refused")
    func manifest() throws {
        let driver = try library()
        let files = try files(driver)
        _ = try source(files).backup(to: "backup", now: 5)
        for name in ["manifest", "identity"] {
            let good = try #require(files.content("backup/" + name))
            for at in good.indices {
                var bytes = good
                bytes[at] ^= 1
                files.setContent("backup/" + name, bytes)
                #expect(throws: StoreError.self) { try LogSource.backup("backup", files: files) }
            }
            for count in 0..<good.count {
                files.setContent("backup/" + name, Array(good[..<count]))
                #expect(throws: StoreError.self) { try LogSource.backup("backup", files: files) }
            }
            files.setContent("backup/" + name, good)
        }
    }

    @Test("a damaged library does not replace a good backup unless that is asked for")
    func damaged() throws {
        let driver = try library()
        let files = try files(driver)
        driver.store.close()
        var options = BackupOptions()
        options.copiesAll = true
        _ = try source(files).backup(to: "backup", options: options, now: 5)
        var bytes = try #require(files.content("library/log/00000001.seg"))
        bytes[4096 + 9] ^= 1
        files.setContent("library/log/00000001.seg", bytes)
        let before = try content(files, "backup/log")
        #expect(throws: StoreError.self) { try source(files).backup(to: "backup", options: options, now: 6) }
        #expect(try content(files, "backup/log") == before)
        options.takesDamaged = true
        #expect(try source(files).backup(to: "backup", options: options, now: 6).verified.damageCount == 1)
        #expect(try LogSource.checkBackup("backup", files: files).verified?.damageCount == 1)
    }

    @Test("a place with a library, another library's backup or other things is refused and left as it is")
    func places() throws {
        let driver = try library()
        let files = try files(driver)
        #expect(throws: StoreError.self) { try source(files).backup(to: "library", now: 5) }
        files.setContent("other/letter.txt", [1])
        #expect(throws: StoreError.self) { try source(files).backup(to: "other", now: 5) }
        _ = try source(files).backup(to: "backup", now: 5)
        let stranger = try StoreDriver(files, path: "stranger")
        stranger.store.close()
        #expect(throws: StoreError.self) {
            try LogSource(library: "stranger", files: files).backup(to: "backup", now: 5)
        }
        #expect(throws: StoreError.self) { try LogSource.restore(backup: "backup", to: "library", files: files) }
        #expect(throws: StoreError.self) { try LogSource.restore(backup: "backup", to: "backup", files: files) }
        #expect(try LogSource.checkBackup("backup", files: files).isSound)
    }

    @Test("power that goes at any change leaves the old backup or the new one, and the library as it was")
    func powerCuts() throws {
        var random = SplitMix64(seed: 11)
        var cuts = 0
        var wholes = Set<UInt64>()
        while cuts < 200 {
            let driver = try library(SimulatedFiles(seed: 3))
            let files = try files(driver)
            driver.store.close()
            let old = try source(files).backup(to: "backup", now: 5).manifest.lastSeq
            let again = try StoreDriver(files, options: driver.options, model: driver.model, now: 6_000_000)
            try again.write(books(600, 90))
            try again.commitAll()
            let new = again.store.lastSeq
            again.store.close()
            let library = try content(files, "library/log")
            files.cutPower(afterMutations: cuts)
            _ = try? source(files).backup(to: "backup", now: 6)
            let hadPower = files.hasPower
            let found = files.powerCut(using: &random)
            let check = try LogSource.checkBackup("backup", files: found)
            #expect(check.isSound, "cut \(cuts): \(check.faults)")
            #expect([old, new].contains(check.manifest.lastSeq), "cut \(cuts)")
            wholes.insert(check.manifest.lastSeq)
            #expect(try content(found, "library/log") == library, "cut \(cuts)")
            // The next one is made over what is left.
            _ = try source(found).backup(to: "backup", now: 7)
            #expect(try LogSource.checkBackup("backup", files: found).manifest.lastSeq == new)
            if hadPower { break }
            cuts += 1
        }
        #expect(wholes.count == 2 && cuts > 5 && cuts < 200)
    }

    @Test("power that goes at any change of a restore leaves no library or the whole one")
    func restorePowerCuts() throws {
        var random = SplitMix64(seed: 12)
        let driver = try library()
        let files = try files(driver)
        driver.store.close()
        _ = try source(files).backup(to: "backup", now: 5)
        var cuts = 0
        var wholeCount = 0
        while cuts < 200 {
            let fresh = files.powerCut(.keepsAll, using: &random)
            fresh.cutPower(afterMutations: cuts)
            _ = try? LogSource.restore(backup: "backup", to: "restored", files: fresh)
            let hadPower = fresh.hasPower
            let found = fresh.powerCut(using: &random)
            if found.content("restored/larder") != nil {
                let report = try LogSource(library: "restored", files: found).verify()
                #expect(report.isSound && report.recordCount == 32, "cut \(cuts)")
                wholeCount += 1
            }
            if hadPower { break }
            cuts += 1
        }
        #expect(wholeCount > 0 && cuts > 5 && cuts < 200)
    }
}

// Golden libraries: files that every later version must read, with what must be read from them.
// LARDER_MAKE_GOLDEN=1 writes those that are not there yet.

import Glibc
import LarderFormat
import Testing

@testable import LarderStore

@Suite(.serialized) struct GoldenTests {
    private static let directory =
        String(#filePath.dropLast("Tests/LarderStoreTests/GoldenTests.swift".count))
        + "Protocol/golden/format-1/"
    private let system = SystemFiles()

    /// A copy of the library's files on a simulated disk.
    private func copy(_ name: String) throws -> SimulatedFiles {
        let files = SimulatedFiles(seed: 1)
        let path = Self.directory + name
        for file in ["larder"] + (try system.list(path + "/log") ?? []).map({ "log/" + $0 }) {
            files.setContent("library/" + file, try #require(try system.readWhole(path + "/" + file)))
        }
        return files
    }

    @Test("a golden library is read as its manifest says", arguments: GoldenMaker.names)
    func manifest(name: String) throws {
        let path = Self.directory + name
        if Setting.number("LARDER_MAKE_GOLDEN") == 1, try system.list(path) == nil {
            let maker = try GoldenMaker(name)
            try system.makeDirectory(path + "/log")
            for (file, bytes) in try maker.content() { try system.replaceWhole(path + "/" + file, with: bytes) }
            let lines = try GoldenManifest(maker.files).lines.joined(separator: "\n") + "\n"
            try system.replaceWhole(path + "/manifest", with: Array(lines.utf8))
        }
        let wanted = GoldenManifest(text: try #require(try system.readWhole(path + "/manifest")))
        #expect(wanted.lines.count > 5)
        #expect(try GoldenManifest(try copy(name)).lines == wanted.lines)
    }

    @Test("the files come out of this version as they did of the first", arguments: GoldenMaker.names)
    func made(name: String) throws {
        let files = try copy(name)
        for (file, bytes) in try GoldenMaker(name).content() {
            let golden = files.content("library/" + file)
            // What zstd makes differs from one version of it to the next.
            if let flags = golden?[5], file != "larder", flags & BlockHeader.compressed != 0 { continue }
            #expect(golden == bytes, "\(file)")
        }
    }

    @Test("a host opens a golden library, writes, and finds the same again", arguments: GoldenMaker.names)
    func written(name: String) throws {
        let files = try copy(name)
        let before = files.content(DamagedLibrary.first) ?? []
        let wanted = try GoldenManifest(files).lines.filter { $0.hasPrefix("record") || $0.hasPrefix("undeclared") }
        for round in 1...2 {
            let store = try Store(path: "library", options: StoreDriver.options(), files: files, now: 2_000_000_000_000)
            guard
                case .staged = try store.define(
                    KindDraft(try kind("own\(round)"), number: 0, version: 0), now: 2_000_000_000_000),
                let job = store.takeCommit()
            else {
                Issue.record("nothing was staged")
                return
            }
            store.finish(job.run())
            // A kind that the log has without its declaration keeps its number.
            #expect(store.kinds.allSatisfy { $0.number != GoldenMaker.undeclaredKind })
            store.close()
        }
        let after = try GoldenManifest(files).lines
        #expect(after.filter { $0.hasPrefix("record") || $0.hasPrefix("undeclared") } == wanted)
        // Nothing that was whole has changed, what is not known to this version among it.
        let whole = name == "torn-tail" ? 4 * 4096 : before.count
        #expect((files.content(DamagedLibrary.first) ?? []).prefix(whole) == before.prefix(whole))
    }

    private func kind(_ name: String) throws -> Kind {
        try Kind(
            number: 99, name: name, version: 1, keyFieldCount: 1, fields: [Field(1, "id", .identifier, .required)],
            labelFields: [])
    }

    @Test("entries that are not known are streamed past, and those of a field that is not known are shown as they are")
    func unknown() throws {
        let store = try Store(
            path: "library", options: StoreDriver.options(), files: try copy("all-entries"), now: 2_000_000_000_000)
        defer { store.close() }
        #expect(store.report.undeclaredKinds == [GoldenMaker.undeclaredKind: 1])
        let key = TestOp.book(7, "").key
        guard case .found(let record) = try key.bytes.withUnsafeBytes({ try store.get(kind: 2, key: $0) }) else {
            Issue.record("a record with a field that is not declared is not found")
            return
        }
        #expect(Array(record.record).suffix(6) == Encode.text("later")[...])
    }

    @Test("a library of format 2, by its identity or by a block, is refused with both numbers, and left as it is")
    func newerFormat() throws {
        for isBlock in [false, true] {
            let files = try copy("all-entries")
            let path = isBlock ? DamagedLibrary.first : "library/larder"
            var bytes = try #require(files.content(path))
            bytes[isBlock ? 4 : 8] = 2
            let head = isBlock ? Array(bytes[..<60]) + Array(bytes[64..<88]) : Array(bytes[..<124])
            let crc = head.withUnsafeBytes { crc32c($0) }
            for at in 0..<4 { bytes[(isBlock ? 60 : 124) + at] = UInt8(truncatingIfNeeded: crc >> UInt32(8 * at)) }
            files.setContent(path, bytes)
            do throws(StoreError) {
                _ = try Store(path: "library", options: StoreDriver.options(), files: files, now: 1)
                Issue.record("it was opened")
            } catch {
                guard case .newerFormat(_, found: 2, supported: 1) = error else {
                    Issue.record("\(error)")
                    continue
                }
                #expect("\(error)".contains("format 2") && "\(error)".contains("1"))
            }
            #expect(files.content(path) == bytes)
        }
    }
}

// Makes the libraries of Protocol/golden: with a fixed clock and fixed ids, so that they come out the same.

import LarderFormat

@testable import LarderStore

/// Lays out one golden library on a simulated disk. Released ones never change: each format gets its own directory.
struct GoldenMaker {
    let files = SimulatedFiles(seed: 1)
    var options: StoreOptions
    /// 2026-01-31T08:00:00.000Z.
    static let clock: Int64 = 1_769_846_400_000
    /// Not declared by any host: only its number is in the log.
    static let undeclaredKind = 201
    /// `compressed` can be made and read where zstd is installed.
    static let names =
        ["all-entries", "segments-and-run", "torn-tail", "damaged-block", "compacted"]
        + (Zstandard.isInstalled ? ["compressed"] : [])

    private struct FixedIds: RandomNumberGenerator {
        private var state: UInt64 = 0x9B1F_00C2_A4D3_E5F6
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state
        }
    }

    init(_ name: String) throws {
        options = StoreDriver.options(segment: ["segments-and-run", "compacted"].contains(name) ? 16_384 : 1 << 20)
        options.commitByteCountTarget = 8_192
        var ids = FixedIds()
        files.setContent("library/larder", Identity(now: Self.clock, using: &ids).encoded)
        try files.makeDirectory("library/log")
        let driver = try StoreDriver(files, options: options, now: Self.clock)
        switch name {
        case "all-entries": try allEntries(driver)
        case "segments-and-run": try segmentsAndRun(driver)
        case "compacted": try compacted(driver)
        case "compressed": try compressed(driver)
        default: for n in 0..<4 { try commit(driver, (1...5).map { .book(n * 10 + $0, "책 \($0)") }) }
        }
        try driver.commitAll()
        driver.store.close()
        if name == "torn-tail" { change { Array($0.dropLast(3_960)) } }
        if name == "damaged-block" {
            change { bytes in bytes.indices.map { $0 == 4096 * 2 + 140 ? bytes[$0] ^ 8 : bytes[$0] } }
        }
    }

    private func change(_ change: ([UInt8]) -> [UInt8]) {
        files.setContent(DamagedLibrary.first, change(files.content(DamagedLibrary.first) ?? []))
    }

    private func commit(_ driver: StoreDriver, _ ops: [TestOp]) throws {
        try driver.write(ops)
        try driver.commitAll()
    }

    private func allEntries(_ driver: StoreDriver) throws {
        let begun = try driver.store.beginImport(
            programName: "importer", source: "books.jsonl", token: "t1", now: driver.now)
        let origin = begun?.origin ?? 0
        try driver.write((1...6).map { .book($0, "책 \($0)") }, origin: origin, batchNumber: 1)
        _ = try driver.store.endImport(
            origin: origin, outcome: 1, counts: [6, 6, 0, 0, 0, 0, 0, 0], now: driver.now)
        try commit(driver, [.book(2, "café"), .deleteBook(3), .book(3, "again"), .deleteBook(5)])
        try commit(driver, [.move(TestKinds.book, from: TestOp.book(4, "").fields, TestOp.book(44, "moved").fields)])
        // What a newer Larder may write: another type of entry, a kind and a field that this one does not know.
        try stage(driver, 77, [1, 2, 3])
        var known = TestOp.book(7, "with a field that is not declared").fields
        known[200] = Encode.text("later")
        try stage(driver, EntryType.created, entryBody(TestKinds.book.number, Encode.record(known)))
        try stage(driver, EntryType.created, entryBody(Self.undeclaredKind, [1, 1, 1]))
        // A tail that was cut once: the log goes on behind a jump.
        try driver.reopen { change { $0 + [UInt8](repeating: 0xA5, count: 600) } }
        try commit(driver, [.book(8, "behind the gap")])
    }

    private func entryBody(_ kind: Int, _ record: [UInt8]) -> [UInt8] {
        var body = ByteWriter()
        body.varint(kind)
        body.varint(1)
        body.raw(record)
        return body.bytes
    }

    private func stage(_ driver: StoreDriver, _ type: UInt8, _ body: [UInt8]) throws {
        guard case .ready = try driver.store.core.makeRoom(body.count + 200, isRun: false, now: driver.now) else {
            throw Mismatch("no room")
        }
        try driver.store.core.stageOther(type, body)
        try driver.commitAll()
    }

    private func segmentsAndRun(_ driver: StoreDriver) throws {
        let long = String(repeating: "long ", count: 60)
        for n in 0..<4 { try commit(driver, (1...20).map { .book(n * 100 + $0, "\(long)\($0)") }) }
        try commit(driver, (0..<5).map { .save(TestKinds.joke, [1: Encode.uuid($0), 2: Encode.text("농담 \($0)")]) })
        try driver.clear(kind: 2)
        try commit(driver, [.book(1, "after the clear")])
    }

    /// What is left of the clear's run are its flags, in segments of which nothing else stays.
    private func compacted(_ driver: StoreDriver) throws {
        try segmentsAndRun(driver)
        for n in 0..<5 { try commit(driver, (1...200).map { .book(10_000 + n * 200 + $0, "short") }) }
        try driver.clear(kind: 2)
        for round in 0..<3 {
            try commit(driver, (1...30).map { .book(1_000 + $0, "\(round) " + String(repeating: "long ", count: 40)) })
        }
        try commit(driver, (1...10).map { .deleteBook(1_000 + $0) })
        var request = CompactionRequest()
        request.includesLast = true
        try driver.compact(request)
        try commit(driver, [.book(1_020, "behind the floor"), .deleteBook(1_011), .book(2_000, "뒤")])
    }

    /// A segment of compressed blocks of several pieces, then one as it was written.
    private func compressed(_ driver: StoreDriver) throws {
        try commit(driver, (0..<5).map { .save(TestKinds.joke, [1: Encode.uuid($0), 2: Encode.text("농담 \($0)")]) })
        let text = (0..<220).map { "word \($0 * $0 % 977)" }.joined(separator: " ")
        for n in 0..<4 { try commit(driver, (1...10).map { .book(100 + n * 10 + $0, "\(n) \($0) \(text)") }) }
        try commit(driver, [.book(105, "changed"), .deleteBook(106), .book(300, "짧은")])
        var request = CompactionRequest()
        request.includesLast = true
        request.compression = .zstd
        request.keepsHistorySince = .min
        try driver.compact(request)
        try commit(driver, [.book(301, "behind it"), .deleteBook(107)])
    }

    /// Every file of the library, by its path inside it.
    func content() throws -> [String: [UInt8]] {
        var content = ["larder": files.content("library/larder") ?? []]
        for name in try files.list("library/log") ?? [] {
            content["log/" + name] = files.content("library/log/" + name)
        }
        return content
    }
}

/// What must be read from a golden library: a line for each record and each loss.
struct GoldenManifest {
    /// `record KIND SEQ SAVED_SEQ SAVED_AT CHANGED_AT ORIGIN HEX`, `lost AFTER THROUGH`, `cut BYTES`,
    /// `undeclared KIND ENTRIES`, `entries COUNT`.
    let lines: [String]

    /// Reads a library without changing it.
    init(_ files: any StoreFiles, path: String = "library") throws {
        var options = StoreDriver.options()
        options.isReadOnly = true
        options.readsWholeLog = true
        let driver = try StoreDriver(files, path: path, options: options)
        defer { driver.store.close() }
        var lines: [String] = []
        var cursor = PageCursor(kind: 0, isReverse: false, limit: 10_000, byteLimit: 1 << 30, after: nil)
        while case .cold(let read) = try driver.store.page(
            &cursor,
            { record in
                lines.append(
                    "record \(record.kind) \(record.seq) \(record.firstSeq) \(record.savedAt) \(record.changedAt) "
                        + "\(record.origin) " + record.record.map { hex($0) }.joined())
            })
        { try driver.read(read) }
        let report = driver.store.report
        lines += report.lostSpans.map { "lost \($0.after) \($0.through)" }
        if report.cutByteCount > 0 { lines.append("cut \(report.cutByteCount)") }
        lines += report.undeclaredKinds.sorted { $0.key < $1.key }.map { "undeclared \($0.key) \($0.value)" }
        lines.append("entries \(report.entryCount)")
        self.lines = lines
    }

    init(text: [UInt8]) { lines = String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init) }
}

private func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }

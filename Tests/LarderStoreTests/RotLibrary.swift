// A library of a mebibyte with every kind of entry, and copies of it to be spoilt.

import LarderFormat

@testable import LarderStore

/// A closed library as files. Made once: the same for every test of a run.
struct RotLibrary {
    struct Block {
        var position: LogPosition
        var header: BlockHeader
        /// Offset behind the last entry, or behind the compressed payload, in the file.
        var payloadEnd: Int
        /// Of a compressed block without places of their own.
        var entries: [(offset: Int, byteCount: Int, seq: UInt64, type: UInt8)]

        var range: Range<Int> { Int(position.offset)..<Int(position.offset) + Int(header.blockByteCount) }
        /// The bytes that something depends on: the rest is padding.
        var usedRange: Range<Int> { range.lowerBound..<payloadEnd }
        var firstSeq: UInt64 { entries.first?.seq ?? 0 }
        var lastSeq: UInt64 { entries.last?.seq ?? 0 }
    }

    static let options: StoreOptions = {
        var options = StoreDriver.options(segment: 131_072)
        // The clears' runs are of several blocks.
        options.commitByteCountTarget = 8_192
        return options
    }()
    static let made = Result { try RotLibrary(seed: 11, .log) }
    private static let compacted = Result { try RotLibrary(seed: 12, .compacted) }
    private static let compressed = Result { try RotLibrary(seed: 13, .compressed) }

    enum Form: CaseIterable {
        /// A log as it was written.
        case log
        /// One whose first segments were rewritten by a compaction, and that went on.
        case compacted
        /// The same with compressed blocks.
        case compressed

        /// Those of which single entries have a place in the file.
        static let plain: [Form] = [.log, .compacted]
        /// All that can be made here.
        static var made: [Form] { Zstandard.isInstalled ? allCases : plain }
    }

    /// Every one in `.ci/long rot`, else every third, its ends among them.
    static func some(_ range: ClosedRange<Int>) -> [Int] {
        let isAll = Setting.number("LARDER_ROT_REOPENS") != nil
        return range.filter { isAll || $0 == range.upperBound || ($0 - range.lowerBound) % 3 == 0 }
    }

    static func made(_ form: Form) throws -> RotLibrary {
        switch form {
        case .log: try made.get()
        case .compacted: try compacted.get()
        case .compressed: try compressed.get()
        }
    }

    let identity: [UInt8]
    /// By number, less one.
    let segments: [[UInt8]]
    /// What a compaction rewrote, as it was before.
    let earlierSegments: [[UInt8]]
    let epoch: UInt64
    let model: Model
    /// What is in the log and what a compaction has dropped, in order.
    let allEvents: [ModelEvent]
    let blocks: [Block]
    /// The highest synced position that a block names: what lies before it is vouched for.
    let synced: LogPosition

    static func name(_ number: Int) -> String { "library/log/" + Segment.name(UInt32(number)) }

    init(seed: UInt64, _ form: Form) throws {
        let isCompacted = form != .log
        let files = SimulatedFiles(seed: seed)
        let driver = try StoreDriver(files, options: Self.options)
        var life = RotLife(seed: seed)
        try life.live(driver, files)
        try driver.commitAll()
        if isCompacted { try life.crossBorder(driver) }
        let earlierEvents = driver.model.events
        earlierSegments = isCompacted ? Self.segments(files) : []
        if isCompacted { try life.compact(driver, compresses: form == .compressed) }
        model = driver.model
        allEvents = earlierEvents + model.events.filter { $0.seq > earlierEvents.last?.seq ?? 0 }
        epoch = driver.store.epoch
        driver.store.close()
        identity = files.content("library/larder") ?? []
        segments = Self.segments(files)
        var blocks: [Block] = []
        for (at, bytes) in segments.enumerated() {
            blocks += try Self.blocks(bytes, segment: UInt32(at + 1), epoch: epoch)
        }
        self.blocks = blocks
        synced = blocks.map(\.header.synced).max() ?? LogPosition(segment: 0, offset: 0)
    }

    private static func segments(_ files: SimulatedFiles) -> [[UInt8]] {
        var segments: [[UInt8]] = []
        while let bytes = files.content(name(segments.count + 1)) { segments.append(bytes) }
        return segments
    }

    /// A disk with this library on it, its segments changed.
    func disk(_ change: (inout [[UInt8]?]) -> Void) -> SimulatedFiles {
        var content: [[UInt8]?] = segments
        change(&content)
        let files = SimulatedFiles(seed: 1)
        files.setContent("library/larder", identity)
        for (at, bytes) in content.enumerated() {
            if let bytes { files.setContent(Self.name(at + 1), bytes) }
        }
        return files
    }

    static func blocks(_ bytes: [UInt8], segment: UInt32, epoch: UInt64) throws -> [Block] {
        var blocks: [Block] = []
        try bytes.withUnsafeBytes { raw in
            guard let base = raw.baseAddress else { return }
            var offset = 0
            while offset < raw.count {
                let position = LogPosition(segment: segment, offset: UInt32(offset))
                let header = try BlockHeader(
                    UnsafeRawBufferPointer(rebasing: raw[offset...]), epoch: epoch, position: position)
                var block = Block(position: position, header: header, payloadEnd: 0, entries: [])
                if header.isCompressed {
                    let window = Window(capacity: 0)
                    let packed = UnsafeRawBufferPointer(rebasing: raw[offset...])
                    try withExtendedLifetime(window) {
                        try BlockContents(ScannedBlock(header, packed: packed, in: window)).entries { entry, _, _ in
                            block.entries.append((Int.min, 0, entry.seq, entry.type))
                        }
                    }
                    block.payloadEnd = offset + header.byteCount + Int(header.storedByteCount)
                    blocks.append(block)
                    offset += Int(header.blockByteCount)
                    continue
                }
                var at = offset + header.byteCount
                for commit in header.commits {
                    let end = at + Int(commit.plainByteCount)
                    while at < end {
                        let entry = try readEntry(
                            base: base, offset: at, end: end, commitFirstSeq: commit.firstSeq, commitTime: commit.time)
                        block.entries.append((at, entry.byteCount, entry.seq, entry.type))
                        at += entry.byteCount
                    }
                }
                block.payloadEnd = at
                blocks.append(block)
                offset += Int(header.blockByteCount)
            }
        }
        return blocks
    }
}

/// How the library came to be what it is.
private struct RotLife {
    var source: OperationSource

    init(seed: UInt64) {
        source = OperationSource(seed: seed)
        source.largeByteCountMax = 6_000
    }

    mutating func live(_ driver: StoreDriver, _ files: SimulatedFiles) throws {
        let imported = try driver.store.beginImport(
            programName: "importer", source: "file", token: "t1", now: driver.now)
        for round in 0..<130 {
            try write(driver, round, imported?.origin ?? 0)
            if round == 60 { try driver.clear(kind: 3) }
            if round == 90 || round == 110 { try driver.clear(kind: 2) }
            // An entry of a type that is not known yet.
            if round % 40 == 20 { try other(driver, [UInt8(round), 2, 3]) }
            // More than a segment takes.
            if round == 45 || round == 95 {
                try driver.write((0..<60).map { .book(20_000 + $0, String(repeating: "run \(round) ", count: 700)) })
                try driver.commitAll()
            }
            if round == 70 { try tear(driver, files) }
        }
        if let imported {
            _ = try driver.store.endImport(
                origin: imported.origin, outcome: 1, counts: [9, 8, 7, 6, 5, 4, 3, 2], now: driver.now)
        }
        try driver.commitAll()
        for id in 0..<5 { try driver.write([.book(30_000 + id, "last")]) }
    }

    /// A clear whose run begins in one segment and ends in the next.
    mutating func crossBorder(_ driver: StoreDriver) throws {
        // So many that their deletes are more than a segment takes.
        for first in stride(from: 40_000, to: 47_000, by: 1_000) {
            try driver.write((first..<first + 1_000).map { .book($0, "b") })
            try driver.commitAll()
        }
        try driver.clear(kind: 2)
        for round in 130..<150 { try write(driver, round, 0) }
        try driver.commitAll()
    }

    mutating func compact(_ driver: StoreDriver, compresses: Bool) throws {
        var request = CompactionRequest()
        if compresses { request.compression = .zstd }
        request.includesLast = true
        // Some versions are kept, so that they can be undone.
        request.keepsHistorySince = driver.now - 300
        try driver.compact(request)
        for round in 150..<180 { try write(driver, round, 0) }
        try driver.commitAll()
    }

    private mutating func write(_ driver: StoreDriver, _ round: Int, _ origin: UInt64) throws {
        switch round % 5 {
        case 0:
            try driver.write(
                (0..<60).map { .book(1 + round * 60 + $0, "book \($0) of \(round)") }, origin: origin,
                batchNumber: origin == 0 ? 0 : UInt64(round + 1))
        case 1: try driver.write((0..<30).map { .book(1 + source.below(round * 60 + 1), "again \($0)") })
        case 2: try driver.write((0..<20).map { _ in .deleteBook(1 + source.below(round * 60 + 1)) })
        default:
            // Batches that share a commit, and commits under way while others are staged.
            for _ in 0..<3 { try driver.write((0..<12).map { _ in source.op(model: driver.model) }, program: "p1") }
        }
        if source.chance(80) { driver.finish() }
        driver.take()
    }

    private func other(_ driver: StoreDriver, _ body: [UInt8]) throws {
        try driver.commitAll()
        guard case .ready = try driver.store.core.makeRoom(100, isRun: false, now: driver.now) else { return }
        try driver.store.core.stageOther(77, body)
        try driver.commitAll()
    }

    /// A tail that is torn and cut: the log goes on behind a jump.
    private func tear(_ driver: StoreDriver, _ files: SimulatedFiles) throws {
        try driver.commitAll()
        try driver.reopen {
            var number = 1
            while files.content(RotLibrary.name(number + 1)) != nil { number += 1 }
            let name = RotLibrary.name(number)
            files.setContent(name, (files.content(name) ?? []) + [UInt8](repeating: 0xA5, count: 700))
        }
    }
}

// Libraries laid out for damage: blocks with known places, and ways to spoil them.

import LarderFormat

@testable import LarderStore

/// A closed library of books, one commit a block, and where everything lies.
struct DamagedLibrary {
    let files = SimulatedFiles(seed: 7)
    let options: StoreOptions
    private(set) var model: Model
    private(set) var lastSeq: UInt64
    private(set) var epoch: UInt64

    struct Block {
        var offset: Int
        var byteCount: Int
        var payloadEnd: Int
        /// Offset and seq of each entry.
        var entries: [(offset: Int, seq: UInt64)]
    }

    static let first = "library/log/00000001.seg"
    static func book(_ id: Int) -> RecordKey {
        RecordKey(kind: 2, bytes: Encode.key(TestOp.book(id, "").fields, TestKinds.book))
    }

    /// - Parameter batches: each becomes a commit of its own. The kinds lie before, the origin in the first.
    init(_ batches: [[TestOp]], options: StoreOptions = StoreDriver.options(segment: 1 << 20)) throws {
        self.options = options
        let driver = try StoreDriver(files, options: options)
        for batch in batches {
            try driver.write(batch)
            try driver.commitAll()
        }
        model = driver.model
        lastSeq = driver.store.lastSeq
        epoch = driver.store.epoch
        driver.store.close()
        // What is damaged here is found by reading the whole log.
        try files.remove("library/checkpoint")
    }

    /// Three commits of ten books: blocks 1, 2 and 3.
    static func threeBlocks() throws -> DamagedLibrary {
        try DamagedLibrary((0..<3).map { n in (1...10).map { .book(n * 10 + $0, "book \($0)") } })
    }

    func open() throws -> StoreDriver { try StoreDriver(files, options: options, model: model, now: 5_000_000) }

    func bytes(_ path: String = first) -> [UInt8] { files.content(path) ?? [] }

    func blocks(_ path: String = first, segment: UInt32 = 1) throws -> [Block] {
        let bytes = bytes(path)
        var blocks: [Block] = []
        var offset = 0
        try bytes.withUnsafeBytes { raw in
            while offset < bytes.count {
                let header = try BlockHeader(
                    UnsafeRawBufferPointer(rebasing: raw[offset...]), epoch: epoch,
                    position: LogPosition(segment: segment, offset: UInt32(offset)))
                guard let base = raw.baseAddress, let commit = header.commits.first else { return }
                let end = offset + header.byteCount + Int(commit.plainByteCount)
                var block = Block(offset: offset, byteCount: Int(header.blockByteCount), payloadEnd: end, entries: [])
                var at = offset + header.byteCount
                while at < end {
                    let entry = try readEntry(
                        base: base, offset: at, end: end, commitFirstSeq: commit.firstSeq, commitTime: commit.time)
                    block.entries.append((at, entry.seq))
                    at += entry.byteCount
                }
                blocks.append(block)
                offset += block.byteCount
            }
        }
        return blocks
    }

    func spoil(_ path: String = first, _ change: (inout [UInt8]) -> Void) {
        var bytes = bytes(path)
        change(&bytes)
        files.setContent(path, bytes)
    }

    /// Takes from the model what must be gone: the last so many changes.
    mutating func expectLast(_ count: Int) {
        var short = Model()
        for event in model.events.dropLast(count) { short.append(event, seq: event.seq, time: event.time, commit: 0) }
        short.endBatch()
        short.finish(commit: 0)
        model = short
    }
}

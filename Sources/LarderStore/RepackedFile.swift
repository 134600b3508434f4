// The file of a segment that is written anew, block by block. FORMAT.md sections 7 and 18.

import LarderFormat

/// Writes the file. One thread.
struct RepackedFile {
    /// A block is closed when the next commit would take its payload past this.
    static let payloadByteCountTarget = 1_048_576

    let number: UInt32
    let epoch: UInt64
    /// Blocks that get smaller by it are compressed.
    private let compresses: Bool
    private var file: AlignedFile
    private var header: BlockHeader
    /// The payload of the block that is being filled.
    private var payload: ContiguousArray<UInt8> = []
    /// Of its commits: whether all entries are of records, and the last seq.
    private var facts: [(isPlain: Bool, lastSeq: UInt64)] = []
    /// Entries of the listing in it, with their offsets in the payload.
    private var placed: [(index: Int, offset: Int)] = []
    private var isFirst = true
    private(set) var result = RewrittenSegment()

    init(
        _ context: CompactionContext, number: UInt32, path: String, listedCount: Int, compresses: Bool
    ) throws(SystemError) {
        self.number = number
        self.compresses = compresses
        epoch = context.epoch
        file = try AlignedFile(context.files, path: path)
        header = RepackedFile.emptyHeader(epoch, number, 0)
        result.offsets = ContiguousArray(repeating: 0, count: listedCount)
        result.isCompressed = compresses
    }

    private static func emptyHeader(_ epoch: UInt64, _ number: UInt32, _ offset: Int) -> BlockHeader {
        let position = LogPosition(segment: number, offset: UInt32(truncatingIfNeeded: offset))
        return BlockHeader(epoch: epoch, position: position, synced: position)
    }

    var isEmpty: Bool { isFirst && header.commits.isEmpty }

    /// Adds a commit whose entries lie one after the other.
    mutating func append(_ commit: PendingCommit, isContinued: Bool) throws(SystemError) {
        let whole = BlockHeader.byteCount(commitCount: header.commits.count + 1) + payload.count + commit.bytes.count
        if !header.commits.isEmpty,
            payload.count + commit.bytes.count > Self.payloadByteCountTarget || whole > BlockHeader.byteCountMax
                || header.commits.count == Int(UInt16.max)
        {
            try close(lastFlags: 0, isContinued: isContinued)
        }
        for entry in commit.placed { placed.append((entry.index, payload.count + entry.offset)) }
        payload.append(contentsOf: commit.bytes)
        facts.append((commit.isPlain, commit.lastSeq))
        header.commits.append(
            CommitHeader(
                firstSeq: commit.firstSeq, time: commit.time, entryCount: UInt32(commit.entryCount),
                plainByteCount: UInt32(commit.bytes.count)))
    }

    private mutating func close(lastFlags: UInt8, isContinued: Bool) throws(SystemError) {
        let fileOffset = file.byteCount
        header.flags = BlockHeader.repacked | lastFlags | (isFirst && isContinued ? BlockHeader.continued : 0)
        header.plainByteCount = UInt32(payload.count)
        header.entryCount = header.commits.reduce(0) { $0 + $1.entryCount }
        let start = result.image?.byteCount ?? fileOffset
        var at = start + header.byteCount
        for entry in placed { result.offsets[entry.index] = UInt32(truncatingIfNeeded: at + entry.offset) }
        for (commit, fact) in zip(header.commits, facts) {
            let end = at + Int(commit.plainByteCount)
            result.commits.append(
                CommitPlace(
                    firstSeq: commit.firstSeq, time: commit.time, start: UInt32(truncatingIfNeeded: at),
                    end: UInt32(truncatingIfNeeded: end),
                    seqSpan: UInt32(truncatingIfNeeded: fact.lastSeq - commit.firstSeq), isPlain: fact.isPlain))
            at = end
        }
        if let packed = packed() {
            header.flags |= BlockHeader.compressed
            header.storedCRC = packed.withUnsafeBytes { crc32c($0) }
            try write(packed)
            let pieces = packed.withUnsafeBytes { try? PayloadPieces($0, plainByteCount: payload.count) }
            if result.image == nil { result.image = PlainImage(plainEnd: fileOffset) }
            _ = result.image?.append(header, pieces, at: fileOffset)
        } else {
            try write(payload)
            _ = result.image?.append(header, nil, at: fileOffset)
        }
        result.lastBlockOffset = fileOffset
        isFirst = false
        payload.removeAll(keepingCapacity: true)
        facts.removeAll(keepingCapacity: true)
        placed.removeAll(keepingCapacity: true)
        header = RepackedFile.emptyHeader(epoch, number, file.byteCount)
    }

    /// The payload compressed, where that takes fewer pages.
    private func packed() -> ContiguousArray<UInt8>? {
        guard compresses else { return nil }
        let most = IndexFileHead.padded(header.byteCount + payload.count) - BlockHeader.alignment - header.byteCount
        return most > 0 ? payload.withUnsafeBytes { PayloadPieces.pack($0, byteCountMax: most) } : nil
    }

    /// Writes the block with this stored payload.
    private mutating func write(_ stored: ContiguousArray<UInt8>) throws(SystemError) {
        let used = header.byteCount + stored.count
        let byteCount = IndexFileHead.padded(used)
        header.blockByteCount = UInt32(byteCount)
        header.storedByteCount = UInt32(stored.count)
        let head = Window(capacity: header.byteCount)
        header.write(at: head.memory)
        try file.append(UnsafeRawBufferPointer(start: head.memory, count: header.byteCount))
        var failure: SystemError?
        stored.withUnsafeBytes { bytes in
            do throws(SystemError) { try file.append(bytes) } catch { failure = error }
        }
        if let failure { throw failure }
        let padding = Window(capacity: BlockHeader.alignment)
        padding.memory.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount - used)
        try file.append(UnsafeRawBufferPointer(start: padding.memory, count: byteCount - used))
    }

    /// Writes the last block and makes the file durable.
    mutating func finish(isContinued: Bool, continues: Bool) throws(SystemError) -> RewrittenSegment {
        try close(lastFlags: BlockHeader.ends | (continues ? BlockHeader.continues : 0), isContinued: isContinued)
        result.byteCount = file.byteCount
        try file.finish()
        return result
    }

    func abandon() { file.abandon() }
}

/// What stays of one commit.
struct PendingCommit {
    var firstSeq: UInt64 = 0
    var time: Int64 = 0
    var bytes: ContiguousArray<UInt8> = []
    var entryCount = 0
    var lastSeq: UInt64 = 0
    var isPlain = true
    /// Entries of the listing in it, with their offsets in `bytes`.
    var placed: [(index: Int, offset: Int)] = []

    mutating func begin(_ commit: CommitHeader) {
        (firstSeq, time) = (commit.firstSeq, commit.time)
        bytes.removeAll(keepingCapacity: true)
        placed.removeAll(keepingCapacity: true)
        (entryCount, lastSeq, isPlain) = (0, 0, true)
    }

    mutating func append(_ entry: EntryView, _ raw: UnsafeRawBufferPointer, index: Int?) {
        if let index { placed.append((index, bytes.count)) } else { isPlain = false }
        bytes.append(contentsOf: raw)
        entryCount += 1
        lastSeq = entry.seq
    }
}

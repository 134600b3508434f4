// Writing the checkpoint: beside the one that is there, then in its place. FORMAT.md section 11.

import LarderFormat

extension StoreCore {
    var checkpointPath: String { path + "/checkpoint" }

    /// Bytes of the log that the next opening would have to read.
    var replayByteCount: Int {
        segments.reduce(0) { sum, segment in
            if segment.number < replayStart.segment { return sum }
            return sum + segment.byteCount - (segment.number == replayStart.segment ? Int(replayStart.offset) : 0)
        }
    }

    /// Writes the index to the checkpoint where that saves the next opening enough. For the end: nothing may be staged
    /// or under way. A failure changes nothing, since nothing is meant by a checkpoint.
    mutating func writeCheckpointIfWorthIt() {
        guard !options.isReadOnly, failure == nil, replayByteCount > options.replayByteCountMax else { return }
        _ = writeCheckpoint()
    }

    /// Writes the index to the checkpoint. Blocks for as long as 25 bytes a record take to be written and synced.
    ///
    /// - Returns: false when it was not written: something is staged or under way, or the disk refused it.
    mutating func writeCheckpoint() -> Bool {
        guard inFlight == nil, staged.blocks.isEmpty, open.entryCount == 0, clear == nil, orphans.isEmpty,
            failure == nil, let last = segment(durable.segment), last.byteCount == Int(durable.offset),
            segments.allSatisfy({ $0.number <= durable.segment || $0.commits.isEmpty })
        else { return false }
        let temporary = checkpointPath + ".tmp"
        do throws(SystemError) {
            let file = try files.openForWriting(temporary)
            defer { files.close(file) }
            let head = try writeParts(file)
            let bytes = Window(capacity: CheckpointHead.byteCount)
            let page = bytes.buffer(CheckpointHead.byteCount)
            page.copyBytes(from: head.encoded)
            try files.write(file, at: 0, UnsafeRawBufferPointer(page))
            try files.truncate(file, to: head.fileByteCount)
            try files.sync(file)
            try files.rename(temporary, to: checkpointPath)
            try files.syncDirectory(path)
            replayStart = durable
            return true
        } catch {
            try? files.remove(temporary)
            return false
        }
    }

    private func writeParts(_ file: FileHandle) throws(SystemError) -> CheckpointHead {
        var head = CheckpointHead(
            identity, replay: durable, lastSeq: publishedSeq, floor: floor, ordinals: table.count, records: index.count)
        let output = CheckpointOutput(files: files, file: file)
        let kept = segments.filter { $0.number <= durable.segment }

        var library = CheckpointLibrary()
        for segment in kept {
            library.segments.append(
                CheckpointSegment(
                    number: segment.number, byteCount: segment.byteCount, lastBlock: try lastBlock(segment),
                    saveCount: segment.saveCount, liveCount: segment.liveCount, commitCount: segment.commits.count))
        }
        library.kinds = kinds
        library.liveCounts = liveCounts
        library.origins = origins
        library.gaps = recoveredGaps
        library.lostSpans = report.lostSpans
        let small = library.encoded
        try output.append(small)
        try output.endPart(.library, &head)

        for segment in kept {
            for commit in segment.commits {
                try output.append(u64: commit.firstSeq)
                try output.append(u64: UInt64(bitPattern: commit.time))
                try output.append(u64: UInt64(commit.start) | UInt64(commit.end) << 32)
                try output.append(u64: UInt64(commit.seqSpan) | (commit.isPlain ? 1 << 32 : 0))
            }
        }
        try output.endPart(.commits, &head)

        try table.eachChunk { (chunk) throws(SystemError) in try output.append(chunk) }
        try output.endPart(.records, &head)

        try index.eachSlot { (slot) throws(SystemError) in try output.append(u64: slot) }
        try output.endPart(.keys, &head)
        return head
    }

    /// Where a segment's last block begins, and the CRC of its header as the file has it.
    private func lastBlock(_ segment: Segment) throws(SystemError) -> (offset: Int, checksum: UInt32)? {
        guard let offset = segment.lastBlockOffset else { return nil }
        let file = try files.openForReading(segment.path)
        defer { files.close(file) }
        guard let head = try blockHead(file, offset), offset + head.blockByteCount == segment.byteCount else {
            return nil
        }
        return (offset, head.checksum)
    }

    /// The length and the CRC that a block's header states; nil where the file ends before.
    func blockHead(
        _ file: FileHandle, _ offset: Int
    ) throws(SystemError) -> (blockByteCount: Int, checksum: UInt32)? {
        let window = Window(capacity: BlockHeader.fixedByteCount)
        let count = try files.read(file, at: offset, into: window.buffer(BlockHeader.fixedByteCount))
        guard count == BlockHeader.fixedByteCount else { return nil }
        func word(_ at: Int) -> UInt32 { UInt32(littleEndian: window.memory.load(fromByteOffset: at, as: UInt32.self)) }
        return (Int(word(24)), word(60))
    }
}

/// Gathers bytes into aligned writes, part by part, behind the room for the head.
private final class CheckpointOutput {
    private let files: any StoreFiles
    private let file: FileHandle
    private let window = Window(capacity: 1_048_576)
    private var used = 0
    private var offset = CheckpointHead.byteCount
    private var partByteCount = 0
    private var checksum: UInt32 = 0

    init(files: any StoreFiles, file: FileHandle) {
        self.files = files
        self.file = file
    }

    func append(_ bytes: [UInt8]) throws(SystemError) {
        var failure: SystemError?
        bytes.withUnsafeBytes { raw in
            do throws(SystemError) { try append(raw) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        guard let base = bytes.baseAddress else { return }
        var at = 0
        while at < bytes.count {
            let count = min(bytes.count - at, window.capacity - used)
            (window.memory + used).copyMemory(from: base + at, byteCount: count)
            used += count
            at += count
            if used == window.capacity { try flush() }
        }
        partByteCount += bytes.count
    }

    @inline(__always)
    func append(u64 value: UInt64) throws(SystemError) {
        // Parts begin aligned, and one of words has nothing else.
        window.memory.storeBytes(of: value.littleEndian, toByteOffset: used, as: UInt64.self)
        used &+= 8
        partByteCount &+= 8
        if used == window.capacity { try flush() }
    }

    func endPart(_ part: CheckpointHead.Part, _ head: inout CheckpointHead) throws(SystemError) {
        let padded = CheckpointHead.padded(used)
        (window.memory + used).initializeMemory(as: UInt8.self, repeating: 0, count: padded - used)
        used = padded
        try flush()
        head.byteCounts[part.rawValue] = partByteCount
        head.checksums[part.rawValue] = checksum
        partByteCount = 0
        checksum = 0
    }

    private func flush() throws(SystemError) {
        guard used > 0 else { return }
        let bytes = UnsafeRawBufferPointer(start: window.memory, count: used)
        checksum = crc32c(bytes, seed: checksum)
        try files.write(file, at: offset, bytes)
        offset += used
        used = 0
    }
}

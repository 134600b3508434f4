// Writes the blocks of a log anew under another epoch: for salvage and for restore.

import LarderFormat

/// Takes what a walk tells and lays it out as the log of another library. Entries keep their bytes, commits their first
/// seqs and times; block headers are made anew. One thread.
struct LogRelay: LogVisitor {
    enum Places {
        /// Every block lies where it lay: a sound log.
        case kept
        /// Blocks lie close, in segments from 1: what is left of a damaged log.
        case dense
    }

    private let files: any StoreFiles
    private let directory: String
    private let epoch: UInt64
    private let places: Places
    private var file: AlignedFile?
    private var number: UInt32 = 0
    private let scratch = Window(capacity: BlockHeader.byteCountMax)
    private var lastSeq: UInt64 = 0
    private var lastTime: Int64 = 0

    private(set) var paths: [String] = []
    private(set) var damages: [LogDamage] = []
    private(set) var entryCount = 0
    private(set) var byteCount = 0

    /// - Parameter directory: the new log's; it is there and empty.
    init(_ files: any StoreFiles, directory: String, epoch: UInt64, places: Places) {
        self.files = files
        self.directory = directory
        self.epoch = epoch
        self.places = places
    }

    mutating func begin(segment: UInt32, byteCount: Int) throws(StoreError) {
        try closeSegment()
        if places == .kept { number = segment }
    }

    mutating func found(_ damage: LogDamage) { damages.append(damage) }

    mutating func visit(_ contents: BlockContents) throws(StoreError) {
        if try isMovable(contents) {
            try write(contents.header, contents.stored, commits: contents.header.commits)
            entryCount += contents.entryCount
            lastSeq = max(lastSeq, contents.pieces.last?.lastSeq ?? 0)
        } else {
            try rebuild(contents)
        }
    }

    /// Whether all of the block goes on as it is.
    private func isMovable(_ contents: BlockContents) throws(StoreError) -> Bool {
        guard places == .dense else { return true }
        return contents.isWhole && contents.header.commits.first?.firstSeq ?? 0 > lastSeq
    }

    /// Writes a block of the entries that check and may go on.
    private mutating func rebuild(_ contents: BlockContents) throws(StoreError) {
        var writer = ByteWriter()
        var commits: [CommitHeader] = []
        var last = lastSeq
        var refused: LogDamage?
        try contents.entries { entry, commit, offset in
            if commits.last?.firstSeq != commit.firstSeq {
                guard commit.firstSeq > last else {
                    refused = LogDamage(
                        cause: .outOfOrder, segment: contents.header.position.segment,
                        offset: contents.fileOffset(offset), byteCount: entry.byteCount,
                        reason: "seq \(entry.seq): seq \(last) came before it", after: entry.seq - 1,
                        through: entry.seq)
                    return
                }
                commits.append(
                    CommitHeader(firstSeq: commit.firstSeq, time: commit.time, entryCount: 0, plainByteCount: 0))
            }
            commits[commits.count - 1].entryCount += 1
            commits[commits.count - 1].plainByteCount += UInt32(entry.byteCount)
            writer.raw(UnsafeRawBufferPointer(rebasing: contents.bytes[offset..<offset + entry.byteCount]))
            last = entry.seq
            entryCount += 1
        }
        if let refused { damages.append(refused) }
        guard !commits.isEmpty else { return }
        lastSeq = last
        try write(payload: writer.bytes, commits)
    }

    private mutating func write(payload: [UInt8], _ commits: [CommitHeader]) throws(StoreError) {
        var header = BlockHeader(
            epoch: epoch, position: LogPosition(segment: 1, offset: 0), synced: LogPosition(segment: 1, offset: 0))
        header.commits = commits
        let used = header.byteCount + payload.count
        let byteCount = (used + BlockHeader.alignment - 1) & ~(BlockHeader.alignment - 1)
        header.blockByteCount = UInt32(byteCount)
        header.storedByteCount = UInt32(payload.count)
        header.plainByteCount = header.storedByteCount
        header.entryCount = commits.reduce(0) { $0 + $1.entryCount }
        let block =
            [UInt8](repeating: 0, count: header.byteCount) + payload
            + [UInt8](repeating: 0, count: byteCount - used)
        var failure: StoreError?
        block.withUnsafeBytes { bytes in
            do throws(StoreError) { try write(header, bytes, commits: commits) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    /// Writes a block with its header made for its new place.
    private mutating func write(
        _ old: BlockHeader, _ bytes: UnsafeRawBufferPointer, commits: [CommitHeader]
    ) throws(StoreError) {
        do throws(SystemError) {
            if let open = file, open.byteCount > Int(UInt32.max) - 2 * BlockHeader.byteCountMax {
                try finishSegment()
            }
            if file == nil { try openSegment() }
            var header = old
            header.epoch = epoch
            header.position = LogPosition(segment: number, offset: UInt32(file?.byteCount ?? 0))
            // Nothing is read of the new library before all of it is durable.
            header.synced = header.position
            // Where a block of a run is gone, flags would promise neighbours that are not there.
            if places == .dense { header.flags &= BlockHeader.compressed }
            scratch.buffer(bytes.count).copyMemory(from: bytes)
            header.write(at: scratch.memory)
            try file?.append(UnsafeRawBufferPointer(start: scratch.memory, count: bytes.count))
            byteCount += bytes.count
            lastTime = commits.last?.time ?? lastTime
        } catch { throw .system(error) }
    }

    private mutating func openSegment() throws(SystemError) {
        if places == .dense { number += 1 }
        let path = directory + "/" + Segment.name(number)
        file = try AlignedFile(files, path: path)
        paths.append(path)
    }

    private mutating func finishSegment() throws(SystemError) {
        guard var open = file else { return }
        file = nil
        try open.finish()
    }

    private mutating func closeSegment() throws(StoreError) {
        do throws(SystemError) { try finishSegment() } catch { throw .system(error) }
    }

    // MARK: The end

    /// Ends the log with entries that name what is lost, and makes all of it durable.
    ///
    /// - Parameter lost: seqs that no entry has any more, ascending.
    mutating func finish(lost: [ClosedRange<UInt64>]) throws(StoreError) {
        var writer = ByteWriter()
        let first = min(lastSeq, .max - 1) + 1
        var seq = first
        // A block holds many thousands; whoever has more damage has no use for more names.
        for range in lost.prefix(10_000) where seq < .max && range.upperBound < first {
            var body = ByteWriter()
            body.varint(range.lowerBound)
            body.varint(range.upperBound)
            writer.raw(LogRelay.entry(EntryType.recovered, seq: seq, commitFirstSeq: first, body.bytes))
            seq += 1
        }
        if seq > first {
            lastSeq = seq - 1
            let count = UInt32(seq - first)
            entryCount += Int(count)
            try write(
                payload: writer.bytes,
                [
                    CommitHeader(
                        firstSeq: first, time: lastTime, entryCount: count,
                        plainByteCount: UInt32(writer.bytes.count))
                ])
        }
        try closeSegment()
        try system { () throws(SystemError) in try files.syncDirectory(directory) }
    }

    private static func entry(_ type: UInt8, seq: UInt64, commitFirstSeq: UInt64, _ body: [UInt8]) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: body.count + EntryWriter.headByteCountMax)
        let count = bytes.withUnsafeMutableBytes { target in
            body.withUnsafeBytes { source in
                target.baseAddress.map {
                    EntryWriter.other(at: $0, type: type, seq: seq, commitFirstSeq: commitFirstSeq, body: source)
                } ?? 0
            }
        }
        return Array(bytes[..<count])
    }

    /// Takes back what was written of a library that did not come about.
    mutating func abandon() {
        file?.abandon()
        file = nil
        for path in paths { try? files.remove(path) }
    }
}

// Files of the index being written and read, part by part. FORMAT.md section 11.

import LarderFormat

/// A multiple of the page, of commits and of changes, so that none of these lies across two pieces.
private let indexFileWindowByteCount = 786_432

/// Gathers bytes into aligned writes, part by part, behind the room for the head.
final class IndexFileOutput {
    private let files: any StoreFiles
    private let path: String
    private let file: FileHandle
    private var isFinished = false
    private let window = Window(capacity: indexFileWindowByteCount)
    private var used = 0
    private var offset = IndexFileHead.byteCount
    private var partByteCount = 0
    private var checksum: UInt32 = 0

    /// Begins a file that `finish` will put at `path`.
    init(files: any StoreFiles, path: String) throws(SystemError) {
        self.files = files
        self.path = path
        file = try files.openForWriting(path + ".tmp")
    }

    /// Closes the file; one that was not finished is taken away.
    func close() {
        files.close(file)
        if !isFinished { try? files.remove(path + ".tmp") }
    }

    /// Writes the head and puts the file in the place of an earlier one. What is not synced may be anything after a
    /// power cut, and is told by its CRCs.
    func finish(_ head: IndexFileHead, isSynced: Bool) throws(SystemError) {
        let page = window.buffer(IndexFileHead.byteCount)
        page.copyBytes(from: head.encoded)
        try files.write(file, at: 0, UnsafeRawBufferPointer(page))
        try files.truncate(file, to: head.fileByteCount)
        if isSynced { try files.sync(file) }
        try files.rename(path + ".tmp", to: path)
        isFinished = true
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

    /// 32 bytes: first seq, time, where its entries begin and end, last seq − first seq, whether it is plain.
    func append(_ commit: CommitPlace) throws(SystemError) {
        try append(commit.firstSeq)
        try append(UInt64(bitPattern: commit.time))
        try append(UInt64(commit.start) | UInt64(commit.end) << 32)
        try append(UInt64(commit.seqSpan) | (commit.isPlain ? 1 << 32 : 0))
    }

    @inline(__always)
    func append(_ value: UInt64) throws(SystemError) {
        // A part of words has nothing else, so none lies across the window's end.
        window.memory.storeBytes(of: value.littleEndian, toByteOffset: used, as: UInt64.self)
        used &+= 8
        partByteCount &+= 8
        if used == window.capacity { try flush() }
    }

    func endPart(_ part: IndexFileHead.Part, _ head: inout IndexFileHead) throws(SystemError) {
        let padded = IndexFileHead.padded(used)
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

/// A file of the index that is being read.
final class IndexFileInput {
    private let files: any StoreFiles
    private let file: FileHandle
    private let window = Window(capacity: indexFileWindowByteCount)
    /// Nil when it is none that can be read.
    let head: IndexFileHead?

    init(_ content: IndexFileHead.Content, files: any StoreFiles, path: String) throws(SystemError) {
        self.files = files
        let file = try files.openForReading(path)
        self.file = file
        do throws(SystemError) {
            let size = try files.size(file)
            files.willRead(file, at: 0, count: size)
            let page = window.buffer(IndexFileHead.byteCount)
            let count = try files.read(file, at: 0, into: page)
            head = IndexFileHead(
                content, UnsafeRawBufferPointer(rebasing: page[..<count]), fileByteCount: size)
        } catch {
            files.close(file)
            throw error
        }
    }

    func close() { files.close(file) }

    /// Shows a part piece by piece; true when it was there to the end and its CRC holds. What is of 8,
    /// 24 or 32 bytes is never cut in two.
    func read(_ part: IndexFileHead.Part, _ show: (UnsafeRawBufferPointer) -> Void) -> Bool {
        guard let head else { return false }
        let byteCount = head.byteCount(part)
        let (start, padded) = (head.offset(part), IndexFileHead.padded(byteCount))
        var (at, checksum) = (0, UInt32(0))
        while at < padded {
            let piece = window.buffer(min(window.capacity, padded - at))
            guard read(piece, at: start + at, &checksum) else { return false }
            if at < byteCount { show(UnsafeRawBufferPointer(rebasing: piece[..<min(piece.count, byteCount - at)])) }
            at += piece.count
        }
        return checksum == head.checksums[part.rawValue]
    }

    /// A part as a whole; for small ones.
    func bytes(_ part: IndexFileHead.Part) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(head?.byteCount(part) ?? 0)
        return read(part) { bytes.append(contentsOf: $0) } ? bytes : nil
    }

    /// The commits of each of the segments.
    func readCommits(of segments: [NamedSegment]) -> [ContiguousArray<CommitPlace>]? {
        guard let head, head.byteCount(.commits) == segments.reduce(0, { $0 + $1.commitCount }) * 32 else { return nil }
        var places = segments.map { segment in
            var commits = ContiguousArray<CommitPlace>()
            commits.reserveCapacity(segment.commitCount)
            return commits
        }
        var (at, end) = (0, UInt32(0))
        var isGood = true
        let isRead = read(.commits) { piece in
            func word(_ offset: Int) -> UInt64 {
                UInt64(littleEndian: piece.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            }
            for offset in stride(from: 0, to: piece.count &- 31, by: 32) {
                while at < segments.count && places[at].count == segments[at].commitCount { (at, end) = (at + 1, 0) }
                guard at < segments.count else { return }
                let (bounds, rest) = (word(offset &+ 16), word(offset &+ 24))
                let commit = CommitPlace(
                    firstSeq: word(offset), time: Int64(bitPattern: word(offset &+ 8)),
                    start: UInt32(truncatingIfNeeded: bounds), end: UInt32(truncatingIfNeeded: bounds &>> 32),
                    seqSpan: UInt32(truncatingIfNeeded: rest), isPlain: rest &>> 32 & 1 == 1)
                // Readers count on this.
                let isInOrder = commit.start >= end && commit.end > commit.start
                isGood =
                    isGood && isInOrder && Int(commit.end) <= segments[at].imageByteCount && commit.firstSeq > 0
                    && commit.firstSeq < UInt64(Int64.max)
                end = commit.end
                places[at].append(commit)
            }
        }
        return isRead && isGood ? places : nil
    }

    /// The table of records, read in where it stays. Any thread, also while another one reads other parts.
    func readRecords(kindCount: Int) -> RecordTable? {
        guard let head else { return nil }
        let part = IndexFileHead.Part.records
        let chunkCount = (head.ordinalCount + RecordTable.chunkCount - 1) / RecordTable.chunkCount
        guard head.byteCount(part) == chunkCount * RecordTable.chunkByteCount else { return nil }
        var (at, checksum) = (head.offset(part), UInt32(0))
        let filled = RecordTable.filled(count: head.ordinalCount, kindCount: kindCount) { chunk in
            defer { at += chunk.count }
            return read(chunk, at: at, &checksum)
        }
        guard let table = filled else { return nil }
        let rest = Window(capacity: BlockHeader.alignment)
        let padding = rest.buffer(IndexFileHead.padded(head.byteCount(part)) + head.offset(part) - at)
        let isRead = withExtendedLifetime(rest) { read(padding, at: at, &checksum) }
        guard isRead, checksum == head.checksums[part.rawValue] else { return nil }
        return table
    }

    private func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int, _ checksum: inout UInt32) -> Bool {
        do throws(SystemError) {
            guard try files.read(file, at: offset, into: buffer) == buffer.count else { return false }
        } catch { return false }
        checksum = crc32c(UnsafeRawBufferPointer(buffer), seed: checksum)
        return true
    }
}

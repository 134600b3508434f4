// The checkpoint's part of small things, as bytes. FORMAT.md section 11 draws it.

import LarderFormat

/// What a block is known by again: where it begins in its segment, and the CRC that its header states.
struct BlockMark: Equatable {
    var offset: Int
    var checksum: UInt32

    init(offset: Int, checksum: UInt32) {
        self.offset = offset
        self.checksum = checksum
    }

    /// Reads the mark of a block; nil when the file has no such block that ends at `end`.
    init?(files: any StoreFiles, _ file: FileHandle, at offset: Int, end: Int) throws(SystemError) {
        let window = Window(capacity: BlockHeader.fixedByteCount)
        let count = try files.read(file, at: offset, into: window.buffer(BlockHeader.fixedByteCount))
        guard count == BlockHeader.fixedByteCount else { return nil }
        func word(_ at: Int) -> UInt32 { UInt32(littleEndian: window.memory.load(fromByteOffset: at, as: UInt32.self)) }
        guard offset + Int(word(24)) == end else { return nil }
        self.init(offset: offset, checksum: word(60))
    }

    /// The mark of a segment's last block; nil when it has none whose header is known.
    init?(files: any StoreFiles, lastOf segment: Segment) throws(SystemError) {
        guard let offset = segment.lastBlockOffset else { return nil }
        let file = try files.openForReading(segment.path)
        defer { files.close(file) }
        try self.init(files: files, file, at: offset, end: segment.byteCount)
    }
}

/// A segment as a file of the index names it.
struct NamedSegment {
    var number: UInt32
    var byteCount: Int
    var lastBlock: BlockMark?
    var saveCount: Int
    var liveCount: Int
    var commitCount: Int
    /// Where blocks of it are compressed; each file of the index has it in a place of its own.
    var image: PlainImage?

    var imageByteCount: Int { image?.byteCount ?? byteCount }

    init(_ segment: Segment, lastBlock: BlockMark?) {
        number = segment.number
        byteCount = segment.byteCount
        self.lastBlock = lastBlock
        saveCount = segment.saveCount
        liveCount = segment.liveCount
        commitCount = segment.commits.count
        image = segment.image
    }

    func encode(into writer: inout ByteWriter) {
        writer.varint(UInt64(number))
        for count in [byteCount, saveCount, liveCount, commitCount] { writer.varint(count) }
        writer.varint(lastBlock.map { $0.offset + 1 } ?? 0)
        writer.u32(lastBlock?.checksum ?? 0)
    }

    init(from reader: inout ByteReader) throws(FormatError) {
        let most = Int(UInt32.max)
        number = UInt32(try reader.varint(atMost: most))
        byteCount = try reader.varint(atMost: most)
        saveCount = try reader.varint(atMost: most)
        liveCount = try reader.varint(atMost: most)
        commitCount = try reader.varint(atMost: most)
        let offset = try reader.varint(atMost: most)
        let checksum = try reader.u32()
        if offset > 0 { lastBlock = BlockMark(offset: offset - 1, checksum: checksum) }
    }
}

/// What a checkpoint holds beside commits, records and keys.
struct CheckpointLibrary {
    var segments: [NamedSegment] = []
    var kinds = KindTable()
    var liveCounts: [Int] = []
    var origins = OriginTable()
    var gaps: [ClosedRange<UInt64>] = []

    init() {}

    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.varint(segments.count)
        for segment in segments { segment.encode(into: &writer) }
        writer.varint(kinds.schemas.count)
        for (schema, count) in zip(kinds.schemas, liveCounts) {
            writer.raw(schema.kind.encoded)
            writer.varint(count)
        }
        writer.varint(origins.origins.count)
        for origin in origins.origins {
            writer.byteString(origin.body)
            writer.svarint(origin.time)
        }
        writer.varint(origins.lastBatch.count)
        for (origin, batch) in origins.lastBatch.sorted(by: { $0.key < $1.key }) {
            writer.varint(origin)
            writer.varint(batch)
        }
        writer.varint(origins.openImports.count)
        for origin in origins.openImports.sorted() { writer.varint(origin) }
        writer.varint(gaps.count)
        for gap in gaps {
            writer.varint(gap.lowerBound)
            writer.varint(gap.upperBound)
        }
        let images = segments.enumerated().compactMap { at, segment in segment.image.map { (at, $0) } }
        writer.varint(images.count)
        for (at, image) in images {
            writer.varint(at)
            image.encode(into: &writer)
        }
        return writer.bytes
    }

    /// Nil when the bytes are not what `encoded` gives.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        do throws(FormatError) {
            guard try readSegments(&reader), try readKinds(&reader) else { return nil }
            for _ in 0..<(try reader.count(ofAtLeast: 3)) {
                let body = try reader.bytes()
                origins.declare(try Origin(body: body, time: try reader.svarint()))
            }
            for _ in 0..<(try reader.count(ofAtLeast: 2)) {
                let origin = try reader.varint()
                origins.lastBatch[origin] = try reader.varint()
            }
            for _ in 0..<(try reader.count(ofAtLeast: 1)) { origins.openImports.insert(try reader.varint()) }
            for _ in 0..<(try reader.count(ofAtLeast: 2)) {
                let (from, through) = (try reader.varint(), try reader.varint())
                guard from <= through else { return nil }
                gaps.append(from...through)
            }
            for _ in 0..<(try reader.count(ofAtLeast: 3)) {
                let at = try reader.varint(atMost: segments.count - 1)
                segments[at].image = try PlainImage(from: &reader, fileByteCount: segments[at].byteCount)
            }
            try reader.expectEnd()
        } catch { return nil }
    }

    private mutating func readSegments(_ reader: inout ByteReader) throws(FormatError) -> Bool {
        for _ in 0..<(try reader.count(ofAtLeast: 10)) {
            let segment = try NamedSegment(from: &reader)
            guard segment.number > segments.last?.number ?? 0 else { return false }
            segments.append(segment)
        }
        return !segments.isEmpty
    }

    private mutating func readKinds(_ reader: inout ByteReader) throws(FormatError) -> Bool {
        for _ in 0..<(try reader.count(ofAtLeast: 2)) {
            // The index of a kind is its place in the list.
            guard kinds.declare(try Kind(from: &reader)), liveCounts.count + 1 == kinds.schemas.count else {
                return false
            }
            liveCounts.append(try reader.varint(atMost: Int(UInt32.max)))
        }
        return true
    }
}

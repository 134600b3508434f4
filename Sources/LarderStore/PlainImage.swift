// A segment with compressed blocks, as those who look entries up see it. design/compressed-blocks.md.

import LarderFormat

/// The plain image of a segment: what it would be if none of its blocks were compressed. Places and commits name offsets
/// in the image; this says where the bytes of the image lie in the file.
struct PlainImage: Equatable, Sendable {
    struct Block: Equatable, Sendable {
        /// Where the block begins in the image, and in the file.
        var start: UInt32
        var fileOffset: UInt32
        var headByteCount: UInt32
        var plainByteCount: UInt32
        /// Bytes of the block in the file.
        var fileByteCount: UInt32
        /// Of `frameEnds`; none where the block is not compressed.
        var firstFrame: UInt32
        var frameCount: UInt32

        var payloadStart: Int { Int(start) + Int(headByteCount) }
        var payloadEnd: Int { payloadStart + Int(plainByteCount) }
    }

    /// Up to here the file is its own image.
    private(set) var plainEnd: Int
    /// Behind `plainEnd`, ascending.
    private(set) var blocks: ContiguousArray<Block> = []
    /// Offsets in the file behind each frame of each compressed block.
    private(set) var frameEnds: ContiguousArray<UInt32> = []
    private(set) var byteCount: Int
    private var fileByteCount: Int

    init(plainEnd: Int) {
        self.plainEnd = plainEnd
        byteCount = plainEnd
        fileByteCount = plainEnd
    }

    /// Adds the block that comes next in the file.
    ///
    /// - Returns: where it begins in the image; nil where the image would get too large for an offset.
    mutating func append(_ header: BlockHeader, _ pieces: PayloadPieces?, at fileOffset: Int) -> Int? {
        let start = byteCount
        let end = start + header.plainBlockByteCount
        guard end <= Int(UInt32.max), fileOffset + Int(header.blockByteCount) <= Int(UInt32.max) else { return nil }
        let payloadOffset = UInt32(fileOffset + header.byteCount)
        blocks.append(
            Block(
                start: UInt32(start), fileOffset: UInt32(fileOffset), headByteCount: UInt32(header.byteCount),
                plainByteCount: header.plainByteCount, fileByteCount: header.blockByteCount,
                firstFrame: UInt32(frameEnds.count), frameCount: UInt32(pieces?.count ?? 0)))
        for end in pieces?.ends ?? [] { frameEnds.append(payloadOffset &+ end) }
        byteCount = end
        fileByteCount = fileOffset + Int(header.blockByteCount)
        return start
    }

    /// Passes over bytes of the file that are no block.
    mutating func pass(_ count: Int) {
        byteCount += count
        fileByteCount += count
    }

    /// The bytes of the file that hold those of the image from an offset on: whole frames, of one block.
    ///
    /// - Parameters:
    ///   - needed: bytes that it has to hold.
    ///   - wanted: bytes that it may hold besides, where they lie in the same block.
    /// - Returns: nil where no block's payload has them.
    func stretch(from offset: Int, needed: Int, wanted: Int) -> PackedStretch? {
        guard offset >= plainEnd else {
            guard offset >= 0, needed <= plainEnd - offset else { return nil }
            let count = min(max(needed, wanted), plainEnd - offset)
            return PackedStretch(start: offset, byteCount: count, fileOffset: offset, fileByteCount: count)
        }
        guard let block = block(holding: offset) else { return nil }
        let from = offset - block.payloadStart
        guard needed <= block.payloadEnd - offset else { return nil }
        let through = min(from + max(needed, wanted, 1), Int(block.plainByteCount))
        if block.frameCount == 0 {
            return PackedStretch(
                start: offset, byteCount: through - from, fileOffset: Int(block.fileOffset) + offset - Int(block.start),
                fileByteCount: through - from)
        }
        let first = from / PayloadPieces.byteCount
        let last = (through - 1) / PayloadPieces.byteCount
        let frame = Int(block.firstFrame)
        guard last < Int(block.frameCount) else { return nil }
        let fileStart =
            first == 0
            ? Int(block.fileOffset) + Int(block.headByteCount) + PayloadPieces.start(frameCount: Int(block.frameCount))
            : Int(frameEnds[frame + first - 1])
        let ends = frameEnds[frame + first...frame + last].map { Int($0) - fileStart }
        let plainStart = first * PayloadPieces.byteCount
        return PackedStretch(
            start: block.payloadStart + plainStart,
            byteCount: min((last + 1) * PayloadPieces.byteCount, Int(block.plainByteCount)) - plainStart,
            fileOffset: fileStart, fileByteCount: ends.last ?? 0, frameEnds: ends)
    }

    /// Where the byte lies in the file; of a compressed block, where the block begins.
    func fileOffset(_ offset: Int) -> Int {
        guard offset >= plainEnd, let block = block(holding: offset) else { return offset }
        return Int(block.fileOffset) + (block.frameCount == 0 ? offset - Int(block.start) : 0)
    }

    private func block(holding offset: Int) -> Block? {
        var low = 0
        var high = blocks.count
        while low < high {
            let middle = (low + high) / 2
            if blocks[middle].payloadEnd <= offset { low = middle + 1 } else { high = middle }
        }
        guard low < blocks.count, blocks[low].payloadStart <= offset else { return nil }
        return blocks[low]
    }

    // MARK: In the checkpoint

    func encode(into writer: inout ByteWriter) {
        writer.varint(plainEnd)
        writer.varint(blocks.count)
        for block in blocks {
            for count in [block.headByteCount, block.plainByteCount, block.fileByteCount, block.frameCount] {
                writer.varint(UInt64(count))
            }
            var end = Int(block.fileOffset) + Int(block.headByteCount)
            for frame in frameEnds[Int(block.firstFrame)..<Int(block.firstFrame + block.frameCount)] {
                writer.varint(Int(frame) - end)
                end = Int(frame)
            }
        }
    }

    /// - Parameter fileByteCount: of the segment.
    /// - Throws: where the bytes are not what `encode` gives of a segment of that size.
    init(from reader: inout ByteReader, fileByteCount: Int) throws(FormatError) {
        self.init(plainEnd: try reader.varint(atMost: fileByteCount))
        for _ in 0..<(try reader.count(ofAtLeast: 4)) {
            let at = reader.offset
            let head = try reader.varint(atMost: BlockHeader.byteCountMax)
            let plain = try reader.varint(atMost: BlockHeader.byteCountMax)
            let file = try reader.varint(atMost: BlockHeader.byteCountMax)
            let frameCount = try reader.varint(atMost: PayloadPieces.count(plainByteCount: plain))
            let whole = frameCount > 0 ? IndexFileHead.padded(head + plain) : file
            guard head > 0, plain > 0, head + (frameCount > 0 ? 0 : plain) <= file,
                frameCount == 0 || frameCount == PayloadPieces.count(plainByteCount: plain),
                self.fileByteCount + file <= fileByteCount, byteCount + whole <= Int(UInt32.max)
            else { throw FormatError(.outOfRange, at: at) }
            var end = self.fileByteCount + head
            // Readers count on frames that begin behind their table and hold something.
            var least = end + PayloadPieces.start(frameCount: frameCount) + 1
            let firstFrame = frameEnds.count
            for _ in 0..<frameCount {
                end += try reader.varint(atMost: BlockHeader.byteCountMax)
                guard end >= least, end <= self.fileByteCount + file else {
                    throw FormatError(.outOfRange, at: reader.offset)
                }
                least = end + 1
                frameEnds.append(UInt32(end))
            }
            blocks.append(
                Block(
                    start: UInt32(byteCount), fileOffset: UInt32(self.fileByteCount), headByteCount: UInt32(head),
                    plainByteCount: UInt32(plain), fileByteCount: UInt32(file), firstFrame: UInt32(firstFrame),
                    frameCount: UInt32(frameCount)))
            byteCount += whole
            self.fileByteCount += file
        }
        guard self.fileByteCount == fileByteCount else { throw FormatError(.outOfRange, at: reader.offset) }
    }
}

extension Segment {
    /// So many bytes of the image from an offset on; fewer where its block, or the file, ends.
    func read(
        _ files: any StoreFiles, _ file: FileHandle, at offset: Int, count: Int
    ) throws(SystemError) -> [UInt8] {
        let stretch =
            image.map { $0.stretch(from: offset, needed: 1, wanted: count) }
            ?? PackedStretch(start: offset, byteCount: count, fileOffset: offset, fileByteCount: count)
        guard let stretch else { return [] }
        let stored = Window(capacity: max(stretch.fileByteCount, 1))
        stored.count = try files.read(file, at: stretch.fileOffset, into: stored.buffer(stretch.fileByteCount))
        let bytes = UnsafeRawBufferPointer(start: stored.memory, count: stored.count)
        guard stretch.isCompressed else { return withExtendedLifetime(stored) { Array(bytes) } }
        let window = Window(capacity: stretch.byteCount)
        window.fill(stretch, number, fileID, from: bytes)
        return withExtendedLifetime((stored, window)) {
            let from = offset - stretch.start
            return Array(UnsafeRawBufferPointer(start: window.memory + from, count: min(count, window.count - from)))
        }
    }
}

/// Bytes of a file that hold a stretch of a segment's image. Immutable; any thread.
struct PackedStretch: Sendable {
    /// In the image.
    let start: Int
    let byteCount: Int
    let fileOffset: Int
    let fileByteCount: Int
    /// Behind each frame, from `fileOffset` on; none: the bytes are those of the image.
    var frameEnds: [Int] = []

    var isCompressed: Bool { !frameEnds.isEmpty }

    /// Unpacks the stretch. What is no good frame becomes zeros, which are no entries.
    func unpack(_ stored: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer) {
        var from = 0
        for (piece, end) in frameEnds.enumerated() {
            let at = piece * PayloadPieces.byteCount
            let count = min(PayloadPieces.byteCount, byteCount - at)
            let isGood =
                from < end && end <= stored.count
                && PayloadPieces.unpack(
                    UnsafeRawBufferPointer(rebasing: stored[from..<end]), into: target + at, count: count)
            if !isGood { (target + at).initializeMemory(as: UInt8.self, repeating: 0, count: count) }
            from = end
        }
    }
}

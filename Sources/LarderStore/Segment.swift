// What is known in memory of the files of the log: which commits lie where.

import LarderFormat

/// Where the entries of one commit lie in their segment.
struct CommitPlace {
    var firstSeq: UInt64
    /// Milliseconds since 1970.
    var time: Int64
    /// Offset of its first entry in the segment's plain image.
    var start: UInt32
    /// Offset behind its last entry.
    var end: UInt32
    /// Last seq − first seq.
    var seqSpan: UInt32
    /// Every entry is a save or a delete.
    var isPlain: Bool

    var lastSeq: UInt64 { firstSeq &+ UInt64(seqSpan) }
}

/// One file of the log.
final class Segment {
    let number: UInt32
    let path: String
    /// Bytes of whole, durable blocks.
    var byteCount = 0
    /// Where bytes of the segment's plain image lie; nil: nowhere else than in the file, as no block is compressed.
    var image: PlainImage?
    /// A compaction found that its blocks get no smaller.
    var isIncompressible = false
    /// Where the last of them begins; nil when there is none, or its header is damaged.
    var lastBlockOffset: Int?
    /// Ascending by offset in the image and by seq.
    var commits: ContiguousArray<CommitPlace> = []
    /// Saves in it, and how many of them are still current.
    var saveCount = 0
    var liveCount = 0
    /// Open while it is read; the reader closes those that were used longest ago.
    var readFile: ReadFile?
    /// Held open while another file may have its name.
    var pinnedFile: ReadFile?
    /// How often its file was written anew: what was read of an earlier one is of no use.
    var incarnation: UInt32 = 0
    /// How many saves were current when a compaction found little to gain; -1: it was not looked at.
    var lookedAtLiveCount = -1

    /// Where the block lies in the file that holds an offset of the image; the offset itself where nothing is compressed.
    func fileOffset(_ offset: Int) -> Int { image?.fileOffset(offset) ?? offset }

    var imageByteCount: Int { image?.byteCount ?? byteCount }

    /// Takes in the block that comes next; returns where it begins in the image, or nil where offsets do not reach so far.
    func place(_ block: ScannedBlock, at fileOffset: Int) -> Int? {
        if image == nil {
            guard block.header.isCompressed else { return fileOffset }
            image = PlainImage(plainEnd: fileOffset)
        }
        return image?.append(block.header, block.pieces, at: fileOffset)
    }

    /// Of its present file.
    var fileID: UInt64 { UInt64(incarnation) &<< 32 | UInt64(number) }

    init(number: UInt32, path: String) {
        self.number = number
        self.path = path
    }

    /// The index of the commit whose entries hold this offset.
    @inline(__always)
    func commitIndex(holding offset: UInt32) -> Int? {
        var low = 0
        var high = commits.count
        while low < high {
            let middle = (low &+ high) / 2
            if commits[middle].end <= offset { low = middle &+ 1 } else { high = middle }
        }
        guard low < commits.count, commits[low].start <= offset else { return nil }
        return low
    }

    /// The index of the first commit with a seq at or above `seq`; `commits.count` when all are below.
    func firstCommit(reaching seq: UInt64) -> Int {
        var low = 0
        var high = commits.count
        while low < high {
            let middle = (low &+ high) / 2
            if commits[middle].lastSeq < seq { low = middle &+ 1 } else { high = middle }
        }
        return low
    }

    static func name(_ number: UInt32) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 8 - digits.count)) + digits + ".seg"
    }

    static func sidecarName(_ number: UInt32) -> String { name(number).dropLast(3) + "idx" }

    /// The number in a segment's file name, or nil for other names.
    static func number(ofName name: String) -> UInt32? { Segment.number(ofName: name, suffix: ".seg") }
    static func number(ofSidecarName name: String) -> UInt32? { Segment.number(ofName: name, suffix: ".idx") }

    private static func number(ofName name: String, suffix: String) -> UInt32? {
        guard name.hasSuffix(suffix) else { return nil }
        let digits = name.dropLast(4)
        guard digits.count >= 8, digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let n = UInt32(digits), n > 0,
            n < 1 << 20
        else { return nil }
        return n
    }
}

/// What the blocks of a segment say of its end.
struct RepackedEnd {
    private(set) var isRepacked = false
    /// The last block that was passed is the segment's last.
    private(set) var isThere = false

    mutating func pass(_ header: BlockHeader) { pass(flags: header.flags) }

    mutating func pass(flags: UInt8) {
        if flags & BlockHeader.repacked != 0 { isRepacked = true }
        isThere = flags & BlockHeader.ends != 0
    }
}

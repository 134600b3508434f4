// What of a block's payload checks: all of it, or the pieces that are left.

import LarderFormat

/// A stretch of whole entries of one commit.
struct EntryPiece: Equatable {
    /// Index of the commit in the block's header.
    var commit: Int
    /// Offsets in the block, unpacked.
    var start: Int
    var end: Int
    var entryCount: Int
    var firstSeq: UInt64
    var lastSeq: UInt64
}

/// A stretch of a commit in which no entry checks; its entries had seqs in (after, through].
struct SpoiledPiece: Equatable {
    var start: Int
    var end: Int
    var after: UInt64
    var through: UInt64
}

/// The payload of a block whose header checks, judged entry by entry.
struct BlockContents {
    let header: BlockHeader
    /// The header and the plain payload; borrowed.
    let bytes: UnsafeRawBufferPointer
    /// The block as it lies in the file; borrowed.
    let stored: UnsafeRawBufferPointer
    private(set) var pieces: [EntryPiece] = []
    private(set) var spoiled: [SpoiledPiece] = []
    /// Its payload's CRC checks, where it has one, and all of it could be unpacked.
    let isUnpacked: Bool

    var isWhole: Bool { spoiled.isEmpty && isUnpacked }
    var isCompressed: Bool { header.isCompressed }
    var entryCount: Int { pieces.reduce(0) { $0 + $1.entryCount } }

    init(_ block: ScannedBlock) {
        header = block.header
        bytes = block.bytes
        stored = block.stored
        isUnpacked = block.isUnpacked
        judgeCommits()
    }

    /// Where a byte of `bytes` lies in the file; of a compressed block, where the block begins.
    func fileOffset(_ offset: Int) -> Int { Int(header.position.offset) + (isCompressed ? 0 : offset) }

    private mutating func judgeCommits() {
        var start = header.byteCount
        for at in header.commits.indices {
            let end = start + Int(header.commits[at].plainByteCount)
            judge(at, start, end)
            start = end
        }
    }

    /// Framing is regained at the next byte where an entry's length, seq and CRC check.
    private mutating func judge(_ commitIndex: Int, _ start: Int, _ end: Int) {
        let commit = header.commits[commitIndex]
        let readable = min(end, bytes.count)
        var piece: EntryPiece?
        var lastSeq = commit.firstSeq - 1
        var entryCount = 0
        var spoiledFrom: Int?
        var at = start
        while at < readable, let base = bytes.baseAddress {
            if let entry = try? readEntry(
                base: base, offset: at, end: readable, commitFirstSeq: commit.firstSeq, commitTime: commit.time),
                entry.seq > lastSeq
            {
                if let from = spoiledFrom {
                    spoiled.append(SpoiledPiece(start: from, end: at, after: lastSeq, through: entry.seq - 1))
                    spoiledFrom = nil
                }
                if piece == nil {
                    piece = EntryPiece(
                        commit: commitIndex, start: at, end: at, entryCount: 0, firstSeq: entry.seq,
                        lastSeq: entry.seq)
                }
                at += entry.byteCount
                lastSeq = entry.seq
                entryCount += 1
                piece?.end = at
                piece?.entryCount += 1
                piece?.lastSeq = entry.seq
                continue
            }
            if let whole = piece { pieces.append(whole) }
            piece = nil
            if spoiledFrom == nil { spoiledFrom = at }
            at += 1
        }
        if let whole = piece { pieces.append(whole) }
        let missing = Int(commit.entryCount) - entryCount
        guard spoiledFrom != nil || readable < end || (missing != 0 && spoiled.isEmpty) else { return }
        // How many entries the commit's end held is known; how many seqs they spanned is not, but it is no fewer.
        let through = BlockContents.sum(commit.firstSeq, UInt64(commit.entryCount) - 1)
        spoiled.append(
            SpoiledPiece(start: spoiledFrom ?? readable, end: end, after: lastSeq, through: max(lastSeq, through)))
    }

    private static func sum(_ a: UInt64, _ b: UInt64) -> UInt64 {
        let (sum, overflow) = a.addingReportingOverflow(b)
        return overflow ? .max : sum
    }

    /// Shows every entry that checks, in their order, with its commit and its offset in the block.
    func entries(
        _ show: (_ entry: EntryView, _ commit: CommitHeader, _ offset: Int) throws(StoreError) -> Void
    ) throws(StoreError) {
        guard let base = bytes.baseAddress else { return }
        for piece in pieces {
            let commit = header.commits[piece.commit]
            var at = piece.start
            while at < piece.end {
                guard
                    let entry = try? readEntry(
                        base: base, offset: at, end: piece.end, commitFirstSeq: commit.firstSeq,
                        commitTime: commit.time, isVerified: false)
                else { return }
                try show(entry, commit, at)
                at += entry.byteCount
            }
        }
    }
}

// What a check of a whole library found.

import LarderFormat

/// What `verify` found. Damage means that the library is not what it was; a tail is what a crash leaves.
public struct VerifyReport: Sendable {
    /// Places that are kept; more are only counted.
    public static let damagesMax = 10_000

    public struct SegmentLine: Sendable {
        public var number: UInt32
        public var byteCount: Int
        public var blockCount = 0
        public var entryCount = 0
        /// 0 where there is none.
        public var firstSeq: UInt64 = 0
        public var lastSeq: UInt64 = 0
        /// Milliseconds since 1970, of its first and last commit.
        public var firstTime: Int64 = 0
        public var lastTime: Int64 = 0
        public var damageCount = 0
    }

    public internal(set) var segments: [SegmentLine] = []
    public internal(set) var damages: [LogDamage] = []
    public internal(set) var damageCount = 0
    public internal(set) var tail: LogTail?
    public internal(set) var blockCount = 0
    public internal(set) var entryCount = 0
    public internal(set) var byteCount = 0
    /// Live records.
    public internal(set) var recordCount = 0
    public internal(set) var kindCount = 0
    public internal(set) var originCount = 0
    public internal(set) var lastSeq: UInt64 = 0
    /// Seqs that no entry has: legal, and none of them is lost.
    public internal(set) var unusedSeqCount: UInt64 = 0
    /// Entries of types that this version does not know.
    public internal(set) var unknownTypeCount = 0
    /// Blocks whose payload is compressed.
    public internal(set) var compressedBlockCount = 0
    /// Behind the last block that counts.
    public internal(set) var end = LogPosition(segment: 1, offset: 0)
    /// The highest position that a block names as durable.
    public internal(set) var synced = LogPosition(segment: 0, offset: 0)

    public var isSound: Bool { damageCount == 0 }
    public var lostSeqCount: UInt64 {
        damages.reduce(0) { sum, damage in
            let (next, overflow) = sum.addingReportingOverflow(damage.lostSeqCount)
            return overflow ? .max : next
        }
    }

    mutating func add(_ damage: LogDamage) {
        damageCount += 1
        if damages.count < VerifyReport.damagesMax { damages.append(damage) }
        if let at = segments.lastIndex(where: { $0.number == damage.segment }) { segments[at].damageCount += 1 }
    }
}

extension LogSource {
    /// Reads and checks all of the log: blocks, entries, seqs, records against their kinds, and what entries say of one
    /// another. Changes nothing and takes no lock; beside a running host it judges what lay there when it began.
    ///
    /// - Throws: `newerFormat`, `system`. Damage is no error: it is in the report.
    public func verify() throws(StoreError) -> VerifyReport {
        var verifier = LogVerifier()
        var walk = try LogWalk(self)
        try walk.run(&verifier)
        return verifier.finish(walk)
    }
}

// What opening found, for people and for the stream.

import LarderFormat

/// What opening found.
public struct RecoveryReport: Equatable, Sendable {
    /// Bytes of an unfinished tail that were cut and put aside.
    public var cutByteCount = 0
    /// Where they are now, or empty.
    public var asidePath = ""
    /// Seqs whose entries were damaged where the log was known to be durable: (after, through).
    public var lostSpans: [LostSpan] = []
    /// Seqs that no entry has because of the cut; 0 … 0 if there was none.
    public var gapFrom: UInt64 = 0
    public var gapThrough: UInt64 = 0
    /// Saves and deletes of kinds whose declaration is lost, by the kind's number: they are passed over.
    public var undeclaredKinds: [Int: Int] = [:]
    public var entryCount = 0
    public var byteCount = 0

    /// Nothing of the log is lost, and everything in it has a meaning.
    public var isWhole: Bool { lostSpans.isEmpty && undeclaredKinds.isEmpty }

    public init() {}
}

/// Entries in (after, through] are damaged.
public struct LostSpan: Equatable, Sendable {
    public var after: UInt64
    public var through: UInt64
    public var segment: UInt32
    public var offset: Int
}

/// How far the seqs jump over a cut tail.
let recoverySeqJump: UInt64 = 1 << 20

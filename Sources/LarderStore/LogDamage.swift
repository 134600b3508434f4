// What is wrong in a log, where, and what it costs.

import LarderFormat

/// A place of a log that is not what it must be. FORMAT.md section 17 lists the kinds.
public struct LogDamage: Equatable, Sendable {
    public enum Cause: String, Sendable {
        /// No block header checks where one must begin.
        case badHeader = "bad_header"
        /// A block of another epoch, segment or offset.
        case misplaced
        /// Entries of a block whose header checks.
        case badEntry = "bad_entry"
        /// A compressed payload that is not what was written, and that gave all its entries.
        case badPayload = "bad_payload"
        /// Segments that are not there.
        case missingSegment = "missing_segment"
        case emptySegment = "empty_segment"
        /// A segment that ends before its end: at a block's end, where nothing looks cut.
        case cutSegment = "cut_segment"
        /// A commit whose first seq is not above those before it.
        case outOfOrder = "out_of_order"
        /// A declaration, or another entry of a known type, that does not parse.
        case unparsable
        case undeclaredKind = "undeclared_kind"
        case undeclaredOrigin = "undeclared_origin"
        case undeclaredField = "undeclared_field"
        case badRecord = "bad_record"
        /// An entry that contradicts what came before it: its first seq, its previous seq, or whether its key was live.
        case contradiction
    }

    public var cause: Cause
    public var segment: UInt32
    public var offset: Int
    public var byteCount: Int
    /// What was seen, for people.
    public var reason: String
    /// The last of several missing segments; else 0.
    public var lastSegment: UInt32 = 0
    /// Entries with seqs in (after, through] are lost; none when both are equal.
    public var after: UInt64 = 0
    public var through: UInt64 = 0
    /// Entries of the same block that are served.
    public var keptEntryCount = 0

    public var lostSeqCount: UInt64 { through > after ? through - after : 0 }
}

/// Where a log ends before its files do.
public struct LogTail: Equatable, Sendable {
    public enum Cause: String, Sendable {
        /// A write that was under way, and was not answered.
        case torn
        /// A batch of several blocks of which the last is not there.
        case unfinishedRun = "unfinished_run"
        /// Zeros: room laid out ahead.
        case room
    }

    public var cause: Cause
    public var segment: UInt32
    public var offset: Int
    /// Bytes from there to the end of the log's last file.
    public var byteCount: Int
}

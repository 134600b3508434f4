// 84 WRITTEN: what became of a batch.

import LarderFormat

/// What became of one operation; raw values are those of the results, in the order of the counts.
public enum WriteOutcome: UInt8, CaseIterable, Sendable {
    case created = 0
    case updated = 1
    case unchanged = 2
    case duplicate = 3
    case alreadySaved = 4
    case notFound = 5
    case deleted = 6
    case refused = 7
}

/// How many operations of a batch had each outcome.
public struct WriteCounts: Hashable, Sendable {
    public var created = 0
    public var updated = 0
    public var unchanged = 0
    public var duplicate = 0
    public var alreadySaved = 0
    public var notFound = 0
    public var deleted = 0
    public var refused = 0

    public init() {}

    /// All operations.
    public var total: Int {
        created &+ updated &+ unchanged &+ duplicate &+ alreadySaved &+ notFound &+ deleted &+ refused
    }

    public mutating func add(_ outcome: WriteOutcome) {
        switch outcome {
        case .created: created &+= 1
        case .updated: updated &+= 1
        case .unchanged: unchanged &+= 1
        case .duplicate: duplicate &+= 1
        case .alreadySaved: alreadySaved &+= 1
        case .notFound: notFound &+= 1
        case .deleted: deleted &+= 1
        case .refused: refused &+= 1
        }
    }

    /// Whether a batch of so many operations can have these counts. Numbers of a peer are asked before they are added.
    public func fit(operationCount: Int) -> Bool {
        let all = [created, updated, unchanged, duplicate, alreadySaved, notFound, deleted, refused]
        return all.allSatisfy { $0 <= operationCount } && total <= operationCount
    }

    /// Adds those of another batch.
    public mutating func add(_ other: WriteCounts) {
        created &+= other.created
        updated &+= other.updated
        unchanged &+= other.unchanged
        duplicate &+= other.duplicate
        alreadySaved &+= other.alreadySaved
        notFound &+= other.notFound
        deleted &+= other.deleted
        refused &+= other.refused
    }

    func encode(into writer: inout ByteWriter) {
        for value in [created, updated, unchanged, duplicate, alreadySaved, notFound, deleted, refused] {
            writer.varint(value)
        }
    }

    init(from reader: inout ByteReader) throws(FormatError) {
        created = try reader.number()
        updated = try reader.number()
        unchanged = try reader.number()
        duplicate = try reader.number()
        alreadySaved = try reader.number()
        notFound = try reader.number()
        deleted = try reader.number()
        refused = try reader.number()
    }
}

public struct Written: WireMessage {
    public static var type: MessageType { .written }

    /// Why one operation was refused.
    public struct Refusal: Hashable, Sendable {
        /// In the batch, from 0.
        public var position: Int
        /// As it was sent; see `number`.
        public var rawNumber: Int
        /// Number of the record's field, 0 if none.
        public var field: Int
        /// In the record or key.
        public var offset: Int
        public var reason: String

        public init(position: Int, _ number: ErrorNumber, field: Int = 0, offset: Int = 0, reason: String) {
            self.position = position
            self.rawNumber = Int(number.rawValue)
            self.field = field
            self.offset = offset
            self.reason = reason
        }

        init(from reader: inout ByteReader) throws(FormatError) {
            position = try reader.number()
            rawNumber = try reader.number()
            field = try reader.number()
            offset = try reader.number()
            reason = try reader.text()
        }

        /// Nil for a number that this version does not know.
        public var number: ErrorNumber? { UInt16(exactly: rawNumber).flatMap(ErrorNumber.init(rawValue:)) }
    }

    public struct Result: Hashable, Sendable {
        public var outcome: WriteOutcome
        /// Of the entry written, else of the current one, else 0.
        public var seq: UInt64
        /// The key that the host made, else empty.
        public var key: [UInt8]

        public init(_ outcome: WriteOutcome, seq: UInt64 = 0, key: [UInt8] = []) {
            self.outcome = outcome
            self.seq = seq
            self.key = key
        }
    }

    /// The last seq that this answer depends on.
    public var seq: UInt64
    public var counts: WriteCounts
    public var refusals: [Refusal]
    /// One per operation, if WRITE asked for them.
    public var results: [Result]?

    public init(seq: UInt64, counts: WriteCounts, refusals: [Refusal] = [], results: [Result]? = nil) {
        self.seq = seq
        self.counts = counts
        self.refusals = refusals
        self.results = results
    }

    public func encode(into writer: inout ByteWriter) {
        writer.u8(results == nil ? 0 : 1)
        writer.u64(seq)
        counts.encode(into: &writer)
        writer.varint(refusals.count)
        for refusal in refusals {
            writer.varint(refusal.position)
            writer.varint(refusal.rawNumber)
            writer.varint(refusal.field)
            writer.varint(refusal.offset)
            writer.text(refusal.reason)
        }
        guard let results else { return }
        writer.varint(results.count)
        for result in results {
            writer.u8(result.outcome.rawValue)
            writer.u64(result.seq)
            writer.byteString(result.key)
        }
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        let hasResults = try reader.flags(1) == 1
        seq = try reader.u64()
        counts = try WriteCounts(from: &reader)
        refusals = try reader.list(ofAtLeast: 5) { (reader: inout ByteReader) throws(FormatError) in
            try Refusal(from: &reader)
        }
        if hasResults {
            results = try reader.list(ofAtLeast: 10) { (reader: inout ByteReader) throws(FormatError) in
                Result(
                    try reader.choice(WriteOutcome.self), seq: try reader.u64(), key: try reader.byteArray())
            }
        }
        try reader.expectEnd()
    }
}

// What a writer asks for, and what can become of it.

import LarderFormat

/// One operation as a writer asks for it. The payload is borrowed until the batch is staged.
public struct WriteOperation {
    public enum Action: Sendable {
        case save
        case delete
        /// A record gets another key, and keeps its place in the order of saving.
        case move
        /// A record that was deleted comes back to its place in the order of saving.
        case restore
    }

    public var action: Action
    /// Of a save.
    public var mode: SaveMode
    /// Personal fields are written too.
    public var isPersonal: Bool
    /// The current entry's seq must be this; 0: the key must not be there.
    public var ifSeq: UInt64?
    /// Fields to make absent (merge only).
    public var unset: FieldSet
    public var kind: Int
    /// The highest field number that the writer knows of the kind.
    public var known: Int
    /// The record, of a delete the key.
    public var payload: UnsafeRawBufferPointer
    /// An indexed field: no other record of the kind may have an equal value there. 0: not asked for.
    public var unlessExists = 0
    /// Of a move: the key that the record has now.
    public var oldKey = UnsafeRawBufferPointer(start: nil, count: 0)
    /// Of a restore: the seq that first saved the record, and when that was.
    public var firstSeq: UInt64 = 0
    public var savedAt: Int64 = 0

    public var isDelete: Bool { action == .delete }

    public init(
        isDelete: Bool = false, mode: SaveMode = .merge, isPersonal: Bool = false, ifSeq: UInt64? = nil,
        unset: FieldSet = FieldSet(), kind: Int, known: Int = 256, payload: UnsafeRawBufferPointer
    ) {
        action = isDelete ? .delete : .save
        self.mode = mode
        self.isPersonal = isPersonal
        self.ifSeq = ifSeq
        self.unset = unset
        self.kind = kind
        self.known = known
        self.payload = payload
    }
}

/// What became of an operation; raw values are those of the wire.
public enum Outcome: UInt8, CaseIterable, Sendable {
    case created = 0
    case updated = 1
    case unchanged = 2
    case duplicate = 3
    case alreadySaved = 4
    case notFound = 5
    case deleted = 6
    case refused = 7
}

/// Why an operation was refused.
public struct Refusal: Equatable, Sendable {
    public enum Reason: Equatable, Sendable {
        /// The record or key does not hold what it must.
        case format(FormatError)
        case badKey(FormatError)
        case unknownKind(Int)
        /// `unlessExists` names a field that is not indexed.
        case notIndexed(Int)
        /// A restore to a first seq that is not to be had.
        case badPlace(UInt64)
        /// The caller asked for what it cannot have; in words.
        case unsupported(String)
        /// Changed since `ifSeq`.
        case conflict(current: UInt64)
    }
    /// Position in the batch, from 0.
    public var position: Int
    public var reason: Reason
}

/// How many operations came to which outcome.
public struct OutcomeCounts: Equatable, Sendable {
    public var byOutcome: (Int, Int, Int, Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0, 0, 0, 0)
    public init() {}

    public static func == (a: OutcomeCounts, b: OutcomeCounts) -> Bool {
        Outcome.allCases.allSatisfy { a[$0] == b[$0] }
    }

    public subscript(_ outcome: Outcome) -> Int {
        get {
            switch outcome {
            case .created: byOutcome.0
            case .updated: byOutcome.1
            case .unchanged: byOutcome.2
            case .duplicate: byOutcome.3
            case .alreadySaved: byOutcome.4
            case .notFound: byOutcome.5
            case .deleted: byOutcome.6
            case .refused: byOutcome.7
            }
        }
        set {
            switch outcome {
            case .created: byOutcome.0 = newValue
            case .updated: byOutcome.1 = newValue
            case .unchanged: byOutcome.2 = newValue
            case .duplicate: byOutcome.3 = newValue
            case .alreadySaved: byOutcome.4 = newValue
            case .notFound: byOutcome.5 = newValue
            case .deleted: byOutcome.6 = newValue
            case .refused: byOutcome.7 = newValue
            }
        }
    }

    public var total: Int { Outcome.allCases.reduce(0) { $0 + self[$1] } }
}

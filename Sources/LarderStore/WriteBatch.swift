// A batch of operations on its way into the log: what was asked, what was found, what was decided.

import LarderFormat

/// An operation with what the index and the log say of its key.
struct BatchOp {
    var payload: UnsafeRawBufferPointer
    var keyOffset: Int32 = 0
    var keyByteCount: Int32 = 0
    var fingerprint: UInt32 = 0
    var known: Int32 = 256
    var kindNumber: Int32 = 0
    var kindIndex: UInt8 = 0
    var mode: SaveMode = .merge
    var isDelete = false
    var isMove = false
    var isRestore = false
    var isPersonal = false
    /// Its record holds personal fields that it may not write.
    var hasGuardedFields = false
    /// Its record may lack required fields, which a new record must have.
    var mayBePartial = false
    var isRefused = false
    /// ifSeq and unset are in the batch's side table.
    var hasRareOptions = false
    /// The stored record equals the one that was sent.
    var isEqualToStored = false
    var madeKey = false
    /// The durable entry of the key: ordinal, or none.
    var storedOrdinal: UInt32 = UInt32.max
    var storedSeq: UInt64 = 0
    var storedFirstSeq: UInt64 = 0
    var storedSavedAt: Int64 = 0
    var storedOrigin: UInt64 = 0
    /// The stored record, in the batch's arena; empty when `isEqualToStored`.
    var stored = UnsafeRawBufferPointer(start: nil, count: 0)
    /// The entry that the operation wrote, else the one that is there, else 0.
    var seq: UInt64 = 0
    var outcome = Outcome.refused

    @inline(__always)
    var key: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: payload.baseAddress.map { $0 + Int(keyOffset) }, count: Int(keyByteCount))
    }
}

/// What few operations have.
struct RareOptions {
    var ifSeq: UInt64?
    var unset = FieldSet()
    /// An indexed field, or 0; its values, folded.
    var unlessExists = 0
    var values: [(bytes: [UInt8], fingerprint: UInt32)] = []
    /// Where in the batch's `searches` those for the values are.
    var searches: [Int] = []
    /// Of a move: where in `oldKeys` its old key is, which is resolved like an operation of its own.
    var oldKey: Int?
    var restoredFirstSeq: UInt64 = 0
    var restoredSavedAt: Int64 = 0
}

/// A value of an indexed field, folded.
struct WantedValue: Hashable {
    let kindIndex: UInt8
    let field: Int
    let value: [UInt8]
}

/// The operations of a batch, in memory that does not move while the batch is decided.
struct BatchOps: ~Copyable {
    private(set) var count = 0
    private var base: UnsafeMutablePointer<BatchOp>
    private var capacity = 1024

    init() { base = .allocate(capacity: capacity) }
    deinit { base.deallocate() }

    @inline(__always)
    func pointer(_ index: Int) -> UnsafeMutablePointer<BatchOp> { base + index }

    /// Room for one more; it counts once it was written.
    @inline(__always)
    mutating func append(_ op: BatchOp) {
        if count == capacity { grow() }
        (base + count).initialize(to: op)
        count &+= 1
    }

    private mutating func grow() {
        let grown = UnsafeMutablePointer<BatchOp>.allocate(capacity: capacity * 2)
        grown.moveInitialize(from: base, count: count)
        base.deallocate()
        base = grown
        capacity *= 2
    }

    mutating func removeAll() {
        if capacity > 65_536 {
            base.deallocate()
            capacity = 1024
            base = .allocate(capacity: capacity)
        }
        count = 0
    }
}

/// Memory that a batch keeps until it is begun anew. Pieces never move.
struct Arena: ~Copyable {
    private var chunks: [UnsafeMutableRawBufferPointer] = []
    private var current = 0
    private var used = 0

    init() {}
    deinit {
        for chunk in chunks { chunk.deallocate() }
    }

    mutating func removeAll() {
        // A large batch does not pin its memory for ever.
        while chunks.count > 4 { chunks.removeLast().deallocate() }
        current = 0
        used = 0
    }

    mutating func copy(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        while current < chunks.count && chunks[current].count - used < bytes.count {
            current += 1
            used = 0
        }
        if current == chunks.count {
            chunks.append(.allocate(byteCount: max(bytes.count, 262_144), alignment: 16))
            used = 0
        }
        let piece = UnsafeMutableRawBufferPointer(rebasing: chunks[current][used..<used + bytes.count])
        piece.copyMemory(from: bytes)
        used += bytes.count
        return UnsafeRawBufferPointer(piece)
    }
}

/// A batch. Begun, filled with operations, resolved, staged; then its results are read. Kept and begun anew for the
/// next one, so that its memory is used again. One thread.
public final class WriteBatch {
    // Confined to one thread; without dynamic checks of access, see `Store.core`.
    @exclusivity(unchecked) var ops = BatchOps()
    var rare: [Int: RareOptions] = [:]
    /// The old keys of moves.
    var oldKeys = BatchOps()
    @exclusivity(unchecked) var arena = Arena()
    /// Entries that were read from the disk for this batch.
    var fetched: [UInt64: (entry: EntryView, record: UnsafeRawBufferPointer)] = [:]
    /// Operations resolved so far, and the state of the index that this holds for.
    var resolvedCount = 0
    var resolvedGeneration: UInt64 = 0
    /// No less than the bytes that staging can need.
    var stagedByteCountMax = 0
    /// Where the entry lies that a cold read was asked for.
    var awaitedPlace = Place.hole
    /// `StoreCore.layoutCount` as of which places are meant.
    var fetchedLayout: UInt64 = 0
    /// Fingerprints of the keys that the batch is about; made when it is first asked for.
    var touched: Set<UInt32> = []
    /// Searches for the records that have a value which an operation must be alone to have: one for all that name it.
    var searches: [ValueSearch] = []
    /// The one for a value.
    var searchOfValue: [WantedValue: Int] = [:]
    /// What the decisions depend on; the batch's own changes are among what is staged.
    var dependsOnStaged = false
    var dependsOnInFlight = false
    /// Bytes of the largest payload.
    var payloadByteCountMax = 0

    /// The origin of the changes, or 0 for the one that `originName` has.
    var origin: UInt64 = 0
    var originName = ""
    var isImport = false
    public internal(set) var batchNumber: UInt64 = 0
    public internal(set) var isDryRun = false
    public internal(set) var isAtomic = false

    /// What became of each operation, in order; set when the batch is staged.
    public var outcomes: [Outcome] { (0..<ops.count).map { ops.pointer($0).pointee.outcome } }
    /// The seq of the entry that an operation wrote, else of the one that is there, else 0.
    public var seqs: [UInt64] { (0..<ops.count).map { ops.pointer($0).pointee.seq } }
    public internal(set) var refusals: [Refusal] = []
    @exclusivity(unchecked) public internal(set) var counts = OutcomeCounts()
    /// The last seq that the answer depends on.
    public internal(set) var lastSeq: UInt64 = 0

    public init() {}

    /// Starts over.
    ///
    /// - Parameters:
    ///   - origin: the number of an import's origin, or 0: the program's own, by its name.
    ///   - batchNumber: the sender's number of this batch in its import, or 0.
    public func begin(
        origin: UInt64, programName: String, batchNumber: UInt64 = 0, isDryRun: Bool = false, isAtomic: Bool = false
    ) {
        ops.removeAll()
        oldKeys.removeAll()
        if !rare.isEmpty { rare.removeAll() }
        if !fetched.isEmpty { fetched.removeAll(keepingCapacity: true) }
        if !touched.isEmpty { touched.removeAll() }
        forgetSearches()
        arena.removeAll()
        resolvedCount = 0
        stagedByteCountMax = 0
        payloadByteCountMax = 0
        self.origin = origin
        originName = programName
        isImport = origin != 0
        self.batchNumber = batchNumber
        self.isDryRun = isDryRun
        self.isAtomic = isAtomic
        if !refusals.isEmpty { refusals.removeAll() }
        counts = OutcomeCounts()
        lastSeq = 0
    }

    func forgetSearches() {
        if searches.isEmpty { return }
        searches = []
        searchOfValue = [:]
    }

    public var operationCount: Int { ops.count }

    /// The key that the host made for the operation at `position`, or nil.
    public func madeKey(at position: Int) -> [UInt8]? {
        ops.pointer(position).pointee.madeKey ? Array(ops.pointer(position).pointee.key) : nil
    }

    /// Copies every payload that is borrowed, so that the batch can wait while its frame's memory is used again.
    public func takeCopies() {
        for index in 0..<ops.count where !ops.pointer(index).pointee.madeKey {
            ops.pointer(index).pointee.payload = arena.copy(ops.pointer(index).pointee.payload)
        }
    }

    /// Puts an operation with the batch that the caller refuses.
    public func refuseUnsupported(_ what: String) { refuse(.unsupported(what)) }

    /// The first operation that came to something else than an atomic batch allows, or nil.
    public var firstFailure: (position: Int, outcome: Outcome)? {
        for at in 0..<ops.count {
            switch ops.pointer(at).pointee.outcome {
            case .refused, .alreadySaved, .notFound, .duplicate: return (at, ops.pointer(at).pointee.outcome)
            default: continue
            }
        }
        return nil
    }

    func refuse(_ reason: Refusal.Reason) {
        refusals.append(Refusal(position: ops.count, reason: reason))
        var op = BatchOp(payload: UnsafeRawBufferPointer(start: nil, count: 0))
        op.isRefused = true
        ops.append(op)
    }

    @inline(__always)
    func conclude(_ op: UnsafeMutablePointer<BatchOp>, _ outcome: Outcome, seq: UInt64) {
        op.pointee.outcome = outcome
        op.pointee.seq = seq
        counts[outcome] &+= 1
    }
}

extension WriteBatch {
    /// The origin that the last batch named, 0 for the program's own.
    public var originForHost: UInt64 { origin }
    /// Every operation is a delete: a failure is then `failed_to_delete`.
    public var isOnlyDeletes: Bool { ops.count > 0 && (0..<ops.count).allSatisfy { ops.pointer($0).pointee.isDelete } }
}

// What is staged and not yet durable: consulted by later writes, never by reads.

import LarderFormat

/// One staged change of a record.
struct PendingOp {
    var seq: UInt64
    var firstSeq: UInt64
    var previousSeq: UInt64
    var savedAt: Int64
    var origin: UInt64
    /// The staged record or key, in a slab that lives as long as the commit is pending.
    var payload: UnsafeRawBufferPointer
    var keyOffset: UInt32
    var keyByteCount: UInt32
    /// Where the entry will lie; a hole for a delete.
    var place: Place
    /// The place that it supersedes in the index, or a hole.
    var fingerprint: UInt32
    var kindIndex: UInt8
    var isDelete: Bool
    /// The key is not in the library before this change.
    var isNew: Bool

    @inline(__always)
    var key: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: payload.baseAddress.map { $0 + Int(keyOffset) }, count: Int(keyByteCount))
    }
}

/// The staged changes of one commit, found by key. Owned by one thread.
struct PendingOps: ~Copyable {
    private(set) var count = 0
    /// Bytes of the largest record or key among them.
    private(set) var payloadByteCountMax = 0
    /// Changes of kinds with indexed fields, by the fingerprints of their values; made when it is first asked for.
    private var byValue: [UInt64: [Int]] = [:]
    private var byValueCount = 0
    /// The newest change by the first seq of its record; made when it is first asked for.
    private var byFirstSeq: [UInt64: Int] = [:]
    private var byFirstSeqCount = 0
    private var ops: UnsafeMutablePointer<PendingOp>
    private var capacity = 1024
    /// Index + 1 of the last change of a key; 0 is empty.
    private var slots: UnsafeMutablePointer<UInt32>
    private var bits = 12

    init() {
        ops = .allocate(capacity: capacity)
        slots = .allocate(capacity: 1 << bits)
        slots.initialize(repeating: 0, count: 1 << bits)
    }

    deinit {
        ops.deallocate()
        slots.deallocate()
    }

    @inline(__always)
    subscript(_ index: Int) -> PendingOp { ops[index] }

    mutating func removeAll() {
        count = 0
        payloadByteCountMax = 0
        forgetValues()
        forgetFirstSeqs()
        slots.update(repeating: 0, count: 1 << bits)
    }

    /// The last change of this key, or nil.
    @inline(__always)
    func find(_ fingerprint: UInt32, kindIndex: UInt8, key: UnsafeRawBufferPointer) -> Int? {
        if count == 0 { return nil }
        let mask = (1 << bits) &- 1
        var at = Int(fingerprint &* 0x9E37_79B1) & mask
        while slots[at] != 0 {
            let index = Int(slots[at]) &- 1
            if ops[index].fingerprint == fingerprint && ops[index].kindIndex == kindIndex
                && isEqual(ops[index].key, key)
            {
                return index
            }
            at = (at &+ 1) & mask
        }
        return nil
    }

    /// Forgets what was noted: it is noted anew when it is asked for.
    mutating func forgetValues() {
        if byValueCount > 0 { byValue.removeAll() }
        byValueCount = 0
    }

    /// The next change whose values were not noted yet.
    var nextUnnoted: Int? { byValueCount < count ? byValueCount : nil }

    /// Notes the fingerprints of the values of `nextUnnoted`.
    mutating func note(_ fingerprints: [UInt32]) {
        for found in fingerprints {
            byValue[UInt64(ops[byValueCount].kindIndex) << 32 | UInt64(found), default: []].append(byValueCount)
        }
        byValueCount += 1
    }

    /// Changes that may have a value, among those noted.
    func withValue(_ fingerprint: UInt32, _ kindIndex: UInt8) -> [Int] {
        byValue[UInt64(kindIndex) << 32 | UInt64(fingerprint)] ?? []
    }

    /// Of the first changes that may have a value keeps some: the others were superseded. Until the values are forgotten.
    mutating func keep(_ kept: [Int], ofFirst seen: Int, _ fingerprint: UInt32, _ kindIndex: UInt8) {
        byValue[UInt64(kindIndex) << 32 | UInt64(fingerprint)]?.replaceSubrange(..<seen, with: kept)
    }

    /// Takes back the changes behind the first `kept`. Rare, so everything is found anew.
    mutating func truncate(to kept: Int) {
        guard kept < count else { return }
        count = 0
        payloadByteCountMax = 0
        forgetValues()
        forgetFirstSeqs()
        slots.update(repeating: 0, count: 1 << bits)
        for at in 0..<kept {
            let op = ops[at]
            append(op, replacing: find(op.fingerprint, kindIndex: op.kindIndex, key: op.key))
        }
    }

    /// Whether the newest change of the record with this first seq leaves it there; nil if none changes it.
    mutating func isLive(firstSeq: UInt64) -> Bool? {
        while byFirstSeqCount < count {
            byFirstSeq[ops[byFirstSeqCount].firstSeq] = byFirstSeqCount
            byFirstSeqCount += 1
        }
        return byFirstSeq[firstSeq].map { !ops[$0].isDelete }
    }

    private mutating func forgetFirstSeqs() {
        if byFirstSeqCount > 0 { byFirstSeq.removeAll() }
        byFirstSeqCount = 0
    }

    /// Adds a change. `earlier` is what `find` gave for its key.
    mutating func append(_ op: PendingOp, replacing earlier: Int?) {
        if count == capacity { growOps() }
        if count &* 2 > 1 << bits { growSlots() }
        ops[count] = op
        count &+= 1
        if op.payload.count > payloadByteCountMax { payloadByteCountMax = op.payload.count }
        let mask = (1 << bits) &- 1
        var at = Int(op.fingerprint &* 0x9E37_79B1) & mask
        while slots[at] != 0 {
            if let earlier, Int(slots[at]) &- 1 == earlier { break }
            at = (at &+ 1) & mask
        }
        slots[at] = UInt32(truncatingIfNeeded: count)
    }

    private mutating func growOps() {
        let grown = UnsafeMutablePointer<PendingOp>.allocate(capacity: capacity * 2)
        grown.moveInitialize(from: ops, count: count)
        ops.deallocate()
        ops = grown
        capacity *= 2
    }

    private mutating func growSlots() {
        let old = slots
        let oldCount = 1 << bits
        bits += 1
        slots = .allocate(capacity: 1 << bits)
        slots.initialize(repeating: 0, count: 1 << bits)
        let mask = (1 << bits) &- 1
        for slot in 0..<oldCount where old[slot] != 0 {
            var at = Int(ops[Int(old[slot]) &- 1].fingerprint &* 0x9E37_79B1) & mask
            while slots[at] != 0 { at = (at &+ 1) & mask }
            slots[at] = old[slot]
        }
        old.deallocate()
    }
}

@inline(__always)
func isEqual(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    guard a.count == b.count else { return false }
    guard let x = a.baseAddress, let y = b.baseAddress else { return true }
    return larderMemoryCompare(x, y, a.count) == 0
}

// From the fingerprint of a key to the ordinal of its record: open addressing over 8-byte slots.
//
//   slot, u64:  fingerprint (upper 32) | ordinal + 1 (lower 32); 0 is empty
//
// A slot's home is the upper bits of the fingerprint, so the table is ordered by fingerprint but for collisions and
// grows by one pass in order. A hit is only a candidate: the caller confirms it on the record.

import CLarder
import LarderFormat

/// The hash part of the index. Owned by one thread.
///
/// Any capacity will do: a slot's home is the fingerprint's share of it, so growing by a quarter keeps the table between
/// two thirds and five sixths full where memory matters more than the passes.
struct KeyIndex: ~Copyable {
    enum Growth {
        /// Few passes: between two and four fifths full.
        case double
        /// Little memory: between two thirds and five sixths full, so 9.6 to 12 bytes a slot that is taken.
        case close
    }

    private(set) var count = 0
    private(set) var capacity: Int
    private var slots: UnsafeMutablePointer<UInt64>
    private let growth: Growth
    /// The count at which the table grows.
    private var countMax: Int
    private static let smallest = 4096

    /// - Parameter expected: records that are to fit without growing.
    init(expected: Int = 0, growth: Growth = .double) {
        self.growth = growth
        capacity = max(KeyIndex.smallest, expected * 5 / 4 + 1)
        countMax = KeyIndex.countMax(capacity, growth)
        slots = KeyIndex.allocate(capacity)
    }

    deinit { KeyIndex.free(slots, capacity) }

    private static func countMax(_ capacity: Int, _ growth: Growth) -> Int {
        growth == .double ? capacity / 5 * 4 : capacity / 6 * 5
    }

    private static func allocate(_ count: Int) -> UnsafeMutablePointer<UInt64> {
        guard let memory = larder_memory_map(count * 8) else { preconditionFailure("out of memory for the index") }
        return memory.bindMemory(to: UInt64.self, capacity: count)
    }

    private static func free(_ slots: UnsafeMutablePointer<UInt64>, _ count: Int) {
        larder_memory_unmap(UnsafeMutableRawPointer(slots), count * 8)
    }

    @inline(__always)
    private func home(_ fingerprint: UInt32) -> Int { (Int(fingerprint) &* capacity) &>> 32 }

    @inline(__always)
    private func behind(_ at: Int) -> Int { at &+ 1 == capacity ? 0 : at &+ 1 }

    /// How far `at` lies behind `from`, around the end.
    @inline(__always)
    private func distance(_ from: Int, _ at: Int) -> Int { at >= from ? at &- from : at &- from &+ capacity }

    /// Has the memory of a lookup fetched that comes soon.
    @inline(__always)
    func prefetch(_ fingerprint: UInt32) { larder_prefetch(UnsafeRawPointer(slots + home(fingerprint))) }

    /// The next candidate with this fingerprint.
    ///
    /// - Parameter probe: 0 to begin; moved on, so that the same call goes on behind the last candidate.
    @inline(__always)
    func next(_ fingerprint: UInt32, _ probe: inout Int) -> UInt32? {
        var at = home(fingerprint) &+ probe
        if at >= capacity { at &-= capacity }
        while true {
            let slot = slots[at]
            if slot == 0 { return nil }
            probe &+= 1
            if UInt32(truncatingIfNeeded: slot &>> 32) == fingerprint { return UInt32(truncatingIfNeeded: slot) &- 1 }
            at = behind(at)
        }
    }

    mutating func insert(_ fingerprint: UInt32, ordinal: UInt32) {
        if count >= countMax { grow() }
        place(UInt64(fingerprint) &<< 32 | UInt64(ordinal &+ 1))
        count &+= 1
    }

    @inline(__always)
    private mutating func place(_ slot: UInt64) {
        var at = home(UInt32(truncatingIfNeeded: slot &>> 32))
        while slots[at] != 0 { at = behind(at) }
        slots[at] = slot
    }

    /// Takes out the slot of this fingerprint and ordinal; false when there is none.
    @discardableResult
    mutating func remove(_ fingerprint: UInt32, ordinal: UInt32) -> Bool {
        let wanted = UInt64(fingerprint) &<< 32 | UInt64(ordinal &+ 1)
        var at = home(fingerprint)
        while slots[at] != wanted {
            if slots[at] == 0 { return false }
            at = behind(at)
        }
        // Those behind move up, unless they are at home already (Knuth, volume 3, algorithm R of section 6.4).
        var hole = at
        var next = behind(at)
        while slots[next] != 0 {
            let nextHome = home(UInt32(truncatingIfNeeded: slots[next] &>> 32))
            if distance(nextHome, next) >= distance(hole, next) {
                slots[hole] = slots[next]
                hole = next
            }
            next = behind(next)
        }
        slots[hole] = 0
        count &-= 1
        return true
    }

    mutating func removeAll() {
        KeyIndex.free(slots, capacity)
        capacity = KeyIndex.smallest
        countMax = KeyIndex.countMax(capacity, growth)
        slots = KeyIndex.allocate(capacity)
        count = 0
    }

    /// Takes out the slot of this ordinal, whatever its fingerprint. Walks over all slots.
    mutating func remove(ordinal: UInt32) {
        for at in 0..<capacity where slots[at] != 0 && UInt32(truncatingIfNeeded: slots[at]) == ordinal &+ 1 {
            remove(UInt32(truncatingIfNeeded: slots[at] &>> 32), ordinal: ordinal)
            return
        }
    }

    /// Gives every ordinal a new number; those that map to nil are dropped.
    mutating func renumber(_ map: (UInt32) -> UInt32) {
        for at in 0..<capacity where slots[at] != 0 {
            let ordinal = UInt32(truncatingIfNeeded: slots[at]) &- 1
            slots[at] = slots[at] & 0xFFFF_FFFF_0000_0000 | UInt64(map(ordinal) &+ 1)
        }
    }

    private mutating func grow() {
        let old = slots
        let oldCapacity = capacity
        capacity = growth == .double ? capacity * 2 : capacity * 5 / 4
        countMax = KeyIndex.countMax(capacity, growth)
        slots = KeyIndex.allocate(capacity)
        for at in 0..<oldCapacity where old[at] != 0 { place(old[at]) }
        KeyIndex.free(old, oldCapacity)
    }
}

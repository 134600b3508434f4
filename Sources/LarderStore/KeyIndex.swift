// From the fingerprint of a key to the ordinal of its record: open addressing over 8-byte slots.
//
//   slot, u64:  fingerprint (upper 32) | ordinal + 1 (lower 32); 0 is empty
//
// A slot's home is the upper bits of the fingerprint, so the table is ordered by fingerprint but for collisions. A hit
// is only a candidate: the caller confirms it on the record.
//
// It grows without a pause: a larger table is put beside the old one, and every insert moves a few slots over, in the
// order of the old table and a whole cluster at a time. So the old home of a fingerprint alone tells which of the two
// has all of its slots.

import CLarder

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
    private var slots: SlotTable
    /// The table that is being moved into `slots`; of no capacity when there is none.
    private var old = SlotTable.none
    /// Where the move began, at an empty slot, and how many slots from there on are done.
    private var moveStart = 0
    private var movedCount = 0
    private let growth: Growth
    /// The count at which the table grows.
    private var countMax: Int
    private static let smallest = 4096
    /// Slots looked at for an insert: few enough to cost little, and the old table is done long before the new is full.
    private static let movesPerInsert = 64

    /// - Parameter expected: records that are to fit without growing.
    init(expected: Int = 0, growth: Growth = .double) {
        self.growth = growth
        slots = SlotTable(capacity: max(KeyIndex.smallest, expected * 5 / 4 + 1))
        countMax = KeyIndex.countMax(slots.capacity, growth)
    }

    deinit {
        slots.free()
        old.free()
    }

    private static func countMax(_ capacity: Int, _ growth: Growth) -> Int {
        growth == .double ? capacity / 5 * 4 : capacity / 6 * 5
    }

    /// Slots that there is memory for.
    var capacity: Int { slots.capacity + old.capacity }
    var isGrowing: Bool { old.capacity != 0 }

    /// The table that has the slots of a fingerprint.
    @inline(__always)
    private func table(of fingerprint: UInt32) -> SlotTable {
        if old.capacity == 0 { return slots }
        return old.distance(moveStart, old.home(fingerprint)) < movedCount ? slots : old
    }

    /// Has the memory of a lookup fetched that comes soon.
    @inline(__always)
    func prefetch(_ fingerprint: UInt32) {
        let table = table(of: fingerprint)
        larder_prefetch(UnsafeRawPointer(table.base + table.home(fingerprint)))
    }

    /// The next candidate with this fingerprint.
    ///
    /// - Parameter probe: 0 to begin; moved on, so that the same call goes on behind the last candidate.
    @inline(__always)
    func next(_ fingerprint: UInt32, _ probe: inout Int) -> UInt32? {
        let table = table(of: fingerprint)
        var at = table.home(fingerprint) &+ probe
        if at >= table.capacity { at &-= table.capacity }
        while true {
            let slot = table.base[at]
            if slot == 0 { return nil }
            probe &+= 1
            if UInt32(truncatingIfNeeded: slot &>> 32) == fingerprint { return UInt32(truncatingIfNeeded: slot) &- 1 }
            at = table.behind(at)
        }
    }

    @inline(__always)
    mutating func insert(_ fingerprint: UInt32, ordinal: UInt32) {
        insert(slot: UInt64(fingerprint) &<< 32 | UInt64(ordinal &+ 1))
    }

    /// Puts in a slot as `eachSlot` gave it.
    @inline(__always)
    mutating func insert(slot: UInt64) {
        if count >= countMax { beginGrowing() }
        if old.capacity != 0 { move(KeyIndex.movesPerInsert) }
        table(of: UInt32(truncatingIfNeeded: slot &>> 32)).place(slot)
        count &+= 1
    }

    /// Takes out the slot of this fingerprint and ordinal; false when there is none.
    @discardableResult
    mutating func remove(_ fingerprint: UInt32, ordinal: UInt32) -> Bool {
        let isFound = table(of: fingerprint).remove(UInt64(fingerprint) &<< 32 | UInt64(ordinal &+ 1))
        if isFound { count &-= 1 }
        return isFound
    }

    mutating func removeAll() {
        slots.free()
        old.free()
        old = .none
        slots = SlotTable(capacity: KeyIndex.smallest)
        countMax = KeyIndex.countMax(slots.capacity, growth)
        count = 0
    }

    /// Takes out the slot of this ordinal, whatever its fingerprint. Walks over all slots.
    mutating func remove(ordinal: UInt32) {
        for table in [slots, old] {
            for at in 0..<table.capacity where table.base[at] != 0 {
                guard UInt32(truncatingIfNeeded: table.base[at]) == ordinal &+ 1 else { continue }
                remove(UInt32(truncatingIfNeeded: table.base[at] &>> 32), ordinal: ordinal)
                return
            }
        }
    }

    /// Shows every slot, nearly in the order of fingerprints.
    func eachSlot<E: Error>(_ body: (UInt64) throws(E) -> Void) throws(E) {
        for at in 0..<slots.capacity where slots.base[at] != 0 { try body(slots.base[at]) }
        for at in 0..<old.capacity where old.base[at] != 0 { try body(old.base[at]) }
    }

    /// Gives every ordinal a new number.
    mutating func renumber(_ map: (UInt32) -> UInt32) {
        slots.renumber(map)
        old.renumber(map)
    }

    // MARK: Growing

    /// Has so many more fit without growing, and a quarter of all on top, so that it does not grow soon after.
    mutating func reserve(_ more: Int) {
        let expected = count + more
        guard expected > countMax else { return }
        beginGrowing(capacity: ((expected + expected / 4) / 4 + 1) * 5)
    }

    private mutating func beginGrowing() {
        beginGrowing(capacity: growth == .double ? slots.capacity * 2 : slots.capacity * 5 / 4)
    }

    private mutating func beginGrowing(capacity: Int) {
        move(Int.max)
        old = slots
        slots = SlotTable(capacity: capacity)
        countMax = KeyIndex.countMax(slots.capacity, growth)
        moveStart = 0
        while old.base[moveStart] != 0 { moveStart = old.behind(moveStart) }
        movedCount = 0
    }

    /// Moves on by about so many slots of the old table, to the end of a cluster.
    private mutating func move(_ slotCount: Int) {
        guard old.capacity != 0 else { return }
        var left = slotCount
        var at = moveStart &+ movedCount
        if at >= old.capacity { at &-= old.capacity }
        while true {
            let slot = old.base[at]
            if slot != 0 {
                slots.place(slot)
                old.base[at] = 0
            } else if movedCount >= old.capacity {
                // What went around the end was moved as well.
                old.free()
                old = .none
                return
            }
            movedCount &+= 1
            left &-= 1
            at = old.behind(at)
            if slot == 0 && left <= 0 { return }
        }
    }
}

// One table of slots of the index: its memory, and what is done at one place of it. KeyIndex draws a slot.

import CLarder

/// Slots in pages of their own, zeroed. A handle: whoever made it frees it once.
struct SlotTable {
    let base: UnsafeMutablePointer<UInt64>
    let capacity: Int

    /// Without slots; never looked into.
    static var none: SlotTable {
        SlotTable(base: UnsafeMutablePointer(bitPattern: 64).unsafelyUnwrapped, capacity: 0)
    }

    private init(base: UnsafeMutablePointer<UInt64>, capacity: Int) {
        self.base = base
        self.capacity = capacity
    }

    init(capacity: Int) {
        guard let memory = larder_memory_map(capacity * 8) else { preconditionFailure("out of memory for the index") }
        self.init(base: memory.bindMemory(to: UInt64.self, capacity: capacity), capacity: capacity)
    }

    func free() {
        if capacity != 0 { larder_memory_unmap(UnsafeMutableRawPointer(base), capacity * 8) }
    }

    @inline(__always)
    func home(_ fingerprint: UInt32) -> Int { (Int(fingerprint) &* capacity) &>> 32 }

    @inline(__always)
    func behind(_ at: Int) -> Int { at &+ 1 == capacity ? 0 : at &+ 1 }

    /// How far `at` lies behind `from`, around the end.
    @inline(__always)
    func distance(_ from: Int, _ at: Int) -> Int { at >= from ? at &- from : at &- from &+ capacity }

    @inline(__always)
    func place(_ slot: UInt64) {
        var at = home(UInt32(truncatingIfNeeded: slot &>> 32))
        while base[at] != 0 { at = behind(at) }
        base[at] = slot
    }

    /// Takes out a slot; false when it is not there.
    func remove(_ wanted: UInt64) -> Bool {
        var at = home(UInt32(truncatingIfNeeded: wanted &>> 32))
        while base[at] != wanted {
            if base[at] == 0 { return false }
            at = behind(at)
        }
        // Those behind move up, unless they are at home already (Knuth, volume 3, algorithm R of section 6.4).
        var hole = at
        var next = behind(at)
        while base[next] != 0 {
            let nextHome = home(UInt32(truncatingIfNeeded: base[next] &>> 32))
            if distance(nextHome, next) >= distance(hole, next) {
                base[hole] = base[next]
                hole = next
            }
            next = behind(next)
        }
        base[hole] = 0
        return true
    }

    func renumber(_ map: (UInt32) -> UInt32) {
        for at in 0..<capacity where base[at] != 0 {
            let ordinal = UInt32(truncatingIfNeeded: base[at]) &- 1
            base[at] = base[at] & 0xFFFF_FFFF_0000_0000 | UInt64(map(ordinal) &+ 1)
        }
    }
}

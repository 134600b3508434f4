// Which ids of a connection are taken.

/// An open request. The serial tells it from a later one with the same id, so that an answer that comes after the
/// deadline is not taken for the later one's.
@frozen
public struct OpenRequest: Hashable, Sendable {
    public let id: UInt32
    public let serial: UInt32

    @inlinable
    init(id: UInt32, serial: UInt32) {
        self.id = id
        self.serial = serial
    }
}

/// The open requests and subscriptions of one connection: a hash table with linear probing, ids never being 0.
///
///     slot = u32 id (0: free) · u32 serial (0: a subscription)
@usableFromInline
struct RequestTable: Sendable {
    @usableFromInline
    struct Slot: Sendable {
        @usableFromInline var id: UInt32
        @usableFromInline var serial: UInt32
    }

    @usableFromInline var slots: [Slot] = []
    @usableFromInline var requestCount = 0
    @usableFromInline var subscriptionCount = 0
    private var lastSerial: UInt32 = 0

    @inlinable var count: Int { requestCount &+ subscriptionCount }

    @inlinable init() {}

    /// The serial of an id that is taken, 0 for a subscription, nil for one that is free.
    @inlinable
    func serial(of id: UInt32) -> UInt32? {
        if count == 0 { return nil }
        let slot = slots[index(of: id)]
        return slot.id == id ? slot.serial : nil
    }

    /// Where the id is, or the free slot where it would be. There is always a free slot.
    @inlinable
    func index(of id: UInt32) -> Int {
        let mask = slots.count &- 1
        var index = home(id)
        while slots[index].id != id && slots[index].id != 0 { index = (index &+ 1) & mask }
        return index
    }

    @inlinable
    func home(_ id: UInt32) -> Int {
        Int(truncatingIfNeeded: (id &* 0x9E37_79B1) >> 8) & (slots.count &- 1)
    }

    /// Takes an id that is free.
    mutating func insertRequest(_ id: UInt32) -> OpenRequest {
        lastSerial = lastSerial == .max ? 1 : lastSerial + 1
        insert(Slot(id: id, serial: lastSerial))
        requestCount += 1
        return OpenRequest(id: id, serial: lastSerial)
    }

    /// Takes an id that is free for a subscription.
    mutating func insertSubscription(_ id: UInt32) {
        insert(Slot(id: id, serial: 0))
        subscriptionCount += 1
    }

    private mutating func insert(_ slot: Slot) {
        if (count + 1) * 2 > slots.count { grow() }
        slots[index(of: slot.id)] = slot
    }

    private mutating func grow() {
        let old = slots
        slots = Array(repeating: Slot(id: 0, serial: 0), count: max(16, old.count * 2))
        for slot in old where slot.id != 0 { slots[index(of: slot.id)] = slot }
    }

    /// Frees an id if it is taken with that serial.
    mutating func remove(_ id: UInt32, serial: UInt32) -> Bool {
        if count == 0 { return false }
        var hole = index(of: id)
        guard slots[hole].id == id, slots[hole].serial == serial else { return false }
        if serial == 0 { subscriptionCount -= 1 } else { requestCount -= 1 }
        // Slots behind the hole that would no longer be found move into it.
        let mask = slots.count - 1
        var next = (hole + 1) & mask
        while slots[next].id != 0 {
            let distance = (next &- home(slots[next].id)) & mask
            if distance >= (next &- hole) & mask {
                slots[hole] = slots[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        slots[hole] = Slot(id: 0, serial: 0)
        return true
    }

    var requests: [OpenRequest] {
        slots.filter { $0.id != 0 && $0.serial != 0 }.map { OpenRequest(id: $0.id, serial: $0.serial) }
    }
    var subscriptions: [UInt32] { slots.filter { $0.id != 0 && $0.serial == 0 }.map(\.id) }
}

// Memory that connections read into and write from.

/// Bytes between a start and an end, in memory that grows. Owned by one connection.
struct ByteBuffer: ~Copyable {
    private(set) var memory: UnsafeMutableRawPointer
    private(set) var capacity: Int
    private(set) var start = 0
    private(set) var end = 0

    init(capacity: Int) {
        self.capacity = capacity
        memory = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit { memory.deallocate() }

    var count: Int { end &- start }
    var isEmpty: Bool { end == start }

    /// What is in it. Valid until the next change.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory + start, count: end &- start) }

    /// Room behind the end for at least `count` bytes; what is in it may move.
    mutating func room(_ count: Int) -> UnsafeMutableRawBufferPointer {
        if capacity &- end < count { makeRoom(count) }
        return UnsafeMutableRawBufferPointer(start: memory + end, count: capacity &- end)
    }

    private mutating func makeRoom(_ count: Int) {
        let held = end &- start
        if capacity >= held &+ count {
            memory.copyMemory(from: memory + start, byteCount: held)
        } else {
            let grown = max(capacity * 2, held + count)
            let fresh = UnsafeMutableRawPointer.allocate(byteCount: grown, alignment: 16)
            fresh.copyMemory(from: memory + start, byteCount: held)
            memory.deallocate()
            memory = fresh
            capacity = grown
        }
        start = 0
        end = held
    }

    /// Counts bytes that were put into the room.
    mutating func filled(_ count: Int) { end &+= count }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        room(bytes.count).baseAddress?.copyMemory(from: source, byteCount: bytes.count)
        end &+= bytes.count
    }

    mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }

    /// Takes bytes from the front.
    mutating func consume(_ count: Int) {
        start &+= count
        if start >= end {
            start = 0
            end = 0
        }
    }

    /// Gives memory back that an exceptional frame needed.
    mutating func shrink(to count: Int) {
        guard isEmpty, capacity > count else { return }
        memory.deallocate()
        memory = .allocate(byteCount: count, alignment: 16)
        capacity = count
    }
}

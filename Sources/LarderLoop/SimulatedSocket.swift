// A connection of a simulated loop: two pipes of bytes, with the peer at their other ends.

/// What a peer holds of a connection to a simulated loop. The loop's thread.
public final class SimulatedSocket {
    private let byteCountMax: Int
    private var toHost: [UInt8] = []
    private var toPeer: [UInt8] = []
    private var isClosedByPeer = false
    private var isClosedByHost = false

    init(byteCountMax: Int) { self.byteCountMax = max(byteCountMax, 1) }

    // MARK: The peer's end

    /// Sends what there is room for; returns how many bytes that was.
    public func send(_ bytes: ArraySlice<UInt8>) -> Int {
        if isClosedByPeer || isClosedByHost { return 0 }
        let count = min(bytes.count, byteCountMax - toHost.count)
        toHost += bytes.prefix(count)
        return count
    }

    /// Takes up to `count` bytes of what the host sent.
    public func receive(_ count: Int) -> [UInt8] {
        let taken = Array(toPeer.prefix(count))
        toPeer.removeFirst(taken.count)
        return taken
    }

    /// Bytes that `receive` would give.
    public var receivableByteCount: Int { toPeer.count }

    /// The host has closed and all was received.
    public var isEnded: Bool { isClosedByHost && toPeer.isEmpty }

    /// The peer has gone, with what it did not receive.
    public func close() {
        isClosedByPeer = true
        toPeer = []
    }

    // MARK: The host's end

    var isReadable: Bool { !toHost.isEmpty || isClosedByPeer }
    var readableByteCount: Int { toHost.count }
    var isBroken: Bool { isClosedByPeer }
    var room: Int { max(byteCountMax - toPeer.count, 0) }

    func read(into buffer: UnsafeMutableRawBufferPointer, count: Int) {
        buffer.copyBytes(from: toHost.prefix(count))
        toHost.removeFirst(count)
    }

    func write(_ bytes: UnsafeRawBufferPointer) { toPeer.append(contentsOf: bytes) }

    func closeByHost() {
        isClosedByHost = true
        toHost = []
    }
}

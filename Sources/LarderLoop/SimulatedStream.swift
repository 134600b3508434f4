// The host's end of a simulated connection, as a stream sees it.

import Glibc

/// What a `Stream` of a simulated loop has in the place of a descriptor.
final class SimulatedConnection {
    private struct Write {
        var bytes: ArraySlice<UInt8>
        var completion: ((LoopError?) -> Void)?
    }

    let socket: SimulatedSocket
    private let loop: SimulatedLoop
    private var writes: [Write] = []
    var isReading = false

    init(_ socket: SimulatedSocket, _ loop: SimulatedLoop) {
        self.socket = socket
        self.loop = loop
    }

    var pendingByteCount: Int { writes.reduce(0) { $0 + $1.bytes.count } }
    var hasEvent: Bool { isReading && socket.isReadable || canGoOn }
    private var canGoOn: Bool { !writes.isEmpty && (socket.isBroken || socket.room > 0) }

    func portion(of count: Int) -> Int { loop.portion(of: count) }

    /// How many bytes of the slices the socket takes now.
    func tryWrite(_ slices: UnsafeBufferPointer<iovec>) throws(LoopError) -> Int {
        let bytes = SimulatedConnection.joined(slices)
        var count = 0
        try bytes.withUnsafeBufferPointer { bytes throws(LoopError) in
            count = writes.isEmpty ? try put(UnsafeRawBufferPointer(bytes)) : 0
        }
        return count
    }

    private static func joined(_ slices: UnsafeBufferPointer<iovec>) -> [UInt8] {
        var bytes: [UInt8] = []
        for slice in slices {
            bytes.append(contentsOf: UnsafeRawBufferPointer(start: slice.iov_base, count: slice.iov_len))
        }
        return bytes
    }

    func write(_ slices: UnsafeBufferPointer<iovec>, _ completion: ((LoopError?) -> Void)?) {
        write(SimulatedConnection.joined(slices), completion)
    }

    private func put(_ bytes: UnsafeRawBufferPointer) throws(LoopError) -> Int {
        // From a dead machine nothing comes, not even an error.
        guard loop.hasPower() else { return bytes.count }
        if socket.isBroken { throw LoopError(code: LoopError.EPIPE, operation: "uv_try_write") }
        let room = min(bytes.count, socket.room)
        let count = room == 0 ? 0 : loop.portion(of: room)
        socket.write(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        return count
    }

    func write(_ bytes: [UInt8], _ completion: ((LoopError?) -> Void)?) {
        writes.append(Write(bytes: bytes[...], completion: completion))
    }

    /// Sends what waits, as far as there is room.
    func goOn() {
        while let first = writes.first, canGoOn {
            var failure: LoopError?
            do throws(LoopError) {
                let bytes = Array(first.bytes)
                var sent = 0
                try bytes.withUnsafeBufferPointer { bytes throws(LoopError) in
                    sent = try put(UnsafeRawBufferPointer(bytes))
                }
                writes[0].bytes = first.bytes.dropFirst(sent)
                if sent < first.bytes.count { return }
            } catch { failure = error }
            writes.removeFirst()
            first.completion?(failure)
        }
    }

    /// Ends the writes that wait.
    func close() {
        socket.closeByHost()
        isReading = false
    }

    func cancelWrites() {
        let cancelled = writes
        writes = []
        for write in cancelled {
            write.completion?(LoopError(code: LoopError.ECANCELED, operation: "uv_write"))
        }
    }
}

extension Stream {
    var hasSimulatedEvent: Bool { simulated?.hasEvent ?? false }

    /// Goes on with writes, then reads up to 32 times.
    func takeSimulatedEvents() {
        guard let connection = simulated else { return }
        connection.goOn()
        for _ in 0..<32 where !isClosing && connection.isReading && connection.socket.isReadable {
            let available = connection.socket.readableByteCount
            if available == 0 {
                connection.isReading = false
                deliver(.end)
                return
            }
            guard let memory = allocation(65_536), memory.count > 0 else {
                connection.isReading = false
                deliver(.failed(LoopError(code: LoopError.ENOBUFS, operation: "uv_read")))
                return
            }
            let most = min(memory.count, available)
            let count = connection.portion(of: most)
            connection.socket.read(into: memory, count: count)
            deliver(.bytes(count))
            // A read that did not fill its memory ends the turn's reading, as libuv's does.
            if count < memory.count { return }
        }
    }
}

// Frames over a socket, both ways at once where need be.

import Glibc
import LarderFormat
import LarderWire

/// Sends whole frames and hands out received ones where they lie. One thread.
///
/// While a send waits for room it goes on receiving, so two sides that both have much to say never wait for each other.
final class Connection {
    /// What is received ahead at most while a send waits; a host that keeps to credit and windows stays far below.
    private static let aheadByteCountMax = 268_435_456

    private let socket: Socket
    private var memory: UnsafeMutableRawPointer
    private var capacity = 1_048_576
    /// Bytes start ..< end are received and not handed out.
    private var start = 0
    private var end = 0
    private var isEnded = false
    private(set) var isClosed = false
    /// The most bytes that a body of the host's may have now.
    var frameBodyByteCountMax = FrameHeader.bodyByteCountMaxBeforeWelcome

    init(_ socket: Socket) {
        self.socket = socket
        memory = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 4_096)
    }

    deinit {
        close()
        memory.deallocate()
    }

    func close() {
        if !isClosed { socket.close() }
        isClosed = true
    }

    /// A frame of the host's. The body is the connection's until the next call to it.
    struct Frame {
        let header: FrameHeader
        let body: UnsafeRawBufferPointer
    }

    enum Received {
        case frame(Frame)
        case timedOut
        /// The host has closed; nothing is left.
        case ended
    }

    /// The next frame. A deadline that has passed still gives what is there.
    func receive(until deadline: Deadline) throws(ClientError) -> Received {
        guard !isClosed else { throw .connectionLost }
        while true {
            let needed: Int
            let received = UnsafeRawBufferPointer(start: memory + start, count: end - start)
            do throws(FrameError) {
                switch try FrameDecoder.next(received, limit: frameBodyByteCountMax) {
                case .frame(let header, let body):
                    start += body.upperBound
                    return .frame(Frame(header: header, body: UnsafeRawBufferPointer(rebasing: received[body])))
                case .needMore(let total): needed = total
                }
            } catch {
                throw violation("\(error)")
            }
            if isEnded {
                // A host that was killed ends anywhere: what is left of its last frame is as lost as the rest.
                return .ended
            }
            makeRoom(for: needed)
            if try fill() { continue }
            if isEnded { continue }
            guard try socket.wait(until: deadline) != nil else { return .timedOut }
        }
    }

    /// Closes, and makes the error for it.
    func violation(_ what: String) -> ClientError {
        close()
        return .protocolViolation(what)
    }

    /// Room for `needed` bytes from `start` on, and some to receive into.
    private func makeRoom(for needed: Int) {
        if start == end {
            start = 0
            end = 0
        }
        if start + needed <= capacity, end < capacity { return }
        let count = end - start
        if needed <= capacity, count < capacity / 2 {
            memory.copyMemory(from: memory + start, byteCount: count)
        } else {
            let larger = max(capacity * 2, needed)
            let moved = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 4_096)
            moved.copyMemory(from: memory + start, byteCount: count)
            memory.deallocate()
            memory = moved
            capacity = larger
        }
        start = 0
        end = count
    }

    /// Receives what fits without waiting. False: nothing is there, or the stream has ended.
    private func fill() throws(ClientError) -> Bool {
        switch try socket.receive(into: UnsafeMutableRawBufferPointer(start: memory + end, count: capacity - end)) {
        case .done(let count):
            end += count
            return true
        case .wouldBlock: return false
        case .closed:
            isEnded = true
            return false
        }
    }

    /// Sends bytes that are whole frames. Returns when the kernel has them.
    ///
    /// - Throws: `timedOut` when a part was sent and the rest could not be: the connection is closed then.
    func send(_ bytes: UnsafeRawBufferPointer, until deadline: Deadline) throws(ClientError) {
        guard !isClosed else { throw .connectionLost }
        var sent = 0
        while sent < bytes.count {
            switch try socket.send(UnsafeRawBufferPointer(rebasing: bytes[sent...])) {
            case .done(let count): sent += count
            case .closed: throw lost()
            case .wouldBlock:
                let mayRead = !isEnded && end - start < Connection.aheadByteCountMax
                guard let ready = try socket.wait(forReading: mayRead, forWriting: true, until: deadline) else {
                    close()
                    throw .timedOut(operation: "sending")
                }
                if ready.canRead {
                    makeRoom(for: end - start + 65_536)
                    _ = try fill()
                }
            }
        }
    }

    /// The host does not take what is sent: why, if it said so.
    private func lost() -> ClientError {
        do throws(ClientError) {
            while case .frame(let frame) = try receive(until: Deadline(milliseconds: 0)) {
                guard frame.header.messageType == .error, let reply = try? ErrorReply(body: frame.body) else {
                    continue
                }
                if reply.isFatal {
                    close()
                    return .larder(reply)
                }
            }
        } catch {
            close()
            if case .protocolViolation = error { return error }
        }
        close()
        return .connectionLost
    }

    func send<M: WireMessage>(_ message: M, id: UInt32, until deadline: Deadline) throws(ClientError) {
        try send(message.framed(id: id), until: deadline)
    }

    func send(_ bytes: [UInt8], until deadline: Deadline) throws(ClientError) {
        do { try bytes.withUnsafeBytes { try send($0, until: deadline) } } catch {
            throw error as? ClientError ?? .connectionLost
        }
    }
}

// The system calls of a client: connect, send, receive, poll. The only file that makes them.

import Glibc

/// A connected stream socket. Calls do not block but for `wait`, whatever the descriptor's mode.
struct Socket {
    let fd: Int32

    /// Connects to a Unix socket.
    static func connect(path: String, timeoutMilliseconds: Int?) throws(ClientError) -> Socket {
        let operation = "connecting to \(path)"
        var address = sockaddr_un()
        let utf8 = Array(path.utf8)
        guard utf8.count < MemoryLayout.size(ofValue: address.sun_path), !utf8.contains(0) else {
            throw .system(errno: ENAMETOOLONG, operation: operation)
        }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: utf8) }
        let fd = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard fd >= 0 else { throw .system(errno: errno, operation: "making a socket") }
        // A full backlog makes connect wait; a time limit on sending limits that too, and nothing else sends blocking.
        if let milliseconds = timeoutMilliseconds, milliseconds > 0 {
            var limit = timeval(tv_sec: milliseconds / 1_000, tv_usec: (milliseconds % 1_000) * 1_000)
            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        while true {
            let result = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.connect(fd, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            if result == 0 { return Socket(fd: fd) }
            let number = errno
            if number == EINTR { continue }
            Glibc.close(fd)
            if number == EAGAIN { throw .timedOut(operation: operation) }
            throw .system(errno: number, operation: operation)
        }
    }

    enum Outcome {
        case done(Int)
        case wouldBlock
        /// End of the stream, or the peer is gone.
        case closed
    }

    func send(_ bytes: UnsafeRawBufferPointer) throws(ClientError) -> Outcome {
        while true {
            let count = Glibc.send(fd, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
            if count >= 0 { return .done(count) }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            case EPIPE, ECONNRESET: return .closed
            case let number: throw .system(errno: number, operation: "sending")
            }
        }
    }

    func receive(into room: UnsafeMutableRawBufferPointer) throws(ClientError) -> Outcome {
        while true {
            let count = recv(fd, room.baseAddress, room.count, Int32(MSG_DONTWAIT))
            if count > 0 { return .done(count) }
            if count == 0 { return .closed }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            case ECONNRESET: return .closed
            case let number: throw .system(errno: number, operation: "receiving")
            }
        }
    }

    /// Waits until something can be received, or sent where `forWriting`. False: the deadline passed.
    func wait(
        forReading: Bool = true, forWriting: Bool = false, until deadline: Deadline
    ) throws(ClientError) -> (canRead: Bool, canWrite: Bool)? {
        let events = (forReading ? POLLIN : 0) | (forWriting ? POLLOUT : 0)
        var descriptor = pollfd(fd: fd, events: Int16(events), revents: 0)
        while true {
            let count = poll(&descriptor, 1, deadline.pollMilliseconds)
            if count > 0 {
                let found = Int32(descriptor.revents)
                let isBroken = found & Int32(POLLHUP | POLLERR | POLLNVAL) != 0
                return (
                    forReading && (found & Int32(POLLIN) != 0 || isBroken),
                    forWriting && (found & Int32(POLLOUT) != 0 || isBroken)
                )
            }
            if count == 0 {
                if deadline.isOver { return nil }
                continue
            }
            if errno != EINTR { throw .system(errno: errno, operation: "polling") }
        }
    }

    func close() { Glibc.close(fd) }
}

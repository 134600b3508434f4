// Descriptors without a loop: what a thread that has none, or a process before it has one, does with them.

import CLarder
import Glibc

/// Two connected Unix stream sockets in blocking mode, both close-on-exec; the caller owns them.
public func socketPair() throws(LoopError) -> (Int32, Int32) {
    var pair: (Int32, Int32) = (-1, -1)
    let code = withUnsafeMutableBytes(of: &pair) {
        larder_socket_pair($0.assumingMemoryBound(to: Int32.self).baseAddress!)
    }
    try LoopError.check(code, "socketpair")
    return pair
}

/// A pipe in blocking mode, both ends close-on-exec; the caller owns them.
public func makePipe() throws(LoopError) -> (readEnd: Int32, writeEnd: Int32) {
    var pair: (Int32, Int32) = (-1, -1)
    let code = withUnsafeMutableBytes(of: &pair) { larder_pipe($0.assumingMemoryBound(to: Int32.self).baseAddress!) }
    try LoopError.check(code, "pipe2")
    return (pair.0, pair.1)
}

/// Closes a descriptor that the caller owns. Errors are of no use here: Linux frees the number in any case.
public func closeDescriptor(_ descriptor: Int32) { _ = Glibc.close(descriptor) }

/// A non-blocking Unix socket that listens at `path`, which must not exist (`EADDRINUSE`) nor be longer than 107 bytes
/// (`ENAMETOOLONG`); its node has the given permissions from its first moment. The caller owns both.
public func listenAt(_ path: String, backlog: Int32 = 128, permissions: UInt32 = 0o600) throws(LoopError) -> Int32 {
    let descriptor = larder_listen_unix(path, backlog, permissions)
    try LoopError.check(descriptor, "bind")
    return descriptor
}

/// The next connection that waits at a listening socket, non-blocking and the caller's; nil: none does.
public func acceptNow(_ listening: Int32) throws(LoopError) -> Int32? {
    while true {
        let accepted = larder_accept(listening)
        switch -accepted {
        case ...0: return accepted
        case EAGAIN: return nil
        case EINTR, ECONNABORTED: continue
        default: throw LoopError(code: accepted, operation: "accept")
        }
    }
}

/// Who was at the other end of a Unix socket when it connected.
public func peerCredentials(of descriptor: Int32) throws(LoopError) -> Stream.PeerCredentials {
    var userID: uid_t = 0
    var processID: pid_t = 0
    try LoopError.check(larder_peer_uid(descriptor, &userID, &processID), "SO_PEERCRED")
    return Stream.PeerCredentials(userID: userID, processID: processID)
}

/// What a non-blocking socket has to give.
public enum ReceivedNow: Equatable, Sendable {
    /// Some bytes, at most as many as asked for.
    case bytes([UInt8])
    /// None for now.
    case nothing
    /// The peer sends no more, or is gone.
    case end
}

/// Receives without waiting.
public func receiveNow(_ descriptor: Int32, atMost count: Int) -> ReceivedNow {
    var received = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { room, filled in
        repeat {
            received = recv(descriptor, room.baseAddress, count, Int32(MSG_DONTWAIT))
        } while received < 0 && errno == EINTR
        filled = max(received, 0)
    }
    if received > 0 { return .bytes(bytes) }
    return received < 0 && errno == EAGAIN ? .nothing : .end
}

/// Sends without waiting. Returns how many bytes went, which may be none; nil: the peer is gone.
public func sendNow(_ descriptor: Int32, _ bytes: [UInt8]) -> Int? {
    while true {
        let sent = bytes.withUnsafeBytes {
            send(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
        }
        if sent >= 0 { return sent }
        switch errno {
        case EINTR: continue
        case EAGAIN: return 0
        default: return nil
        }
    }
}

// A host that says what the test tells it to, on a thread of its own.

import CLarder
import Foundation
import LarderFormat
import LarderWire
import Testing

@testable import LarderClient

/// The host's end of a socket pair, blocking.
struct ScriptedPeer: Sendable {
    struct Gone: Error {}
    let fd: Int32

    func readBytes(_ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var got = 0
        while got < count {
            let n = bytes.withUnsafeMutableBytes { recv(fd, $0.baseAddress! + got, count - got, 0) }
            guard n > 0 else { throw Gone() }
            got += n
        }
        return bytes
    }

    func write(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let n = bytes.withUnsafeBytes { send(fd, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL)) }
            guard n > 0 else { throw Gone() }
            sent += n
        }
    }

    func write<M: WireMessage>(_ message: M, id: UInt32) throws { try write(message.framed(id: id)) }

    func readFrame() throws -> (header: FrameHeader, body: [UInt8]) {
        let head = try readBytes(12)
        let header = try head.withUnsafeBytes {
            try FrameHeader(at: $0.baseAddress!, limit: FrameHeader.bodyByteCountMax)
        }
        return (header, try readBytes(header.bodyByteCount))
    }

    /// Reads a message of that type.
    @discardableResult
    func expect<M: WireMessage>(_: M.Type) throws -> (id: UInt32, message: M) {
        let frame = try readFrame()
        #expect(frame.header.messageType == M.type)
        return (frame.header.id, try frame.body.withUnsafeBytes { try M(body: $0) })
    }

    @discardableResult
    func greet(limits: Limits = Limits()) throws -> Hello {
        #expect(try readBytes(8) == Preface.bytes)
        let (id, hello) = try expect(Hello.self)
        try write(Welcome(hostVersion: "0", epoch: 9, lastSeq: 41, floor: 1, limits: limits), id: id)
        return hello
    }

    /// Reads until the client is gone.
    func drain() { while (try? readBytes(1)) != nil {} }
}

/// Runs a script against a body that has the client's end of the pair.
func withPeer(
    _ script: @escaping @Sendable (ScriptedPeer) throws -> Void, _ body: (Int32) throws -> Void
) throws {
    var fds: [Int32] = [-1, -1]
    #expect(larder_socket_pair(&fds) == 0)
    let peer = ScriptedPeer(fd: fds[1])
    let done = DispatchSemaphore(value: 0)
    let thread = Thread {
        do { try script(peer) } catch { if !(error is ScriptedPeer.Gone) { Issue.record(error) } }
        shutdown(peer.fd, Int32(SHUT_RDWR))
        done.signal()
    }
    thread.stackSize = 1 << 20
    thread.start()
    defer {
        shutdown(fds[1], Int32(SHUT_RDWR))
        done.wait()
        close(fds[1])
    }
    try body(fds[0])
}

/// The same with a client that was greeted.
func withClient(
    limits: Limits = Limits(), timeoutMilliseconds: Int = 20_000,
    _ script: @escaping @Sendable (ScriptedPeer) throws -> Void, _ body: (LarderClient) throws -> Void
) throws {
    try withPeer({ peer in
        try peer.greet(limits: limits)
        try script(peer)
    }) { (fd) throws in
        let client = try LarderClient(
            fd: fd, name: "test", version: "1",
            timeouts: LarderClient.Timeouts(requestMilliseconds: timeoutMilliseconds))
        defer { client.close() }
        try body(client)
    }
}

let sampleRecord = StoredRecord(
    StoredRecordHeader(kind: 1, seq: 7, firstSeq: 3, savedAt: 5, changedAt: 6, origin: 2), record: [1, 1, 0])

/// The body of an EVENTS: one run of entries that are only framed.
func events(after: UInt64, through: UInt64, entries: [[UInt8]] = []) -> [UInt8] {
    var writer = ByteWriter()
    EventsHeader(after: after, through: through).encode(into: &writer)
    if !entries.isEmpty {
        let bytes = entries.flatMap { entry in
            var writer = ByteWriter()
            writer.byteString(entry)
            return writer.bytes
        }
        RunHeader(firstSeq: after + 1, time: 1_000, entriesByteCount: bytes.count).encode(into: &writer)
        writer.raw(bytes)
    }
    return writer.bytes
}

func eventsFrame(id: UInt32, _ body: [UInt8]) -> [UInt8] {
    var writer = ByteWriter()
    writer.frame(.events, id: id) { $0.raw(body) }
    return writer.bytes
}

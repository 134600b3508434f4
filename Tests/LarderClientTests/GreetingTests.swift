// A WELCOME that is late.

import LarderFormat
import LarderWire
import Testing

@testable import LarderClient

@Suite("late greetings")
struct GreetingTests {
    private static func status(_ state: String, _ percent: Int) -> StatusIs {
        var status = StatusIs()
        status.state = state
        status.reason = "\(state) \(percent) %"
        return status
    }

    /// HELLO and as many questions as there are percents, each answered after a while.
    private static func recover(_ peer: ScriptedPeer, _ percents: [Int]) throws {
        _ = try peer.readBytes(8)
        #expect(try peer.expect(Hello.self).id == 1)
        for (at, percent) in percents.enumerated() {
            let id = try peer.expect(Status.self).id
            #expect(id == UInt32(at) + 2)
            try peer.write(status("recovering", percent), id: id)
        }
    }

    private static func welcome(_ peer: ScriptedPeer) throws {
        try peer.write(Welcome(hostVersion: "0", epoch: 9, lastSeq: 41, floor: 1), id: 1)
    }

    private static func connect(
        _ fd: Int32, _ connectMilliseconds: Int, _ statusMilliseconds: Int, _ told: (StatusIs) -> Bool
    ) throws(ClientError) -> LarderClient {
        try LarderClient(
            fd: fd, name: "t", version: "1",
            timeouts: .init(connectMilliseconds: connectMilliseconds, statusMilliseconds: statusMilliseconds),
            whileRecovering: told)
    }

    @Test("a host that recovers is waited for beyond the deadline, and a question that WELCOME crosses is answered")
    func late() throws {
        try withPeer({ peer in
            try GreetingTests.recover(peer, [1, 20, 30, 40, 50, 60, 70, 80])
            let id = try peer.expect(Status.self).id
            try GreetingTests.welcome(peer)
            try peer.write(GreetingTests.status("serving", 100), id: id)
            let ping = try peer.expect(Ping.self)
            #expect(ping.id == id + 1)
            try peer.write(Pong(ping.message.bytes), id: ping.id)
        }) { (fd) throws in
            var told: [String] = []
            let begun = Deadline.now
            let client = try GreetingTests.connect(fd, 100, 1_000) { status in
                told.append(status.reason)
                return true
            }
            // The host is asked early enough to answer, each time after half of 100 ms.
            #expect(Deadline.now - begun >= 400)
            #expect(told.count == 8 && told.last == "recovering 80 %")
            #expect(client.welcome.lastSeq == 41)
            try client.ping([1])
            client.close()
        }
    }

    @Test("who is told may wait no longer")
    func impatient() throws {
        try withPeer({ peer in
            try GreetingTests.recover(peer, [1, 20])
            peer.drain()
        }) { (fd) throws in
            #expect(throws: ClientError.recovering(reason: "recovering 20 %")) {
                try GreetingTests.connect(fd, 20_000, 10) { $0.reason != "recovering 20 %" }
            }
        }
    }

    @Test("a host that falls silent is given up at the deadline, and so is one that says it does not recover")
    func silent() throws {
        try withPeer({ peer in
            try GreetingTests.recover(peer, [1])
            peer.drain()
        }) { (fd) throws in
            #expect(throws: ClientError.timedOut(operation: "HELLO")) {
                try GreetingTests.connect(fd, 60, 10) { _ in true }
            }
        }
        try withPeer({ peer in
            _ = try peer.readBytes(8)
            _ = try peer.expect(Hello.self)
            while true { try peer.write(GreetingTests.status("stopping", 0), id: try peer.expect(Status.self).id) }
        }) { (fd) throws in
            #expect(throws: ClientError.timedOut(operation: "HELLO")) {
                try GreetingTests.connect(fd, 60, 10) { _ in
                    Issue.record("it does not recover")
                    return true
                }
            }
        }
    }

    @Test("a host that ends while it recovers is lost, and one that answers what was not asked is wrong")
    func ended() throws {
        try withPeer({ try GreetingTests.recover($0, [1, 2]) }) { (fd) throws in
            #expect(throws: ClientError.connectionLost) { try GreetingTests.connect(fd, 20_000, 10) { _ in true } }
        }
        try withPeer({ peer in
            try peer.write(GreetingTests.status("recovering", 1), id: 2)
            peer.drain()
        }) { (fd) throws in
            #expect(throws: ClientError.protocolViolation("type 144 before WELCOME")) {
                try GreetingTests.connect(fd, 20_000, 10_000) { _ in true }
            }
        }
    }
}

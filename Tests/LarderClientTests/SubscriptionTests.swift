// Following the log.

import LarderFormat
import LarderWire
import Testing

@testable import LarderClient

@Suite("subscription")
struct SubscriptionTests {
    private static func begin(
        _ peer: ScriptedPeer, after: UInt64 = 41, s0: UInt64 = 0
    ) throws -> (id: UInt32, message: Subscribe) {
        let asked = try peer.expect(Subscribe.self)
        try peer.write(Subscribed(epoch: 9, after: after, s0: s0, floor: 1), id: asked.id)
        return asked
    }

    @Test("entries are handed out with their commit, then the cursor moves")
    func entries() throws {
        try withClient({ peer in
            let (id, subscribe) = try SubscriptionTests.begin(peer)
            #expect(subscribe.start == .after(Cursor(epoch: 9, seq: 41)) && subscribe.kinds == [1])
            #expect(subscribe.credit == 1_048_576 && subscribe.types == [.downloaded])
            try peer.write(eventsFrame(id: id, events(after: 41, through: 50, entries: [[1, 2], [3]])))
            try peer.write(eventsFrame(id: id, events(after: 50, through: 60)))
        }) { (client) throws in
            let subscription = try Subscription(
                client, .after(Cursor(epoch: 9, seq: 41)), types: [.downloaded], kinds: [1])
            var told: [String] = []
            func handle(_ event: SubscriptionEvent) {
                switch event {
                case .entry(let entry): told.append("\(Array(entry.bytes))@\(entry.commitFirstSeq)/\(entry.commitTime)")
                case .covered(let through): told.append("covered \(through), cursor \(subscription.cursor.seq)")
                default: told.append("other")
                }
            }
            #expect(try subscription.receive(handle) == .received)
            #expect(told == ["[2, 1, 2]@42/1000", "[1, 3]@42/1000", "covered 50, cursor 41"])
            #expect(subscription.cursor == Cursor(epoch: 9, seq: 50))
            #expect(try subscription.receive(handle) == .received)
            #expect(told.last == "covered 60, cursor 50" && subscription.cursor.seq == 60)
        }
    }

    @Test("an entry can be decoded where it lies")
    func decoding() throws {
        let record: [UInt8] = [1, 1, 7]
        var entry = [UInt8](repeating: 0, count: EntryWriter.headByteCountMax + record.count)
        let count = entry.withUnsafeMutableBytes { room in
            record.withUnsafeBytes {
                EntryWriter.created(at: room.baseAddress!, seq: 44, commitFirstSeq: 42, kind: 1, origin: 2, record: $0)
            }
        }
        let bytes = Array(entry[..<count])
        try bytes.withUnsafeBytes { buffer in
            let view = try BorrowedEntry(bytes: buffer, commitFirstSeq: 42, commitTime: 5).view(isVerified: true)
            #expect(view.seq == 44 && view.kind == 1 && view.origin == 2 && Array(view.payload) == record)
        }
    }

    @Test("credit is given back at half of the window, headers included")
    func credit() throws {
        try withClient({ peer in
            let (id, subscribe) = try SubscriptionTests.begin(peer, after: 0)
            #expect(subscribe.credit == 1_000)
            for index in 0..<UInt64(6) {
                // 12 + 16 + 20 + 152 = 200 bytes
                let entry = [UInt8](repeating: 0, count: 150)
                try peer.write(eventsFrame(id: id, events(after: index, through: index + 1, entries: [entry])))
            }
            for _ in 0..<2 {
                let (creditId, credit) = try peer.expect(Credit.self)
                #expect(creditId == id && credit.byteCount == 600)
            }
        }) { (client) throws in
            let subscription = try Subscription(client, .now, windowByteCount: 1_000)
            for _ in 0..<6 { _ = try subscription.receive { _ in } }
            // Waits for the peer, which has looked at both.
            _ = try? client.status()
        }
    }

    @Test("a snapshot ends at S1, and lost entries move the cursor")
    func snapshot() throws {
        try withClient({ peer in
            let (id, subscribe) = try SubscriptionTests.begin(peer, after: 0, s0: 9)
            #expect(subscribe.start == .snapshot)
            try peer.write(eventsFrame(id: id, events(after: 0, through: 9)))
            try peer.write(Lost(after: 9, through: 11), id: id)
            try peer.write(SnapshotEnd(s1: 11), id: id)
            try peer.write(eventsFrame(id: id, events(after: 11, through: 12)))
        }) { (client) throws in
            let subscription = try Subscription(client, .snapshot)
            var told: [String] = []
            for _ in 0..<4 {
                #expect((subscription.snapshotStart == 9) == (told.count < 3))
                _ = try subscription.receive { told.append("\($0)") }
            }
            #expect(
                told == [
                    "covered(through: 9)", "lost(after: 9, through: 11)", "snapshotEnd(s1: 11)", "covered(through: 12)",
                ])
            #expect(subscription.cursor.seq == 12)
        }
    }

    @Test("a refused subscription is an error with its facts")
    func refused() throws {
        let expired = ErrorReply(.cursorExpired, message: "gone", facts: [ErrorReply.Fact("floor", "7")])
        try withClient({ peer in
            try peer.write(expired, id: try peer.expect(Subscribe.self).id)
            try peer.write(StatusIs(), id: try peer.expect(Status.self).id)
        }) { (client) throws in
            #expect(throws: ClientError.larder(expired)) { try Subscription(client, .now) }
            _ = try client.status()
        }
    }

    @Test("an ERROR ends a subscription, a GOODBYE and the end of the stream do so quietly")
    func ends() throws {
        let corrupt = ErrorReply(.corrupt, message: "damaged")
        try withClient({ peer in
            let id = try SubscriptionTests.begin(peer).id
            try peer.write(corrupt, id: id)
            let second = try SubscriptionTests.begin(peer).id
            try peer.write(HostGoodbye(.shuttingDown), id: 0)
            try peer.write(eventsFrame(id: second, events(after: 41, through: 42)))
        }) { (client) throws in
            let first = try Subscription(client, .now)
            #expect(throws: ClientError.larder(corrupt)) { try first.receive { _ in } }
            #expect(first.isEnded)
            let second = try Subscription(client, .now)
            #expect(try second.receive { _ in } == .received)
            #expect(client.hostGoodbye?.number == .shuttingDown)
            #expect(try second.receive { _ in } == .ended)
        }
    }

    @Test("a gap, a span that goes back, or an entry cut short breaks the protocol")
    func violations() throws {
        var cut = events(after: 41, through: 50, entries: [[1, 2]])
        cut[cut.count - 3] = 9
        for body in [
            events(after: 42, through: 50), events(after: 40, through: 50), events(after: 41, through: 40), cut,
            Array(cut.dropLast()), Array(cut[..<15]), Array(cut[..<30]),
        ] {
            try withClient({ peer in try peer.write(eventsFrame(id: try SubscriptionTests.begin(peer).id, body)) }) {
                (client) throws in
                let subscription = try Subscription(client, .now)
                do throws(ClientError) {
                    _ = try subscription.receive { _ in }
                    Issue.record("\(body) is taken")
                } catch {
                    guard case .protocolViolation = error else {
                        Issue.record("\(error)")
                        return
                    }
                }
            }
        }
    }

    @Test("nothing in time is no error")
    func timeout() throws {
        try withClient({ peer in
            _ = try SubscriptionTests.begin(peer)
            peer.drain()
        }) { (client) throws in
            let subscription = try Subscription(client, .now)
            #expect(try subscription.receive(timeoutMilliseconds: 0) { _ in } == .timedOut)
            #expect(try subscription.receive(timeoutMilliseconds: 10) { _ in } == .timedOut)
        }
    }

    @Test("SYNC and UNSUBSCRIBE hand out what comes before their answer, and requests may come between")
    func beside() throws {
        try withClient({ peer in
            let id = try SubscriptionTests.begin(peer).id
            let count = try peer.expect(Count.self).id
            try peer.write(eventsFrame(id: id, events(after: 41, through: 42)))
            try peer.write(Counted([]), id: count)
            let (syncId, sync) = try peer.expect(Sync.self)
            #expect(sync.subscription == id)
            try peer.write(eventsFrame(id: id, events(after: 42, through: 43)))
            try peer.write(Synced(through: 43), id: syncId)
            let (endId, _) = try peer.expect(Unsubscribe.self)
            try peer.write(eventsFrame(id: id, events(after: 43, through: 44)))
            try peer.write(Unsubscribed(through: 44), id: endId)
        }) { (client) throws in
            let subscription = try Subscription(client, .now)
            var told: [UInt64] = []
            func handle(_ event: SubscriptionEvent) {
                if case .covered(let through) = event { told.append(through) }
            }
            _ = try client.count()
            #expect(try subscription.sync(handle) == 43)
            #expect(told == [42, 43])
            #expect(try subscription.unsubscribe(handle) == 44)
            #expect(told == [42, 43, 44] && subscription.isEnded)
        }
    }
}

// The greeting and single requests.

import Foundation
import LarderFormat
import LarderWire
import Testing

@testable import LarderClient

@Suite("requests")
struct RequestTests {
    @Test("the greeting says who the client is and takes the host's limits")
    func greeting() throws {
        try withPeer({ peer in
            let hello = try peer.greet(limits: Limits(openRequestCountMax: 7))
            #expect(hello.name == "test" && hello.version == "1" && hello.token == [1, 2])
            #expect(hello.versionMin == 1 && hello.versionMax == 1 && hello.deadlineMilliseconds == 30)
        }) { (fd) throws in
            let client = try LarderClient(
                fd: fd, name: "test", version: "1", deadlineMilliseconds: 30, token: [1, 2])
            #expect(client.limits.openRequestCountMax == 7 && client.welcome.lastSeq == 41)
            client.close()
        }
    }

    private func greetingError(
        timeoutMilliseconds: Int = 20_000, _ script: @escaping @Sendable (ScriptedPeer) throws -> Void
    ) throws -> ClientError? {
        var found: ClientError?
        try withPeer(script) { fd in
            do throws(ClientError) {
                _ = try LarderClient(
                    fd: fd, name: "t", version: "1",
                    timeouts: LarderClient.Timeouts(connectMilliseconds: timeoutMilliseconds))
            } catch { found = error }
        }
        return found
    }

    @Test("a host that refuses the greeting is quoted")
    func refused() throws {
        let refusal = ErrorReply(.versionUnsupported, message: "no")
        let error = try greetingError { peer in
            _ = try peer.readBytes(8)
            let (id, _) = try peer.expect(Hello.self)
            try peer.write(refusal, id: id)
        }
        #expect(error == .larder(refusal))
        #expect(error?.number == .versionUnsupported)
    }

    @Test("something else than a host is told apart from one that is silent or gone")
    func noHost() throws {
        guard
            case .protocolViolation = try greetingError({
                try $0.write(Array("220 smtp ready, go on\r\n".utf8))
                $0.drain()
            })
        else {
            Issue.record("text is taken for a host")
            return
        }
        guard
            case .protocolViolation = try greetingError({
                try $0.write(Progress(done: 1, total: 2), id: 1)
                $0.drain()
            })
        else {
            Issue.record("PROGRESS before WELCOME is taken")
            return
        }
        #expect(try greetingError(timeoutMilliseconds: 20) { $0.drain() } == .timedOut(operation: "HELLO"))
        let gone = try greetingError { _ = try $0.readBytes(8) }
        #expect(gone == .connectionLost)
    }

    @Test("a socket that is not there is the system's error")
    func noSocket() {
        let name = "/nowhere/larder.sock"
        #expect(throws: ClientError.system(errno: ENOENT, operation: "connecting to \(name)")) {
            try LarderClient(path: name, name: "t", version: "1")
        }
        let long = "/" + String(repeating: "x", count: 200)
        #expect(throws: ClientError.system(errno: ENAMETOOLONG, operation: "connecting to \(long)")) {
            try LarderClient(path: long, name: "t", version: "1")
        }
    }

    @Test("GET gives the record, nil where there is none, and other errors as they are")
    func get() throws {
        let refusal = ErrorReply(.unknownKind, field: "kind", message: "no kind 9")
        try withClient({ peer in
            let (id, get) = try peer.expect(Get.self)
            #expect(get == Get(kind: 1, key: [1, 2]))
            try peer.write(RecordReply(sampleRecord), id: id)
            try peer.write(ErrorReply(.notFound), id: try peer.expect(Get.self).id)
            try peer.write(refusal, id: try peer.expect(Get.self).id)
        }) { (client) throws in
            #expect(try client.get(kind: 1, key: [1, 2]) == sampleRecord)
            #expect(try client.get(kind: 1, key: [1]) == nil)
            #expect(throws: ClientError.larder(refusal)) { try client.get(kind: 9, key: [1]) }
        }
    }

    @Test("frames that come a byte at a time are the same")
    func chopped() throws {
        try withClient({ peer in
            for _ in 0..<2 {
                let id = try peer.expect(Get.self).id
                for byte in RecordReply(sampleRecord).framed(id: id) { try peer.write([byte]) }
            }
        }) { (client) throws in
            for _ in 0..<2 { #expect(try client.get(kind: 1, key: []) == sampleRecord) }
        }
    }

    @Test("PING is answered, unknown types and errors without an id are passed over")
    func between() throws {
        try withClient({ peer in
            let id = try peer.expect(Count.self).id
            try peer.write(Ping([7, 8]), id: 3)
            try peer.write(FrameHeader(bodyByteCount: 2, type: 0xC0, id: 77).bytes + [1, 2])
            try peer.write(ErrorReply(.busy, message: "later"), id: 0)
            let (pongId, pong) = try peer.expect(Pong.self)
            #expect(pongId == 3 && pong.bytes == [7, 8])
            try peer.write(Counted([KindCount(kind: 1, count: 5)]), id: id)
        }) { (client) throws in
            #expect(try client.count() == [KindCount(kind: 1, count: 5)])
            #expect(client.notices.map(\.number) == [.busy])
        }
    }

    @Test("an error that ends the connection ends the request")
    func fatal() throws {
        let last = ErrorReply(.badFrame, message: "flags")
        try withClient({ peer in
            _ = try peer.readFrame()
            try peer.write(last, id: 0)
        }) { (client) throws in
            #expect(throws: ClientError.larder(last)) { try client.status() }
            #expect(throws: ClientError.connectionLost) { try client.status() }
        }
    }

    @Test("a reply of another type, to nobody, or with a wrong body breaks the protocol")
    func violations() throws {
        let scripts: [@Sendable (ScriptedPeer, UInt32) throws -> Void] = [
            { try $0.write(Counted([]), id: $1) },
            { try $0.write(GivingWay(), id: $1 + 1) },
            { try $0.write([1, 0, 0, 0, 0x85, 0, 0, 0, UInt8($1), 0, 0, 0, 0]) },
            { try $0.write([0xFF, 0xFF, 0xFF, 0x7F, 0x85, 0, 0, 0, UInt8($1), 0, 0, 0]) },
            { try $0.write(Welcome(hostVersion: "0", epoch: 1, lastSeq: 1, floor: 1), id: $1) },
            { try $0.write(Get(kind: 1, key: []), id: $1) },
        ]
        for (index, script) in scripts.enumerated() {
            try withClient({ try script($0, try $0.readFrame().header.id) }) { (client) throws in
                do throws(ClientError) {
                    _ = try client.get(kind: 1, key: [])
                    Issue.record("script \(index) is taken")
                } catch {
                    guard case .protocolViolation = error else {
                        Issue.record("script \(index): \(error)")
                        return
                    }
                }
            }
        }
    }

    @Test("a stream that ends within a frame is lost, as one that ends between frames is")
    func cutFrame() throws {
        let frame = RecordReply(sampleRecord).framed(id: 2)
        for count in 0..<frame.count {
            try withClient({ peer in
                #expect(try peer.expect(Get.self).id == 2)
                try peer.write(Array(frame[..<count]))
            }) { (client) throws in
                #expect(throws: ClientError.connectionLost) { try client.get(kind: 1, key: []) }
            }
        }
    }

    @Test("an answer that comes after its time is dropped, not taken for the next one")
    func late() throws {
        let asked = DispatchSemaphore(value: 0)
        try withClient(
            timeoutMilliseconds: 50,
            { peer in
                let first = try peer.expect(Count.self).id
                asked.wait()
                try peer.write(Counted([KindCount(kind: 1, count: 1)]), id: first)
                let second = try peer.expect(Count.self).id
                #expect(second != first)
                try peer.write(Counted([KindCount(kind: 1, count: 2)]), id: second)
            }
        ) { (client) throws in
            #expect(throws: ClientError.timedOut(operation: "COUNT")) { try client.count() }
            asked.signal()
            #expect(try client.count() == [KindCount(kind: 1, count: 2)])
        }
    }

    @Test("a listing goes from page to page by the host's token")
    func listing() throws {
        try withClient({ peer in
            for page in 0..<3 {
                let (id, list) = try peer.expect(List.self)
                #expect(list.token == (page == 0 ? [] : [UInt8(page)]) && list.kind == 1 && list.isReverse)
                try peer.write(
                    Page(
                        isEnd: page == 2, token: page == 2 ? [] : [UInt8(page + 1)],
                        records: Array(repeating: sampleRecord, count: page)), id: id)
            }
            let id = try peer.expect(List.self).id
            try peer.write(Page(isEnd: false, token: [1], records: [sampleRecord, sampleRecord]), id: id)
        }) { (client) throws in
            var count = 0
            try client.forEachRecord(kind: 1, isReverse: true) { record in
                #expect(record.header == sampleRecord.header && Array(record.record) == sampleRecord.record)
                count += 1
                return true
            }
            #expect(count == 3)
            try client.forEachRecord { _ in
                count += 1
                return false
            }
            #expect(count == 4)
        }
    }

    @Test("COMPACT tells how far it is")
    func compact() throws {
        let asked = Compact(includesLast: true, purged: [Compact.PurgedKey(kind: 2, key: [1, 2])])
        let answer = Compacted(
            byteCountBefore: 900, byteCountAfter: 300, segmentCount: 3, rewrittenCount: 2, droppedCount: 7, floor: 12,
            historySince: 5)
        try withClient({ peer in
            let (id, compact) = try peer.expect(Compact.self)
            #expect(compact == asked)
            for done in 1...3 { try peer.write(Progress(done: done, total: 3), id: id) }
            try peer.write(answer, id: id)
        }) { (client) throws in
            var told: [Int] = []
            #expect(try client.compact(asked) { told.append($0.done) } == answer)
            #expect(told == [1, 2, 3])
        }
    }

    @Test("CLEAR tells how far it is")
    func clear() throws {
        try withClient({ peer in
            let (id, clear) = try peer.expect(Clear.self)
            #expect(clear.kind == 2)
            for done in 1...3 { try peer.write(Progress(done: done, total: 3), id: id) }
            try peer.write(Cleared(deleted: 3, seq: 50), id: id)
        }) { (client) throws in
            var told: [Int] = []
            #expect(try client.clear(kind: 2) { told.append($0.done) } == Cleared(deleted: 3, seq: 50))
            #expect(told == [1, 2, 3])
        }
    }

    @Test("every other request has its message")
    func others() throws {
        try withClient({ peer in
            try peer.write(KindList([]), id: try peer.expect(Kinds.self).id)
            try peer.write(OriginList([]), id: try peer.expect(Origins.self).id)
            try peer.write(StatusIs(), id: try peer.expect(Status.self).id)
            let (id, ping) = try peer.expect(Ping.self)
            try peer.write(Pong(ping.bytes), id: id)
            try peer.write(Registered(name: "n"), id: try peer.expect(Register.self).id)
            #expect(try peer.expect(Ready.self).id == 0)
            try peer.write(PluginDone(state: "ready"), id: try peer.expect(Plugin.self).id)
            try peer.write(ErrorReply(.notPermitted), id: try peer.expect(GiveWay.self).id)
            #expect(try peer.expect(Goodbye.self).id == 0)
            try peer.write(HostGoodbye(), id: 0)
        }) { (client) throws in
            #expect(try client.kinds().isEmpty)
            #expect(try client.origins().isEmpty)
            #expect(try client.status() == StatusIs())
            try client.ping([1, 2, 3])
            #expect(try client.register(Register(roles: .importer)).name == "n")
            try client.ready()
            #expect(try client.plugin("p", .enable) == "ready")
            #expect(throws: ClientError.larder(ErrorReply(.notPermitted))) { try client.giveWay() }
            try client.goodbye()
            #expect(client.hostGoodbye == Goodbye())
        }
    }
}

extension FrameHeader {
    var bytes: [UInt8] {
        var writer = ByteWriter()
        encode(into: &writer)
        return writer.bytes
    }
}

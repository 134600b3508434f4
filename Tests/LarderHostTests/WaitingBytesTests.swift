// What is found in the bytes of a client that waits for the library to be opened.

import LarderFormat
import LarderWire
import Testing

@testable import LarderHost

@Suite("Bytes of a client that waits")
struct WaitingBytesTests {
    private static let hello = Preface.bytes + Hello(name: "early", version: "1").framed(id: 1)

    private static func frame(_ type: UInt8, id: UInt32, _ body: [UInt8] = []) -> [UInt8] {
        var writer = ByteWriter()
        FrameHeader(bodyByteCount: body.count, type: type, id: id).encode(into: &writer)
        return writer.bytes + body
    }

    /// Every step until there is nothing more to be done, with what is left.
    private static func steps(_ pieces: [[UInt8]]) -> (ids: [UInt32], last: WaitingBytes.Step, left: [UInt8]) {
        var bytes = WaitingBytes()
        var ids: [UInt32] = []
        var last = WaitingBytes.Step.needMore
        for piece in pieces {
            bytes.append(piece)
            while true {
                last = bytes.next()
                guard case .status(let id) = last else { break }
                ids.append(id)
            }
        }
        return (ids, last, bytes.bytes)
    }

    @Test("a STATUS behind HELLO is taken out, however the bytes are cut")
    func chopped() {
        let all = WaitingBytesTests.hello + Status().framed(id: 2) + Status().framed(id: 9)
        for cut in 0...all.count {
            let found = WaitingBytesTests.steps([Array(all[..<cut]), Array(all[cut...])])
            #expect(found.ids == [2, 9])
            #expect(found.last == .needMore)
            #expect(found.left == WaitingBytesTests.hello)
        }
        let single = WaitingBytesTests.steps(all.map { [$0] })
        #expect(single.ids == [2, 9] && single.left == WaitingBytesTests.hello)
    }

    @Test("every beginning of a greeting waits for more")
    func beginnings() {
        let all = WaitingBytesTests.hello + Status().framed(id: 2)
        for count in 0..<all.count {
            let found = WaitingBytesTests.steps([Array(all[..<count])])
            #expect(found.last == .needMore && found.ids == [])
            #expect(found.left == Array(all[..<count]))
        }
    }

    @Test("what else is said stays, and what is behind it")
    func others() {
        let behind: [[UInt8]] = [
            WaitingBytesTests.frame(0x05, id: 2, [1, 1, 7]), WaitingBytesTests.frame(0x10, id: 2, [0]),
            WaitingBytesTests.frame(0x10, id: 0), WaitingBytesTests.frame(0x10, id: 1),
            [0, 0, 0, 0, 0x10, 1, 0, 0, 2, 0, 0, 0], [0, 0, 1, 0, 0x10, 0, 0, 0, 2, 0, 0, 0],
            [1, 0, 1, 0, 0x10, 0, 0, 0, 2, 0, 0, 0], WaitingBytesTests.hello,
        ]
        for bytes in behind {
            let all = WaitingBytesTests.hello + bytes + Status().framed(id: 3)
            let found = WaitingBytesTests.steps([all])
            #expect(found.ids == [] && found.last == .waits, "\(bytes)")
            #expect(found.left == all)
            let asked = WaitingBytesTests.steps([WaitingBytesTests.hello + Status().framed(id: 2) + bytes])
            #expect(asked.ids == [2] && asked.last == .waits && asked.left == WaitingBytesTests.hello + bytes)
        }
    }

    @Test("what is no greeting is left to the host")
    func noGreeting() {
        let wrong: [[UInt8]] = [
            Array("GET / HTTP/1.1\r\n".utf8), [0], Preface.bytes + Status().framed(id: 2),
            Preface.bytes + WaitingBytesTests.frame(0x01, id: 0),
            Preface.bytes + WaitingBytesTests.frame(0x01, id: 1, [1]),
            Preface.bytes + [0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0, 0, 0, 1, 0, 0, 0],
        ]
        for bytes in wrong {
            let found = WaitingBytesTests.steps([bytes, Status().framed(id: 2)])
            #expect(found.ids == [] && found.last == .waits, "\(bytes)")
            #expect(found.left == bytes + Status().framed(id: 2))
        }
    }

    @Test("the longest HELLO and a STATUS behind it have room")
    func longest() throws {
        let most = FrameHeader.bodyByteCountMaxBeforeWelcome
        let empty = Hello(name: "early", version: "1").framed(id: 1).count - FrameHeader.byteCount
        // Its count takes two bytes more than that of an empty one.
        let token = [UInt8](repeating: 7, count: most - empty - 2)
        let hello = Hello(name: "early", version: "1", token: token).framed(id: 1)
        #expect(hello.count == FrameHeader.byteCount + most)
        let all = Preface.bytes + hello + Status().framed(id: 2)
        #expect(all.count == WaitingBytes.byteCountMax)
        var bytes = WaitingBytes()
        bytes.append(all)
        #expect(bytes.room == 0)
        #expect(bytes.next() == .status(id: 2))
        #expect(bytes.next() == .needMore)
        #expect(bytes.room == FrameHeader.byteCount)
    }
}

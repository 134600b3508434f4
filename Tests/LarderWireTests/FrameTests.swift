// Headers, frames in pieces, and the preface.

import LarderFormat
import LarderWire
import Testing

@Suite("frames")
struct FrameTests {
    @Test("the header has 12 bytes with its fields where SPEC.md draws them")
    func layout() {
        var writer = ByteWriter()
        FrameHeader(bodyByteCount: 0x01_0203, type: 0x9F, id: 0xA1B2_C3D4).encode(into: &writer)
        #expect(writer.bytes == [3, 2, 1, 0, 0x9F, 0, 0, 0, 0xD4, 0xC3, 0xB2, 0xA1])
        #expect(FrameHeader.byteCount == 12)
        let offsets = [
            FrameHeader.bodyOffset, FrameHeader.typeOffset, FrameHeader.flagsOffset, FrameHeader.zeroOffset,
            FrameHeader.idOffset,
        ]
        #expect(offsets == [0, 4, 5, 6, 8])
        var raw = [UInt8](repeating: 0xEE, count: 12)
        raw.withUnsafeMutableBytes {
            var writer = RawWriter($0.baseAddress!)
            FrameHeader(bodyByteCount: 0x01_0203, type: 0x9F, id: 0xA1B2_C3D4).encode(into: &writer)
        }
        #expect(raw == writer.bytes)
    }

    private func step(_ bytes: [UInt8], limit: Int = 65_536) -> Result<FrameStep, FrameError> {
        bytes.withUnsafeBytes { buffer in
            Result { () throws(FrameError) in try FrameDecoder.next(buffer, limit: limit) }
        }
    }

    @Test("flags and the zero field must be 0")
    func reserved() {
        for index in 5...7 {
            for bit in 0..<8 {
                var bytes: [UInt8] = [0, 0, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0]
                bytes[index] = 1 << bit
                #expect(step(bytes) == .failure(.reservedBitsSet(offset: min(index, 6), id: 9)))
            }
        }
    }

    @Test("a body over the limit is refused as soon as the header is there")
    func tooLarge() {
        let bytes: [UInt8] = [1, 0, 1, 0, 5, 0, 0, 0, 9, 0, 0, 0]
        #expect(step(bytes) == .failure(.tooLarge(length: 65_537, limit: 65_536, id: 9)))
        #expect(step(bytes, limit: 65_537) == .success(.needMore(minimumTotalByteCount: 65_549)))
        #expect(step(Array(bytes[..<11])) == .success(.needMore(minimumTotalByteCount: 12)))
        #expect(step([0xFF, 0xFF, 0xFF, 0xFF, 5, 0, 0, 0, 9, 0, 0, 0]).isFailure)
        let reply = FrameError.tooLarge(length: 65_537, limit: 65_536, id: 9).reply
        #expect(reply.isFatal && reply.number == .frameTooLarge)
        #expect(reply.fact("length") == "65537" && reply.fact("limit") == "65536")
    }

    @Test("frames are the same fed byte by byte, whole, and joined", arguments: [1, 2, 3, 7, 12, 13, 1_000_000])
    func chunks(_ chunk: Int) throws {
        let messages = Samples.all
        var stream: [UInt8] = []
        for (index, sample) in messages.enumerated() {
            var writer = ByteWriter()
            writer.frame(sample.type, id: UInt32(index)) { $0.raw(sample.body) }
            stream += writer.bytes
        }
        var buffer: [UInt8] = []
        var seen = 0
        var wanted = 12
        var fed = 0
        while fed < stream.count {
            let count = min(chunk, stream.count - fed)
            buffer += stream[fed..<(fed + count)]
            fed += count
            while true {
                let step = try buffer.withUnsafeBytes { try FrameDecoder.next($0, limit: 65_536) }
                guard case .frame(let header, let body) = step else {
                    if case .needMore(let total) = step {
                        #expect(total > buffer.count)
                        wanted = total
                    }
                    break
                }
                #expect(buffer.count >= wanted)
                #expect(header.type == messages[seen].type.rawValue && header.id == UInt32(seen))
                #expect(Array(buffer[body]) == messages[seen].body)
                buffer.removeFirst(body.upperBound)
                seen += 1
                wanted = 12
            }
        }
        #expect(seen == messages.count && buffer.isEmpty)
    }
}

extension Result {
    fileprivate var isFailure: Bool {
        if case .failure = self { true } else { false }
    }
}

@Suite("preface")
struct PrefaceTests {
    private func check(_ bytes: [UInt8]) -> Preface.Step { bytes.withUnsafeBytes { Preface.check($0) } }
    private func check(_ text: String) -> Preface.Step { check(Array(text.utf8)) }

    @Test("the preface is known at its eighth byte, with anything behind it")
    func right() {
        for count in 0..<8 { #expect(check(Array(Preface.bytes[..<count])) == .needMore) }
        #expect(check(Preface.bytes) == .isPreface)
        #expect(check(Preface.bytes + [1, 2, 3]) == .isPreface)
    }

    @Test("a wrong byte is told at once")
    func wrong() {
        for index in 0..<8 {
            var bytes = Array(Preface.bytes[...index])
            bytes[index] ^= 0x20
            guard case .wrong = check(bytes) else {
                Issue.record("byte \(index) is taken")
                continue
            }
        }
    }

    @Test("wrong clients are told what this is")
    func clients() {
        #expect(check("GET / HTTP/1.1\r\n") == .wrong(.http))
        #expect(check("POST /x") == .wrong(.http))
        #expect(check("G") == .wrong(.http))
        #expect(check([0x16, 0x03, 0x01, 0x02, 0, 1, 0, 1]) == .wrong(.tls))
        #expect(check([0x16]) == .wrong(.tls))
        #expect(check([0x16, 0x04]) == .wrong(.unknown))
        #expect(check("hello\n") == .wrong(.text))
        #expect(check("LARD of pig") == .wrong(.text))
        #expect(check([0x4C, 0x41, 0x52, 0x44, 0x45, 0x52, 2, 0x0A]) == .wrong(.otherVersion(2)))
        #expect(check([0, 1, 2]) == .wrong(.unknown))
    }

    @Test(
        "the answer is one line of text",
        arguments: [WrongClient.http, .tls, .text, .unknown, .otherVersion(9)])
    func line(_ client: WrongClient) {
        let bytes = Array(client.line.utf8)
        #expect(bytes.last == 0x0A && bytes.dropLast().allSatisfy { (0x20...0x7E).contains($0) })
    }
}

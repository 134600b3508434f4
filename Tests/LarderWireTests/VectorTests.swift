// The shared bytes of Protocol/vectors.

import LarderFormat
import LarderWire
import Testing

@Suite("vectors")
struct VectorTests {
    /// As the vectors name what is wrong with a body.
    private func name(_ code: FormatError.Code) -> String {
        switch code {
        case .notCanonical: "not_canonical"
        case .badText: "bad_text"
        default: "bad_message"
        }
    }

    private func recode(_ type: Int, _ body: [UInt8]) throws -> [UInt8] {
        let sample = try #require(Samples.all.first { Int($0.type.rawValue) == type })
        return try sample.recode(body)
    }

    @Test("valid messages decode and encode to their bytes")
    func validMessages() throws {
        let vectors = try SharedFiles.list("vectors/messages.json", "valid")
        #expect(Set(vectors.map { $0.int("type") }) == Set(MessageType.allCases.map { Int($0.rawValue) }))
        for vector in vectors {
            #expect(try recode(vector.int("type"), vector.hex("hex")) == vector.hex("hex"), "\(vector.text("name"))")
        }
    }

    @Test("invalid messages are refused with their error at their offset")
    func invalidMessages() throws {
        for vector in try SharedFiles.list("vectors/messages.json", "invalid") {
            do {
                _ = try recode(vector.int("type"), vector.hex("hex"))
                Issue.record("\(vector.text("name")) is taken")
            } catch let error as FormatError {
                let found = "\(name(error.code)) at \(error.offset)"
                let expected = "\(vector.text("error")) at \(vector.int("offset"))"
                #expect(found == expected, "\(vector.text("name")): \(error)")
            }
        }
    }

    @Test("frames and prefaces")
    func frames() throws {
        for vector in try SharedFiles.list("vectors/frames.json", "valid")
            + SharedFiles.list("vectors/frames.json", "invalid")
        {
            let bytes = vector.hex("hex")
            let expected =
                vector["error"] == nil
                ? "\(frameTexts(vector.objects("value")))" : "\(vector.text("error")) at \(vector.int("offset"))"
            #expect(["preface", "frame"].contains(vector.text("type")), "\(vector.text("name"))")
            if vector.text("type") == "preface" {
                let step = bytes.withUnsafeBytes { Preface.check($0) }
                #expect((step == .isPreface) == (vector["error"] == nil), "\(vector.text("name"))")
            } else {
                #expect(split(bytes, limit: vector.int("limit")) == expected, "\(vector.text("name"))")
            }
        }
    }

    private func frameTexts(_ frames: [[String: Any]]) -> [String] {
        frames.map { "\($0.int("type")) \($0.int("id")) \($0.hex("body"))" }
    }

    /// What the decoder and a session make of the bytes.
    private func split(_ bytes: [UInt8], limit: Int) -> String {
        var found: [String] = []
        var at = 0
        while at < bytes.count {
            do throws(FrameError) {
                let step: Result<FrameStep, FrameError> = bytes.withUnsafeBytes { buffer in
                    Result { () throws(FrameError) in
                        try FrameDecoder.next(UnsafeRawBufferPointer(rebasing: buffer[at...]), limit: limit)
                    }
                }
                guard case .frame(let header, let body) = try step.get() else { return "truncated at \(at)" }
                var session = openSession()
                if session.received(header) == .end(.badFrame) { return "bad_frame at \(at + FrameHeader.idOffset)" }
                found.append(
                    "\(header.type) \(header.id) \(Array(bytes[(at + body.lowerBound)..<(at + body.upperBound)]))")
                at += body.upperBound
            } catch {
                switch error {
                case .reservedBitsSet(let offset, _): return "bad_frame at \(at + offset)"
                case .tooLarge: return "frame_too_large at \(at + FrameHeader.bodyOffset)"
                }
            }
        }
        return "\(found)"
    }

    private func openSession() -> Session {
        var session = Session()
        _ = Preface.bytes.withUnsafeBytes { session.received(preface: $0) }
        _ = session.received(Hello(name: "t", version: "1"))
        return session
    }
}

// What holds of every message.

import LarderFormat
import LarderWire
import Testing

@Suite("messages")
struct MessageTests {
    @Test("every type has a sample")
    func everyTypeHasASample() {
        #expect(Set(Samples.all.map(\.type)) == Set(MessageType.allCases))
    }

    @Test("a message decodes to what was encoded", arguments: Samples.all)
    func roundTrip(_ sample: MessageSample) throws {
        #expect(try sample.recode(sample.body) == sample.body)
    }

    @Test("a body cut anywhere is refused", arguments: Samples.all)
    func truncation(_ sample: MessageSample) {
        for count in 0..<sample.body.count {
            let cut = Array(sample.body[..<count])
            // A cut between the runs of EVENTS leaves a shorter EVENTS.
            if sample.type == .events, count == EventsHeader.byteCount || count == 16 + 20 + 7 { continue }
            // As does one between entries.
            if sample.type == .historyIs || sample.type == .entriesAre, count == 0 || count == 20 + 4 { continue }
            do {
                _ = try sample.recode(cut)
                Issue.record("cut at \(count) decodes")
            } catch {
                #expect(((error as? FormatError)?.offset ?? .max) <= count)
            }
        }
    }

    @Test("a byte behind the end is refused", arguments: Samples.all)
    func trailing(_ sample: MessageSample) {
        for byte: UInt8 in [0, 1, 0xFF] {
            #expect(throws: FormatError.self) { try sample.recode(sample.body + [byte]) }
        }
    }

    @Test("a flipped bit is refused or is another value with one encoding", arguments: Samples.all)
    func bitFlips(_ sample: MessageSample) throws {
        for bit in 0..<(sample.body.count * 8) {
            var flipped = sample.body
            flipped[bit / 8] ^= 1 << (bit % 8)
            guard let recoded = try? sample.recode(flipped) else { continue }
            #expect(recoded == flipped)
        }
    }

    @Test("bytes of any kind do not trap")
    func noise() {
        var generator = SplitMix(state: 7)
        for sample in Samples.all {
            for _ in 0..<300 {
                var bytes = sample.body
                for _ in 0..<Int.random(in: 1...6, using: &generator) where !bytes.isEmpty {
                    let index = Int.random(in: 0..<bytes.count, using: &generator)
                    bytes[index] = [0xFF, 0x7F, 0x80, 0, .random(in: 0...255, using: &generator)].randomElement(
                        using: &generator)!
                }
                _ = try? sample.recode(bytes)
            }
        }
    }

    @Test("a framed message carries its type, id and length")
    func framed() throws {
        let frame = Get(kind: 1, key: [1, 2, 3]).framed(id: 0x0102_0304)
        #expect(frame == [5, 0, 0, 0, 5, 0, 0, 0, 4, 3, 2, 1, 1, 3, 1, 2, 3])
    }

    @Test("a count that the bytes left cannot hold is refused before anything is allocated")
    func lyingCounts() {
        let huge: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]
        func refused<M: WireMessage>(_: M.Type, _ body: [UInt8], at offset: Int) {
            #expect(throws: FormatError(.truncated, at: offset)) { try body.withUnsafeBytes { try M(body: $0) } }
        }
        refused(Counted.self, huge, at: 0)
        refused(Counted.self, [2, 1, 1], at: 0)
        refused(Counted.self, [0] + huge, at: 1)
        refused(Counted.self, [0, 2, 1, 0, 0, 0, 0], at: 1)
        refused(Found.self, [0] + huge, at: 1)
        refused(Matches.self, [0, 0] + huge, at: 2)
        refused(Entries.self, huge, at: 0)
        refused(KindList.self, [1] + Array(repeating: 0, count: 11), at: 0)
        refused(Page.self, [0, 0] + huge, at: 2)
        refused(Page.self, [0, 0, 2] + Array(repeating: 0, count: 13), at: 2)
        refused(OriginList.self, huge, at: 0)
        refused(Written.self, [0] + Array(repeating: 0, count: 16) + huge, at: 17)
        refused(Get.self, [1] + huge, at: 1)
        #expect(throws: FormatError(.truncated, at: 3)) {
            try ([0, 0, 0] + huge).withUnsafeBytes { try OperationReader(body: $0) }
        }
    }
}

/// SplitMix64: the same bytes in every run.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

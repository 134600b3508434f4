import CLarder
import Testing

/// SplitMix64: the same bytes in every run, so that a failure can be repeated.
private struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

@Suite("CRC-32C")
struct CRC32CTests {
    private func crc(_ bytes: [UInt8]) -> UInt32 {
        let fast = bytes.withUnsafeBytes { larder_crc32c(0, $0.baseAddress, $0.count) }
        let portable = bytes.withUnsafeBytes { larder_crc32c_portable(0, $0.baseAddress, $0.count) }
        #expect(fast == portable)
        return fast
    }

    @Test("the check value and the vectors of RFC 3720 B.4 hold")
    func knownVectors() {
        #expect(crc(Array("123456789".utf8)) == 0xE306_9283)
        #expect(crc([]) == 0)
        #expect(crc([UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
        #expect(crc([UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
        #expect(crc([UInt8](0..<32)) == 0x46DD_794E)
        #expect(crc([UInt8]((0..<32).reversed())) == 0x113F_DB5C)
    }

    @Test("both twins agree at every length up to 700 and every alignment")
    func twinsAgree() {
        var generator = SeededGenerator(state: 1)
        let bytes = (0..<720).map { _ in UInt8.random(in: 0...255, using: &generator) }
        bytes.withUnsafeBytes { buffer in
            for count in 0...700 {
                for start in 0..<8 {
                    let seed = UInt32.random(in: 0...UInt32.max, using: &generator)
                    let p = buffer.baseAddress! + start
                    let agree = larder_crc32c(seed, p, count) == larder_crc32c_portable(seed, p, count)
                    if !agree { Issue.record("length \(count), start \(start)") }
                }
            }
        }
    }

    @Test("both twins agree on lengths around the longest stretch")
    func longInputsAgree() {
        var generator = SeededGenerator(state: 2)
        let bytes = (0..<20_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
        for count in [3071, 3072, 3073, 3167, 3168, 3169, 6143, 6144, 6145, 19_999, 20_000] {
            _ = crc(Array(bytes[..<count]))
        }
    }

    @Test("a CRC continues over a cut at every place")
    func chains() {
        var generator = SeededGenerator(state: 3)
        let bytes = (0..<450).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let whole = crc(bytes)
        bytes.withUnsafeBytes { buffer in
            for cut in 0...buffer.count {
                let first = larder_crc32c(0, buffer.baseAddress, cut)
                #expect(larder_crc32c(first, buffer.baseAddress! + cut, buffer.count - cut) == whole)
            }
        }
    }
}

@Suite("UTF-8 without NUL")
struct UTF8Tests {
    /// The offset of the first bad sequence, or nil; records an issue where the twins differ.
    private func errorOffset(_ bytes: [UInt8], from start: Int = 0) -> Int? {
        bytes.withUnsafeBufferPointer { buffer in
            let p = buffer.baseAddress.map { $0 + start }
            let count = buffer.count - start
            var fast = -1
            var portable = -1
            let fastIsValid = larder_utf8_valid(p, count, &fast) == 1
            let portableIsValid = larder_utf8_valid_portable(p, count, &portable) == 1
            if fast != portable || fastIsValid != portableIsValid || fastIsValid != (fast == -1) {
                Issue.record("twins differ (\(fast), \(portable)) on \(Array(bytes[start...]))")
            }
            return portableIsValid ? nil : portable
        }
    }

    /// Every place of a sequence against the edges of a vector is met by moving it through ASCII.
    private func expect(_ sequence: [UInt8], errorAt expected: Int?) {
        for before in 0..<70 {
            for after in [0, 1, 2, 3, 4, 29, 30, 31, 32, 33, 64] {
                let padded =
                    [UInt8](repeating: 0x61, count: before) + sequence + [UInt8](repeating: 0x62, count: after)
                let found = errorOffset(padded)
                if found != expected.map({ $0 + before }) {
                    Issue.record("\(sequence) after \(before) before \(after): \(String(describing: found))")
                }
            }
        }
    }

    @Test("the first and last value of each length are valid")
    func edgesAreValid() {
        for value: UInt32 in [
            0x01, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xCFFF, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000,
            0xFFFFF, 0x100000, 0x10FFFF,
        ] {
            expect(Array(String(Unicode.Scalar(value)!).utf8), errorAt: nil)
        }
        #expect(errorOffset([]) == nil)
        #expect(errorOffset(Array("토이 스토리, Amélie, 🎬 и другие — и ещё немного текста, 아재개그".utf8)) == nil)
    }

    @Test("overlong forms, surrogates, values past U+10FFFF, stray bytes and NUL are refused where they begin")
    func badSequences() {
        for bad: [UInt8] in [
            [0x00], [0x80], [0xBF], [0xC0, 0x80], [0xC0, 0xAF], [0xC1, 0xBF], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF],
            [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x8F, 0xBF, 0xBF], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF],
            [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80], [0xFE], [0xFF],
        ] {
            expect(bad, errorAt: 0)
        }
        expect([0xC3, 0xA9, 0x80], errorAt: 2)
        expect([0xE2, 0x82, 0xAC, 0x00], errorAt: 3)
        expect([0xE2, 0x82, 0x00], errorAt: 0)
        expect([0xF0, 0x9F, 0x8E, 0xAC, 0xAC], errorAt: 4)
    }

    @Test("a sequence cut after any of its bytes is refused where it begins")
    func truncations() {
        for text in ["é", "€", "아", "🎬"] {
            let whole = Array(text.utf8)
            for kept in 1..<whole.count {
                expect(Array(whole[..<kept]), errorAt: 0)
                expect(Array(whole[..<kept]) + whole, errorAt: 0)
            }
        }
    }

    @Test("every pair of bytes gets the standard library's answer")
    func allPairs() {
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max {
                let bytes = [UInt8](repeating: 0x61, count: 31) + [first, second] + [UInt8](repeating: 0x62, count: 9)
                let expected = String(validating: bytes, as: UTF8.self) != nil && first != 0 && second != 0
                if (errorOffset(bytes) == nil) != expected { Issue.record("\(first) \(second)") }
            }
        }
    }

    @Test("both twins agree on random text with random damage at every length up to 300")
    func twinsAgree() {
        var generator = SeededGenerator(state: 4)
        let letters = ["a", "b", " ", "é", "я", "토", "€", "🎬"].map { Array($0.utf8) }
        for count in 0...300 {
            for round in 0..<24 {
                let letterCount = round % 3 == 0 ? 3 : letters.count
                var bytes: [UInt8] = []
                while bytes.count < count + 8 {
                    bytes += letters[Int.random(in: 0..<letterCount, using: &generator)]
                }
                bytes.removeLast(bytes.count - (count + 8))
                if round % 2 == 1 {
                    let place = Int.random(in: 0..<bytes.count, using: &generator)
                    bytes[place] = UInt8.random(in: 0...255, using: &generator)
                }
                let found = errorOffset(bytes, from: round % 8)
                let text = String(validating: bytes[(round % 8)...], as: UTF8.self)
                let isValid = text != nil && !bytes[(round % 8)...].contains(0)
                if (found == nil) != isValid { Issue.record("length \(count): \(bytes)") }
            }
        }
    }

    @Test("both twins agree on random bytes")
    func randomBytesAgree() {
        var generator = SeededGenerator(state: 5)
        for count in 0...300 {
            for _ in 0..<4 {
                // Mostly continuations and leads, so that errors are not all in the first bytes.
                let bytes = (0..<count).map { _ -> UInt8 in
                    let byte = UInt8.random(in: 0...255, using: &generator)
                    return byte < 0xF0 ? byte & 0x7F | 0x20 : byte
                }
                _ = errorOffset(bytes)
            }
        }
    }
}

@Suite("System accessors")
struct AccessorTests {
    @Test("a listening socket whose path is too long is refused by name")
    func longSocketPath() {
        #expect(larder_listen_unix(String(repeating: "x", count: 200), 1, 0o600) == -36)
    }

    @Test("the peer of a socket pair is this user")
    func peer() {
        var descriptors: [Int32] = [0, 0]
        #expect(larder_socket_pair(&descriptors) == 0)
        var uid: uid_t = .max
        var pid: pid_t = 0
        #expect(larder_peer_uid(descriptors[0], &uid, &pid) == 0)
        #expect(uid != .max && pid > 0)
    }

    @Test("mapped memory is zeroed and can be written")
    func memory() throws {
        let memory = try #require(larder_memory_map(1 << 16))
        let bytes = memory.assumingMemoryBound(to: UInt8.self)
        #expect(bytes[65_535] == 0)
        bytes[65_535] = 1
        larder_memory_unmap(memory, 1 << 16)
    }
}

// Folded text: the fast paths against the definition, and what people expect of it.

import CLarder
import Testing

@testable import LarderFormat

@Suite("Folding")
struct FoldingTests {
    /// By the definition alone: no fast path.
    private func slowly(_ bytes: [UInt8]) -> [UInt8] {
        var buffer = FoldBuffer()
        bytes.withUnsafeBytes { buffer.appendSlowly($0) }
        return Array(buffer.bytes)
    }

    private typealias Fold = (UnsafePointer<UInt8>, Int, UnsafeMutablePointer<UInt8>, UnsafeMutablePointer<Int>) -> Int

    private func plain(_ bytes: [UInt8], _ fold: Fold) -> (read: Int, out: [UInt8]) {
        var out = [UInt8](repeating: 0, count: bytes.count + bytes.count / 2 + 64)
        var written = 0
        let read = bytes.withUnsafeBufferPointer { bytes in
            out.withUnsafeMutableBufferPointer { out in
                guard let from = bytes.baseAddress, let to = out.baseAddress else { return 0 }
                return fold(from, bytes.count, to, &written)
            }
        }
        return (read, Array(out.prefix(written)))
    }

    private func check(_ text: String, _ comment: String = "") {
        let bytes = Array(text.utf8)
        let found = folded(text)
        if found != slowly(bytes) {
            Issue.record("\(comment) \(text.unicodeScalars.map { String($0.value, radix: 16) })")
        }
        if bytes.isEmpty { return }
        let fast = plain(bytes, larder_fold_plain)
        let portable = plain(bytes, larder_fold_plain_portable)
        if fast.read != portable.read || fast.out != portable.out {
            Issue.record("twins: \(comment) \(text.unicodeScalars.map { String($0.value, radix: 16) })")
        }
        // Folding what is folded changes nothing.
        if folded(String(decoding: found, as: UTF8.self)) != found {
            Issue.record("twice: \(comment) \(text.unicodeScalars.map { String($0.value, radix: 16) })")
        }
    }

    @Test("every scalar, alone and between others, folds as the definition says")
    func everyScalar() {
        for value in UInt32(1)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            // Where nothing is assigned, a sample is enough.
            if value > 0x32000 && value < 0xE0000 && value % 1021 != 0 || value > 0xE0200 && value % 1021 != 0 {
                continue
            }
            let text = String(Character(scalar))
            let bytes = Array(text.utf8)
            if folded(text) != slowly(bytes) { Issue.record("\(String(value, radix: 16))") }
            let fast = plain(bytes, larder_fold_plain)
            let portable = plain(bytes, larder_fold_plain_portable)
            if fast.read != portable.read || fast.out != portable.out {
                Issue.record("twins: \(String(value, radix: 16))")
            }
            if value % 7 == 0 {
                check("Abc" + text + "\u{301}한")
                check(String(repeating: "x", count: 31) + text + text + "É")
            }
        }
    }

    @Test("case folding is that of the Unicode properties")
    func caseFolding() {
        for value in UInt32(1)...0x1FFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let upper = scalar.properties.uppercaseMapping.unicodeScalars
            let base = upper.count == 1 ? upper[upper.startIndex] : scalar
            let lower = base.properties.lowercaseMapping.unicodeScalars
            let expected = lower.count == 1 ? lower[lower.startIndex].value : value
            switch value {
            // Cherokee folds to upper case; the dotless and the dotted i stay; U+1FBE is another scalar in form C; of
            // two ligatures the longer s alone is folded; widths are told of below.
            case 0x13A0...0x13FD, 0xAB70...0xABBF, 0x130, 0x131, 0x1FBE, 0xFB05, 0x3000, 0xFF01...0xFFEE: continue
            default: break
            }
            if larder_fold_scalar(value) != expected { Issue.record("U+\(String(value, radix: 16))") }
        }
    }

    @Test("random texts fold as the definition says")
    func randomTexts() {
        var random = SplitMix(3)
        let pools: [[UInt32]] = [
            Array(0x20...0x7E), Array(0xA0...0x17F), Array(0x300...0x345), Array(0x370...0x3FF), Array(0x400...0x45F),
            Array(0x1100...0x11FF), Array(0xAC00...0xAC40), Array(0x3040...0x30FF), Array(0x4E00...0x4E20),
            Array(0xFF00...0xFFEF), Array(0x1E00...0x1FFF), Array(0x900...0x97F), Array(0x1F600...0x1F610),
            [0x0, 0x130, 0x131, 0x212A, 0x1E9E, 0xDF, 0x3C2, 0x3C3, 0x3A3, 0x2126, 0x212B, 0x345, 0x1D15E],
        ]
        for round in 0..<20_000 {
            var text = String.UnicodeScalarView()
            let pool = random.pick(pools)
            for _ in 0..<random.below(round % 10 == 0 ? 150 : 20) {
                let from = random.chance(70) ? pool : random.pick(pools)
                if let scalar = Unicode.Scalar(random.pick(from)), scalar.value != 0 { text.append(scalar) }
            }
            check(String(text), "round \(round)")
        }
    }

    @Test("bytes that are no text do no harm")
    func randomBytes() {
        var random = SplitMix(4)
        for _ in 0..<20_000 {
            let bytes = (0..<1 + random.below(80)).map { _ in UInt8(random.chance(50) ? random.below(256) : 0xEA) }
            #expect(bytes.withUnsafeBytes { folded($0) }.count <= 4 * bytes.count + 16)
        }
    }

    @Test("what people type finds what is stored")
    func pairs() {
        let same: [(String, String)] = [
            ("한글", "\u{1112}\u{1161}\u{11AB}\u{1100}\u{1173}\u{11AF}"), ("가", "\u{1100}\u{1161}"),
            ("각", "가\u{11A8}"), ("ＡＢＣ１２３！", "abc123!"), ("ﾊﾝｶｸ", "ハンカク"), ("é", "e\u{301}"), ("É", "e\u{301}"),
            ("ẞ", "ß"), ("Σ", "ς"), ("σ", "ς"), ("\u{212A}", "k"), ("\u{212B}", "å"), ("\u{2126}", "ω"), ("ſ", "s"),
            ("ǅ", "ǆ"), ("\u{3000}", " "), ("Ж", "ж"), ("\u{10400}", "\u{10428}"), ("THE MATRIX", "the matrix"),
            ("é\u{323}", "e\u{323}\u{301}"), ("Ａ\u{301}", "á"), ("\u{1FBE}", "ι"), ("\u{FB05}", "\u{FB06}"),
            ("\u{AB70}", "\u{13A0}"),
        ]
        for (a, b) in same { #expect(folded(a) == folded(b), "\(a) \(b)") }
        let different = [("ß", "ss"), ("İ", "i"), ("ı", "i"), ("İ", "i\u{307}x"), ("ﬁ", "fi"), ("²", "2"), ("é", "e")]
        for (a, b) in different { #expect(folded(a) != folded(b), "\(a) \(b)") }
        #expect(folded("ﾊﾞ") == folded("バ"))
        #expect(folded("").isEmpty)
    }

    @Test("a needle is found where the plain search finds it")
    func finding() {
        var random = SplitMix(6)
        for _ in 0..<20_000 {
            let count = random.below(120)
            var buffer = FoldBuffer(capacity: 1)
            for _ in 0..<count { buffer.append(UInt8(97 + random.below(3))) }
            let needle = (0..<random.below(5)).map { _ in UInt8(97 + random.below(3)) }
            needle.withUnsafeBufferPointer { bytes in
                var needle = larder_needle_of(bytes.baseAddress, bytes.count)
                let text = buffer.bytes.bindMemory(to: UInt8.self)
                guard let base = text.baseAddress else { return }
                let expected =
                    bytes.isEmpty
                    ? 0 : (0..<max(0, count - bytes.count + 1)).first { text[$0...].starts(with: bytes) } ?? -1
                #expect(larder_find(base, count, &needle) == expected)
                #expect(larder_find_portable(base, count, &needle) == expected)
            }
        }
    }
}

// The hash part of the index against a dictionary, with fingerprints that collide.

import Testing

@testable import LarderStore

@Suite struct KeyIndexTests {
    private static func candidates(_ index: borrowing KeyIndex, _ fingerprint: UInt32) -> Set<UInt32> {
        var probe = 0
        var found: Set<UInt32> = []
        while let ordinal = index.next(fingerprint, &probe) { found.insert(ordinal) }
        return found
    }

    @Test(
        "random inserts and removes leave the candidates that a dictionary has",
        arguments: [
            0xFFFF_FFFF, 0x1F, 0xFFF0_0000, 0x8000_0001,
        ] as [UInt32])
    func againstDictionary(mask: UInt32) {
        var random = SplitMix64(seed: UInt64(mask))
        var index = KeyIndex()
        var model: [UInt32: Set<UInt32>] = [:]
        var used: [UInt32] = []
        for ordinal in 0..<9000 as Range<UInt32> {
            // Near the end of the table too, so that chains go around it.
            let fingerprint = random.next() % 4 == 0 ? UInt32.max : UInt32(truncatingIfNeeded: random.next()) & mask
            if model[fingerprint]?.count ?? 0 < 40 {
                index.insert(fingerprint, ordinal: ordinal)
                model[fingerprint, default: []].insert(ordinal)
                used.append(fingerprint)
            }
            if random.next() % 3 == 0, let fingerprint = used.randomElement(using: &random),
                let ordinal = model[fingerprint]?.randomElement(using: &random)
            {
                let (first, second) = (
                    index.remove(fingerprint, ordinal: ordinal), index.remove(fingerprint, ordinal: ordinal)
                )
                #expect(first && !second)
                model[fingerprint]?.remove(ordinal)
            }
            if ordinal % 700 == 0 { compare(index, model) }
        }
        compare(index, model)
    }

    @Test("room that is laid out ahead takes so many without growing", arguments: [0, 3000, 4000])
    func reserving(countBefore: UInt32) {
        var random = SplitMix64(seed: UInt64(countBefore))
        var index = KeyIndex()
        var model: [UInt32: Set<UInt32>] = [:]
        func insert(_ ordinal: UInt32, _ index: inout KeyIndex) {
            let fingerprint = UInt32(truncatingIfNeeded: random.next())
            index.insert(fingerprint, ordinal: ordinal)
            model[fingerprint, default: []].insert(ordinal)
        }
        for ordinal in 0..<countBefore { insert(ordinal, &index) }
        index.reserve(20_000)
        let capacity = index.capacity
        for ordinal in countBefore..<countBefore + 20_000 {
            insert(ordinal, &index)
            // Less by the table that was moved, once that is done.
            let now = index.capacity
            #expect(now <= capacity)
        }
        let isGrowing = index.isGrowing
        #expect(!isGrowing)
        compare(index, model)
        let before = index.capacity
        index.reserve(10)
        let after = index.capacity
        #expect(before == after)
    }

    @Test("while the table grows every slot is found, and can be taken out", arguments: [UInt64(1), 2, 3])
    func growing(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var index = KeyIndex()
        var model: [UInt32: Set<UInt32>] = [:]
        var growths = 0
        for ordinal in 0..<30_000 as Range<UInt32> {
            let wasGrowing = index.isGrowing
            // Many at the end of the table, so that a cluster goes around it.
            let isAtEnd = random.next() % 40 == 0
            let fingerprint = isAtEnd ? UInt32.max - ordinal % 7 : UInt32(truncatingIfNeeded: random.next())
            index.insert(fingerprint, ordinal: ordinal)
            model[fingerprint, default: []].insert(ordinal)
            guard index.isGrowing || wasGrowing else { continue }
            growths += wasGrowing ? 0 : 1
            if random.next() % 2 == 0, let (fingerprint, ordinals) = model.randomElement(using: &random),
                let ordinal = ordinals.first
            {
                let isRemoved = index.remove(fingerprint, ordinal: ordinal)
                #expect(isRemoved)
                model[fingerprint]?.remove(ordinal)
            }
            if ordinal % 16 == 0 || !index.isGrowing { compare(index, model) }
        }
        #expect(growths >= 3)
        var seen = 0
        index.eachSlot { _ in seen += 1 }
        let count = index.count
        #expect(seen == count)
    }

    private func compare(_ index: borrowing KeyIndex, _ model: [UInt32: Set<UInt32>]) {
        let count = index.count
        #expect(count == model.values.reduce(0) { $0 + $1.count })
        for (fingerprint, ordinals) in model {
            let found = Self.candidates(index, fingerprint)
            #expect(found == ordinals)
        }
        let none = Self.candidates(index, 0x1234_5678)
        #expect(none == model[0x1234_5678] ?? [])
    }

    @Test("slots are spread: a candidate lies a few steps from home, however the table grew")
    func spread() {
        for growth in [KeyIndex.Growth.double, .close] {
            var random = SplitMix64(seed: 7)
            var index = KeyIndex(growth: growth)
            let fingerprints = (0..<100_000).map { _ in UInt32(truncatingIfNeeded: random.next()) }
            for (ordinal, fingerprint) in fingerprints.enumerated() {
                index.insert(fingerprint, ordinal: UInt32(ordinal))
            }
            var steps = 0
            for fingerprint in fingerprints.prefix(10_000) {
                var probe = 0
                _ = index.next(fingerprint, &probe)
                steps += probe
            }
            #expect(steps < 10_000 * 6)
        }
    }

    @Test("numbering anew changes every ordinal and no fingerprint")
    func renumber() {
        var index = KeyIndex()
        for n in 0..<5000 as Range<UInt32> { index.insert(n &* 0x9E37_79B1, ordinal: n) }
        index.renumber { $0 + 7 }
        for n in 0..<5000 as Range<UInt32> {
            let found = Self.candidates(index, n &* 0x9E37_79B1)
            #expect(found == [n + 7])
        }
    }

    @Test("the fingerprint depends on the key of the library, the kind and every byte")
    func fingerprints() {
        let hasher = FingerprintHasher(key: (1, 2))
        var seen: Set<UInt64> = []
        for count in 0..<40 {
            for kind in 1...3 {
                let bytes = [UInt8](repeating: 0, count: count)
                seen.insert(bytes.withUnsafeBytes { hasher.hash(kind: kind, key: $0) })
                seen.insert(bytes.withUnsafeBytes { FingerprintHasher(key: (1, 3)).hash(kind: kind, key: $0) })
            }
        }
        #expect(seen.count == 240)
    }
}

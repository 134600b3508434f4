// The ordinal part of the index: places in the order of first seqs.

import Testing

@testable import LarderStore

@Suite struct RecordTableTests {
    private static func place(_ n: Int) -> Place {
        Place(segment: UInt32(n / 1000 + 1), offset: UInt32(n), kindIndex: UInt8(n % 3))
    }

    /// Compares every entry with pairs of first seq and place, in order.
    private static func compare(_ table: borrowing RecordTable, _ expected: [(seq: UInt64, place: Place)]) {
        var found: [(seq: UInt64, place: Place)] = []
        for ordinal in 0..<table.count where !table[UInt32(ordinal)].isHole {
            found.append((table.firstSeq(UInt32(ordinal)), table[UInt32(ordinal)]))
        }
        let areSame =
            found.count == expected.count
            && zip(found, expected).allSatisfy { $0.seq == $1.seq && $0.place == $1.place }
        #expect(areSame)
        for (seq, place) in expected {
            let ordinal = table.ordinal(firstSeq: seq)
            let there = ordinal.map { table[$0] }
            #expect(there == place)
        }
    }

    @Test(
        "records are found by first seq on both sides of a chunk's end", arguments: [1, 4095, 4096, 4097, 8192, 9000])
    func chunks(count: Int) {
        var table = RecordTable()
        let all = (0..<count).map { (seq: UInt64($0 * 3 + 5), place: Self.place($0)) }
        for (n, pair) in all.enumerated() {
            let ordinal = table.append(pair.place, firstSeq: pair.seq)
            #expect(ordinal == UInt32(n))
        }
        Self.compare(table, all)
        let (before, after, end) = (
            table.firstOrdinal(atOrAfter: 0), table.firstOrdinal(atOrAfter: 6),
            table.firstOrdinal(atOrAfter: UInt64.max)
        )
        #expect(before == 0 && after == 1 && end == count)
        for hint in [0, 1, count / 2, count - 1, count, count + 1] {
            for seq in stride(from: 0, through: count * 3 + 8, by: 11) {
                let near = table.ordinal(firstSeq: UInt64(seq), near: UInt32(hint))
                let plain = table.ordinal(firstSeq: UInt64(seq))
                #expect(near == plain, "seq \(seq) near \(hint)")
            }
        }
        let between = table.ordinal(firstSeq: 6)
        #expect(between == nil)
    }

    @Test(
        "a gap of seqs too wide for a chunk begins another",
        arguments: [
            UInt64(UInt32.max) - 1, UInt64(UInt32.max), UInt64(UInt32.max) + 1, 1 << 40, 1 << 62,
        ])
    func wideGaps(gap: UInt64) {
        var table = RecordTable()
        var all: [(seq: UInt64, place: Place)] = []
        var seq: UInt64 = 1
        for n in 0..<10 {
            all.append((seq, Self.place(n + 1)))
            _ = table.append(Self.place(n + 1), firstSeq: seq)
            seq += n == 4 ? gap : 1
        }
        Self.compare(table, all)
        let behind = table.firstOrdinal(atOrAfter: all[4].seq + 1)
        let found = table.firstSeq(UInt32(behind))
        #expect(found >= all[4].seq + 1)
    }

    @Test("holes are counted, and closed by numbering anew")
    func renumber() {
        var random = SplitMix64(seed: 9)
        var table = RecordTable()
        var all: [(seq: UInt64, place: Place)] = []
        for n in 0..<10_000 {
            all.append((UInt64(n) * 2 + 1 + (n > 5000 ? 1 << 40 : 0), Self.place(n + 1)))
            _ = table.append(all[n].place, firstSeq: all[n].seq)
        }
        var isKept = all.map { _ in true }
        for at in all.indices where random.next() % 2 == 0 {
            isKept[at] = false
            if let ordinal = table.ordinal(firstSeq: all[at].seq) { table.set(ordinal, .hole) }
        }
        let kept = all.indices.filter { isKept[$0] }.map { all[$0] }
        Self.compare(table, kept)
        let (holes, count) = (table.holeCount, table.count)
        #expect(count - holes == kept.count)
        let oldOrdinals = kept.map { table.ordinal(firstSeq: $0.seq) }
        let map = table.renumber()
        Self.compare(table, kept)
        for (pair, old) in zip(kept, oldOrdinals) {
            let new = table.ordinal(firstSeq: pair.seq)
            #expect(old.map { map[Int($0)] } == new)
        }
        _ = table.append(Self.place(5), firstSeq: 1 << 50)
        let last = table.ordinal(firstSeq: 1 << 50)
        #expect(last != nil)
    }
}

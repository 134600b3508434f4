import Testing

@testable import LarderHost

@Suite("Pages by rank")
struct BestRecordsTests {
    private struct Random: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 11 ^ state << 29
        }
    }

    /// What the ranking says, by sorting everything.
    private func sorted(_ all: [Ranked], _ ranking: Ranking) -> [Ranked] {
        all.sorted { one, other in
            switch (one.key, other.key) {
            case (nil, nil): break
            case (nil, _): return false
            case (_, nil): return true
            case (let a?, let b?) where a != b:
                return ranking.isDescending ? b.lexicographicallyPrecedes(a) : a.lexicographicallyPrecedes(b)
            default: break
            }
            return ranking.isNewestFirst ? one.firstSeq > other.firstSeq : one.firstSeq < other.firstSeq
        }
    }

    private func offer(_ all: [Ranked], to best: inout BestRecords) {
        for ranked in all {
            guard let key = ranked.key else {
                best.offer(nil, firstSeq: ranked.firstSeq)
                continue
            }
            key.withUnsafeBytes { best.offer($0, firstSeq: ranked.firstSeq) }
        }
    }

    @Test("Page by page all records come once, in order", arguments: [false, true], [false, true])
    func pages(_ isDescending: Bool, _ isNewestFirst: Bool) {
        let ranking = Ranking(isDescending: isDescending, isNewestFirst: isNewestFirst)
        var random = Random(state: 7)
        for (count, limit) in [(0, 1), (1, 1), (5, 10), (300, 1), (1_000, 7), (3_000, 200), (3_000, 3_000)] {
            let all = (1...max(count, 1)).prefix(count).map { number -> Ranked in
                let length = Int.random(in: 0...3, using: &random)
                let key = (0..<length).map { _ in UInt8.random(in: 0...3, using: &random) }
                return Ranked(key: Int.random(in: 0..<10, using: &random) == 0 ? nil : key, firstSeq: UInt64(number))
            }
            var found: [Ranked] = []
            var after: Ranked?
            while true {
                var best = BestRecords(ranking, limit: limit, after: after)
                offer(all, to: &best)
                let page = best.best()
                #expect(page.count <= limit)
                found += page
                #expect(best.isCut == (found.count < count))
                guard best.isCut, let last = page.last else { break }
                after = last
            }
            #expect(found == sorted(all, ranking), "\(count) records in pages of \(limit)")
        }
    }

    @Test("Tokens read back, and other bytes are none")
    func tokens() {
        for key in [nil, [], [1], [UInt8](repeating: 9, count: 256)] as [[UInt8]?] {
            let token = ScanToken(asked: 0xDEAD_BEEF, epoch: .max, place: Ranked(key: key, firstSeq: 1 << 60))
            #expect(ScanToken(token.encoded) == token)
            for count in 0..<min(token.encoded.count, 22) {
                #expect(ScanToken(Array(token.encoded.prefix(count))) == nil)
            }
        }
        #expect(ScanToken([UInt8](repeating: 2, count: 400)) == nil)
        #expect(ScanToken([]) == nil)
        #expect(ScanToken.sum([1, 2], [3]) != ScanToken.sum([1], [2, 3]))
    }

    @Test("A turn's time is given once")
    func budget() {
        var budget = TurnBudget()
        #expect(budget.sliceEnd(at: 1_000) == 2_001_000)
        #expect(budget.sliceEnd(at: 2_000_999) == 2_001_000)
        #expect(budget.sliceEnd(at: 2_001_000) == nil)
        budget.turnEnds()
        #expect(budget.sliceEnd(at: 2_001_000) == 4_001_000)
    }
}

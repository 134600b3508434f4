// The best of very many records, in memory that the page's limit bounds.

import Glibc
import LarderFormat

/// How records stand to one another on a page that is not in saved order.
struct Ranking {
    /// Greater keys first. Records without a key come last either way.
    var isDescending = false
    /// Of records with equal keys, those that were saved last come first.
    var isNewestFirst = false

    /// Whether a record comes before another. No key: nil bytes.
    @inline(__always)
    func precedes(_ key: UnsafeRawBufferPointer?, _ firstSeq: UInt64, _ other: Ranked) -> Bool {
        switch (key, other.key) {
        case (nil, nil): break
        case (nil, _): return false
        case (_, nil): return true
        case (let key?, let otherKey?):
            let order = otherKey.withUnsafeBytes { compare(key, $0) }
            if order != 0 { return isDescending ? order > 0 : order < 0 }
        }
        return isNewestFirst ? firstSeq > other.firstSeq : firstSeq < other.firstSeq
    }

    @inline(__always)
    private func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
        let count = min(a.count, b.count)
        if count > 0, let left = a.baseAddress, let right = b.baseAddress {
            let order = memcmp(left, right, count)
            if order != 0 { return Int(order) }
        }
        return a.count - b.count
    }
}

/// A record's place in a ranking.
struct Ranked: Equatable {
    /// Nil: it has no value.
    var key: [UInt8]?
    var firstSeq: UInt64
}

/// Keeps the first `limit` records of a ranking behind a place in it. Loop thread only.
struct BestRecords {
    let ranking: Ranking
    let limit: Int
    /// Only what comes behind it is kept.
    private(set) var after: Ranked?
    private var kept: [Ranked] = []
    /// The last one that can still be among the best, once there are enough.
    private var last: Ranked?
    /// More than `limit` came.
    private(set) var isCut = false

    init(_ ranking: Ranking, limit: Int, after: Ranked?) {
        self.ranking = ranking
        self.limit = limit
        self.after = after
    }

    @inline(__always)
    mutating func offer(_ key: UnsafeRawBufferPointer?, firstSeq: UInt64) {
        if let last, !ranking.precedes(key, firstSeq, last) {
            isCut = true
            return
        }
        if let after, ranking.precedes(key, firstSeq, after) || firstSeq == after.firstSeq { return }
        keep(key, firstSeq)
    }

    private mutating func keep(_ key: UnsafeRawBufferPointer?, _ firstSeq: UInt64) {
        kept.append(Ranked(key: key.map { Array($0) }, firstSeq: firstSeq))
        if kept.count >= 2 * limit + 64 { cut() }
    }

    /// Puts what is kept in order, and lets go of what is too much.
    private mutating func cut() {
        kept.sort { one, other in
            guard let key = one.key else { return ranking.precedes(nil, one.firstSeq, other) }
            return key.withUnsafeBytes { ranking.precedes($0, one.firstSeq, other) }
        }
        guard kept.count > limit else { return }
        isCut = true
        kept.removeLast(kept.count - limit)
        last = kept.last
    }

    /// The best in their order.
    mutating func best() -> [Ranked] {
        cut()
        return kept
    }

    /// Begins again behind a place.
    mutating func restart(after place: Ranked) {
        self = BestRecords(ranking, limit: limit, after: place)
    }
}

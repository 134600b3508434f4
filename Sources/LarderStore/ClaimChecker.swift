// What entries say of the entries before them, held against those.

import LarderFormat

/// Keeps which keys are live, and judges contradictions once the whole log is known: damage, a recovery or compaction
/// may have taken what was in between.
struct ClaimChecker {
    /// Two keyed hashes: nobody can make two keys meet.
    private struct KeyDigest: Hashable {
        var a: UInt64
        var b: UInt64
    }

    private struct Live {
        var seq: UInt64
        var firstSeq: UInt64
    }

    private struct Suspicion {
        var damage: LogDamage
        var seqs: ClosedRange<UInt64>
    }

    private static let suspicionsMax = 100_000

    private let hashers: (FingerprintHasher, FingerprintHasher)
    private var live: [KeyDigest: Live] = [:]
    private var suspicions: [Suspicion] = []
    /// Seqs that are lost, or were never given to an entry that survived.
    var holes: [ClosedRange<UInt64>] = []
    /// From here on every change is still in the log.
    var floor: UInt64 = 0

    var liveCount: Int { live.count }

    init() {
        var generator = SystemRandomNumberGenerator()
        hashers = (
            FingerprintHasher(key: (generator.next(), generator.next())),
            FingerprintHasher(key: (generator.next(), generator.next()))
        )
    }

    /// Takes an entry of a record in; says what it contradicts, and from which seq on something may be missing that
    /// would explain it.
    mutating func check(_ entry: EntryView, _ key: UnsafeRawBufferPointer) -> (reason: String, from: UInt64)? {
        let digest = KeyDigest(
            a: hashers.0.hash(kind: entry.kind, key: key), b: hashers.1.hash(kind: entry.kind, key: key))
        let before = live[digest]
        live[digest] =
            entry.type == EntryType.deleted ? nil : Live(seq: entry.seq, firstSeq: entry.firstSeq)
        guard let before else {
            if entry.isNewToLibrary { return nil }
            return (
                "it follows seq \(entry.previousSeq) of a record that is not there",
                min(entry.seq, max(1, min(entry.firstSeq, entry.previousSeq)))
            )
        }
        let from = min(before.seq, entry.seq)
        if entry.isNewToLibrary { return ("its key is there since seq \(before.seq), and it brings it anew", from) }
        if entry.firstSeq != before.firstSeq {
            return ("it says first seq \(entry.firstSeq), its record has \(before.firstSeq)", from)
        }
        if entry.previousSeq != 0, entry.previousSeq != before.seq {
            return ("it says previous seq \(entry.previousSeq), its record has \(before.seq)", from)
        }
        return nil
    }

    mutating func suspect(_ damage: LogDamage, _ seqs: ClosedRange<UInt64>) {
        if suspicions.count < ClaimChecker.suspicionsMax { suspicions.append(Suspicion(damage: damage, seqs: seqs)) }
    }

    /// What nothing explains.
    func judged() -> [LogDamage] {
        let holes = joined(holes)
        return suspicions.filter { $0.seqs.lowerBound >= floor && !overlaps($0.seqs, holes) }.map(\.damage)
    }

    /// The same in order, with neighbours made one.
    private func joined(_ ranges: [ClosedRange<UInt64>]) -> [ClosedRange<UInt64>] {
        var joined: [ClosedRange<UInt64>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = joined.last, last.upperBound == .max || range.lowerBound <= last.upperBound + 1 {
                joined[joined.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                joined.append(range)
            }
        }
        return joined
    }

    /// - Parameter ranges: ascending, apart.
    private func overlaps(_ seqs: ClosedRange<UInt64>, _ ranges: [ClosedRange<UInt64>]) -> Bool {
        var low = 0
        var high = ranges.count
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < seqs.lowerBound { low = middle + 1 } else { high = middle }
        }
        return low < ranges.count && ranges[low].lowerBound <= seqs.upperBound
    }
}

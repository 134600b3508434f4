// What answers to WRITE say, held against what they must say.

import LarderFormat
import LarderWire

func writes(_ written: Written) -> Bool {
    written.counts.created + written.counts.updated + written.counts.deleted > 0
}

/// Whether an answer is what a batch must come to.
func agrees(_ written: Written, _ prediction: Prediction, _ batch: Batch) -> Bool {
    var counts = WriteCounts()
    for outcome in prediction.outcomes { counts.add(outcome.outcome) }
    guard counts == written.counts, !(batch.isAtomic && prediction.failure != nil) else { return false }
    guard let results = written.results else { return true }
    guard results.count == prediction.outcomes.count else { return false }
    return zip(results, prediction.outcomes).allSatisfy { result, wanted in
        guard result.outcome == wanted.outcome else { return false }
        guard !batch.isDryRun, let seqs = wanted.seqs else { return true }
        return seqs.contains(result.seq)
    }
}

func summary(_ written: Written) -> String {
    if let results = written.results { return results.map { "\($0.outcome) \($0.seq)" }.joined(separator: ", ") }
    return "\(written.counts)"
}

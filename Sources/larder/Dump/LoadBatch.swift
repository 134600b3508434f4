// Records of a dump on their way into the library, a batch at a time.

import LarderClient
import LarderFormat
import LarderWire

/// A record of a dump, and where it stood.
struct LoadItem {
    var dumped: DumpedRecord
    let line: Int
    /// It was seen to be there already, or the library was not empty: what becomes of it is asked before.
    var mustAsk = false
    var tries = 0
}

/// Decides and writes batches. A record that is not there is restored: with the time when it was first saved, behind
/// those before it in the order of saving. One thread.
///
/// A restore needs a first seq that is below the log's next one and no record's. The seq of the last entry that was
/// written here is such a one, since a restored record's own entry is not its first; and each restore writes an entry, so
/// the next may take the next seq.
final class LoadBatch {
    /// How often a record is tried whose place was taken meanwhile.
    private static let triesMax = 20

    private let session: Session
    private let origins: LoadOrigins
    private let mode: SaveMode
    private let isDryRun: Bool
    /// Gets each refusal of the host with the item's line.
    private let onRefusal: (Int, Written.Refusal) -> Void
    /// A seq that no record has as its first, and that none of the next ones will have; 0: to be asked for.
    private var freeSeq: UInt64 = 0
    private(set) var counts = ImportCounts()
    private var builder: WriteBuilder
    private var asking: WriteBuilder

    init(
        _ session: Session, _ origins: LoadOrigins, mode: SaveMode, isDryRun: Bool,
        onRefusal: @escaping (Int, Written.Refusal) -> Void
    ) {
        self.session = session
        self.origins = origins
        self.mode = mode
        self.isDryRun = isDryRun
        self.onRefusal = onRefusal
        let byteCountMax = session.client.limits.batchByteCountMax
        builder = WriteBuilder(targetByteCount: byteCountMax, byteCountMax: byteCountMax)
        asking = WriteBuilder(targetByteCount: byteCountMax, byteCountMax: byteCountMax)
    }

    /// What is to be done with an item.
    private enum Step {
        case restore, save
    }

    /// Writes items of one origin. When it returns all are durable, or counted and told.
    func write(_ items: [LoadItem]) throws(ClientError) {
        var left = items
        if isDryRun {
            _ = try ask(left)
            return
        }
        let (origin, isNew) = try origins.origin(items.first?.dumped.origin)
        if isNew || freeSeq == 0 { freeSeq = max(freeSeq, try origin.client.status().lastSeq) }
        while !left.isEmpty {
            var steps: [(item: LoadItem, step: Step)] = []
            let toAsk = left.filter(\.mustAsk)
            let answers = toAsk.isEmpty ? [] : try ask(toAsk)
            var answer = answers.makeIterator()
            for item in left {
                guard item.mustAsk else {
                    steps.append((item, .restore))
                    continue
                }
                if let step = answer.next() ?? nil { steps.append((item, step)) }
            }
            if steps.isEmpty { return }
            left = try perform(steps, origin)
        }
    }

    // MARK: Asking

    /// Finds out what would become of the items. What needs no writing is counted.
    ///
    /// - Returns: for each what to do; nil: nothing more.
    private func ask(_ items: [LoadItem]) throws(ClientError) -> [Step?] {
        var steps: [Step?] = []
        for part in parts(items) {
            asking.reset()
            for item in part { _ = append(item, .save, &asking) }
            let written = try session.client.write(&asking, flags: [.results, .dryRun])
            let refusals = Dictionary(written.refusals.map { ($0.position, $0) }) { first, _ in first }
            for (index, item) in part.enumerated() {
                let outcome = written.results.flatMap { $0.indices.contains(index) ? $0[index].outcome : nil }
                switch outcome ?? .refused {
                case .created where !isDryRun: steps.append(.restore)
                case .updated where !isDryRun: steps.append(.save)
                case let other:
                    steps.append(nil)
                    count(other, &counts)
                    if other == .refused, let refusal = refusals[index] { onRefusal(item.line, refusal) }
                }
            }
        }
        return steps
    }

    // MARK: Writing

    /// Writes one batch, or several where they are large.
    ///
    /// - Returns: the items that have to be tried again.
    private func perform(
        _ steps: [(item: LoadItem, step: Step)], _ origin: LoadOrigins.Origin
    ) throws(ClientError) -> [LoadItem] {
        var again: [LoadItem] = []
        var isAnyWritten = false
        var start = 0
        while start < steps.count {
            builder.reset()
            var end = start
            var place = freeSeq
            while end < steps.count {
                let (item, step) = steps[end]
                guard append(item, step, &builder, firstSeq: item.dumped.firstSeq ?? place) == .appended else { break }
                if step == .restore, item.dumped.firstSeq == nil { place += 1 }
                end += 1
            }
            guard end > start else { throw .recordTooLarge(byteCount: steps[start].item.dumped.record.count) }
            let written = try origin.client.write(&builder, flags: .results, origin: origin.number)
            let refusals = Dictionary(written.refusals.map { ($0.position, $0) }) { first, _ in first }
            for index in start..<end {
                var item = steps[index].item
                let result = written.results.flatMap { $0.indices.contains(index - start) ? $0[index - start] : nil }
                let outcome = result?.outcome ?? .refused
                let isRestore = steps[index].step == .restore
                if let result, outcome == .created || outcome == .updated {
                    isAnyWritten = true
                    freeSeq = max(freeSeq, result.seq)
                }
                let refusal = refusals[index - start]
                let isPlaceTaken = isRestore && outcome == .refused && refusal.map(LoadBatch.isAboutPlace) ?? false
                if item.tries < LoadBatch.triesMax, isPlaceTaken || (isRestore && outcome == .alreadySaved) {
                    item.tries += 1
                    // Its own place is another's now: behind the others.
                    if isPlaceTaken { item.dumped.firstSeq = nil }
                    item.mustAsk = item.mustAsk || outcome == .alreadySaved
                    again.append(item)
                    continue
                }
                count(outcome, &counts)
                count(outcome, &origin.counts)
                if outcome == .refused, let refusal { onRefusal(item.line, refusal) }
            }
            start = end
        }
        if !again.isEmpty, !isAnyWritten {
            // The seq was another's after all; a new import's own entries are nobody's.
            try origins.renew(origin)
            freeSeq = max(freeSeq, try origin.client.status().lastSeq)
        }
        return again
    }

    /// The refusal of a restore's first seq: a record was checked before it was sent.
    private static func isAboutPlace(_ refusal: Written.Refusal) -> Bool {
        refusal.number == .badRecord && refusal.field == 0 && refusal.offset == 0
    }

    private func append(
        _ item: LoadItem, _ step: Step, _ builder: inout WriteBuilder, firstSeq: UInt64 = 0
    ) -> WriteBuilder.Outcome {
        let kind = item.dumped.kind
        return item.dumped.record.withUnsafeBytes { record in
            switch step {
            case .restore:
                builder.restore(
                    record, kind: kind.number, firstSeq: firstSeq, savedAt: item.dumped.savedAt ?? Clock.wall,
                    isPersonal: true)
            case .save:
                builder.save(
                    record, kind: kind.number, known: kind.highestFieldNumber, mode: mode, isPersonal: true)
            }
        }
    }

    /// Items that fit into one batch each.
    private func parts(_ items: [LoadItem]) -> [ArraySlice<LoadItem>] {
        var parts: [ArraySlice<LoadItem>] = []
        var start = 0
        var byteCount = 0
        for (index, item) in items.enumerated() {
            // An operation's head takes less than 100 bytes.
            let needed = item.dumped.record.count + 100
            if byteCount + needed > asking.targetByteCount, index > start {
                parts.append(items[start..<index])
                start = index
                byteCount = 0
            }
            byteCount += needed
        }
        if start < items.count { parts.append(items[start...]) }
        return parts
    }

    private func count(_ outcome: WriteOutcome, _ counts: inout ImportCounts) {
        counts.read += 1
        switch outcome {
        case .created: counts.created += 1
        case .updated: counts.updated += 1
        case .unchanged: counts.unchanged += 1
        case .duplicate: counts.duplicate += 1
        case .alreadySaved: counts.alreadySaved += 1
        case .notFound, .deleted, .refused: counts.refused += 1
        }
    }
}

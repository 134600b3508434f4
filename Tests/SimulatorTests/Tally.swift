// What came up in a run, counted: a simulator that no longer comes to something has to say so.

/// Things that many seeds together must come to.
enum Happening: Int, CaseIterable {
    case created, updated, unchanged, duplicate, alreadySaved, notFound, deleted, refused
    case atomicFailed, dryRun, moved, restored, undone, cleared
    case snapshotEnded, snapshotResumed, cursorResumed, synced, heartbeat, unsubscribed
    case compacted, droppedByCompaction, cursorExpired
    case pagedOn, counted, found, historyTold, entriesTold, cancelled, conditionListed
    case importResumed, batchSentAgain, importEnded
    case deadlinePassed, storeFull, writingFailed, shutDown, busyClear
    case cutInFrame, powerFailedInStart, processDied, faultInStart, faultInLife, commitOffLoop, readOffLoop
    /// Batches without an answer that a restart showed, or not.
    case unansweredKept, unansweredLost

    /// Only many seeds come to these for sure.
    static let rare: Set<Happening> = [
        .deadlinePassed, .busyClear, .snapshotResumed, .faultInStart, .duplicate, .unsubscribed, .importEnded,
        .heartbeat, .cursorExpired, .cancelled, .batchSentAgain, .undone, .shutDown,
    ]
}

struct Tally: Equatable {
    private(set) var counts = [Int](repeating: 0, count: Happening.allCases.count)

    subscript(_ happening: Happening) -> Int { counts[happening.rawValue] }

    mutating func count(_ happening: Happening, _ number: Int = 1) { counts[happening.rawValue] += number }

    mutating func add(_ other: Tally) { for at in counts.indices { counts[at] += other.counts[at] } }

    var missing: [Happening] { Happening.allCases.filter { self[$0] == 0 } }

    var description: String { Happening.allCases.map { "\($0) \(self[$0])" }.joined(separator: ", ") }
}

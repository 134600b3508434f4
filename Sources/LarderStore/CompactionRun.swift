// A compaction under way.

import LarderFormat

struct CompactionRun {
    var request: CompactionRequest
    var report = CompactionReport()
}

/// Work of a compaction for another thread.
public struct CompactionJob: Sendable {
    public func run() -> CompactionResult { CompactionResult() }
}

/// What a job came to.
public struct CompactionResult: Sendable {}

extension StoreCore {
    var reclaimableByteCount: Int { 0 }
    func floor(for request: CompactionRequest) -> UInt64 { floor }
    mutating func beginCompaction(_ request: CompactionRequest) -> String? {
        compaction = CompactionRun(request: request)
        return nil
    }
    mutating func stepCompaction(now: Int64) -> CompactionStep {
        let report = compaction?.report ?? CompactionReport()
        compaction = nil
        return .finished(report)
    }
    mutating func finish(_ result: CompactionResult) {}
    mutating func cancelCompaction() {}
}

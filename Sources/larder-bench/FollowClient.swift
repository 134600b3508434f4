// `client follow`: a subscriber, in a process of its own.

import Glibc
import LarderClient
import LarderFormat
import LarderWire

/// Where a subscriber begins.
enum FollowStart: String {
    case now
    /// From cursor 0: the whole log.
    case cursor
    case snapshot
}

/// What a subscriber has seen, and whether it was in order.
private struct Seen {
    var count = 0
    var byteCount = 0
    var checksum: UInt64 = 0
    var lastSeq: UInt64 = 0
    var fault: String?
    var isSnapshotDone = false

    mutating func take(_ event: SubscriptionEvent) {
        switch event {
        case .entry(let borrowed):
            do throws(FormatError) {
                let entry = try borrowed.view()
                if entry.seq <= lastSeq || !entry.isSave { fault = "entry \(entry.seq) follows \(lastSeq)" }
                lastSeq = entry.seq
                count += 1
                byteCount += entry.payload.count
                checksum &+= UInt64(crc32c(entry.payload))
            } catch { fault = "\(error)" }
        case .covered(let through): if through < lastSeq { fault = "covered \(through) after \(lastSeq)" }
        case .snapshotEnd: isSnapshotDone = true
        case .lost(let after, let through): fault = "lost \(after) to \(through)"
        }
    }
}

/// Receives a dataset's records as events and holds them against it: their number, ascending seqs, spans without a gap
/// (which `Subscription` refuses), and a checksum over the records. Prints `{}` once subscribed, then the result.
func runFollow(
    socket: String, dataset: String, recordCount: Int, start: FollowStart, windowByteCount: Int
) throws(BenchError) {
    let client = try HostProcess.connect(socket)
    let from: Subscribe.Start =
        switch start {
        case .now: .now
        case .cursor: .after(Cursor(epoch: client.welcome.epoch, seq: 0))
        case .snapshot: .snapshot
        }
    let started = monotonicNanoseconds()
    var seen = Seen()
    let subscription = try told { () throws(ClientError) in
        try Subscription(client, from, types: .downloaded, kinds: [Kind.title.number], windowByteCount: windowByteCount)
    }
    writeAll(1, "{}\n")
    while seen.fault == nil, seen.count < recordCount || (start == .snapshot && !seen.isSnapshotDone) {
        let step = try told { () throws(ClientError) in
            try subscription.receive(timeoutMilliseconds: 60_000) { seen.take($0) }
        }
        try expect(step == .received, "the subscription ended at \(seen.count) records")
    }
    let ended = monotonicNanoseconds()
    if let fault = seen.fault { throw .wrong(fault) }
    let records = try EncodedTitles(try PackedTitles(path: dataset, recordCount: recordCount))
    try expect(seen.count == recordCount, "\(seen.count) events for \(recordCount) records")
    try expect(
        seen.byteCount == records.byteCount, "\(seen.byteCount) bytes of records, \(records.byteCount) were sent")
    try expect(seen.checksum == records.checksum, "the records' checksum differs from what was sent")
    var line = ResultLine()
    line.set("started", Int(started))
    line.set("ended", Int(ended))
    line.set("byte_count", seen.byteCount)
    line.print()
}

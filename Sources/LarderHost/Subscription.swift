// A subscriber: a cursor and credit.

import LarderStore
import LarderWire

/// One subscription of a connection. Loop thread only.
final class Subscription {
    /// Request id of its SUBSCRIBE.
    let id: UInt32
    var cursor: LogCursor
    let filter: EntryFilter
    /// Bytes of EVENTS frames that the client can take; a frame may go while it is above 0.
    var credit: Int
    /// The `through` of the last EVENTS frame.
    var sentThrough: UInt64
    /// Seq up to which a snapshot is still being replayed; nil when there is none, or it ended.
    var snapshotSeq: UInt64?
    /// Seq that has to be reached before the snapshot is exact; set once its first part ended.
    var snapshotTarget: UInt64?
    /// A cold read is under way for it.
    var isReading = false
    /// Monotonic ms of the last frame.
    var lastFrameAt: UInt64 = 0
    /// SYNCs to be answered once everything up to their seq was sent.
    var syncs: [(request: OpenRequest, seq: UInt64)] = []

    init(
        id: UInt32, cursor: LogCursor, filter: EntryFilter, credit: Int, snapshotSeq: UInt64?, now: UInt64
    ) {
        self.id = id
        self.cursor = cursor
        self.filter = filter
        self.credit = credit
        self.snapshotSeq = snapshotSeq
        sentThrough = cursor.seq
        lastFrameAt = now
    }
}

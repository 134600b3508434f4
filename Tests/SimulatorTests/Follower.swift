// A subscriber that remembers its cursor, and where it mirrors the library its copy.

import LarderFormat
import LarderWire

final class Follower {
    let filter: SpanFilter
    let isMirror: Bool
    /// Grants credit only now and then.
    let isStingy: Bool
    /// Subscribes again after a lost connection.
    private(set) var cursor: Cursor?
    /// Of a snapshot that is not complete.
    private(set) var s0: UInt64?
    private(set) var records: [Key: CopiedRecord] = [:]
    private(set) var isExact = false
    private(set) var span: Span?
    var id: UInt32?
    var owedCredit: UInt64 = 0
    private var asked: Subscribe.Start?

    init(filter: SpanFilter, isMirror: Bool, isStingy: Bool, cursor: Cursor?) {
        self.filter = filter
        self.isMirror = isMirror
        self.isStingy = isStingy
        self.cursor = cursor
    }

    var isActive: Bool { span != nil }
    /// Behind it everything has to be there.
    var neededSeq: UInt64 { max(cursor?.seq ?? 0, s0 ?? 0) }

    func subscribe(credit: UInt64) -> Subscribe {
        var start = Subscribe.Start.now
        if let cursor {
            start = s0.map { .resumedSnapshot(cursor, s0: $0) } ?? .after(cursor)
        } else if isMirror {
            start = .snapshot
        }
        asked = start
        return Subscribe(
            start, types: filter.types, kinds: filter.kinds, exceptOrigin: filter.exceptOrigin, credit: credit)
    }

    func disconnected() {
        id = nil
        span = nil
        owedCredit = 0
    }

    func began(_ subscribed: Subscribed, truth: Truth, knownSeq: UInt64) throws {
        switch asked {
        case .after(let cursor):
            guard subscribed.after == cursor.seq else {
                throw Difference("a subscription after \(cursor.seq) begins after \(subscribed.after)")
            }
            truth.tally.count(.cursorResumed)
        case .resumedSnapshot(let cursor, let s0):
            guard subscribed.after == cursor.seq, subscribed.s0 == s0 else {
                throw Difference("a snapshot of \(s0) resumed after \(cursor.seq) begins \(subscribed)")
            }
            truth.tally.count(.snapshotResumed)
        case .snapshot:
            guard subscribed.after == 0, subscribed.s0 >= knownSeq else {
                throw Difference("a snapshot asked for after \(knownSeq) begins \(subscribed)")
            }
            records = [:]
            s0 = subscribed.s0
        case .now, nil:
            guard subscribed.after >= knownSeq else {
                throw Difference("a subscription from now, after \(knownSeq), begins after \(subscribed.after)")
            }
        }
        cursor = Cursor(epoch: subscribed.epoch, seq: subscribed.after)
        let span = Span(after: subscribed.after, filter: filter, s0: subscribed.s0)
        truth.spans.append(span)
        self.span = span
    }

    func events(_ body: UnsafeRawBufferPointer, truth: Truth) throws {
        guard let span else { throw Difference("EVENTS of no subscription") }
        var reader: RunReader
        do throws(FormatError) { reader = try RunReader(body: body) } catch { throw Difference("EVENTS: \(error)") }
        let header = reader.header
        guard header.after == span.through else {
            throw Difference("EVENTS go on after \(header.after), those before went through \(span.through)")
        }
        var last = header.after
        while true {
            let run: Run?
            do throws(FormatError) { run = try reader.next() } catch { throw Difference("EVENTS: \(error)") }
            guard let run else { break }
            for entry in try Truth.entries(
                of: run.entries, firstSeq: run.header.firstSeq, time: run.header.time)
            {
                guard entry.seq > last, entry.seq <= header.through else {
                    throw Difference("EVENTS (\(header.after), \(header.through)] have \(entry) behind \(last)")
                }
                guard filter.passes(entry) else { throw Difference("\(entry) was not asked for") }
                last = entry.seq
                try truth.told(entry)
                span.received.append(entry.seq)
                if isMirror { apply(entry) }
            }
        }
        if header.through == header.after { truth.tally.count(.heartbeat) }
        span.through = header.through
        truth.knows(header.through)
        cursor?.seq = header.through
        owedCredit += UInt64(body.count + FrameHeader.byteCount)
    }

    private func apply(_ entry: LogEntry) {
        guard let key = entry.key else { return }
        records[key] = entry.isSave ? CopiedRecord(seq: entry.seq, content: entry.content) : nil
    }

    func snapshotEnded(_ end: SnapshotEnd, truth: Truth) throws {
        guard let span, s0 != nil, end.s1 == span.through else {
            throw Difference("SNAPSHOT_END s1 \(end.s1) behind EVENTS through \(span?.through ?? 0)")
        }
        s0 = nil
        isExact = true
        truth.tally.count(.snapshotEnded)
        keepCopy(truth)
    }

    /// Has the copy compared with the log, as of where the cursor is.
    func keepCopy(_ truth: Truth) {
        guard isExact, let cursor else { return }
        truth.copies.append(Copy(seq: cursor.seq, kinds: filter.kinds, records: records))
    }
}

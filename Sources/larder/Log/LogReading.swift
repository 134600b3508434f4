// Spans of the log, oldest entry first, through subscriptions that end where the span does.

import LarderClient
import LarderFormat
import LarderWire

/// Reads the log from one seq to another. One thread.
final class LogReading {
    /// Without an entry for so long it is asked whether the span has one left.
    private static let patienceMilliseconds = 50
    static let everything: EntryTypes = [.downloaded, .deleted, .kind, .origin, .imports, .recovered]

    let client: LarderClient
    private let types: EntryTypes
    /// Spans (after, through] that were damaged and can't be read, so far.
    private(set) var lost: [(after: UInt64, through: UInt64)] = []

    private let windowByteCount: Int

    /// - Parameter windowByteCount: what the host may send ahead.
    init(_ client: LarderClient, types: EntryTypes = LogReading.everything, windowByteCount: Int = 1_048_576) {
        self.client = client
        self.windowByteCount = windowByteCount
        self.types = types
    }

    /// The seq before the oldest one that can be read.
    var floor: UInt64 { max(client.welcome.floor, 1) - 1 }

    /// Hands out every entry behind `after` up to `through`. It may not use the client; false ends the reading.
    func forEach(after: UInt64, through: UInt64, _ handle: (EntryView, Int64) -> Bool) throws {
        guard after < through else { return }
        try attempt("reading the log") { try read(after, through, handle) }
    }

    private func read(
        _ after: UInt64, _ through: UInt64, _ handle: (EntryView, Int64) -> Bool
    ) throws(ClientError) {
        let subscription = try begin(after)
        var isWanted = true
        func take(_ event: SubscriptionEvent) {
            switch event {
            case .entry(let entry):
                guard isWanted, let view = try? entry.view(), view.seq > after else { return }
                isWanted = view.seq <= through && handle(view, entry.commitTime)
            case .lost(let from, let to):
                if from < through, to > after { lost.append((from, to)) }
            case .covered, .snapshotEnd: break
            }
        }
        while isWanted, subscription.cursor.seq < through {
            switch try subscription.receive(timeoutMilliseconds: LogReading.patienceMilliseconds, take) {
            case .received: break
            case .ended: throw .connectionLost
            case .timedOut:
                // What is left may be of no type that is told.
                if try subscription.sync(take) >= through { isWanted = false }
            }
        }
        try subscription.unsubscribe()
    }

    /// Subscribes behind a seq. One that was never given to an entry is no cursor: then further back.
    private func begin(_ after: UInt64) throws(ClientError) -> Subscription {
        var seq = max(after, floor)
        var step: UInt64 = 65_536
        while true {
            do throws(ClientError) {
                return try Subscription(
                    client, .after(Cursor(epoch: client.welcome.epoch, seq: seq)), types: types,
                    windowByteCount: windowByteCount)
            } catch {
                guard error.number == .cursorExpired, seq > floor else { throw error }
                seq = seq > step && seq - step > floor ? seq - step : floor
                step *= 2
            }
        }
    }
}

/// Seqs cut into spans that fit into memory, from one end of the log to the other.
struct LogWindows: Sequence, IteratorProtocol {
    private static let countMax: UInt64 = 16_384

    private let isNewestFirst: Bool
    private let floor: UInt64
    private let last: UInt64
    private var at: UInt64
    private var count: UInt64 = 512

    /// Everything behind `floor` up to `last`.
    init(floor: UInt64, last: UInt64, isNewestFirst: Bool) {
        self.isNewestFirst = isNewestFirst
        self.floor = Swift.min(floor, last)
        self.last = last
        at = isNewestFirst ? last : self.floor
    }

    mutating func next() -> (after: UInt64, through: UInt64)? {
        defer { count = Swift.min(count * 2, LogWindows.countMax) }
        if isNewestFirst {
            guard at > floor else { return nil }
            let through = at
            at = at - floor > count ? at - count : floor
            return (at, through)
        }
        guard at < last else { return nil }
        let after = at
        at = last - at > count ? at + count : last
        return (after, at)
    }
}

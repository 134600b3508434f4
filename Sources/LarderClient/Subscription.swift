// A subscription: the log as it goes on, within a window of credit.

import LarderFormat
import LarderWire

/// An entry where it lies in the receive buffer. Its bytes are borrowed until the handler returns.
@frozen
public struct BorrowedEntry {
    /// The whole entry, from its length to its CRC.
    public let bytes: UnsafeRawBufferPointer
    /// Of its commit: its seq counts from it.
    public let commitFirstSeq: UInt64
    /// Of its commit, ms.
    public let commitTime: Int64

    /// Decodes it; slices of the result borrow the same bytes.
    ///
    /// - Parameter isVerified: whether the CRC is checked; the host has done so.
    @inlinable
    public func view(isVerified: Bool = false) throws(FormatError) -> EntryView {
        guard let base = bytes.baseAddress else { throw FormatError(.truncated, at: 0) }
        return try readEntry(
            base: base, offset: 0, end: bytes.count, commitFirstSeq: commitFirstSeq, commitTime: commitTime,
            isVerified: isVerified)
    }
}

/// What a subscription tells.
public enum SubscriptionEvent {
    case entry(BorrowedEntry)
    /// Everything up to this seq was told or was not for this subscription. The cursor moves here when the handler
    /// returns. Heartbeats are this alone.
    case covered(through: UInt64)
    /// What was received is the library as of S1.
    case snapshotEnd(s1: UInt64)
    /// Entries in this span were damaged and cannot be had. The cursor moves behind it when the handler returns.
    case lost(after: UInt64, through: UInt64)
}

/// Follows the log through a client. One thread. Credit is given back once half of the window was dealt with.
///
///     let subscription = try Subscription(client, .after(cursor))
///     while try subscription.receive({ … }) != .ended {}
public final class Subscription {
    public enum Step: Sendable {
        /// One frame was handled.
        case received
        /// Nothing came in time.
        case timedOut
        /// The host said GOODBYE and has closed. Everything it sent was handled.
        case ended
    }

    public let client: LarderClient
    public let id: UInt32
    public let subscribed: Subscribed
    public let windowByteCount: UInt64
    /// What was dealt with. Store it with what was done; before SNAPSHOT_END with `snapshotStart` too.
    public private(set) var cursor: Cursor
    /// S0 while a snapshot is not complete, else nil.
    public private(set) var snapshotStart: UInt64?
    /// ERROR or `unsubscribe` ended it.
    public private(set) var isEnded = false

    private var finishedByteCount: UInt64 = 0

    /// Subscribes and waits for SUBSCRIBED.
    ///
    /// - Parameter windowByteCount: credit; 64 KiB is good for a notifier, 1 to 4 MiB for an exporter. At most the
    ///   credit limit of WELCOME is used.
    public init(
        _ client: LarderClient, _ start: Subscribe.Start, types: EntryTypes = [.downloaded, .deleted],
        kinds: [Int] = [], exceptOrigin: UInt64 = 0, windowByteCount: Int = 1_048_576
    ) throws(ClientError) {
        self.client = client
        self.windowByteCount = UInt64(max(1, min(windowByteCount, client.limits.creditByteCountMax)))
        let id = client.takeId()
        self.id = id
        let message = Subscribe(
            start, types: types, kinds: kinds, exceptOrigin: exceptOrigin, credit: self.windowByteCount)
        try client.connection.send(message, id: id, until: client.requestDeadline)
        subscribed = try client.answer(to: .subscribe, id: id) { (frame) throws(ClientError) in
            try LarderClient.decode(Subscribed.self, frame, client.connection)
        }
        client.becomesSubscription(id)
        cursor = Cursor(epoch: subscribed.epoch, seq: subscribed.after)
        switch start {
        case .snapshot: snapshotStart = subscribed.s0
        case .resumedSnapshot(_, let s0): snapshotStart = s0
        case .after, .now: snapshotStart = nil
        }
    }

    /// Waits for one frame and hands out what it has. The handler may not use the client.
    ///
    /// - Parameter timeoutMilliseconds: nil: as long as it takes.
    /// - Throws: `larder` for the ERROR that ends the subscription.
    public func receive(
        timeoutMilliseconds: Int? = nil, _ handle: (SubscriptionEvent) -> Void
    ) throws(ClientError) -> Step {
        let id = id
        do throws(ClientError) {
            let deadline = Deadline(milliseconds: timeoutMilliseconds)
            guard let frame = try client.receive(until: deadline, { $0 == id }) else { return .timedOut }
            try take(frame, handle)
            return .received
        } catch {
            if error == .connectionLost, client.hostGoodbye != nil {
                isEnded = true
                return .ended
            }
            throw error
        }
    }

    /// Waits until everything that was committed before this call was handed out.
    ///
    /// - Returns: the seq up to which that is.
    public func sync(_ handle: (SubscriptionEvent) -> Void) throws(ClientError) -> UInt64 {
        try askBeside(Sync(subscription: id), Synced.self, handle).through
    }

    /// Ends it. What still comes is handed out.
    ///
    /// - Returns: the seq up to which everything was told.
    @discardableResult
    public func unsubscribe(_ handle: (SubscriptionEvent) -> Void = { _ in }) throws(ClientError) -> UInt64 {
        let through = try askBeside(Unsubscribe(subscription: id), Unsubscribed.self, handle).through
        isEnded = true
        client.release(id)
        return through
    }

    /// A request about the subscription, while its frames go on coming.
    private func askBeside<M: WireMessage, R: WireMessage>(
        _ message: M, _: R.Type, _ handle: (SubscriptionEvent) -> Void
    ) throws(ClientError) -> R {
        let own = id
        let asked = client.takeId()
        try client.connection.send(message, id: asked, until: client.requestDeadline)
        while true {
            guard let frame = try client.receive(until: client.requestDeadline, { $0 == own || $0 == asked }) else {
                client.abandon(asked)
                throw .timedOut(operation: M.type.name)
            }
            if frame.header.id == own {
                try take(frame, handle)
                continue
            }
            client.release(asked)
            if frame.header.messageType == .error { throw try client.failure(frame) }
            guard frame.header.messageType == R.type else {
                throw client.connection.violation("type \(frame.header.type) answers \(M.type.name)")
            }
            return try LarderClient.decode(R.self, frame, client.connection)
        }
    }

    private func take(
        _ frame: Connection.Frame, _ handle: (SubscriptionEvent) -> Void
    ) throws(ClientError) {
        switch frame.header.messageType {
        case .events:
            try takeEvents(frame, handle)
            try giveCredit(frame.header.frameByteCount)
        case .snapshotEnd:
            handle(.snapshotEnd(s1: try LarderClient.decode(SnapshotEnd.self, frame, client.connection).s1))
            snapshotStart = nil
        case .lost:
            let lost = try LarderClient.decode(Lost.self, frame, client.connection)
            guard lost.after >= cursor.seq else {
                throw client.connection.violation("LOST goes back behind the cursor")
            }
            handle(.lost(after: lost.after, through: lost.through))
            cursor.seq = lost.through
        case .error:
            isEnded = true
            client.release(id)
            throw try client.failure(frame)
        default: throw client.connection.violation("type \(frame.header.type) on a subscription")
        }
    }

    private func takeEvents(
        _ frame: Connection.Frame, _ handle: (SubscriptionEvent) -> Void
    ) throws(ClientError) {
        let header: EventsHeader
        do throws(FormatError) {
            var runs = try RunReader(body: frame.body)
            header = runs.header
            if header.after == cursor.seq { try Subscription.handOut(&runs, handle) }
        } catch {
            throw client.connection.violation("EVENTS: \(error)")
        }
        guard header.after == cursor.seq else {
            throw client.connection.violation("EVENTS after \(header.after) do not follow \(cursor.seq)")
        }
        handle(.covered(through: header.through))
        cursor.seq = header.through
    }

    private static func handOut(
        _ runs: inout RunReader, _ handle: (SubscriptionEvent) -> Void
    ) throws(FormatError) {
        while let run = try runs.next() {
            var entries = run.entryBytes
            let firstSeq = run.header.firstSeq
            let time = run.header.time
            while let bytes = try entries.next() {
                handle(.entry(BorrowedEntry(bytes: bytes, commitFirstSeq: firstSeq, commitTime: time)))
            }
        }
    }

    private func giveCredit(_ byteCount: Int) throws(ClientError) {
        finishedByteCount += UInt64(byteCount)
        guard finishedByteCount >= windowByteCount / 2, client.hostGoodbye == nil else { return }
        try client.connection.send(
            Credit(byteCount: finishedByteCount), id: id, until: client.requestDeadline)
        finishedByteCount = 0
    }
}

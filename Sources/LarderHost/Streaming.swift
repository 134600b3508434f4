// Sending events: entries go from where they lie to the socket, in frames near 48 KiB, for as long as there is credit.

import Glibc
import LarderFormat
import LarderLoop
import LarderStore
import LarderWire

/// Memory for making up EVENTS frames; one for the whole host.
struct FrameScratch {
    var runs: [EventRun] = []
    var slices: [iovec] = []
    /// Headers of the frame and its runs.
    let heads = UnsafeMutableRawPointer.allocate(byteCount: FrameScratch.headsByteCount, alignment: 16)
    static let runCountMax = 512
    static let headsByteCount =
        FrameHeader.byteCount + EventsHeader.byteCount + runCountMax * RunHeader.byteCount
}

extension Host {
    /// Where EVENTS frames end.
    static let eventsByteCount = 49_152
    /// Sent to one connection in one go; then others have their turn.
    static let turnByteCount = 1_048_576
    /// A subscription that nothing was sent to for so long gets a heartbeat.
    static let heartbeatMilliseconds: UInt64 = 10_000
    /// A cursor that moves over what is filtered out is told about it at most this often.
    static let passedMilliseconds: UInt64 = 1_000
    /// What a step counts of a turn that passed over entries and found none to send.
    static let passedByteCount = 131_072

    /// Sends a connection's subscriptions what they can take.
    func serve(_ connection: Connection) {
        var sent = 0
        let count = connection.subscriptions.count
        guard count > 0 else { return }
        var idle = 0
        while idle < count && sent < Host.turnByteCount && connection.canWriteNow {
            if connection.nextSubscription >= connection.subscriptions.count { connection.nextSubscription = 0 }
            guard connection.nextSubscription < connection.subscriptions.count else { return }
            let subscription = connection.subscriptions[connection.nextSubscription]
            connection.nextSubscription += 1
            let byteCount = serve(subscription, of: connection)
            if byteCount == 0 { idle += 1 } else { idle = 0 }
            sent += byteCount
            connection.flush()
        }
        if sent >= Host.turnByteCount && connection.canWriteNow { wantsAnotherTurn(connection) }
    }

    /// Sends one frame at most; returns its bytes, or what stands for them. 0: nothing can be done now.
    private func serve(_ subscription: Subscription, of connection: Connection) -> Int {
        guard !subscription.isReading else { return 0 }
        guard subscription.credit > 0, subscription.cursor.seq < store.lastSeq || subscription.snapshotSeq != nil else {
            return settle(subscription, connection, byteCount: 0)
        }
        scratch.runs.removeAll(keepingCapacity: true)
        let after = subscription.sentThrough
        let step: StreamStep
        do throws(StoreError) {
            step = try store.stream(
                &subscription.cursor, subscription.filter, byteBudget: Host.eventsByteCount, into: &scratch.runs)
        } catch {
            end(subscription, of: connection, corrupt(error))
            return 0
        }
        var through = subscription.cursor.seq
        if case .lost(let lostAfter, _) = step { through = lostAfter }
        var byteCount = 0
        if !scratch.runs.isEmpty {
            byteCount = sendEvents(connection, subscription, after: after, through: through)
        }
        switch step {
        case .cold(let read):
            subscription.isReading = true
            self.read(read) { [weak connection, weak subscription, weak self] in
                subscription?.isReading = false
                if let connection, !connection.isClosed { self?.serve(connection) }
            }
        case .lost(let lostAfter, let lostThrough):
            if subscription.sentThrough < lostAfter {
                byteCount += sendEvents(connection, subscription, after: subscription.sentThrough, through: lostAfter)
            }
            connection.send(Lost(after: lostAfter, through: lostThrough), id: subscription.id)
            subscription.sentThrough = lostThrough
            byteCount += 1
        case .more, .end: break
        }
        byteCount = settle(subscription, connection, byteCount: byteCount)
        // Nothing was sent, and there may be more: it is not idle.
        if case .more = step, byteCount == 0 { return Host.passedByteCount }
        return byteCount
    }

    /// What follows from how far a subscription has come: the end of a snapshot, answers to SYNC, heartbeats.
    private func settle(_ subscription: Subscription, _ connection: Connection, byteCount: Int) -> Int {
        var byteCount = byteCount
        let seq = subscription.cursor.seq
        if let s0 = subscription.snapshotSeq, subscription.snapshotTarget == nil, seq >= s0 {
            subscription.snapshotTarget = store.lastSeq
        }
        let isSnapshotDone = subscription.snapshotTarget.map { seq >= $0 } ?? false
        let hasSync = subscription.syncs.contains { $0.seq <= seq }
        let silent = loop.now &- subscription.lastFrameAt
        let isBehind = subscription.sentThrough < seq
        if subscription.credit > 0,
            isBehind && (isSnapshotDone || hasSync || silent >= Host.passedMilliseconds)
                || silent >= Host.heartbeatMilliseconds
        {
            scratch.runs.removeAll(keepingCapacity: true)
            byteCount += sendEvents(connection, subscription, after: subscription.sentThrough, through: seq)
        }
        if isSnapshotDone && subscription.sentThrough == seq {
            subscription.snapshotSeq = nil
            subscription.snapshotTarget = nil
            subscription.cursor.snapshotSeq = 0
            connection.send(SnapshotEnd(s1: seq), id: subscription.id)
        }
        if hasSync {
            let due = subscription.syncs.filter { $0.seq <= subscription.sentThrough }
            subscription.syncs.removeAll { $0.seq <= subscription.sentThrough }
            for sync in due where connection.session.end(sync.request) {
                connection.send(Synced(through: subscription.sentThrough), id: sync.request.id)
            }
        }
        return byteCount
    }

    /// Sends `scratch.runs` as one EVENTS frame.
    private func sendEvents(
        _ connection: Connection, _ subscription: Subscription, after: UInt64, through: UInt64
    ) -> Int {
        connection.flush()
        var body = EventsHeader.byteCount
        for run in scratch.runs { body += RunHeader.byteCount + run.bytes.count }
        var writer = RawWriter(scratch.heads)
        FrameHeader(bodyByteCount: body, type: MessageType.events.rawValue, id: subscription.id).encode(into: &writer)
        EventsHeader(after: after, through: through).encode(into: &writer)
        scratch.slices.removeAll(keepingCapacity: true)
        var pieceStart = scratch.heads
        for run in scratch.runs {
            RunHeader(firstSeq: run.firstSeq, time: run.time, entriesByteCount: run.bytes.count).encode(into: &writer)
            scratch.slices.append(iovec(iov_base: pieceStart, iov_len: writer.at - pieceStart))
            scratch.slices.append(
                iovec(iov_base: UnsafeMutableRawPointer(mutating: run.bytes.baseAddress), iov_len: run.bytes.count))
            pieceStart = writer.at
        }
        if writer.at > pieceStart {
            scratch.slices.append(iovec(iov_base: pieceStart, iov_len: writer.at - pieceStart))
        }
        let byteCount = FrameHeader.byteCount + body
        if connection.canWriteNow {
            scratch.slices.withUnsafeBufferPointer { connection.send($0, byteCount: byteCount) }
        } else {
            for slice in scratch.slices {
                connection.output.append(UnsafeRawBufferPointer(start: slice.iov_base, count: slice.iov_len))
            }
        }
        subscription.credit -= byteCount
        subscription.sentThrough = through
        subscription.lastFrameAt = loop.now
        return byteCount
    }

    /// Ends a subscription with an error.
    func end(_ subscription: Subscription, of connection: Connection, _ error: ErrorReply) {
        remove(subscription, of: connection)
        connection.send(error, id: subscription.id)
    }

    func remove(_ subscription: Subscription, of connection: Connection) {
        connection.subscriptions.removeAll { $0 === subscription }
        _ = connection.session.endSubscription(subscription.id)
        for sync in subscription.syncs where connection.session.end(sync.request) {
            connection.send(
                ErrorReply(.unknownSubscription, message: "the subscription has ended"), id: sync.request.id)
        }
        subscription.syncs = []
    }
}

// An import that goes on over a new connection after one was lost.

import LarderFormat
import LarderWire

extension BulkWriter {
    /// Connections that may be lost one after the other without a single answer between them.
    private static let lossCountMax = 10

    /// Whether a new connection may help: the host was killed, or is stopping.
    func isLoss(_ error: ClientError) -> Bool {
        guard reconnect != nil, lossCount < BulkWriter.lossCountMax else { return false }
        switch error {
        case .connectionLost: return true
        case .larder(let reply): return reply.number == .shuttingDown
        case .system(_, let operation): return operation == "sending" || operation == "receiving"
        case .protocolViolation, .timedOut, .recovering, .recordTooLarge: return false
        }
    }

    /// Connects anew and brings what is not answered to its end: batches that are durable get their counts from the
    /// log, where each left them in its token entry; the others are sent again, unchanged and under their numbers.
    func resume(after error: ClientError) throws(ClientError) {
        guard let reconnect else { throw error }
        lossCount += 1
        client.close()
        client = try reconnect(error)
        resumptionCount += 1
        if options.isDryRun { return try resend() }
        let again = try client.beginImport(source: source, token: token)
        guard again.origin == begun.origin else {
            throw .protocolViolation("the host does not know the import “\(source)” any more")
        }
        try settle(through: again.lastBatch)
        begun = again
        try resend()
    }

    /// Takes the counts of durable batches from the log.
    private func settle(through lastBatch: UInt64) throws(ClientError) {
        guard let first = flights.first, first.batch <= lastBatch else { return }
        var found: [UInt64: (counts: WriteCounts, seq: UInt64)] = [:]
        try readImports { view in
            guard view.type == EntryType.token, let token = BatchToken(view.payload), token.origin == begun.origin
            else { return }
            found[token.batch] = (token.counts, view.seq)
        }
        for index in flights.indices.reversed() where flights[index].batch <= lastBatch {
            guard let (counts, seq) = found[flights[index].batch] else {
                // It changed nothing, so it left no token. Asked again, out of order, it may have no number.
                flights[index].frame = BulkWriter.withoutNumber(flights[index].frame)
                continue
            }
            guard counts.fit(operationCount: flights[index].operationCount) else {
                throw client.connection.violation(
                    "the token of batch \(flights[index].batch) counts more than was sent")
            }
            self.counts.add(counts)
            self.seq = max(self.seq, seq)
            settledBatchCount += 1
            land(index)
        }
    }

    /// Sends everything that is not answered.
    private func resend() throws(ClientError) {
        for index in flights.indices {
            let id = client.takeId()
            flights[index].id = id
            for byte in 0..<4 { flights[index].frame[8 + byte] = UInt8(truncatingIfNeeded: id >> UInt32(8 * byte)) }
        }
        for flight in flights {
            try client.connection.send(flight.frame, until: client.requestDeadline)
            resentBatchCount += 1
        }
    }

    /// Hands out the entries about imports from behind the last answer to what is durable now.
    private func readImports(_ body: (EntryView) -> Void) throws(ClientError) {
        let cursor = Cursor(epoch: client.welcome.epoch, seq: seq)
        let subscription = try Subscription(client, .after(cursor), types: .imports)
        let take = { (event: SubscriptionEvent) in
            if case .entry(let entry) = event, let view = try? entry.view() { body(view) }
        }
        _ = try subscription.sync(take)
        try subscription.unsubscribe(take)
    }

    /// Ends the import. Where the answer is lost, the log says whether it has ended.
    func end(_ outcome: ImportOutcome, _ counts: ImportCounts) throws(ClientError) {
        var loss: ClientError?
        try goingOnAfter(&loss) { (loss) throws(ClientError) in
            if let loss, try hasEnded(after: loss) { return }
            seq = try client.endImport(origin: begun.origin, outcome: outcome, counts: counts)
        }
    }

    private func goingOnAfter(
        _ loss: inout ClientError?, _ body: (ClientError?) throws(ClientError) -> Void
    ) throws(ClientError) {
        while true {
            do throws(ClientError) { return try body(loss) } catch {
                guard isLoss(error) else { throw error }
                loss = error
            }
        }
    }

    private func hasEnded(after error: ClientError) throws(ClientError) -> Bool {
        guard let reconnect else { throw error }
        lossCount += 1
        client.close()
        client = try reconnect(error)
        resumptionCount += 1
        var endSeq: UInt64?
        try readImports { view in
            guard view.type == EntryType.importEnded else { return }
            var reader = ByteReader(view.payload)
            if let origin = try? reader.varint(), origin == begun.origin { endSeq = view.seq }
        }
        if let endSeq {
            seq = endSeq
            return true
        }
        begun = try client.beginImport(source: source, token: token)
        return false
    }

    /// The same WRITE with batch number 0.
    private static func withoutNumber(_ frame: [UInt8]) -> [UInt8] {
        frame.withUnsafeBytes { bytes in
            let body = UnsafeRawBufferPointer(rebasing: bytes[FrameHeader.byteCount...])
            var reader = ByteReader(body)
            guard let header = try? WriteHeader(from: &reader) else { return frame }
            var writer = ByteWriter(reserving: frame.count)
            writer.u8(header.flags.rawValue)
            writer.varint(header.origin)
            writer.varint(0)
            writer.varint(header.operationCount)
            writer.raw(UnsafeRawBufferPointer(rebasing: body[reader.offset...]))
            let room = writer.bytes
            var head = [UInt8](repeating: 0, count: FrameHeader.byteCount)
            head.withUnsafeMutableBytes {
                guard let base = $0.baseAddress else { return }
                var raw = RawWriter(base)
                FrameHeader(bodyByteCount: room.count, type: MessageType.write.rawValue, id: 0).encode(into: &raw)
            }
            return head + room
        }
    }
}

/// A token entry: varint origin, varint batch number, eight varint counts.
private struct BatchToken {
    var origin: UInt64
    var batch: UInt64
    var counts = WriteCounts()

    init?(_ payload: UnsafeRawBufferPointer) {
        var reader = ByteReader(payload)
        func number() -> Int? { (try? reader.varint()).flatMap { Int(exactly: $0) } }
        guard let origin = try? reader.varint(), let batch = try? reader.varint(), let created = number(),
            let updated = number(), let unchanged = number(), let duplicate = number(), let alreadySaved = number(),
            let notFound = number(), let deleted = number(), let refused = number()
        else { return nil }
        self.origin = origin
        self.batch = batch
        counts.created = created
        counts.updated = updated
        counts.unchanged = unchanged
        counts.duplicate = duplicate
        counts.alreadySaved = alreadySaved
        counts.notFound = notFound
        counts.deleted = deleted
        counts.refused = refused
    }
}

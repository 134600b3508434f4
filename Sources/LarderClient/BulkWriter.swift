// An import: many records in few frames, several on their way at once.

import LarderFormat
import LarderWire

/// Writes an import through a client. One thread; while it is at work the client may be used for other things.
///
/// Operations are collected in batches, which are numbered and sent without waiting for the answers of those before,
/// up to a window. Call `finish` at the end: without it the import stays open, and its last batch unsent.
///
///     let writer = try BulkWriter(client, source: "films.jsonl")
///     for record in records { try writer.save(record, kind: 1, known: 24) }
///     let report = try writer.finish()
public final class BulkWriter {
    public struct Options: Sendable {
        /// Of the operations of one batch, bytes.
        public var batchByteCount: Int
        /// What may be sent and not answered, bytes; 4 to 8 MiB is best.
        public var windowByteCount: Int
        /// Refusals that are kept; the others are only counted.
        public var refusalCountMax: Int
        /// Decide, change nothing.
        public var isDryRun: Bool

        public init(
            batchByteCount: Int = 262_144, windowByteCount: Int = 6_291_456, refusalCountMax: Int = 1_000,
            isDryRun: Bool = false
        ) {
            self.batchByteCount = batchByteCount
            self.windowByteCount = windowByteCount
            self.refusalCountMax = refusalCountMax
            self.isDryRun = isDryRun
        }
    }

    /// What became of an import.
    public struct Report: Sendable {
        public var counts: ImportCounts
        /// Of deletes, which an import's own counts do not know.
        public var deleted: Int
        public var notFound: Int
        /// The first ones; positions count from 0 over all operations of the import.
        public var refusals: [Written.Refusal]
        /// Operations that an earlier connection had made durable, and that were not sent again.
        public var resumedOperationCount: Int
        /// The last seq that an answer depends on, then that of the import's end.
        public var seq: UInt64
    }

    private struct Flight {
        let id: UInt32
        let firstPosition: Int
        let operationCount: Int
        let byteCount: Int
    }

    public let client: LarderClient
    public let begun: ImportBegun
    public let options: Options
    /// Called with each refusal as it is heard of, kept or not. May not use the client.
    public var onRefusal: ((Written.Refusal) -> Void)?

    /// What was answered so far.
    public private(set) var counts = WriteCounts()
    public private(set) var refusals: [Written.Refusal] = []
    /// Operations appended so far: the position of the next.
    public private(set) var operationCount = 0
    public private(set) var resumedOperationCount = 0
    /// Rows that the importer left out by itself.
    public var skippedCount = 0
    /// The last seq that an answer depends on.
    public private(set) var seq: UInt64 = 0

    private var builder: WriteBuilder
    private var batch: UInt64 = 0
    private var flights: [Flight] = []
    private var flyingByteCount = 0
    private var failure: ClientError?

    /// Begins an import.
    ///
    /// - Parameters:
    ///   - source: what is imported, for people.
    ///   - token: names the import so that it can be continued. When it was known and had not ended, batches up to
    ///     the last durable one are made again and not sent: the same operations in the same order, with the same batch
    ///     size, continue it.
    public init(
        _ client: LarderClient, source: String, token: String = "", options: Options = Options()
    ) throws(ClientError) {
        self.client = client
        self.options = options
        begun = try client.beginImport(source: source, token: token)
        builder = WriteBuilder(
            targetByteCount: min(
                options.batchByteCount, client.limits.frameBodyByteCountMax - WriteHeader.byteCountMax),
            byteCountMax: min(
                client.limits.batchByteCountMax, client.limits.frameBodyByteCountMax - WriteHeader.byteCountMax))
    }

    // MARK: Operations

    /// Appends a save of an encoded record, which is copied. Sends a batch when it is full.
    ///
    /// - Parameters:
    ///   - known: the highest field number that the caller knows of the kind.
    public func save(
        _ record: UnsafeRawBufferPointer, kind: Int, known: Int, mode: SaveMode = .merge,
        options: OperationOptions = []
    ) throws(ClientError) {
        var outcome = builder.save(record, kind: kind, known: known, mode: mode, options: options)
        if outcome == .isFull {
            try flush()
            outcome = builder.save(record, kind: kind, known: known, mode: mode, options: options)
        }
        guard outcome == .appended else { throw .recordTooLarge(byteCount: record.count) }
        operationCount += 1
    }

    public func save(
        _ record: [UInt8], kind: Int, known: Int, mode: SaveMode = .merge, options: OperationOptions = []
    ) throws(ClientError) {
        let result = record.withUnsafeBytes { bytes in
            Result { () throws(ClientError) in
                try save(bytes, kind: kind, known: known, mode: mode, options: options)
            }
        }
        try result.get()
    }

    /// Appends a delete. Sends a batch when it is full.
    public func delete(_ key: UnsafeRawBufferPointer, kind: Int) throws(ClientError) {
        var outcome = builder.delete(key, kind: kind)
        if outcome == .isFull {
            try flush()
            outcome = builder.delete(key, kind: kind)
        }
        guard outcome == .appended else { throw .recordTooLarge(byteCount: key.count) }
        operationCount += 1
    }

    /// Sends what is collected. Waits while the window is full.
    public func flush() throws(ClientError) {
        if let failure { throw failure }
        guard !builder.isEmpty else { return }
        batch += 1
        guard batch > begun.lastBatch else {
            resumedOperationCount += builder.operationCount
            builder.reset()
            return
        }
        do throws(ClientError) {
            while !flights.isEmpty,
                flyingByteCount + builder.byteCount > options.windowByteCount
                    || flights.count >= client.limits.openRequestCountMax
            {
                try receive(until: client.requestDeadline)
            }
            try send()
            while !flights.isEmpty, try receiveIfThere() {}
        } catch {
            failure = error
            throw error
        }
    }

    private func send() throws(ClientError) {
        let id = client.takeId()
        let frame = builder.finish(
            id: id, flags: options.isDryRun ? [.dryRun] : [], origin: begun.origin, batch: batch)
        flights.append(
            Flight(
                id: id, firstPosition: operationCount - builder.operationCount,
                operationCount: builder.operationCount, byteCount: frame.count))
        flyingByteCount += frame.count
        try client.connection.send(frame, until: client.requestDeadline)
        builder.reset()
    }

    // MARK: Answers

    private func receive(until deadline: Deadline) throws(ClientError) {
        guard try receiveOne(until: deadline) else { throw .timedOut(operation: "WRITE") }
    }

    private func receiveIfThere() throws(ClientError) -> Bool {
        try receiveOne(until: Deadline(milliseconds: 0))
    }

    /// False at the deadline.
    private func receiveOne(until deadline: Deadline) throws(ClientError) -> Bool {
        let flights = self.flights
        guard
            let frame = try client.receive(until: deadline, { id in flights.contains { $0.id == id } }),
            let index = flights.firstIndex(where: { $0.id == frame.header.id })
        else { return false }
        let flight = flights[index]
        self.flights.remove(at: index)
        flyingByteCount -= flight.byteCount
        client.release(flight.id)
        switch frame.header.messageType {
        case .written: take(try LarderClient.decode(Written.self, frame, client.connection), flight)
        case .error: throw try client.failure(frame)
        default: throw client.connection.violation("type \(frame.header.type) answers WRITE")
        }
        return true
    }

    private func take(_ written: Written, _ flight: Flight) {
        counts.add(written.counts)
        seq = max(seq, written.seq)
        for refusal in written.refusals where refusal.position < flight.operationCount {
            var refusal = refusal
            refusal.position += flight.firstPosition
            if refusals.count < options.refusalCountMax { refusals.append(refusal) }
            onRefusal?(refusal)
        }
    }

    /// Sends what is left, waits for every answer, and ends the import.
    public func finish(_ outcome: ImportOutcome = .complete) throws(ClientError) -> Report {
        try flush()
        do throws(ClientError) {
            while !flights.isEmpty { try receive(until: client.requestDeadline) }
        } catch {
            failure = error
            throw error
        }
        var total = ImportCounts()
        total.created = counts.created
        total.updated = counts.updated
        total.unchanged = counts.unchanged
        total.duplicate = counts.duplicate
        total.alreadySaved = counts.alreadySaved
        total.skipped = skippedCount
        total.refused = counts.refused
        total.read = operationCount - resumedOperationCount - counts.deleted - counts.notFound + skippedCount
        if !options.isDryRun { seq = try client.endImport(origin: begun.origin, outcome: outcome, counts: total) }
        return Report(
            counts: total, deleted: counts.deleted, notFound: counts.notFound, refusals: refusals,
            resumedOperationCount: resumedOperationCount, seq: seq)
    }
}

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

    struct Flight {
        var id: UInt32
        let batch: UInt64
        let firstPosition: Int
        let operationCount: Int
        let byteCount: Int
        /// The whole frame, where it may have to be sent again.
        var frame: [UInt8]
    }

    public internal(set) var client: LarderClient
    /// Of a dry run: origin 0, for nothing is begun.
    public internal(set) var begun: ImportBegun
    public let options: Options
    /// Called with each refusal as it is heard of, kept or not. May not use the client.
    public var onRefusal: ((Written.Refusal) -> Void)?
    /// Gives a new connection to the same library after one was lost, or throws to give up. Where it is set, frames are
    /// kept until they are answered and the import goes on by itself: see BulkResume.swift.
    public var reconnect: ((ClientError) throws(ClientError) -> LarderClient)?
    /// How often the import went on over a new connection.
    public internal(set) var resumptionCount = 0
    /// Batches that were sent again, and those whose answer was lost and read from the log instead.
    public internal(set) var resentBatchCount = 0
    public internal(set) var settledBatchCount = 0

    /// What was answered so far.
    public internal(set) var counts = WriteCounts()
    public private(set) var refusals: [Written.Refusal] = []
    /// Operations appended so far: the position of the next.
    public private(set) var operationCount = 0
    public private(set) var resumedOperationCount = 0
    /// Rows that the importer left out by itself.
    public var skippedCount = 0
    /// Rows that it refused, or knew as duplicates, before they became operations.
    public var refusedBeforeCount = 0
    public var duplicateBeforeCount = 0
    /// The last seq that an answer depends on.
    public internal(set) var seq: UInt64 = 0
    /// Position of the first operation whose answer is still to come.
    public var unansweredPosition: Int { flights.first?.firstPosition ?? operationCount - builder.operationCount }

    let source: String
    let token: String
    private var builder: WriteBuilder
    private var batch: UInt64 = 0
    var flights: [Flight] = []
    private var flyingByteCount = 0
    private var failure: ClientError?
    /// Batches that were durable before this writer began.
    private let firstLastBatch: UInt64
    /// Connections that were lost since the last answer.
    var lossCount = 0

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
        self.source = source
        self.token = token
        begun = options.isDryRun ? ImportBegun(origin: 0) : try client.beginImport(source: source, token: token)
        firstLastBatch = begun.lastBatch
        seq = client.welcome.lastSeq
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
        if batch < firstLastBatch {
            batch += 1
            resumedOperationCount += builder.operationCount
            builder.reset()
            return
        }
        try goingOn { () throws(ClientError) in
            while !flights.isEmpty,
                flyingByteCount + builder.byteCount > options.windowByteCount
                    || flights.count >= client.limits.openRequestCountMax
            {
                try receive(until: client.requestDeadline)
            }
            if !builder.isEmpty { try send() }
            while !flights.isEmpty, try receiveIfThere() {}
        }
    }

    private func send() throws(ClientError) {
        batch += 1
        let id = client.takeId()
        let frame = builder.finish(
            id: id, flags: options.isDryRun ? [.dryRun] : [], origin: begun.origin,
            batch: options.isDryRun ? 0 : batch)
        flights.append(
            Flight(
                id: id, batch: batch, firstPosition: operationCount - builder.operationCount,
                operationCount: builder.operationCount, byteCount: frame.count,
                frame: reconnect == nil ? [] : Array(frame)))
        flyingByteCount += frame.count
        // Reset before it is known to be sent: what is in flight is no longer the builder's, whatever becomes of it.
        defer { builder.reset() }
        try client.connection.send(frame, until: client.requestDeadline)
    }

    /// Runs `body`, again after each lost connection for as long as there is a new one. What else fails is final.
    func goingOn(_ body: () throws(ClientError) -> Void) throws(ClientError) {
        var loss: ClientError?
        while true {
            do throws(ClientError) {
                if let error = loss { try resume(after: error) }
                return try body()
            } catch {
                guard isLoss(error) else {
                    failure = error
                    throw error
                }
                loss = error
            }
        }
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
        switch frame.header.messageType {
        case .written: break
        case .error:
            let error = try client.failure(frame)
            if !isLoss(error) { land(index) }
            throw error
        default: throw client.connection.violation("type \(frame.header.type) answers WRITE")
        }
        let written = try LarderClient.decode(Written.self, frame, client.connection)
        guard written.counts.fit(operationCount: flight.operationCount) else {
            throw client.connection.violation("WRITTEN counts more than the \(flight.operationCount) operations sent")
        }
        land(index)
        take(written, flight)
        return true
    }

    /// Forgets a flight that was answered.
    func land(_ index: Int) {
        let flight = flights.remove(at: index)
        flyingByteCount -= flight.byteCount
        client.release(flight.id)
    }

    private func take(_ written: Written, _ flight: Flight) {
        lossCount = 0
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
        try goingOn { () throws(ClientError) in
            while !flights.isEmpty { try receive(until: client.requestDeadline) }
        }
        var total = ImportCounts()
        total.created = counts.created
        total.updated = counts.updated
        total.unchanged = counts.unchanged
        total.duplicate = counts.duplicate + duplicateBeforeCount
        total.alreadySaved = counts.alreadySaved
        total.skipped = skippedCount
        total.refused = counts.refused + refusedBeforeCount
        total.read =
            operationCount - resumedOperationCount - counts.deleted - counts.notFound + skippedCount
            + refusedBeforeCount + duplicateBeforeCount
        if !options.isDryRun { try end(outcome, total) }
        return Report(
            counts: total, deleted: counts.deleted, notFound: counts.notFound, refusals: refusals,
            resumedOperationCount: resumedOperationCount, seq: seq)
    }
}

// Imports: batches, windows, answers in any order.

import LarderFormat
import LarderWire
import Testing

@testable import LarderClient

@Suite("bulk writer")
struct BulkWriterTests {
    private struct Batch {
        let id: UInt32
        let header: WriteHeader
        let firstPayloads: [UInt8]
        let byteCount: Int
    }

    private static func readBatch(_ peer: ScriptedPeer) throws -> Batch? {
        let frame = try peer.readFrame()
        guard frame.header.messageType == .write else {
            let end = try frame.body.withUnsafeBytes { try EndImport(body: $0) }
            try peer.write(ImportEnded(seq: UInt64(end.counts.read)), id: frame.header.id)
            return nil
        }
        return try frame.body.withUnsafeBytes { body in
            var operations = try OperationReader(body: body)
            var payloads: [UInt8] = []
            while let operation = try operations.next() { payloads.append(operation.payload[0]) }
            return Batch(
                id: frame.header.id, header: operations.header, firstPayloads: payloads,
                byteCount: frame.header.frameByteCount)
        }
    }

    private static func created(_ count: Int, seq: UInt64 = 1, refusals: [Written.Refusal] = []) -> Written {
        var counts = WriteCounts()
        counts.created = count - refusals.count
        counts.refused = refusals.count
        return Written(seq: seq, counts: counts, refusals: refusals)
    }

    private static func begin(_ peer: ScriptedPeer, _ begun: ImportBegun = ImportBegun(origin: 5)) throws {
        let (id, begin) = try peer.expect(BeginImport.self)
        #expect(begin.source == "films")
        try peer.write(begun, id: id)
    }

    @Test("batches are numbered, answers may come in any order, positions count over the import")
    func accounting() throws {
        try withClient({ peer in
            try BulkWriterTests.begin(peer)
            var batches: [Batch] = []
            for number in 1...4 {
                let batch = try #require(try BulkWriterTests.readBatch(peer))
                #expect(batch.header.batch == UInt64(number) && batch.header.origin == 5)
                batches.append(batch)
                if number == 3 {
                    for batch in batches.reversed() {
                        let refusals =
                            batch.header.batch == 2 ? [Written.Refusal(position: 1, .blankField, reason: "")] : []
                        let reply = BulkWriterTests.created(
                            batch.header.operationCount, seq: batch.header.batch, refusals: refusals)
                        try peer.write(reply, id: batch.id)
                    }
                }
            }
            try peer.write(BulkWriterTests.created(batches[3].header.operationCount, seq: 9), id: batches[3].id)
            #expect(try BulkWriterTests.readBatch(peer) == nil)
        }) { (client) throws in
            let writer = try BulkWriter(client, source: "films", options: BulkWriter.Options(batchByteCount: 1_000))
            var batchStarts: [Int] = []
            var last = 0
            let record = [UInt8](repeating: 7, count: 300)
            for index in 0..<12 {
                try writer.save(record, kind: 1, known: 24)
                if index % 3 == 2 {
                    try writer.flush()
                    batchStarts.append(last)
                    last = index + 1
                }
            }
            writer.skippedCount = 2
            var heard: [Int] = []
            writer.onRefusal = { heard.append($0.position) }
            let report = try writer.finish()
            #expect(batchStarts == [0, 3, 6, 9] && report.refusals.map(\.position) == [4])
            #expect(report.counts.created == 11 && report.counts.refused == 1 && report.counts.skipped == 2)
            #expect(report.counts.read == 14 && report.seq == 14)
        }
    }

    @Test("a record that does not fit the batch goes in the next one, and none is lost")
    func batching() throws {
        try withClient({ peer in
            try BulkWriterTests.begin(peer)
            var seen: [UInt8] = []
            while let batch = try BulkWriterTests.readBatch(peer) {
                seen += batch.firstPayloads
                try peer.write(BulkWriterTests.created(batch.header.operationCount), id: batch.id)
            }
            #expect(seen == (0..<200).map { UInt8($0) })
        }) { (client) throws in
            let writer = try BulkWriter(client, source: "films", options: BulkWriter.Options(batchByteCount: 5_000))
            for index in 0..<200 {
                try writer.save([UInt8](repeating: UInt8(index), count: 50 + index * 37 % 9_000), kind: 1, known: 24)
            }
            #expect(try writer.finish().counts.created == 200)
            #expect(throws: ClientError.recordTooLarge(byteCount: 5_000_000)) {
                try writer.save([UInt8](repeating: 0, count: 5_000_000), kind: 1, known: 24)
            }
        }
    }

    @Test("what is sent and not answered stays within the window")
    func window() throws {
        let window = 100_000
        try withClient({ peer in
            try BulkWriterTests.begin(peer)
            var waiting: [Batch] = []
            var waitingByteCount = 0
            while let batch = try BulkWriterTests.readBatch(peer) {
                waiting.append(batch)
                waitingByteCount += batch.byteCount
                #expect(waitingByteCount <= window + 200)
                guard waitingByteCount > window - 11_000 || batch.header.batch == 50 else { continue }
                for batch in waiting {
                    try peer.write(BulkWriterTests.created(batch.header.operationCount), id: batch.id)
                }
                waiting = []
                waitingByteCount = 0
            }
        }) { (client) throws in
            let options = BulkWriter.Options(batchByteCount: 10_200, windowByteCount: window)
            let writer = try BulkWriter(client, source: "films", options: options)
            let record = [UInt8](repeating: 7, count: 1_000)
            for index in 0..<450 {
                try writer.save(record, kind: 1, known: 24)
                if index % 9 == 8 { try writer.flush() }
            }
            #expect(try writer.finish().counts.created == 450)
        }
    }

    @Test("a continued import does not send again what is durable")
    func resumed() throws {
        try withClient({ peer in
            try BulkWriterTests.begin(peer, ImportBegun(origin: 5, lastBatch: 2, isResumed: true))
            let batch = try #require(try BulkWriterTests.readBatch(peer))
            #expect(batch.header.batch == 3 && batch.firstPayloads == [2])
            try peer.write(BulkWriterTests.created(1), id: batch.id)
            _ = try BulkWriterTests.readBatch(peer)
        }) { (client) throws in
            let writer = try BulkWriter(client, source: "films", token: "t")
            for index in 0..<3 {
                try writer.save([UInt8(index)], kind: 1, known: 24)
                try writer.flush()
            }
            let report = try writer.finish()
            #expect(report.resumedOperationCount == 2 && report.counts.read == 1 && report.counts.created == 1)
        }
    }

    @Test("a batch that fails ends the import")
    func failure() throws {
        let full = ErrorReply(.storeFull, message: "no room")
        try withClient({ peer in
            try BulkWriterTests.begin(peer)
            let batch = try #require(try BulkWriterTests.readBatch(peer))
            try peer.write(full, id: batch.id)
            peer.drain()
        }) { (client) throws in
            let writer = try BulkWriter(client, source: "films")
            try writer.save([1], kind: 1, known: 24)
            #expect(throws: ClientError.larder(full)) { try writer.finish() }
            #expect(throws: ClientError.larder(full)) { try writer.finish() }
        }
    }

    @Test("counts that the batch cannot have break the protocol", arguments: [2, Int.max])
    func lyingCounts(_ count: Int) throws {
        try withClient({ peer in
            try BulkWriterTests.begin(peer)
            let batch = try #require(try BulkWriterTests.readBatch(peer))
            var counts = WriteCounts()
            counts.created = count
            counts.deleted = count
            try peer.write(Written(seq: 1, counts: counts), id: batch.id)
        }) { (client) throws in
            let writer = try BulkWriter(client, source: "films")
            try writer.save([1], kind: 1, known: 24)
            let violation = ClientError.protocolViolation("WRITTEN counts more than the 1 operations sent")
            #expect(throws: violation) { try writer.finish() }
        }
    }

    @Test("a host that is writing and one that is not reading do not stop each other")
    func bothFull() throws {
        let frameCount = 400
        try withClient({ peer in
            let id = try peer.expect(Subscribe.self).id
            try peer.write(Subscribed(epoch: 9, after: 0, s0: 0, floor: 1), id: id)
            try BulkWriterTests.begin(peer)
            // 20 MB go out before anything is read.
            for index in 0..<UInt64(frameCount) {
                try peer.write(
                    eventsFrame(
                        id: id,
                        events(after: index, through: index + 1, entries: [[UInt8](repeating: 1, count: 50_000)])))
            }
            while let batch = try BulkWriterTests.readBatch(peer) {
                try peer.write(BulkWriterTests.created(batch.header.operationCount), id: batch.id)
            }
            peer.drain()
        }) { (client) throws in
            let subscription = try Subscription(client, .now, windowByteCount: 32_000_000)
            let writer = try BulkWriter(client, source: "films")
            let record = [UInt8](repeating: 7, count: 100_000)
            for _ in 0..<100 { try writer.save(record, kind: 1, known: 24) }
            #expect(try writer.finish().counts.created == 100)
            var count = 0
            while subscription.cursor.seq < UInt64(frameCount) {
                _ = try subscription.receive { if case .entry = $0 { count += 1 } }
            }
            #expect(count == frameCount)
        }
    }
}

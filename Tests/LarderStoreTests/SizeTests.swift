// What records cost on disk, and that closing holes loses nothing.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct SizeTests {
    @Test("100,000 records of about 440 bytes take no more than 5 percent over their bytes")
    func overhead() throws {
        let files = SimulatedFiles(seed: 1)
        var options = StoreDriver.options(segment: 67_108_864)
        options.commitByteCountTarget = 2_097_152
        let store = try Store(path: "library", options: options, files: files, now: 1)
        let batch = WriteBatch()
        let records = (0..<1000).map { n in
            Encode.record([
                1: Encode.text("isbn"), 2: Encode.identifier(1 << 20),
                3: Encode.text("title \(n) " + String(repeating: "t", count: 418)),
            ])
        }
        // The id is the last but one field: its four bytes are written over.
        let idOffset = 1 + 1 + 5
        var encoded = 0
        for round in 0..<100 {
            var payloads = records
            for n in payloads.indices {
                let id = Encode.identifier((1 << 20) + round * 1000 + n)
                payloads[n].replaceSubrange(idOffset..<idOffset + id.count, with: id)
                encoded += payloads[n].count
            }
            let bytes = payloads.flatMap { $0 }
            try bytes.withUnsafeBytes { raw in
                batch.begin(origin: 0, programName: "test")
                var at = 0
                for payload in payloads {
                    store.add(
                        WriteOperation(
                            mode: .insert, kind: 2,
                            payload: UnsafeRawBufferPointer(rebasing: raw[at..<at + payload.count])),
                        to: batch)
                    at += payload.count
                }
                while true {
                    _ = try store.resolve(batch)
                    if case .staged = try store.stage(batch, now: 1) { break }
                    if let job = store.takeCommit() { store.finish(job.run()) }
                }
            }
            #expect(batch.counts[.created] == 1000)
        }
        if let job = store.takeCommit() { store.finish(job.run()) }
        #expect(store.counts(kind: 2).map(\.count) == [100_000])
        #expect(encoded > 43_000_000)
        #expect(store.logByteCount <= encoded + encoded / 20, "\(store.logByteCount) for \(encoded)")
    }

    @Test("after most records were deleted the rest is found, listed and changed as before")
    func renumbered() throws {
        let driver = try StoreDriver(SimulatedFiles(seed: 1), options: StoreDriver.options(segment: 67_108_864))
        let (count, batchCount) = (72_000, 4000)
        for start in stride(from: 0, to: count, by: batchCount) {
            try driver.write((start..<start + batchCount).map { .book($0 + 1, "b") })
        }
        try driver.commitAll()
        var cursor = try driver.page(kind: 2, isReverse: false, limit: 3, after: nil).1
        for start in stride(from: 0, to: count, by: batchCount) {
            try driver.write((start..<start + batchCount).filter { $0 % 12 != 5 }.map { .deleteBook($0 + 1) })
            try driver.commitAll()
        }
        #expect(driver.store.core.table.count < 20_000)
        let keys = (0..<200).map {
            RecordKey(kind: 2, bytes: Encode.key(TestOp.book($0 * 360 + 6, "").fields, TestKinds.book))
        }
        for key in keys { #expect(try driver.get(key) == driver.model.visible[key]) }
        // A page begun before goes on behind the same record.
        let next = try driver.page(kind: 2, isReverse: false, limit: 4, after: cursor)
        #expect(next.0.map(\.seq) == driver.model.visible(kind: 2).prefix(4).map(\.1.seq))
        cursor = next.1
        try driver.write([.book(6, "changed"), .book(7, "again"), .deleteBook(18)])
        try driver.reopen()
        #expect(
            try driver.list(kind: 2, isReverse: true, pageLimit: 500)
                == driver.model.visible(kind: 2).map(\.1).reversed())
    }
}

// Random conditions on random records, held against the slow twin.

import Testing

@testable import LarderFormat

@Suite("Random conditions")
struct ConditionRandomTests {
    @Test("30,000 pairs of a condition and a record have the answer of the twin")
    func twins() throws {
        var random = SplitMix(20_261_130)
        var held = 0
        for round in 0..<3000 {
            let tree = random.condition()
            let condition: Condition
            do throws(ConditionError) {
                condition = try Condition(tree.text, schemas: [Samples.schema, Samples.otherSchema])
            } catch {
                Issue.record("round \(round): \(tree.text): \(error)")
                continue
            }
            for _ in 0..<10 {
                let record = random.record()
                var stored = Samples.Stored(bytes: Samples.encode(record))
                stored.seq = UInt64(random.below(6))
                stored.origin = UInt64(random.below(6))
                stored.savedAt = random.time()
                stored.changedAt = random.time()
                let expected = TwinSubject(record: record, stored: stored).holds(tree)
                if expected { held += 1 }
                if stored.matches(condition) != expected {
                    Issue.record("round \(round): \(tree.text) of \(record.json(Samples.kind)) is \(expected)")
                }
            }
        }
        #expect(held > 5000 && held < 25_000, "\(held)")
    }

    @Test("records that are cut or changed never trap")
    func brokenRecords() throws {
        var random = SplitMix(5)
        let conditions = try (0..<60).map { _ in try Condition(random.condition().text, schemas: [Samples.schema]) }
        let orders = Samples.kind.fields.compactMap { FieldOrder(field: $0.number, schema: Samples.schema) }
        let groups = Samples.kind.fields.compactMap { GroupCounter(field: $0.number, schema: Samples.schema) }
        let query = SearchQuery("a")
        var keys = FoldBuffer()
        for _ in 0..<300 {
            let whole = Samples.encode(random.record())
            for round in 0..<40 {
                var bytes = Array(whole.prefix(random.below(whole.count + 1)))
                if round % 2 == 0 { bytes = whole }
                for _ in 0..<random.below(4) where !bytes.isEmpty {
                    bytes[random.below(bytes.count)] = UInt8(random.below(256))
                }
                // Of exactly its size, so that a read behind its end is one behind the allocation.
                let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
                defer { copy.deallocate() }
                copy.copyBytes(from: bytes)
                let record = UnsafeRawBufferPointer(copy)
                for condition in conditions {
                    _ = condition.matches(
                        ConditionSubject(
                            kind: 7, seq: 1, firstSeq: 1, savedAt: 0, changedAt: 0, origin: 0, record: record))
                }
                for order in orders { _ = order.appendKey(of: record, to: &keys) }
                for group in groups { _ = group.add(record) }
                _ = query.rank(of: record, schema: Samples.schema)
                keys.removeAll()
            }
        }
    }

    @Test("a record that is cut where the condition looks is no match, also where it is denied")
    func cutRecords() throws {
        let bytes = Samples.encode(Samples.record(["name": .text("abc"), "score": Samples.number("7.5")]))
        for text in ["not score = 8", "score != 8", "not name = x", "score is blank or score != 3"] {
            let condition = try Condition(text, schemas: [Samples.schema])
            #expect(Samples.Stored(bytes: bytes).matches(condition))
            #expect(!Samples.Stored(bytes: Array(bytes.prefix(4))).matches(condition))
            #expect(!Samples.Stored(bytes: []).matches(condition))
        }
    }
}

// Records counted by the values of a field.

import Testing

@testable import LarderFormat

@Suite("Groups")
struct GroupCounterTests {
    private func add(_ values: [String: Value], to counter: GroupCounter?) -> Bool? {
        Samples.encode(Samples.record(values)).withUnsafeBytes { counter?.add($0) }
    }

    private func encoded(_ value: Value) -> [UInt8] {
        var writer = ByteWriter()
        value.encode(into: &writer)
        return writer.bytes
    }

    private func expect(_ counter: GroupCounter?, _ expected: [(Value?, Int)]) {
        let groups = counter?.groups ?? []
        #expect(groups.count == expected.count)
        for (group, wanted) in zip(groups, expected) {
            #expect(group.value == wanted.0.map(encoded) && group.count == wanted.1)
        }
    }

    @Test("the most first, equal ones by first appearance, absence among them")
    func order() {
        let counter = GroupCounter(field: 2, schema: Samples.schema)
        for name in ["b", "a", nil, "a", "A", nil, "c"] {
            #expect(add(name.map { ["name": .text($0)] } ?? [:], to: counter) == true)
        }
        expect(counter, [(.text("a"), 2), (nil, 2), (.text("b"), 1), (.text("A"), 1), (.text("c"), 1)])
    }

    @Test("a list counts once for each of its texts")
    func lists() {
        let counter = GroupCounter(field: 11, schema: Samples.schema)
        for genres in [["Drama", "SF"], ["SF"], ["Drama", "Drama", "SF"], []] {
            #expect(add(["genres": .list(genres)], to: counter) == true)
        }
        #expect(add([:], to: counter) == true)
        expect(counter, [(.text("SF"), 3), (.text("Drama"), 2), (nil, 2)])
    }

    @Test("the limit is of values; the one that exceeds it is not counted")
    func limit() {
        let counter = GroupCounter(field: 4, schema: Samples.schema, limit: 2)
        #expect(add([:], to: counter) == true)
        #expect(add(["count": .int(1)], to: counter) == true)
        #expect(add(["count": .int(-2)], to: counter) == true)
        #expect(add(["count": .int(3)], to: counter) == false)
        #expect(add(["count": .int(1)], to: counter) == true)
        #expect(add([:], to: counter) == true)
        expect(counter, [(nil, 2), (.int(1), 2), (.int(-2), 1)])
        #expect(GroupCounter(field: 12, schema: Samples.schema) == nil)
        #expect(add(["count": .int(1)], to: GroupCounter(field: 4, schema: Samples.schema, limit: 0)) == false)
    }

    @Test("counts of random records are those of a plain count")
    func random() {
        var random = SplitMix(9)
        let records = (0..<3000).map { _ in random.record() }
        for field in Samples.kind.fields {
            let counter = GroupCounter(field: field.number, schema: Samples.schema)
            var expected: [[UInt8]?: Int] = [:]
            var first: [[UInt8]?] = []
            for record in records {
                _ = Samples.encode(record).withUnsafeBytes { counter?.add($0) }
                var values: [[UInt8]?] = [nil]
                switch record[field.number] {
                case .list(let texts): if !texts.isEmpty { values = texts.map { encoded(.text($0)) } }
                case let value?: values = [encoded(value)]
                case nil: break
                }
                for value in Set(values) { expected[value, default: 0] += 1 }
                for value in values where !first.contains(value) { first.append(value) }
            }
            let groups = counter?.groups ?? []
            let sorted = first.enumerated().sorted { a, b in
                let (x, y) = (expected[a.element] ?? 0, expected[b.element] ?? 0)
                return x != y ? x > y : a.offset < b.offset
            }
            #expect(groups.map(\.value) == sorted.map(\.element))
            #expect(groups.map(\.count) == sorted.map { expected[$0.element] ?? 0 })
        }
    }
}

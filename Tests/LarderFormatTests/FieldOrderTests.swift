// Sort keys: memcmp puts them in the order of the values.

import Testing

@testable import LarderFormat

@Suite("Order of fields")
struct FieldOrderTests {
    private func key(_ field: Int, _ record: Record) -> [UInt8]? {
        guard let order = FieldOrder(field: field, schema: Samples.schema) else { return nil }
        var buffer = FoldBuffer(capacity: 1)
        buffer.append(7)
        let isThere = Samples.encode(record).withUnsafeBytes { order.appendKey(of: $0, to: &buffer) }
        let bytes = Array(buffer.bytes)
        #expect(bytes.first == 7)
        #expect(isThere || bytes.count == 1)
        return isThere ? Array(bytes.dropFirst()) : nil
    }

    /// −1, 0 or 1 by a plain comparison of two values of a field.
    private func order(_ a: Value, _ b: Value) -> Int {
        func sign<T: Comparable>(_ a: T, _ b: T) -> Int { a < b ? -1 : a == b ? 0 : 1 }
        func sign<T: Comparable>(_ a: [T], _ b: [T]) -> Int {
            a == b ? 0 : a.lexicographicallyPrecedes(b) ? -1 : 1
        }
        func name(_ choice: Int) -> [UInt32] {
            TwinSubject.scalars(Samples.kind.field(named: "form")?.choiceName(choice) ?? "")
        }
        func ends(_ date: PartialDate) -> [Int] {
            [
                date.year, max(date.month, 1), max(date.day, 1), date.month == 0 ? 13 : date.month,
                date.day == 0 && date.month > 0 ? PartialDate.days(inMonth: date.month, year: date.year) : date.day,
            ]
        }
        switch (a, b) {
        case (.text(let a), .text(let b)): return sign(TwinSubject.scalars(a), TwinSubject.scalars(b))
        case (.list(let a), .list(let b)): return sign(TwinSubject.scalars(a[0]), TwinSubject.scalars(b[0]))
        case (.choice(let a), .choice(let b)): return sign(name(a), name(b))
        case (.identifier(.number(let a)), .identifier(.number(let b))): return sign(a, b)
        case (.identifier(.number), .identifier(.text)): return -1
        case (.identifier(.text), .identifier(.number)): return 1
        case (.identifier(.text(let a)), .identifier(.text(let b))):
            return sign(TwinSubject.scalars(a), TwinSubject.scalars(b))
        case (.int(let a), .int(let b)), (.time(let a), .time(let b)): return sign(a, b)
        case (.number(let a), .number(let b)):
            return sign(TwinSubject.digits(a.mantissa, a.exponent), TwinSubject.digits(b.mantissa, b.exponent))
        case (.bool(let a), .bool(let b)): return sign(a ? 1 : 0, b ? 1 : 0)
        case (.date(let a), .date(let b)): return sign(ends(a), ends(b))
        case (.uuid(let a), .uuid(let b)): return sign([a.high, a.low], [b.high, b.low])
        case (.bytes(let a), .bytes(let b)): return sign(a, b)
        default: return 2
        }
    }

    @Test("keys compare as the values do")
    func keys() {
        var random = SplitMix(8)
        for field in Samples.kind.fields {
            let values = (0..<60).map { _ in random.value(field) }.filter { $0 != .list([]) }
            let keys = values.map { value in
                var record = Samples.record([:])
                record[field.number] = value
                if case .identifier(.text(let text)) = value { record[1] = .identifier(.text(composed(text))) }
                return key(field.number, record)
            }
            for i in values.indices {
                for j in values.indices {
                    guard let a = keys[i], let b = keys[j] else {
                        Issue.record("no key of \(values[i]) or \(values[j])")
                        continue
                    }
                    let found = a == b ? 0 : a.lexicographicallyPrecedes(b) ? -1 : 1
                    if found != order(values[i], values[j]) { Issue.record("\(values[i]) and \(values[j])") }
                }
            }
        }
    }

    @Test("what is absent has no key, nor has an empty list or a field that is none")
    func absent() {
        for field in Samples.kind.fields.dropFirst() { #expect(key(field.number, Samples.record([:])) == nil) }
        #expect(key(11, Samples.record(["genres": .list([])])) == nil)
        #expect(key(2, Samples.record(["name": .text("")])) == [])
        #expect(key(11, Samples.record(["genres": .list(["", "a"])])) == [])
        #expect(FieldOrder(field: 12, schema: Samples.schema) == nil)
        #expect(FieldOrder(field: 0, schema: Samples.schema) == nil)
    }

    @Test("long values are cut at 256 bytes, as if all of them were folded first")
    func cutKeys() {
        for text in [
            String(repeating: "A", count: 300), String(repeating: "한", count: 3000) + " x",
            String(repeating: "\u{1112}\u{1161}\u{11AB}", count: 2000) + " 끝",
            String(repeating: "e\u{301}", count: 5000), "a" + String(repeating: "\u{301}\u{323}", count: 3000) + " b",
        ] {
            #expect(key(2, Samples.record(["name": .text(text)])) == Array(folded(text).prefix(256)))
        }
        var record = Samples.record([:])
        record[1] = .identifier(.text(String(repeating: "A", count: 300)))
        #expect(key(1, record) == [1] + [UInt8](repeating: 97, count: 255))
        let bytes = [UInt8](repeating: 9, count: 300)
        #expect(key(6, Samples.record(["data": .bytes(bytes)])) == Array(bytes.prefix(256)))
    }
}

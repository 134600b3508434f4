// Random operations over a small space of keys, so that they meet.

import Glibc
import LarderFormat

@testable import LarderStore

struct OperationSource {
    var random: SplitMix64
    /// Percent of the records that are large, and how large at most.
    var largePercent = 1
    var largeByteCountMax = 60_000
    var badPercent = 4

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
    mutating func below(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

    /// Every key that `op` can name.
    static let keys: [RecordKey] = TestKinds.all.flatMap { kind in
        (0..<14).map { RecordKey(kind: kind.number, bytes: Encode.key(keyFields(kind, $0), kind)) }
    }

    static func keyFields(_ kind: Kind, _ n: Int) -> Fields {
        switch kind.number {
        case 1:
            [1: Encode.text(["tmdb", "영화"][n % 2]), 2: Encode.choice(1 + n / 2 % 2), 3: Encode.identifier(1 + n / 4)]
        case 2: [1: Encode.text("isbn"), 2: Encode.identifier(9_780_000 + n)]
        case 3: [1: Encode.uuid(UInt64(n))]
        default: [1: [UInt8(n % 2)], 2: Encode.date(1999, n % 3, 0), 3: Encode.int(Int64(n / 6 - 1))]
        }
    }

    mutating func batch(_ count: Int) -> [TestOp] { (0..<count).map { _ in op() } }

    mutating func op(model: Model? = nil) -> TestOp {
        let kind = TestKinds.all[below(4)]
        var op = TestOp(kind: kind.number)
        op.fields = OperationSource.keyFields(kind, below(14))
        switch below(100) {
        case 0..<20: op.action = .delete
        case 20..<30:
            op.action = .move
            op.oldFields = OperationSource.keyFields(kind, below(14))
        case 30..<38:
            op.action = .restore
            (op.firstSeq, op.savedAt) = place(model)
        default: op.mode = [.insert, .replace, .replace, .merge, .merge, .merge, .fill][below(7)]
        }
        if op.action != .delete { fill(&op, kind) }
        if let model, chance(7), op.fields[1] != nil {
            let key = op.action == .move ? op.oldKey : op.key
            op.ifSeq = chance(60) ? model.latest[key]?.seq ?? 0 : UInt64(below(1000))
        }
        if chance(badPercent) { op.bad = spoilt(op) }
        return op
    }

    private mutating func fill(_ op: inout TestOp, _ kind: Kind) {
        op.isPersonal = chance(30)
        for field in kind.fields.dropFirst(kind.keyFieldCount)
        where chance(field.constraints.contains(.required) ? 95 : 50) {
            op.fields[field.number] = value(field)
        }
        if kind.number == 3, chance(4) { op.fields[1] = nil }
        if op.mode == .merge, op.action == .save, chance(10) {
            op.unset = [kind.fields[below(kind.fields.count)].number]
        }
        if op.mode == .replace || op.action == .move, chance(10) { op.known = below(10) }
        for field in op.unset { op.fields[field] = field <= kind.keyFieldCount ? op.fields[field] : nil }
        let indexed = kind.fields.filter { $0.constraints.contains(.indexed) }.map(\.number)
        if !indexed.isEmpty, chance(15) { op.unlessExists = indexed[below(indexed.count)] }
        if chance(1) { op.unlessExists = 1 }
    }

    /// A first seq that a restore may ask for: of a record that was there, of one that is, or any.
    private mutating func place(_ model: Model?) -> (UInt64, Int64) {
        let savedAt = chance(3) ? Int64.max : Int64(below(1_000_000))
        guard let model, chance(90), let event = model.events.randomElement(using: &random) else {
            return (UInt64(below(400)), savedAt)
        }
        return (chance(5) ? event.seq &+ UInt64(below(1000)) : event.firstSeq, savedAt)
    }

    private mutating func value(_ field: Field) -> [UInt8] {
        switch field.type {
        case .text:
            if chance(largePercent) {
                return Encode.text(String(repeating: "long ", count: below(largeByteCountMax) / 5 + 1))
            }
            // Two forms of one text are among them: the second changes nothing where the first is.
            return Encode.text(
                [
                    "a", "A", "\u{FF21}", "한국어", "\u{1112}\u{1161}\u{11AB}국어", "caf\u{e9}", "cafe\u{301}",
                    "CAFE\u{301}", "x\(below(5))", "X\(below(5))",
                ][below(10)])
        case .choice: return Encode.choice(1 + below(2))
        case .number: return Encode.number(Int64(below(9) + 1), -1)
        case .int: return Encode.int(Int64(below(5)))
        case .list: return Encode.list((0..<below(3)).map { _ in ["t", "T"][below(2)] + "\(below(4))" })
        case .bytes:
            return Encode.blob(chance(largePercent * 4) ? below(largeByteCountMax) : below(40), UInt8(below(3)))
        case .identifier:
            return chance(70) ? Encode.identifier(1 + below(6)) : Encode.identifier(["tt1", "TT1"][below(2)])
        default: return Encode.identifier(1)
        }
    }

    /// Bytes that no record or key of this kind has.
    private mutating func spoilt(_ op: TestOp) -> [UInt8] {
        switch below(4) {
        case 0: return []
        case 1: return op.payload + [0]
        case 2: return [33] + op.payload
        default: return Array(op.payload.dropLast())
        }
    }
}

/// What a test run is told by its environment.
enum Setting {
    static func number(_ name: String) -> UInt64? {
        getenv(name).flatMap { UInt64(String(cString: $0)) }
    }
    /// LARDER_SEED, or one of the clock's.
    static var seed: UInt64 { number("LARDER_SEED") ?? UInt64.random(in: 0..<1_000_000_000) }
    static func steps(_ usual: Int) -> Int { number("LARDER_STEPS").map { Int($0) } ?? usual }
}

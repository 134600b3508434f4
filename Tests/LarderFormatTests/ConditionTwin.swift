// Conditions evaluated on decoded values, written from the definitions in SPEC.md section 17: slow, and the twin that
// random tests hold `Condition` against.

@testable import LarderFormat

/// A condition as a tree.
indirect enum TwinCondition {
    case test(field: String, verb: String, values: [String])
    case not(TwinCondition)
    case and([TwinCondition])
    case or([TwinCondition])

    /// As one would write it, all values in quotes.
    var text: String {
        func quoted(_ value: String) -> String {
            var out = ""
            for scalar in value.unicodeScalars {
                if scalar == "\"" || scalar == "\\" { out.unicodeScalars.append("\\") }
                out.unicodeScalars.append(scalar)
            }
            return "\"" + out + "\""
        }
        switch self {
        case .test(let field, let verb, let values):
            if verb == "in" { return "\(field) in (" + values.map(quoted).joined(separator: ", ") + ")" }
            return ([field, verb] + values.map(quoted)).joined(separator: " ")
        case .not(let inner): return "not (\(inner.text))"
        case .and(let parts): return "(" + parts.map(\.text).joined(separator: " and ") + ")"
        case .or(let parts): return "(" + parts.map(\.text).joined(separator: " or ") + ")"
        }
    }
}

struct TwinSubject {
    let record: Record
    let stored: Samples.Stored

    func holds(_ condition: TwinCondition) -> Bool {
        switch condition {
        case .not(let inner): !holds(inner)
        case .and(let parts): parts.allSatisfy { holds($0) }
        case .or(let parts): parts.contains { holds($0) }
        case .test(let field, let verb, let values): holds(field, verb, values)
        }
    }

    private func holds(_ name: String, _ verb: String, _ values: [String]) -> Bool {
        switch verb {
        case "in": return values.contains { holds(name, "=", [$0]) }
        case "!=": return !holds(name, "=", values)
        case "is absent": return !holds(name, "exists", [])
        default: break
        }
        let value = value(name)
        if verb == "exists" { return value != nil }
        if verb == "is blank" { return value.map { isBlank($0) } ?? true }
        guard let value else { return false }
        switch value {
        case .list(let texts): return texts.contains { compare($0, verb, values[0]) }
        case .text(let text), .identifier(.text(let text)): return compare(text, verb, values[0])
        case .identifier(.number(let number)): return compare(String(number), verb, values[0])
        case .choice(let number):
            return compare(Samples.kind.field(named: name)?.choiceName(number) ?? "?", verb, values[0])
        case .int(let number): return ordered(digits(number, 0), verb, literal(values[0]))
        case .number(let number): return ordered(digits(number.mantissa, number.exponent), verb, literal(values[0]))
        case .bool(let flag): return String(flag) == values[0]
        case .bytes(let bytes): return bytes.map { hex(UInt64($0), 2) }.joined() == values[0].lowercased()
        case .uuid(let uuid): return uuid.text == values[0].lowercased()
        case .date(let date):
            guard let other = PartialDate(text: values[0]) else { return false }
            return spans(days(date), verb, days(other))
        case .time(let time):
            if let date = PartialDate(text: values[0]) {
                let (first, last) = days(date)
                return spans((time, time), verb, (Int64(first) * 86_400_000, Int64(last + 1) * 86_400_000 - 1))
            }
            guard let other = TimeText.milliseconds(values[0]) ?? Int64(values[0]) else { return false }
            return spans((time, time), verb, (other, other))
        }
    }

    private func value(_ name: String) -> Value? {
        switch name {
        case "kind": .text(Samples.kind.name)
        case "@seq": .int(Int64(stored.seq))
        case "@origin": .int(Int64(stored.origin))
        case "@saved": .time(stored.savedAt)
        case "@changed": .time(stored.changedAt)
        default: Samples.kind.field(named: name).flatMap { record[$0.number] }
        }
    }

    private func isBlank(_ value: Value) -> Bool {
        func blank(_ text: String) -> Bool { text.unicodeScalars.allSatisfy(\.properties.isWhitespace) }
        switch value {
        case .text(let text), .identifier(.text(let text)): return blank(text)
        case .choice(let number): return number == 900
        case .list(let texts): return texts.isEmpty
        default: return false
        }
    }

    // MARK: Text

    static func scalars(_ text: String) -> [UInt32] {
        String(decoding: LarderFormat.folded(text), as: UTF8.self).unicodeScalars.map(\.value)
    }

    private func compare(_ text: String, _ verb: String, _ value: String) -> Bool {
        let a = TwinSubject.scalars(text)
        let b = TwinSubject.scalars(value)
        switch verb {
        case "starts": return a.starts(with: b)
        case "contains": return (0...a.count).contains { a[$0...].starts(with: b) }
        default: return ordered(a, verb, b)
        }
    }

    private func ordered<T: Comparable>(_ a: [T], _ verb: String, _ b: [T]) -> Bool {
        switch verb {
        case "=": a == b
        case "<": a.lexicographicallyPrecedes(b)
        case "<=": a == b || a.lexicographicallyPrecedes(b)
        case ">": b.lexicographicallyPrecedes(a)
        case ">=": a == b || b.lexicographicallyPrecedes(a)
        default: false
        }
    }

    // MARK: Numbers

    /// All the digits of m × 10^e, those of a negative number below zero: they compare as arrays.
    static func digits(_ mantissa: Int64, _ exponent: Int) -> [Int] {
        let text = String(mantissa.magnitude).utf8.map { Int($0) - 48 }
        var digits = [Int](repeating: 0, count: 950)
        // The ones stand at 450.
        for (index, digit) in text.enumerated() { digits[450 - exponent - (text.count - 1 - index)] = digit }
        return digits.map { mantissa < 0 ? -$0 : $0 }
    }

    private func digits(_ mantissa: Int64, _ exponent: Int) -> [Int] { TwinSubject.digits(mantissa, exponent) }

    /// Of literals as the random tests write them: `-12.5e3`.
    private func literal(_ text: String) -> [Int] {
        let parts = text.split(separator: "e")
        let decimals = parts[0].split(separator: ".")
        let fraction = decimals.count > 1 ? String(decimals[1]) : ""
        let exponent = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
        return digits(Int64(String(decimals[0]) + fraction) ?? 0, exponent - fraction.count)
    }

    private func hex(_ value: UInt64, _ count: Int) -> String {
        let text = String(value, radix: 16)
        return String(repeating: "0", count: count - text.count) + text
    }

    // MARK: Dates

    /// First and last day, counted one by one from the year −10000.
    private func days(_ date: PartialDate) -> (Int64, Int64) {
        func number(_ year: Int, _ month: Int, _ day: Int) -> Int64 {
            let before = year + 10_000 - 1
            var days = 365 * (before + 1) + before / 4 - before / 100 + before / 400 + 1
            for earlier in 1..<max(month, 1) { days += PartialDate.days(inMonth: earlier, year: year) }
            return Int64(days + day - 1)
        }
        let epoch = number(1970, 1, 1)
        let lastMonth = date.month == 0 ? 12 : date.month
        let lastDay = date.day == 0 ? PartialDate.days(inMonth: lastMonth, year: date.year) : date.day
        return (
            number(date.year, max(date.month, 1), max(date.day, 1)) - epoch,
            number(date.year, lastMonth, lastDay) - epoch
        )
    }

    private func spans(_ a: (Int64, Int64), _ verb: String, _ b: (Int64, Int64)) -> Bool {
        switch verb {
        case "=": b.0 <= a.0 && a.1 <= b.1
        case "<": a.1 < b.0
        case "<=": a.1 <= b.1
        case ">": a.0 > b.1
        case ">=": a.0 >= b.0
        default: false
        }
    }
}

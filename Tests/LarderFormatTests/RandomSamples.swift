// Random records of the sample kind, and random conditions on them, from few enough values that they often meet.

@testable import LarderFormat

extension SplitMix {
    private static let texts = [
        "", " ", "a", "A", "ab", "Ab c", "b", "한글", "\u{1112}\u{1161}\u{11AB}\u{1100}\u{1173}\u{11AF}", "한", "ＡＢ", "ß",
        "ẞ", "ss", "İ", "i", "ı", "ς", "σ", "K", "k", "é", "e\u{301}", "E", "\u{3000}", "é\u{323}", "e\u{323}\u{301}",
        "7",
        "07", "70", "\u{10400}", "\u{FB01}", "zz\u{1F600}", "\"", "\\", "a\\\"b",
    ]

    mutating func text() -> String { chance(80) ? pick(SplitMix.texts) : pick(SplitMix.texts) + pick(SplitMix.texts) }

    mutating func int() -> Int64 {
        switch below(6) {
        case 0: Int64(bitPattern: next())
        case 1: pick([.min, .max, 0])
        default: Int64(below(5)) - 2
        }
    }

    mutating func number() -> Number {
        let mantissa = chance(70) ? Int64(below(30)) - 10 : int()
        let exponent = chance(80) ? below(5) - 3 : below(700) - 350
        return Number(mantissa: mantissa, exponent: exponent) ?? Number(0)
    }

    mutating func date() -> PartialDate {
        let year = chance(85) ? 1998 + below(4) : below(19_999) - 9999
        let month = chance(30) ? 0 : 1 + below(12)
        let day = month == 0 || chance(30) ? 0 : 1 + below(PartialDate.days(inMonth: month, year: year))
        return PartialDate(year: year, month: month, day: day) ?? date()
    }

    mutating func time() -> Int64 {
        chance(70) ? Int64(below(1400)) * 86_400_000 + 883_612_800_000 - Int64(below(2)) : Int64(below(3)) - 1
    }

    mutating func uuid() -> UUIDBytes { UUIDBytes(high: UInt64(below(2)), low: UInt64(below(3))) }

    mutating func value(_ field: Field) -> Value {
        switch field.type {
        case .bool: .bool(chance(50))
        case .int: .int(int())
        case .number: .number(number())
        case .text: .text(text())
        case .identifier:
            if chance(50) {
                .identifier(.number(Int64(below(90))))
            } else {
                .identifier(Identifier(text() + "x") ?? .number(0))
            }
        case .bytes: .bytes((0..<below(3)).map { _ in UInt8(below(3)) })
        case .date: .date(date())
        case .time: .time(time())
        case .uuid: .uuid(uuid())
        case .choice: .choice(pick(field.choices).number)
        case .list: .list((0..<below(4)).map { _ in text() })
        }
    }

    /// A key is composed, so its text is.
    mutating func record() -> Record {
        var record = Record()
        for field in Samples.kind.fields where field.number == 1 || chance(60) { record[field.number] = value(field) }
        if case .identifier(.text(let text)) = record[1] { record[1] = .identifier(.text(composed(text))) }
        return record
    }

    // MARK: Conditions

    mutating func condition(depth: Int = 0) -> TwinCondition {
        switch below(depth > 3 ? 6 : 10) {
        case 0...5: test()
        case 6: .not(condition(depth: depth + 1))
        case 7, 8: .and((0..<2 + below(2)).map { _ in condition(depth: depth + 1) })
        default: .or((0..<2 + below(2)).map { _ in condition(depth: depth + 1) })
        }
    }

    private mutating func test() -> TwinCondition {
        if chance(10) {
            let name = pick(["kind", "@seq", "@origin", "@saved", "@changed"])
            let verb = pick(["=", "!=", "<", "<=", ">", ">=", "exists", "is absent", "is blank"])
            if verb == "exists" || verb.hasPrefix("is") { return .test(field: name, verb: verb, values: []) }
            let value =
                switch name {
                case "kind": pick(["sample", "Sample", "other", "s", "t"])
                case "@seq", "@origin": String(below(6))
                default: moment()
                }
            return .test(field: name, verb: verb, values: [value])
        }
        let field = pick(Samples.kind.fields)
        var verbs = ["=", "!=", "exists", "is absent", "is blank"]
        switch field.type {
        case .text, .identifier, .choice, .list: verbs += ["<", "<=", ">", ">=", "contains", "starts", "in"]
        case .int, .number, .date, .time: verbs += ["<", "<=", ">", ">=", "in"]
        case .uuid, .bytes: verbs.append("in")
        case .bool: break
        }
        let verb = pick(verbs)
        let count = verb == "exists" || verb.hasPrefix("is") ? 0 : verb == "in" ? 1 + below(3) : 1
        let isEquality = verb == "=" || verb == "!=" || verb == "in"
        return .test(
            field: field.name, verb: verb, values: (0..<count).map { _ in literal(field, isEquality: isEquality) })
    }

    private mutating func moment() -> String {
        switch below(3) {
        case 0: date().text
        case 1: TimeText.text(milliseconds: time())
        // Four digits are a year.
        default: String(max(time(), 883_612_800_000))
        }
    }

    private mutating func literal(_ field: Field, isEquality: Bool) -> String {
        switch field.type {
        case .bool: return chance(50) ? "true" : "false"
        case .int: return String(int())
        case .number:
            let number = number()
            let digits = String(number.mantissa)
            if chance(50), number.mantissa > 9, number.exponent == -1 {
                return String(digits.dropLast()) + "." + String(digits.suffix(1))
            }
            return digits + "e\(number.exponent)"
        case .text, .list: return text()
        case .identifier: return chance(50) ? String(below(90)) : text()
        case .bytes: return (0..<below(3)).map { _ in pick(["00", "01", "02"]) }.joined()
        case .date: return date().text
        case .time: return moment()
        case .uuid: return uuid().text
        case .choice: return isEquality ? pick(["film", "SERIE", "Kurz", "wide", " "]) : text()
        }
    }
}

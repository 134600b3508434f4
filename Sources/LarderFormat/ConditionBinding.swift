// Binds the tests of a condition to the fields of a kind, and refuses operators and values that a field's type lacks.

/// What a test is about.
enum ConditionPlace {
    case field(Field)
    case kind
    case seq
    case origin
    case savedAt
    case changedAt

    /// Of what the log knows of a record, and the kind; these names go before the fields'.
    init?(reserved name: String) {
        switch name {
        case "kind": self = .kind
        case "@seq": self = .seq
        case "@origin": self = .origin
        case "@saved": self = .savedAt
        case "@changed": self = .changedAt
        default: return nil
        }
    }

    /// The type whose operators it has.
    var type: FieldType {
        switch self {
        case .field(let field): field.type
        case .kind: .text
        case .seq, .origin: .int
        case .savedAt, .changedAt: .time
        }
    }
}

extension FieldType {
    fileprivate var isOrdered: Bool { self != .bool && self != .uuid && self != .bytes }
    fileprivate var isText: Bool { self == .text || self == .identifier || self == .choice || self == .list }

    fileprivate func has(_ verb: ConditionTest.Verb) -> Bool {
        switch verb {
        case .compare(.equal), .compare(.notEqual), .exists, .isAbsent, .isBlank: true
        case .compare: isOrdered
        case .contains, .starts: isText
        case .isOneOf: self != .bool
        }
    }

    /// As reasons list them.
    fileprivate var verbs: String {
        var names = "=, !="
        if isOrdered { names += ", <, <=, >, >=" }
        if isText { names += ", contains, starts" }
        if self != .bool { names += ", in" }
        return names + ", exists, is absent, is blank"
    }
}

struct ConditionBinder {
    let kind: Kind
    let memory: ConditionMemory

    /// - Throws: an operator or a value that the place does not have.
    func bind(_ test: ConditionTest, to place: ConditionPlace) throws(ConditionError) -> BoundTest {
        guard place.type.has(test.verb) else {
            throw ConditionError(
                offset: test.verbOffset,
                reason: "\(test.fieldName) is of the type \(place.type.name), which has no '\(test.verb.name)'; "
                    + "it has \(place.type.verbs)")
        }
        switch test.verb {
        case .exists, .isAbsent:
            guard case .field(let field) = place else { return .constant(test.verb == .exists) }
            var bound = BoundTest(.exists)
            bound.field = field.number
            bound.isDenied = test.verb == .isAbsent
            return bound
        case .isBlank: return blank(place)
        case .compare(let comparison):
            var bound = try compare(test, ConditionBinder.relation(comparison), place)
            bound.isDenied = comparison == .notEqual
            return bound
        case .isOneOf: return try compare(test, .equal, place)
        case .contains: return try compare(test, .contains, place)
        case .starts: return try compare(test, .starts, place)
        }
    }

    private static func relation(_ comparison: ConditionComparison) -> ConditionRelation {
        switch comparison {
        case .equal, .notEqual: .equal
        case .less: .less
        case .lessOrEqual: .lessOrEqual
        case .greater: .greater
        case .greaterOrEqual: .greaterOrEqual
        }
    }

    private func blank(_ place: ConditionPlace) -> BoundTest {
        guard case .field(let field) = place else { return .constant(false) }
        var bound: BoundTest
        switch field.type {
        case .text: bound = BoundTest(.blankText)
        case .identifier: bound = BoundTest(.blankIdentifier)
        case .list: bound = BoundTest(.blankList)
        case .choice:
            bound = BoundTest(.blankChoice)
            set(&bound, choices: field.choices.filter(\.name.isBlank).map(\.number))
        case .bool, .int, .number, .bytes, .date, .time, .uuid:
            bound = BoundTest(.exists)
            bound.isDenied = true
        }
        bound.field = field.number
        return bound
    }

    private func set(_ bound: inout BoundTest, choices: [Int]) {
        for number in choices where number < 64 { bound.choices |= 1 << UInt64(number) }
        bound.moreChoices = memory.copy(choices.filter { $0 >= 64 })
    }

    private func compare(
        _ test: ConditionTest, _ relation: ConditionRelation, _ place: ConditionPlace
    ) throws(ConditionError) -> BoundTest {
        var bound: BoundTest
        switch place {
        case .kind:
            let name = LarderFormat.folded(kind.name)
            return .constant(ConditionBinder.stands(name, relation, LarderFormat.folded(test.value)))
        case .seq, .origin:
            bound = BoundTest(place.isSeq ? .seq : .origin)
            bound.span = Span(try whole(test))
        case .savedAt, .changedAt:
            bound = BoundTest(place.isSavedAt ? .savedAt : .changedAt)
            bound.span = try moments(test)
        case .field(let field):
            bound = try compare(test, with: field)
            bound.field = field.number
            if field.type == .choice { try bindChoice(&bound, test, relation, field) }
        }
        bound.relation = relation
        return bound
    }

    private func compare(_ test: ConditionTest, with field: Field) throws(ConditionError) -> BoundTest {
        var bound: BoundTest
        switch field.type {
        case .text, .identifier, .list:
            bound = BoundTest(field.type == .text ? .text : field.type == .list ? .list : .identifier)
            bound.needle = memory.needle(LarderFormat.folded(test.value))
        case .choice: bound = BoundTest(.choice)
        case .bool:
            guard test.value == "true" || test.value == "false" else { throw refusal(test, "true or false") }
            bound = BoundTest(.bool)
            bound.span = Span(test.value == "true" ? 1 : 0)
        case .int:
            bound = BoundTest(.int)
            bound.span = Span(try whole(test))
        case .number:
            guard let number = Number(exactly: test.value) else {
                throw refusal(test, "numbers such as 7.5, -3 or 1e6 (of at most 18 digits)")
            }
            bound = BoundTest(.number)
            bound.span = Span(number.mantissa)
            bound.exponent = number.exponent
        case .date:
            guard let date = PartialDate(text: test.value), let days = Span(date) else {
                throw refusal(test, "dates such as 1999, 1999-03 or 1999-03-31")
            }
            bound = BoundTest(.date)
            bound.span = days
        case .time:
            // In the record it is a whole number, as ints are.
            bound = BoundTest(.int)
            bound.span = try moments(test)
        case .uuid:
            guard let bytes = uuidBytes(test.value) else {
                throw refusal(test, "uuids such as 123e4567-e89b-42d3-a456-426614174000")
            }
            bound = BoundTest(.uuid)
            bound.needle = memory.needle(bytes)
        case .bytes:
            guard let bytes = hexBytes(test.value) else { throw refusal(test, "bytes, as pairs of hex digits") }
            bound = BoundTest(.bytes)
            bound.needle = memory.needle(bytes)
        }
        return bound
    }

    /// A choice has few values: the test is made on each of them here, once.
    private func bindChoice(
        _ bound: inout BoundTest, _ test: ConditionTest, _ relation: ConditionRelation, _ field: Field
    ) throws(ConditionError) {
        let value = LarderFormat.folded(test.value)
        let holding = field.choices.filter { choice in
            ConditionBinder.stands(LarderFormat.folded(choice.name), relation, value)
        }
        if relation == .equal && holding.isEmpty {
            throw refusal(test, "one of \(ConditionToken.short(field.choices.map(\.name).joined(separator: ", ")))")
        }
        set(&bound, choices: holding.map(\.number))
    }

    /// How folded text stands to folded text.
    private static func stands(_ text: [UInt8], _ relation: ConditionRelation, _ value: [UInt8]) -> Bool {
        switch relation {
        case .equal: text == value
        case .less: text.lexicographicallyPrecedes(value)
        case .lessOrEqual: !value.lexicographicallyPrecedes(text)
        case .greater: value.lexicographicallyPrecedes(text)
        case .greaterOrEqual: !text.lexicographicallyPrecedes(value)
        case .starts: text.starts(with: value)
        case .contains:
            value.count <= text.count
                && (0...(text.count - value.count)).contains { text[$0...].starts(with: value) }
        }
    }

    private func whole(_ test: ConditionTest) throws(ConditionError) -> Int64 {
        guard let number = Number(exactly: test.value)?.whole else {
            throw refusal(test, "whole numbers of at most 64 bits")
        }
        return number
    }

    private func moments(_ test: ConditionTest) throws(ConditionError) -> Span {
        if test.value.utf8.count <= 64 {
            if let date = PartialDate(text: test.value) { return Span(millisecondsOf: date) }
            if let time = TimeText.milliseconds(test.value, secondsRequired: false) { return Span(time) }
            if let milliseconds = Number(exactly: test.value)?.whole { return Span(milliseconds) }
        }
        throw refusal(test, "dates such as 1999-03, times such as 1999-03-31T08:00Z, or milliseconds since 1970")
    }

    private func refusal(_ test: ConditionTest, _ wanted: String) -> ConditionError {
        ConditionError(
            offset: test.valueOffset,
            reason: "\(test.fieldName) holds \(wanted), not '\(ConditionToken.short(test.value))'")
    }
}

extension ConditionPlace {
    fileprivate var isSeq: Bool {
        if case .seq = self { return true }
        return false
    }
    fileprivate var isSavedAt: Bool {
        if case .savedAt = self { return true }
        return false
    }
}

/// A uuid with its hyphens or without any.
private func uuidBytes(_ text: String) -> [UInt8]? {
    if UUIDBytes(text: text) == nil && text.utf8.contains(UInt8(ascii: "-")) { return nil }
    let bytes = hexBytes(text.filter { $0 != "-" })
    return bytes?.count == 16 ? bytes : nil
}

private func hexBytes(_ text: String) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard digits.count % 2 == 0 else { return nil }
    var bytes: [UInt8] = []
    for at in stride(from: 0, to: digits.count, by: 2) {
        guard let high = hexDigit(digits[at]), let low = hexDigit(digits[at + 1]) else { return nil }
        bytes.append(UInt8(high << 4 | low))
    }
    return bytes
}

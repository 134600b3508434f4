// Makes of a condition's text its tests and the steps between them (SPEC.md section 17).

/// A test as it is written, not yet bound to a field of some kind.
struct ConditionTest {
    enum Verb: Equatable {
        case compare(ConditionComparison)
        case contains
        case starts
        /// One value of an `in`.
        case isOneOf
        case exists
        case isAbsent
        case isBlank

        /// As it is written.
        var name: String {
            switch self {
            case .compare(let comparison): comparison.rawValue
            case .contains: "contains"
            case .starts: "starts"
            case .isOneOf: "in"
            case .exists: "exists"
            case .isAbsent: "is absent"
            case .isBlank: "is blank"
            }
        }
    }

    let field: ConditionToken
    let fieldName: String
    let verb: Verb
    let verbOffset: Int
    /// Empty where the verb takes none.
    var value = ""
    var valueOffset = 0
}

/// What is done in turn; there is one answer in hand, which each test replaces.
enum ConditionStep: Equatable {
    case test(Int)
    case not
    /// Goes on at a step where the answer is no.
    case skipIfFalse(to: Int)
    case skipIfTrue(to: Int)
}

struct ConditionParser {
    /// Parentheses and `not`s inside one another.
    static let depthMax = 64

    private(set) var tests: [ConditionTest] = []
    private(set) var steps: [ConditionStep] = []

    private var lexer: ConditionLexer
    private var token: ConditionToken
    private var depth = 0

    init(_ text: String) throws(ConditionError) {
        lexer = try ConditionLexer(text)
        token = try lexer.next()
        if case .end = token.content { throw ConditionError(offset: 0, reason: "the condition is empty") }
        try parseOr()
        switch token.content {
        case .end: return
        case .close: throw ConditionError(offset: token.offset, reason: "no parenthesis is open that ')' could close")
        default: throw expected("'and', 'or' or the end")
        }
    }

    private mutating func parseOr() throws(ConditionError) {
        var skips: [Int] = []
        try parseAnd()
        while token.word == "or" {
            try advance()
            skips.append(steps.count)
            steps.append(.skipIfTrue(to: 0))
            try parseAnd()
        }
        for skip in skips { steps[skip] = .skipIfTrue(to: steps.count) }
    }

    private mutating func parseAnd() throws(ConditionError) {
        var skips: [Int] = []
        try parseNot()
        while token.word == "and" {
            try advance()
            skips.append(steps.count)
            steps.append(.skipIfFalse(to: 0))
            try parseNot()
        }
        for skip in skips { steps[skip] = .skipIfFalse(to: steps.count) }
    }

    private mutating func parseNot() throws(ConditionError) {
        if token.word == "not" {
            try descend()
            try parseNot()
            depth -= 1
            steps.append(.not)
        } else if token.content == .open {
            let open = token.offset
            try descend()
            try parseOr()
            guard token.content == .close else {
                if token.content == .end {
                    throw ConditionError(offset: open, reason: "the parenthesis that opens here is not closed")
                }
                throw expected("'and', 'or' or ')'")
            }
            depth -= 1
            try advance()
        } else {
            try parseTest()
        }
    }

    private mutating func descend() throws(ConditionError) {
        guard depth < ConditionParser.depthMax else {
            throw ConditionError(
                offset: token.offset,
                reason: "more than \(ConditionParser.depthMax) levels of parentheses and 'not'")
        }
        depth += 1
        try advance()
    }

    private mutating func parseTest() throws(ConditionError) {
        guard let name = token.word else { throw expected("a field's name") }
        let field = token
        try advance()
        let verb = token
        func test(_ kind: ConditionTest.Verb) -> ConditionTest {
            ConditionTest(field: field, fieldName: name, verb: kind, verbOffset: verb.offset)
        }
        switch verb.content {
        case .comparison(let comparison):
            try advance()
            try append(test(.compare(comparison)))
        case .word("contains"):
            try advance()
            try append(test(.contains))
        case .word("starts"):
            try advance()
            try append(test(.starts))
        case .word("in"):
            try advance()
            try parseIn(test(.isOneOf))
        case .word("exists"):
            try advance()
            append(withoutValue: test(.exists))
        case .word("is"):
            try advance()
            guard token.word == "absent" || token.word == "blank" else { throw expected("'absent' or 'blank'") }
            append(withoutValue: test(token.word == "absent" ? .isAbsent : .isBlank))
            try advance()
        default:
            throw expected(
                "=, !=, <, <=, >, >=, contains, starts, in, exists or is, behind '\(ConditionToken.short(name))'")
        }
    }

    /// `( value , value … )`: a test for each value, the first that holds ends them.
    private mutating func parseIn(_ test: ConditionTest) throws(ConditionError) {
        guard token.content == .open else { throw expected("'(' and the values that 'in' may find") }
        var skips: [Int] = []
        repeat {
            try advance()
            if !skips.isEmpty { steps.append(.skipIfTrue(to: 0)) }
            try append(test)
            skips.append(steps.count)
        } while token.content == .comma
        guard token.content == .close else { throw expected("',' or ')'") }
        try advance()
        // Each skip stands behind a test, but the last has none.
        for skip in skips.dropLast() { steps[skip] = .skipIfTrue(to: steps.count) }
    }

    /// Takes the value that stands here.
    private mutating func append(_ test: ConditionTest) throws(ConditionError) {
        var test = test
        switch token.content {
        case .word(let text), .quoted(let text): test.value = text
        default: throw expected("a value")
        }
        test.valueOffset = token.offset
        append(withoutValue: test)
        try advance()
    }

    private mutating func append(withoutValue test: ConditionTest) {
        steps.append(.test(tests.count))
        tests.append(test)
    }

    private mutating func advance() throws(ConditionError) { token = try lexer.next() }

    private func expected(_ wanted: String) -> ConditionError {
        ConditionError(offset: token.offset, reason: "expected \(wanted), not \(token.name)")
    }
}

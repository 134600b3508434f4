// Conditions (SPEC.md section 17): text that records are tested on.

/// What a condition is tested on: an encoded, checked record and what the log knows of it. Borrowed.
public struct ConditionSubject {
    /// The kind's number.
    public var kind: Int
    public var seq: UInt64
    public var firstSeq: UInt64
    /// In milliseconds since 1970-01-01T00:00:00Z.
    public var savedAt: Int64
    /// In milliseconds since 1970-01-01T00:00:00Z.
    public var changedAt: Int64
    public var origin: UInt64
    /// Its owner keeps it alive and unchanged while a condition is tested on it.
    public var record: UnsafeRawBufferPointer

    @inlinable
    public init(
        kind: Int, seq: UInt64, firstSeq: UInt64, savedAt: Int64, changedAt: Int64, origin: UInt64,
        record: UnsafeRawBufferPointer
    ) {
        self.kind = kind
        self.seq = seq
        self.firstSeq = firstSeq
        self.savedAt = savedAt
        self.changedAt = changedAt
        self.origin = origin
        self.record = record
    }
}

/// A condition, parsed and bound to kinds. It has memory of its own for each test: one thread at a time.
public final class Condition {
    private let memory: ConditionMemory
    /// Keeps the rules alive to which `kinds` points.
    private let schemas: [RecordSchema]
    private let kinds: UnsafeBufferPointer<BoundKind>
    private let steps: UnsafeBufferPointer<ConditionStep>
    private var run = ConditionRun()

    /// - Parameters:
    ///   - text: at most 4,096 bytes.
    ///   - schemas: the one kind that is asked for, or all of them. A field need be in one of them only, and of a type
    ///     that suits its test in one of them only; a kind that is not bound to every test never matches.
    /// - Throws: the first fault of the text as such, else of its first test that no kind can make.
    public init(_ text: String, schemas: [RecordSchema]) throws(ConditionError) {
        let parser = try ConditionParser(text)
        let memory = ConditionMemory()
        for test in parser.tests { try Condition.check(test, schemas, memory) }
        var kinds: [BoundKind] = []
        for schema in schemas {
            guard let tests = Condition.bind(parser.tests, schema, memory) else { continue }
            guard let base = memory.copy(tests).baseAddress else { continue }
            kinds.append(
                BoundKind(
                    number: schema.kind.number, rules: schema.ruleTable, tests: base,
                    highestField: tests.map(\.field).max() ?? 0))
        }
        self.memory = memory
        self.schemas = schemas
        self.kinds = memory.copy(kinds)
        steps = memory.copy(parser.steps)
    }

    /// Whether it holds of a record. False for a kind to which it is not bound, and for a record that is broken where
    /// the condition looks. About 0.1 to 0.3 microseconds for a record of 400 bytes; never allocates, but for text that
    /// is longer than any before it.
    public func matches(_ subject: ConditionSubject) -> Bool {
        for index in 0..<kinds.count where kinds[index].number == subject.kind {
            return run.holds(steps, kinds[index], subject)
        }
        return false
    }

    /// Binds a test to the first of the kinds that can make it.
    private static func check(
        _ test: ConditionTest, _ schemas: [RecordSchema], _ memory: ConditionMemory
    ) throws(ConditionError) {
        var fault: ConditionError?
        for schema in schemas {
            guard let place = place(test, schema.kind) else { continue }
            do throws(ConditionError) {
                _ = try ConditionBinder(kind: schema.kind, memory: memory).bind(test, to: place)
                return
            } catch {
                if fault == nil { fault = error }
            }
        }
        if let fault { throw fault }
        let owner = schemas.count == 1 ? "the kind \(schemas[0].kind.name) has no" : "no kind has a"
        throw ConditionError(
            offset: test.field.offset, reason: "\(owner) field '\(ConditionToken.short(test.fieldName))'")
    }

    private static func place(_ test: ConditionTest, _ kind: Kind) -> ConditionPlace? {
        ConditionPlace(reserved: test.fieldName) ?? kind.field(named: test.fieldName).map(ConditionPlace.field)
    }

    /// Nil where the kind lacks a field, or has it with a type that does not suit.
    private static func bind(
        _ tests: [ConditionTest], _ schema: RecordSchema, _ memory: ConditionMemory
    ) -> [BoundTest]? {
        let binder = ConditionBinder(kind: schema.kind, memory: memory)
        var bound: [BoundTest] = []
        for test in tests {
            guard let place = place(test, schema.kind), let one = try? binder.bind(test, to: place) else { return nil }
            bound.append(one)
        }
        return bound
    }
}

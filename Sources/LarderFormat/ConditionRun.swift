// Tests a bound condition on the bytes of a record.

import CLarder
import Glibc

/// The memory that testing needs, used again from record to record. Owned by one condition.
struct ConditionRun: ~Copyable {
    private var offsets = FieldOffsets()
    /// The texts of `foldedField`, each with `end` behind it.
    private var folded = FoldBuffer()
    private var foldedField = 0
    /// A value was not what its type promises.
    private var isBroken = false

    /// A byte that no text has.
    private static let end: UInt8 = 0xFF

    init() {}

    @inline(__always)
    mutating func holds(
        _ steps: UnsafeBufferPointer<ConditionStep>, _ kind: BoundKind, _ subject: ConditionSubject
    ) -> Bool {
        guard let record = FieldBytes(subject.record), offsets.locate(record, upTo: kind.highestField, kind.rules)
        else { return false }
        foldedField = 0
        isBroken = false
        var answer = false
        var at = 0
        while at < steps.count {
            switch steps[at] {
            case .test(let index): answer = holds(kind.tests + index, record, subject)
            case .not: answer.toggle()
            case .skipIfFalse(let target):
                if !answer {
                    at = target
                    continue
                }
            case .skipIfTrue(let target):
                if answer {
                    at = target
                    continue
                }
            }
            at &+= 1
        }
        return answer && !isBroken
    }

    @inline(__always)
    private mutating func holds(
        _ test: UnsafePointer<BoundTest>, _ record: FieldBytes, _ subject: ConditionSubject
    ) -> Bool {
        let field = test.pointee.field
        let isPresent = field != 0 && offsets.present.contains(field)
        let at = isPresent ? offsets.offset(field) : 0
        return answer(test, record, subject, isPresent, at) != test.pointee.isDenied
    }

    @inline(__always)
    private mutating func answer(
        _ test: UnsafePointer<BoundTest>, _ record: FieldBytes, _ subject: ConditionSubject, _ isPresent: Bool,
        _ start: Int
    ) -> Bool {
        var at = start
        var value: Int64 = 0
        let relation = test.pointee.relation
        switch test.pointee.operation {
        case .constant: return test.pointee.span.first == 1
        case .exists: return isPresent
        case .seq: return stands(Int64(clamping: subject.seq), test)
        case .origin: return stands(Int64(clamping: subject.origin), test)
        case .savedAt: return stands(subject.savedAt, test)
        case .changedAt: return stands(subject.changedAt, test)
        case .blankText, .blankIdentifier, .blankList, .blankChoice:
            return !isPresent || isBlank(test, record, at)
        default: break
        }
        guard isPresent else { return false }
        switch test.pointee.operation {
        case .int:
            guard record.svarint(&at, &value) else { return broken() }
            return stands(value, test)
        case .date:
            guard record.svarint(&at, &value), let days = Span(packedDate: value) else { return broken() }
            return days.stands(relation, to: test.pointee.span)
        case .bool:
            guard at < record.count else { return broken() }
            return stands(Int64(record.byte(at)), test)
        case .number:
            var exponent: Int64 = 0
            guard record.svarint(&at, &value), record.svarint(&at, &exponent), exponent >= -400, exponent <= 400 else {
                return broken()
            }
            let order = Number.order(value, Int(exponent), test.pointee.span.first, test.pointee.exponent)
            return ConditionRun.stands(order, relation)
        case .choice: return isChosen(test, record, at)
        case .text, .identifier, .list:
            guard foldedField == test.pointee.field || fold(test, record, at) else { return broken() }
            return textStands(relation, test.pointee.needle)
        case .uuid: return record.count &- at >= 16 ? equals(record.base + at, 16, test) : broken()
        case .bytes:
            guard let bytes = record.string(&at), let base = bytes.baseAddress else { return broken() }
            return equals(base, bytes.count, test)
        default: return false
        }
    }

    private mutating func broken() -> Bool {
        isBroken = true
        return false
    }

    @inline(__always)
    private func stands(_ value: Int64, _ test: UnsafePointer<BoundTest>) -> Bool {
        Span(value).stands(test.pointee.relation, to: test.pointee.span)
    }

    /// For an order that is below, at or above 0.
    @inline(__always)
    private static func stands(_ order: Int, _ relation: ConditionRelation) -> Bool {
        switch relation {
        case .equal: order == 0
        case .less: order < 0
        case .lessOrEqual: order <= 0
        case .greater: order > 0
        case .greaterOrEqual: order >= 0
        case .contains, .starts: false
        }
    }

    private mutating func isBlank(_ test: UnsafePointer<BoundTest>, _ record: FieldBytes, _ start: Int) -> Bool {
        var at = start
        var head: UInt64 = 0
        switch test.pointee.operation {
        case .blankText:
            guard let text = record.string(&at) else { return broken() }
            return isWhiteSpaceOnly(text)
        case .blankIdentifier:
            guard record.varint(&at, &head) else { return broken() }
            let start = at
            guard head & 1 == 1 else { return false }
            guard record.pass(head &>> 1, &at) else { return broken() }
            return isWhiteSpaceOnly(UnsafeRawBufferPointer(start: record.base + start, count: at &- start))
        case .blankList:
            guard record.varint(&at, &head) else { return broken() }
            return head == 0
        default: return isChosen(test, record, at)
        }
    }

    private mutating func isChosen(_ test: UnsafePointer<BoundTest>, _ record: FieldBytes, _ start: Int) -> Bool {
        var at = start
        var number: UInt64 = 0
        guard record.varint(&at, &number) else { return broken() }
        if number < 64 { return test.pointee.choices &>> number & 1 == 1 }
        return test.pointee.moreChoices.contains { UInt64($0) == number }
    }

    private func equals(_ bytes: UnsafeRawPointer, _ count: Int, _ test: UnsafePointer<BoundTest>) -> Bool {
        guard count == test.pointee.needle.count, let wanted = test.pointee.needle.bytes else { return false }
        return memcmp(bytes, wanted, count) == 0
    }

    /// Folds the texts of the test's field into `folded`. False where they are cut.
    private mutating func fold(_ test: UnsafePointer<BoundTest>, _ record: FieldBytes, _ start: Int) -> Bool {
        folded.removeAll()
        foldedField = test.pointee.field
        var at = start
        if test.pointee.operation == .list {
            var count: UInt64 = 0
            guard record.varint(&at, &count) else { return false }
            while count > 0 {
                guard let text = record.string(&at) else { return false }
                folded.append(folding: text)
                folded.append(ConditionRun.end)
                count &-= 1
            }
            return true
        }
        guard
            test.pointee.operation == .text
                ? record.fold(textAt: at, into: &folded)
                : record.fold(identifierAt: at, into: &folded)
        else { return false }
        folded.append(ConditionRun.end)
        return true
    }

    /// Whether one of the folded texts stands to the needle as asked.
    @inline(__always)
    private func textStands(_ relation: ConditionRelation, _ needle: larder_needle) -> Bool {
        if relation == .contains {
            var needle = needle
            return needle.count == 0 ? folded.count > 0 : larder_find(folded.base, folded.count, &needle) >= 0
        }
        guard let wanted = needle.bytes else { return false }
        var at = 0
        while at < folded.count {
            let text = folded.base + at
            let left = folded.count &- at
            let end = memchr(text, Int32(ConditionRun.end), left).map { UnsafeRawPointer($0) - UnsafeRawPointer(text) }
            let count = end ?? left
            let shared = min(count, needle.count)
            var order = Int(memcmp(text, wanted, shared))
            if order == 0 && relation == .starts && count >= needle.count { return true }
            if order == 0 { order = count &- needle.count }
            if ConditionRun.stands(order, relation) { return true }
            at &+= count &+ 1
        }
        return false
    }
}

extension FieldBytes {
    /// Folds a text to the end of `buffer`. False, and nothing folded, where it is cut.
    @inline(__always)
    func fold(textAt start: Int, into buffer: inout FoldBuffer) -> Bool {
        var at = start
        guard let text = string(&at) else { return false }
        buffer.append(folding: text)
        return true
    }

    /// Folds an identifier, a number as its digits.
    @inline(__always)
    func fold(identifierAt start: Int, into buffer: inout FoldBuffer) -> Bool {
        var at = start
        var head: UInt64 = 0
        guard varint(&at, &head) else { return false }
        if head & 1 == 0 {
            buffer.append(digits: head &>> 1)
            return true
        }
        let begin = at
        guard pass(head &>> 1, &at) else { return false }
        buffer.append(folding: UnsafeRawBufferPointer(start: base + begin, count: at &- begin))
        return true
    }
}

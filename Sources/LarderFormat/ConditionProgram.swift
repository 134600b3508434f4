// A condition made ready for records of a kind: flat memory, so that testing a record neither allocates nor counts
// references.

import CLarder

/// What a value is held against. `!=` is `equal`, denied.
enum ConditionRelation: UInt8 {
    case equal, less, lessOrEqual, greater, greaterOrEqual, contains, starts
}

/// A test bound to a field of a kind.
struct BoundTest {
    enum Operation: UInt8 {
        /// `span.first` is 1.
        case constant
        case exists
        /// Absent, or a text, identifier or list that is blank.
        case blankText, blankIdentifier, blankList
        /// Absent, or a choice whose name is blank.
        case blankChoice
        /// Values that are points or spans.
        case bool, int, date, seq, savedAt, changedAt, origin
        case number
        /// Folded, against `needle`.
        case text, identifier, list
        case choice
        /// Bytes as they are, against `needle`.
        case uuid, bytes
    }

    var operation: Operation
    var relation = ConditionRelation.equal
    /// The answer is the other one.
    var isDenied = false
    /// 0: none is needed.
    var field = 0
    var span = Span(0)
    /// Of a number.
    var exponent = 0
    /// The choices for which it holds: those below 64 as bits, the others in `moreChoices`.
    var choices: UInt64 = 0
    var moreChoices = UnsafeBufferPointer<Int>(start: nil, count: 0)
    var needle = larder_needle()

    init(_ operation: Operation) { self.operation = operation }

    static func constant(_ answer: Bool) -> BoundTest {
        var test = BoundTest(.constant)
        test.span = Span(answer ? 1 : 0)
        return test
    }
}

/// The tests of a condition bound to one kind. They and all that they point to are `memory`'s.
struct BoundKind {
    let number: Int
    /// Of the kind's schema.
    let rules: UnsafePointer<UInt16>
    let tests: UnsafePointer<BoundTest>
    /// The highest field that some test needs; 0: none.
    let highestField: Int
}

/// Memory that lives as long as the condition.
final class ConditionMemory {
    private var blocks: [UnsafeMutableRawPointer] = []

    deinit {
        for block in blocks { block.deallocate() }
    }

    /// A copy of the elements, which must be trivial.
    func copy<T: BitwiseCopyable>(_ elements: [T]) -> UnsafeBufferPointer<T> {
        let block = UnsafeMutableBufferPointer<T>.allocate(capacity: max(elements.count, 1))
        _ = block.initialize(from: elements)
        blocks.append(UnsafeMutableRawPointer(block.baseAddress.unsafelyUnwrapped))
        return UnsafeBufferPointer(start: block.baseAddress, count: elements.count)
    }

    func needle(_ bytes: [UInt8]) -> larder_needle {
        let copied = copy(bytes)
        return larder_needle_of(copied.baseAddress, copied.count)
    }
}

// A text that is no condition (SPEC.md section 17).

/// Where and why a text is no condition.
public struct ConditionError: Error, Equatable, Sendable, CustomStringConvertible {
    /// In bytes from the text's beginning.
    public let offset: Int
    /// What was seen and what would be right, as a sentence without its stop.
    public let reason: String

    public init(offset: Int, reason: String) {
        self.offset = offset
        self.reason = reason
    }

    public var description: String { "at byte \(offset): \(reason)" }
}

// What becomes of a line of an import.

/// Result of one line.
public enum LineOutcome: Equatable, Sendable {
    /// `LineEncoder.record` holds a record of the kind of this number, `warnings` what was left out of it.
    case record(kind: Int)
    /// White space only.
    case blank
    case refused(LineRefusal)
}

/// Why a line gives no record.
public struct LineRefusal: Error, Equatable, Sendable, CustomStringConvertible {
    /// `bad-json`, `bad-unicode`, `not-an-object`, `too-large`, `unknown-kind`, or `missing-` or `bad-` with a field's
    /// name: `bad-id`, `missing-title`.
    public let code: String
    /// Name of the field, or "".
    public let field: String
    /// A sentence for people.
    public let message: String

    public init(_ code: String, field: String = "", _ message: String) {
        self.code = code
        self.field = field
        self.message = message
    }

    public var description: String { "\(code): \(message)" }
}

/// What was left out of a record that was made, or changed in it.
public struct LineWarning: Equatable, Sendable, CustomStringConvertible {
    /// Name of the field.
    public let field: String
    /// A sentence for people.
    public let reason: String

    public var description: String { "\(field): \(reason)" }
}

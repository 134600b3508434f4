// What is wrong with bytes, and where.

/// Bytes that do not decode, with the place of the primitive or value that is at fault.
///
/// Raised for anything a peer or the disk can hold; never for a defect of ours.
public struct FormatError: Error, Equatable, Sendable {
    /// The class of the fault. Names are those of SPEC.md section 6 where the wire has one.
    public enum Code: UInt8, Sendable {
        /// The bytes end inside a primitive. `offset` is where that primitive begins.
        case truncated
        /// A value in an encoding that is not its own: a varint that is not the shortest, trailing zeros, …
        case notCanonical
        /// Text that is not UTF-8, or holds U+0000.
        case badText
        /// A value outside the range of its type.
        case outOfRange
        /// Bytes behind the last field.
        case trailing
        /// A length above its limit.
        case tooLarge
        /// A record without a field that its kind requires.
        case missingField
        /// A field that must not be blank and is.
        case blankField
        /// A field that must not be zero and is.
        case zeroField
        /// A field that the kind does not declare.
        case unknownField
        /// A number that is none of the choice's values.
        case unknownChoice
        /// Text of a key that is not in normalisation form C.
        case keyNotNormalised
        /// A declaration that contradicts itself.
        case badDeclaration
        /// A checksum that does not fit.
        case badChecksum
        /// A structure that is not what it must be: a magic number, a place, a flag.
        case badStructure
    }

    public var code: Code
    /// Offset in bytes from the start of the buffer that was read.
    public var offset: Int
    /// Number of the record's field, 0 if none.
    public var field: Int

    @inlinable
    public init(_ code: Code, at offset: Int, field: Int = 0) {
        self.code = code
        self.offset = offset
        self.field = field
    }
}

extension FormatError: CustomStringConvertible {
    public var description: String {
        let what =
            switch code {
            case .truncated: "the bytes end too early"
            case .notCanonical: "not the one encoding of its value"
            case .badText: "not UTF-8 text without NUL"
            case .outOfRange: "a value out of range"
            case .trailing: "bytes behind the end"
            case .tooLarge: "a length over its limit"
            case .missingField: "a required field is missing"
            case .blankField: "a field that must not be blank is blank"
            case .zeroField: "a field that must not be zero is zero"
            case .unknownField: "a field that the kind does not declare"
            case .unknownChoice: "a number that is none of the choice's values"
            case .keyNotNormalised: "text in the key that is not in normalisation form C"
            case .badDeclaration: "a declaration that contradicts itself"
            case .badChecksum: "a checksum that does not fit"
            case .badStructure: "not the structure it should be"
            }
        return field == 0 ? "\(what), at offset \(offset)" : "\(what), field \(field), at offset \(offset)"
    }
}

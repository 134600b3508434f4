// A kind as DEFINE asks for it, before the library has given it a number and a version.

/// A declaration whose number and version may be left to the library. Valid but for them, as `Kind` is.
public struct KindDraft: Hashable, Sendable {
    /// 0: that of the kind with this name, or a new one.
    public let number: Int
    /// 0: one above the kind's, or 1.
    public let version: Int
    /// Everything else. Its own number and version are 1 where the library gives them.
    public let shape: Kind

    /// - Parameters:
    ///   - number: 0 … 2^31 − 1; nil: the kind's own.
    ///   - version: 0 … 2^31 − 1; nil: the kind's own.
    public init(_ kind: Kind, number: Int? = nil, version: Int? = nil) {
        self.number = number ?? kind.number
        self.version = version ?? kind.version
        shape = Kind(kind, number: max(self.number, 1), version: max(self.version, 1))
    }

    public var name: String { shape.name }

    /// The kind that it becomes.
    public func kind(number: Int, version: Int) throws(FormatError) -> Kind {
        try Kind(
            number: number, name: shape.name, version: version, keyFieldCount: shape.keyFieldCount,
            fields: shape.fields, labelFields: shape.labelFields)
    }

    public func encode(into writer: inout ByteWriter) { shape.encode(into: &writer, number: number, version: version) }

    /// - Throws: as `Kind` does; number and version may be 0.
    public init(from reader: inout ByteReader) throws(FormatError) {
        try self.init(from: &reader, numbers: 0...Kind.numberRange.upperBound)
    }
}

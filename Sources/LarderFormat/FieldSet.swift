// The set of fields that a record has, or that a change touched.

/// Field numbers 1 … 256 as bits. In bytes: a count b, then b bytes, the last of which is not 0.
@frozen
public struct FieldSet: Equatable, Sendable {
    @usableFromInline var words: (UInt64, UInt64, UInt64, UInt64)

    @inlinable public init() { words = (0, 0, 0, 0) }
    @inlinable
    init(words: (UInt64, UInt64, UInt64, UInt64)) { self.words = words }

    @inlinable
    public static func == (a: FieldSet, b: FieldSet) -> Bool {
        a.words.0 == b.words.0 && a.words.1 == b.words.1 && a.words.2 == b.words.2 && a.words.3 == b.words.3
    }

    @inlinable public var isEmpty: Bool { words.0 | words.1 | words.2 | words.3 == 0 }

    @inlinable
    public func contains(_ field: Int) -> Bool {
        let bit = UInt64(1) << UInt64((field &- 1) & 63)
        switch (field &- 1) >> 6 {
        case 0: return words.0 & bit != 0
        case 1: return words.1 & bit != 0
        case 2: return words.2 & bit != 0
        case 3: return words.3 & bit != 0
        default: return false
        }
    }

    @inlinable
    public mutating func insert(_ field: Int) {
        let bit = UInt64(1) << UInt64((field &- 1) & 63)
        switch (field &- 1) >> 6 {
        case 0: words.0 |= bit
        case 1: words.1 |= bit
        case 2: words.2 |= bit
        case 3: words.3 |= bit
        default: break
        }
    }

    @inlinable
    public mutating func remove(_ field: Int) { self = subtracting(FieldSet([field])) }

    @inlinable
    public init(_ fields: some Sequence<Int>) {
        self.init()
        for field in fields { insert(field) }
    }

    @inlinable
    public func union(_ o: FieldSet) -> FieldSet {
        FieldSet(words: (words.0 | o.words.0, words.1 | o.words.1, words.2 | o.words.2, words.3 | o.words.3))
    }
    @inlinable
    public func intersection(_ o: FieldSet) -> FieldSet {
        FieldSet(words: (words.0 & o.words.0, words.1 & o.words.1, words.2 & o.words.2, words.3 & o.words.3))
    }
    @inlinable
    public func subtracting(_ o: FieldSet) -> FieldSet {
        FieldSet(words: (words.0 & ~o.words.0, words.1 & ~o.words.1, words.2 & ~o.words.2, words.3 & ~o.words.3))
    }

    /// The smallest number in the set, or nil.
    @inlinable
    public var first: Int? {
        if words.0 != 0 { return words.0.trailingZeroBitCount &+ 1 }
        if words.1 != 0 { return words.1.trailingZeroBitCount &+ 65 }
        if words.2 != 0 { return words.2.trailingZeroBitCount &+ 129 }
        if words.3 != 0 { return words.3.trailingZeroBitCount &+ 193 }
        return nil
    }

    /// Takes the smallest number out, or nil.
    @inlinable
    public mutating func popFirst() -> Int? {
        if words.0 != 0 {
            defer { words.0 &= words.0 &- 1 }
            return words.0.trailingZeroBitCount &+ 1
        }
        guard let field = first else { return nil }
        remove(field)
        return field
    }

    /// Bytes of the bitmap without its count: none for the empty set.
    public var bitmapByteCount: Int {
        if words.3 != 0 { return 32 &- words.3.leadingZeroBitCount / 8 }
        if words.2 != 0 { return 24 &- words.2.leadingZeroBitCount / 8 }
        if words.1 != 0 { return 16 &- words.1.leadingZeroBitCount / 8 }
        return 8 &- words.0.leadingZeroBitCount / 8
    }

    func byte(_ index: Int) -> UInt8 {
        let word =
            switch index >> 3 {
            case 0: words.0
            case 1: words.1
            case 2: words.2
            default: words.3
            }
        return UInt8(truncatingIfNeeded: word >> UInt64((index & 7) * 8))
    }

    public func encode(into writer: inout ByteWriter) {
        let count = bitmapByteCount
        writer.u8(UInt8(count))
        for index in 0..<count { writer.u8(byte(index)) }
    }

    public func encode(into writer: inout RawWriter) {
        let count = bitmapByteCount
        writer.u8(UInt8(count))
        for index in 0..<count { writer.u8(byte(index)) }
    }

    /// - Throws: at its count: `outOfRange` above 32, `truncated`, `notCanonical` when the last byte is 0.
    @inlinable
    public init(from reader: inout ByteReader) throws(FormatError) {
        let start = reader.offset
        let count = Int(try reader.u8())
        guard count <= 32 else { throw FormatError(.outOfRange, at: start) }
        guard reader.remaining >= count else { throw FormatError(.truncated, at: start) }
        self.init()
        guard count > 0 else { return }
        let at = reader.base + reader.offset
        guard at.load(fromByteOffset: count &- 1, as: UInt8.self) != 0 else {
            throw FormatError(.notCanonical, at: start)
        }
        if count <= 8 && reader.remaining >= 8 {
            let word = UInt64(littleEndian: at.loadUnaligned(as: UInt64.self))
            words.0 = word & (UInt64.max >> UInt64(64 &- 8 &* count))
            reader.offset &+= count
            return
        }
        for index in 0..<count {
            let byte = UInt64(at.load(fromByteOffset: index, as: UInt8.self)) << UInt64((index & 7) &* 8)
            switch index >> 3 {
            case 0: words.0 |= byte
            case 1: words.1 |= byte
            case 2: words.2 |= byte
            default: words.3 |= byte
            }
        }
        reader.offset &+= count
    }
}

// Writes primitives: into an array that grows, or straight into memory whose room was worked out beforehand.

/// Appends primitives to bytes of its own.
@frozen
public struct ByteWriter: Sendable {
    public var bytes: [UInt8]

    @inlinable
    public init(reserving capacity: Int = 0) {
        bytes = []
        if capacity > 0 { bytes.reserveCapacity(capacity) }
    }

    @inlinable public var count: Int { bytes.count }

    @inlinable public mutating func u8(_ value: UInt8) { bytes.append(value) }
    @inlinable public mutating func u16(_ value: UInt16) { fixed(value) }
    @inlinable public mutating func u32(_ value: UInt32) { fixed(value) }
    @inlinable public mutating func u64(_ value: UInt64) { fixed(value) }
    @inlinable public mutating func i64(_ value: Int64) { fixed(UInt64(bitPattern: value)) }

    @inlinable
    mutating func fixed<T: FixedWidthInteger>(_ value: T) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    @inlinable
    public mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    /// A count or number that is not negative.
    @inlinable public mutating func varint(_ value: Int) { varint(UInt64(value)) }
    @inlinable public mutating func svarint(_ value: Int64) { varint(zigzag(value)) }

    @inlinable
    public mutating func raw(_ value: UnsafeRawBufferPointer) { bytes.append(contentsOf: value) }
    @inlinable
    public mutating func raw(_ value: [UInt8]) { bytes.append(contentsOf: value) }

    @inlinable
    public mutating func byteString(_ value: UnsafeRawBufferPointer) {
        varint(value.count)
        raw(value)
    }
    @inlinable
    public mutating func byteString(_ value: [UInt8]) {
        varint(value.count)
        bytes.append(contentsOf: value)
    }
    @inlinable
    public mutating func text(_ value: String) {
        let utf8 = value.utf8
        varint(utf8.count)
        bytes.append(contentsOf: utf8)
    }
}

@inlinable
public func zigzag(_ value: Int64) -> UInt64 { UInt64(bitPattern: (value << 1) ^ (value >> 63)) }

/// Bytes of a value as a varint, 1 … 10.
@inlinable
public func varintByteCount(_ value: UInt64) -> Int { (70 &- value.leadingZeroBitCount) / 7 &+ (value == 0 ? 1 : 0) }

/// Writes into memory that the caller owns and has measured: no call checks its room.
@frozen
public struct RawWriter {
    public var at: UnsafeMutableRawPointer

    @inlinable public init(_ at: UnsafeMutableRawPointer) { self.at = at }

    @inlinable
    public mutating func u8(_ value: UInt8) {
        at.storeBytes(of: value, as: UInt8.self)
        at += 1
    }
    @inlinable
    public mutating func u32(_ value: UInt32) {
        at.storeBytes(of: value.littleEndian, as: UInt32.self)
        at += 4
    }
    @inlinable
    public mutating func u64(_ value: UInt64) {
        at.storeBytes(of: value.littleEndian, as: UInt64.self)
        at += 8
    }
    @inlinable
    public mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            u8(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        u8(UInt8(truncatingIfNeeded: rest))
    }
    @inlinable
    public mutating func raw(_ source: UnsafeRawBufferPointer) {
        if let base = source.baseAddress { at.copyMemory(from: base, byteCount: source.count) }
        at += source.count
    }
}

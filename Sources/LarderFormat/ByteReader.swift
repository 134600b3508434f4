// Reads primitives from borrowed bytes. With ByteWriter.swift, RecordScan.swift and EntryCodec.swift, one of the four
// files of this room that touch raw memory.

import CLarder

/// A cursor over bytes that somebody else owns.
///
/// The owner keeps the bytes alive and unchanged while the reader, or a slice that it gave, is in use. Every read is
/// checked against the end; a failed read leaves the offset where it was.
@frozen
public struct ByteReader {
    public let base: UnsafeRawPointer
    /// Where reading ends, in bytes from `base`.
    public let end: Int
    /// The next byte to read, in bytes from `base`.
    public var offset: Int

    @inlinable
    public init(_ buffer: UnsafeRawBufferPointer) {
        base = buffer.baseAddress ?? UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
        end = buffer.count
        offset = 0
    }

    @inlinable
    public init(base: UnsafeRawPointer, offset: Int, end: Int) {
        self.base = base
        self.offset = offset
        self.end = end
    }

    @inlinable public var remaining: Int { end - offset }
    @inlinable public var isAtEnd: Bool { offset == end }

    @inlinable
    public mutating func u8() throws(FormatError) -> UInt8 {
        guard offset < end else { throw FormatError(.truncated, at: offset) }
        defer { offset += 1 }
        return base.load(fromByteOffset: offset, as: UInt8.self)
    }

    @inlinable
    public mutating func u16() throws(FormatError) -> UInt16 { try fixed(UInt16.self) }
    @inlinable
    public mutating func u32() throws(FormatError) -> UInt32 { try fixed(UInt32.self) }
    @inlinable
    public mutating func u64() throws(FormatError) -> UInt64 { try fixed(UInt64.self) }
    @inlinable
    public mutating func i64() throws(FormatError) -> Int64 { Int64(bitPattern: try fixed(UInt64.self)) }

    @inlinable
    mutating func fixed<T: FixedWidthInteger & BitwiseCopyable>(_ type: T.Type) throws(FormatError) -> T {
        let size = MemoryLayout<T>.size
        guard end - offset >= size else { throw FormatError(.truncated, at: offset) }
        defer { offset += size }
        return T(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: T.self))
    }

    /// An unsigned LEB128 of at most 64 bits in its shortest form.
    @inlinable
    public mutating func varint() throws(FormatError) -> UInt64 {
        guard offset < end else { throw FormatError(.truncated, at: offset) }
        let first = base.load(fromByteOffset: offset, as: UInt8.self)
        if first < 0x80 {
            offset += 1
            return UInt64(first)
        }
        // Lengths of texts, and ids of catalogues, mostly have two bytes.
        if end &- offset >= 2 {
            let second = base.load(fromByteOffset: offset &+ 1, as: UInt8.self)
            if second &- 1 < 0x7F {
                offset &+= 2
                return UInt64(first & 0x7F) | UInt64(second) &<< 7
            }
        }
        return try longVarint()
    }

    @usableFromInline
    mutating func longVarint() throws(FormatError) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        var at = offset
        while at < end {
            let byte = base.load(fromByteOffset: at, as: UInt8.self)
            at += 1
            if shift == 63 && byte > 1 { throw FormatError(.notCanonical, at: offset) }
            value |= UInt64(byte & 0x7F) << shift
            if byte & 0x80 == 0 {
                if byte == 0 { throw FormatError(.notCanonical, at: offset) }
                offset = at
                return value
            }
            shift += 7
        }
        throw FormatError(.truncated, at: offset)
    }

    /// A signed 64-bit value as the varint of its zigzag.
    @inlinable
    public mutating func svarint() throws(FormatError) -> Int64 {
        let z = try varint()
        return Int64(bitPattern: z >> 1) ^ -Int64(bitPattern: z & 1)
    }

    /// A varint that must fit `Int` and be at most `limit`.
    @inlinable
    public mutating func varint(atMost limit: Int) throws(FormatError) -> Int {
        let start = offset
        let value = try varint()
        guard value <= UInt64(limit) else {
            offset = start
            throw FormatError(.outOfRange, at: start)
        }
        return Int(value)
    }

    /// A count of elements of at least `minimumBytes` each: never more than the bytes that are left could hold.
    @inlinable
    public mutating func count(ofAtLeast minimumBytes: Int) throws(FormatError) -> Int {
        let start = offset
        let value = try varint()
        guard value <= UInt64(remaining / minimumBytes) else {
            offset = start
            throw FormatError(.truncated, at: start)
        }
        return Int(value)
    }

    /// `count` bytes as they lie, borrowed.
    @inlinable
    public mutating func slice(_ count: Int) throws(FormatError) -> UnsafeRawBufferPointer {
        guard count >= 0 && end - offset >= count else { throw FormatError(.truncated, at: offset) }
        defer { offset += count }
        return UnsafeRawBufferPointer(start: base + offset, count: count)
    }

    /// A varint count and that many bytes, borrowed.
    @inlinable
    public mutating func bytes() throws(FormatError) -> UnsafeRawBufferPointer {
        let start = offset
        let count = try varint()
        guard count <= UInt64(end - offset) else {
            offset = start
            throw FormatError(.truncated, at: start)
        }
        return try slice(Int(count))
    }

    /// Like `bytes()`, and checked to be UTF-8 without U+0000.
    @inlinable
    public mutating func textBytes() throws(FormatError) -> UnsafeRawBufferPointer {
        let start = offset
        let text = try bytes()
        guard badTextOffset(text) == nil else {
            offset = start
            throw FormatError(.badText, at: start)
        }
        return text
    }

    @inlinable
    public mutating func text() throws(FormatError) -> String {
        String(decoding: try textBytes(), as: UTF8.self)
    }

    @inlinable
    public func expectEnd() throws(FormatError) {
        guard offset == end else { throw FormatError(.trailing, at: offset) }
    }
}

/// The offset of the first byte that is not part of UTF-8 text without U+0000, or nil.
@inlinable
public func badTextOffset(_ bytes: UnsafeRawBufferPointer) -> Int? {
    guard let base = bytes.baseAddress, bytes.count > 0 else { return nil }
    if bytes.count <= 64 && isShortASCII(base, bytes.count) { return nil }
    var bad = 0
    if larder_utf8_valid(base.assumingMemoryBound(to: UInt8.self), bytes.count, &bad) != 0 { return nil }
    return bad
}

/// Whether bytes are 0x01 … 0x7F, a word at a time: cheaper than a call for titles and paths.
@inlinable
func isShortASCII(_ base: UnsafeRawPointer, _ count: Int) -> Bool {
    var offset = 0
    while offset &+ 8 <= count {
        let word = base.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        // The high bit of a byte stays clear only where it was clear and subtracting 1 borrowed nothing.
        if (word | (word &- 0x0101_0101_0101_0101)) & 0x8080_8080_8080_8080 != 0 { return false }
        offset &+= 8
    }
    while offset < count {
        let byte = base.load(fromByteOffset: offset, as: UInt8.self)
        if byte &- 1 >= 0x7F { return false }
        offset &+= 1
    }
    return true
}

/// CRC-32C of `bytes`, going on from `seed` (0 to begin).
@inlinable
public func crc32c(_ bytes: UnsafeRawBufferPointer, seed: UInt32 = 0) -> UInt32 {
    guard let base = bytes.baseAddress else { return seed }
    return larder_crc32c(seed, base, bytes.count)
}

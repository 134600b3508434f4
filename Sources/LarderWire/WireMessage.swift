// What every message has in common, and how one becomes a frame.

import LarderFormat

/// The body of a message as a value.
public protocol WireMessage: Equatable, Sendable {
    static var type: MessageType { get }

    func encode(into writer: inout ByteWriter)

    /// Reads the body up to the reader's end, to its last byte.
    ///
    /// - Throws: what is wrong, with its offset from the reader's base. The wire's answer to any of it is `bad_message`.
    init(from reader: inout ByteReader) throws(FormatError)
}

extension WireMessage {
    /// A body alone. Offsets of errors count from its first byte.
    @inlinable
    public init(body: UnsafeRawBufferPointer) throws(FormatError) {
        var reader = ByteReader(body)
        try self.init(from: &reader)
    }

    /// The bytes of a whole frame.
    public func framed(id: UInt32) -> [UInt8] {
        var writer = ByteWriter(reserving: 64)
        writer.frame(self, id: id)
        return writer.bytes
    }
}

/// A message without a body.
public protocol EmptyMessage: WireMessage {
    init()
}

extension EmptyMessage {
    public func encode(into writer: inout ByteWriter) {}

    public init(from reader: inout ByteReader) throws(FormatError) {
        try reader.expectEnd()
        self.init()
    }
}

extension ByteWriter {
    /// Appends a whole frame. The body is written in place and its length is set afterwards.
    public mutating func frame<M: WireMessage>(_ message: M, id: UInt32) {
        frame(M.type, id: id) { message.encode(into: &$0) }
    }

    /// Appends a whole frame whose body `body` appends; the caller keeps it within the frame limit.
    public mutating func frame(_ type: MessageType, id: UInt32, body: (inout ByteWriter) -> Void) {
        let start = bytes.count
        FrameHeader(bodyByteCount: 0, type: type.rawValue, id: id).encode(into: &self)
        body(&self)
        let length = UInt32(bytes.count - start - FrameHeader.byteCount)
        for index in 0..<4 { bytes[start + index] = UInt8(truncatingIfNeeded: length >> (8 * UInt32(index))) }
    }
}

extension ByteReader {
    /// A varint up to 2^63 − 1: a count or a number that the host knows or does not.
    @inlinable
    mutating func number() throws(FormatError) -> Int { try varint(atMost: Int.max) }

    /// A byte of which only the bits of `mask` may be set.
    @inlinable
    mutating func flags(_ mask: UInt8) throws(FormatError) -> UInt8 {
        let at = offset
        let value = try u8()
        guard value & ~mask == 0 else {
            offset = at
            throw FormatError(.badStructure, at: at)
        }
        return value
    }

    /// A varint of which only the bits of `mask` may be set.
    mutating func bits(_ mask: UInt64) throws(FormatError) -> UInt64 {
        let at = offset
        let value = try varint()
        guard value & ~mask == 0 else {
            offset = at
            throw FormatError(.badStructure, at: at)
        }
        return value
    }

    /// A byte that is one of an enumeration's.
    mutating func choice<T: RawRepresentable>(_ type: T.Type) throws(FormatError) -> T where T.RawValue == UInt8 {
        let at = offset
        guard let value = T(rawValue: try u8()) else {
            offset = at
            throw FormatError(.outOfRange, at: at)
        }
        return value
    }

    /// A varint within `range`.
    mutating func number(in range: ClosedRange<Int>) throws(FormatError) -> Int {
        let at = offset
        let value = try varint(atMost: range.upperBound)
        guard value >= range.lowerBound else {
            offset = at
            throw FormatError(.outOfRange, at: at)
        }
        return value
    }

    mutating func byteArray() throws(FormatError) -> [UInt8] { Array(try bytes()) }

    /// Text of `range` bytes.
    mutating func text(of range: ClosedRange<Int>) throws(FormatError) -> String {
        let at = offset
        let value = try textBytes()
        guard range.contains(value.count) else {
            offset = at
            throw FormatError(.outOfRange, at: at)
        }
        return String(decoding: value, as: UTF8.self)
    }

    /// A varint count and that many elements of at least `minimumBytes` each.
    mutating func list<T>(
        ofAtLeast minimumBytes: Int, _ element: (inout ByteReader) throws(FormatError) -> T
    ) throws(FormatError) -> [T] {
        let count = try count(ofAtLeast: minimumBytes)
        var elements: [T] = []
        for _ in 0..<count { elements.append(try element(&self)) }
        return elements
    }

    mutating func texts() throws(FormatError) -> [String] {
        try list(ofAtLeast: 1) { (reader: inout ByteReader) throws(FormatError) in try reader.text() }
    }

    mutating func numbers() throws(FormatError) -> [Int] {
        try list(ofAtLeast: 1) { (reader: inout ByteReader) throws(FormatError) in try reader.number() }
    }
}

extension ByteWriter {
    mutating func texts(_ values: [String]) {
        varint(values.count)
        for value in values { text(value) }
    }

    mutating func numbers(_ values: [Int]) {
        varint(values.count)
        for value in values { varint(value) }
    }
}

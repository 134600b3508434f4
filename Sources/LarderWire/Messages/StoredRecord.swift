// A record with what the library knows about it, as RECORD and PAGE carry it.

import LarderFormat

/// The fields before a stored record's bytes.
///
///     varint kind · varint seq · varint first seq · svarint saved at · svarint changed at · varint origin · bytes record
@frozen
public struct StoredRecordHeader: Hashable, Sendable {
    /// The most bytes it takes, the record's byte count included.
    public static let byteCountMax = 7 * 10

    public var kind: Int
    /// Of its current entry.
    public var seq: UInt64
    /// Of the entry that first saved it: the order of saving.
    public var firstSeq: UInt64
    /// When it was first saved, ms.
    public var savedAt: Int64
    /// When the current entry was committed, ms.
    public var changedAt: Int64
    /// Of the current entry.
    public var origin: UInt64

    @inlinable
    public init(kind: Int, seq: UInt64, firstSeq: UInt64, savedAt: Int64, changedAt: Int64, origin: UInt64) {
        self.kind = kind
        self.seq = seq
        self.firstSeq = firstSeq
        self.savedAt = savedAt
        self.changedAt = changedAt
        self.origin = origin
    }

    /// Bytes that `encode` writes, without the record's.
    @inlinable
    public func byteCount(recordByteCount: Int) -> Int {
        var count = varintByteCount(UInt64(bitPattern: Int64(kind))) &+ varintByteCount(seq)
        count = count &+ varintByteCount(firstSeq) &+ varintByteCount(zigzag(savedAt))
        count = count &+ varintByteCount(zigzag(changedAt)) &+ varintByteCount(origin)
        return count &+ varintByteCount(UInt64(bitPattern: Int64(recordByteCount)))
    }

    /// Writes the header and the record's byte count; the caller has made room and appends the record's bytes.
    @inlinable
    public func encode(into writer: inout RawWriter, recordByteCount: Int) {
        writer.varint(UInt64(bitPattern: Int64(kind)))
        writer.varint(seq)
        writer.varint(firstSeq)
        writer.varint(zigzag(savedAt))
        writer.varint(zigzag(changedAt))
        writer.varint(origin)
        writer.varint(UInt64(bitPattern: Int64(recordByteCount)))
    }

    /// Writes a whole RECORD frame and returns its byte count. `room` has `FrameHeader.byteCount + byteCountMax +
    /// record.count` bytes, which the caller owns.
    @inlinable
    public func encodeFrame(_ record: UnsafeRawBufferPointer, id: UInt32, into room: UnsafeMutableRawPointer) -> Int {
        let body = byteCount(recordByteCount: record.count) &+ record.count
        var writer = RawWriter(room)
        FrameHeader(bodyByteCount: body, type: MessageType.record.rawValue, id: id).encode(into: &writer)
        encode(into: &writer, recordByteCount: record.count)
        writer.raw(record)
        return FrameHeader.byteCount &+ body
    }

    @inlinable
    public init(from reader: inout ByteReader) throws(FormatError) {
        kind = try reader.number()
        seq = try reader.varint()
        firstSeq = try reader.varint()
        savedAt = try reader.svarint()
        changedAt = try reader.svarint()
        origin = try reader.varint()
    }
}

/// A stored record read where it lies; `record` borrows the body.
@frozen
public struct StoredRecordView {
    /// The fewest bytes one takes.
    public static let byteCountMin = 7

    public var header: StoredRecordHeader
    public var record: UnsafeRawBufferPointer

    @inlinable
    public init(from reader: inout ByteReader) throws(FormatError) {
        header = try StoredRecordHeader(from: &reader)
        record = try reader.bytes()
    }
}

/// A stored record with bytes of its own.
public struct StoredRecord: Hashable, Sendable {
    public var header: StoredRecordHeader
    public var record: [UInt8]

    public init(_ header: StoredRecordHeader, record: [UInt8]) {
        self.header = header
        self.record = record
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(header.kind)
        writer.varint(header.seq)
        writer.varint(header.firstSeq)
        writer.svarint(header.savedAt)
        writer.svarint(header.changedAt)
        writer.varint(header.origin)
        writer.byteString(record)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        let view = try StoredRecordView(from: &reader)
        header = view.header
        record = Array(view.record)
    }
}

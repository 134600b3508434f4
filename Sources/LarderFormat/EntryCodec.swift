// Entries of the log: how they are written in place and read in place. FORMAT.md section 8.

/// Type numbers of entries. Others are skipped and kept.
public enum EntryType {
    public static let created: UInt8 = 1
    public static let updated: UInt8 = 2
    public static let deleted: UInt8 = 3
    public static let kind: UInt8 = 16
    public static let origin: UInt8 = 17
    public static let importBegan: UInt8 = 18
    public static let importEnded: UInt8 = 19
    public static let token: UInt8 = 20
    public static let recovered: UInt8 = 21
    public static let floor: UInt8 = 22
}

/// The largest value of an entry's length field.
public let entryByteCountMax = recordByteCountMax + 65_536

/// One entry, read where it lies. Slices are borrowed from the buffer that was read.
@frozen
public struct EntryView {
    public var type: UInt8 = 0
    public var flags: UInt64 = 0
    public var kind: Int = 0
    public var origin: UInt64 = 0
    public var seq: UInt64 = 0
    /// Seq that first saved this record: for created its own; 0 for entries that are of no record.
    public var firstSeq: UInt64 = 0
    /// When the record was first saved, ms; the commit's time for all but updated.
    public var savedAt: Int64 = 0
    /// Seq of the entry that this one supersedes, or 0.
    public var previousSeq: UInt64 = 0
    public var changed = FieldSet()
    /// Record, key, or the whole body of the other types.
    public var payload = UnsafeRawBufferPointer(start: nil, count: 0)
    /// All of the entry, from its length to its CRC.
    public var byteCount: Int = 0

    @inlinable public init() {}

    /// Says that a record is now in the library: created, or updated.
    @inlinable public var isSave: Bool { type == EntryType.created || type == EntryType.updated }
    /// A save of a key that was not in the library before it.
    @inlinable public var isNewToLibrary: Bool {
        type == EntryType.created || (type == EntryType.updated && flags & 1 != 0)
    }
}

/// Reads the entry at `offset`.
///
/// - Parameters:
///   - end: where the commit's entries end, from `base`.
///   - isVerified: whether the CRC is checked.
/// - Throws: the offset is that of the entry's first byte for framing and CRC, else of the primitive at fault.
@inlinable
public func readEntry(
    base: UnsafeRawPointer, offset: Int, end: Int, commitFirstSeq: UInt64, commitTime: Int64, isVerified: Bool = true
) throws(FormatError) -> EntryView {
    var reader = ByteReader(base: base, offset: offset, end: end)
    let length = try reader.varint()
    guard length >= 6 else { throw FormatError(.outOfRange, at: offset) }
    guard length <= UInt64(entryByteCountMax) else { throw FormatError(.tooLarge, at: offset) }
    guard length <= UInt64(end &- reader.offset) else { throw FormatError(.truncated, at: offset) }
    let crcOffset = reader.offset &+ Int(length) &- 4
    reader = ByteReader(base: base, offset: reader.offset, end: crcOffset)
    var entry = EntryView()
    entry.type = try reader.u8()
    let difference = try reader.varint()
    let (seq, overflow) = commitFirstSeq.addingReportingOverflow(difference)
    guard !overflow && seq > 0 else { throw FormatError(.outOfRange, at: offset) }
    entry.seq = seq
    entry.byteCount = crcOffset &+ 4 &- offset
    if isVerified {
        let stored = UInt32(littleEndian: base.loadUnaligned(fromByteOffset: crcOffset, as: UInt32.self))
        let bytes = UnsafeRawBufferPointer(start: base + offset, count: crcOffset &- offset)
        guard entryCRC(seq: seq, bytes) == stored else { throw FormatError(.badChecksum, at: offset) }
    }
    entry.savedAt = commitTime
    if entry.type == EntryType.created {
        entry.kind = try kindNumber(&reader)
        entry.origin = try reader.varint()
        entry.firstSeq = seq
        entry.payload = try reader.slice(reader.remaining)
    } else {
        try readRareBody(&entry, &reader)
    }
    return entry
}

@usableFromInline
func readRareBody(_ entry: inout EntryView, _ reader: inout ByteReader) throws(FormatError) {
    switch entry.type {
    case EntryType.updated:
        entry.flags = try flags(mask: 1, &reader)
        entry.kind = try kindNumber(&reader)
        entry.origin = try reader.varint()
        entry.firstSeq = try earlierSeq(entry.seq, &reader)
        let savedAtOffset = reader.offset
        let (savedAt, overflow) = entry.savedAt.addingReportingOverflow(try reader.svarint())
        guard !overflow else { throw FormatError(.outOfRange, at: savedAtOffset) }
        entry.savedAt = savedAt
        entry.previousSeq = try previousSeq(entry.seq, &reader)
        entry.changed = try FieldSet(from: &reader)
    case EntryType.deleted:
        entry.flags = try flags(mask: 0, &reader)
        entry.kind = try kindNumber(&reader)
        entry.origin = try reader.varint()
        entry.firstSeq = try earlierSeq(entry.seq, &reader)
        entry.previousSeq = try previousSeq(entry.seq, &reader)
    default:
        break
    }
    entry.payload = try reader.slice(reader.remaining)
}

/// A kind's number, 1 … 2^31 − 1.
@inlinable
func kindNumber(_ reader: inout ByteReader) throws(FormatError) -> Int {
    let start = reader.offset
    let number = try reader.varint()
    guard number &- 1 < UInt64(Int32.max) else { throw FormatError(.outOfRange, at: start) }
    return Int(number)
}

private func flags(mask: UInt64, _ reader: inout ByteReader) throws(FormatError) -> UInt64 {
    let start = reader.offset
    let flags = try reader.varint()
    guard flags & ~mask == 0 else { throw FormatError(.badStructure, at: start) }
    return flags
}

private func earlierSeq(_ seq: UInt64, _ reader: inout ByteReader) throws(FormatError) -> UInt64 {
    let start = reader.offset
    let difference = try reader.varint()
    guard difference < seq else { throw FormatError(.outOfRange, at: start) }
    return seq - difference
}

private func previousSeq(_ seq: UInt64, _ reader: inout ByteReader) throws(FormatError) -> UInt64 {
    let start = reader.offset
    let difference = try reader.varint()
    guard difference < seq else { throw FormatError(.outOfRange, at: start) }
    return difference == 0 ? 0 : seq - difference
}

/// The CRC of an entry: of its seq, then of its bytes before the CRC.
@inlinable
public func entryCRC(seq: UInt64, _ bytes: UnsafeRawBufferPointer) -> UInt32 {
    var seed: UInt32 = 0
    withUnsafeBytes(of: seq.littleEndian) { seed = crc32c($0) }
    return crc32c(bytes, seed: seed)
}

/// Writes entries into memory that the caller measured with the `…ByteCountMax` functions.
public enum EntryWriter {
    /// Room that an entry needs beside its record, key or body: more than any head can take.
    public static let headByteCountMax = 5 + 1 + 10 * 7 + 33 + 4

    /// Writes a created entry; returns its bytes.
    @inlinable
    public static func created(
        at base: UnsafeMutableRawPointer, seq: UInt64, commitFirstSeq: UInt64, kind: Int, origin: UInt64,
        record: UnsafeRawBufferPointer
    ) -> Int {
        let difference = seq &- commitFirstSeq
        let body =
            5 &+ varintByteCount(difference) &+ varintByteCount(UInt64(kind)) &+ varintByteCount(origin) &+ record.count
        var writer = RawWriter(base)
        writer.varint(UInt64(body))
        writer.u8(EntryType.created)
        writer.varint(difference)
        writer.varint(UInt64(kind))
        writer.varint(origin)
        writer.raw(record)
        return seal(base, &writer, seq)
    }

    /// Writes an updated entry; returns its bytes.
    public static func updated(
        at base: UnsafeMutableRawPointer, seq: UInt64, commitFirstSeq: UInt64, commitTime: Int64, flags: UInt64,
        kind: Int, origin: UInt64, firstSeq: UInt64, savedAt: Int64, previousSeq: UInt64, changed: FieldSet,
        record: UnsafeRawBufferPointer
    ) -> Int {
        write(at: base, type: EntryType.updated, seq: seq, commitFirstSeq: commitFirstSeq) { writer in
            writer.varint(flags)
            writer.varint(UInt64(kind))
            writer.varint(origin)
            writer.varint(seq - firstSeq)
            writer.varint(zigzag(savedAt &- commitTime))
            writer.varint(previousSeq == 0 ? 0 : seq - previousSeq)
            changed.encode(into: &writer)
            writer.raw(record)
        }
    }

    /// Writes a deleted entry; returns its bytes.
    public static func deleted(
        at base: UnsafeMutableRawPointer, seq: UInt64, commitFirstSeq: UInt64, kind: Int, origin: UInt64,
        firstSeq: UInt64, previousSeq: UInt64, key: UnsafeRawBufferPointer
    ) -> Int {
        write(at: base, type: EntryType.deleted, seq: seq, commitFirstSeq: commitFirstSeq) { writer in
            writer.varint(0)
            writer.varint(UInt64(kind))
            writer.varint(origin)
            writer.varint(seq - firstSeq)
            writer.varint(previousSeq == 0 ? 0 : seq - previousSeq)
            writer.raw(key)
        }
    }

    /// Writes an entry of any other type; returns its bytes.
    public static func other(
        at base: UnsafeMutableRawPointer, type: UInt8, seq: UInt64, commitFirstSeq: UInt64, body: UnsafeRawBufferPointer
    ) -> Int {
        write(at: base, type: type, seq: seq, commitFirstSeq: commitFirstSeq) { $0.raw(body) }
    }

    /// Writes the head and body with room for the longest length, then closes the gap that a shorter one leaves.
    private static func write(
        at base: UnsafeMutableRawPointer, type: UInt8, seq: UInt64, commitFirstSeq: UInt64,
        _ body: (inout RawWriter) -> Void
    ) -> Int {
        let room = 5
        var writer = RawWriter(base + room)
        writer.u8(type)
        writer.varint(seq &- commitFirstSeq)
        body(&writer)
        let content = writer.at - (base + room)
        let length = UInt64(content + 4)
        let lengthBytes = varintByteCount(length)
        (base + lengthBytes).copyMemory(from: base + room, byteCount: content)
        var head = RawWriter(base)
        head.varint(length)
        writer = RawWriter(base + lengthBytes + content)
        return seal(base, &writer, seq)
    }

    @inlinable
    static func seal(_ base: UnsafeMutableRawPointer, _ writer: inout RawWriter, _ seq: UInt64) -> Int {
        let bytes = UnsafeRawBufferPointer(start: base, count: writer.at - base)
        writer.u32(entryCRC(seq: seq, bytes))
        return bytes.count + 4
    }
}

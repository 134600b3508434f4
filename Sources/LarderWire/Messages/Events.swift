// 8B EVENTS: runs of whole entries as they lie in the log.

import LarderFormat

/// The span that an EVENTS frame is about: everything after `after` up to `through`.
///
///     0   8  u64 after     8   8  u64 through     16  …  runs, up to the end of the body
@frozen
public struct EventsHeader: Hashable, Sendable {
    public static let byteCount = 16

    public var after: UInt64
    public var through: UInt64

    @inlinable
    public init(after: UInt64, through: UInt64) {
        self.after = after
        self.through = through
    }

    @inlinable
    public func encode(into writer: inout RawWriter) {
        writer.u64(after)
        writer.u64(through)
    }

    public func encode(into writer: inout ByteWriter) {
        writer.u64(after)
        writer.u64(through)
    }

    /// A span that runs backwards is refused.
    @inlinable
    public init(from reader: inout ByteReader) throws(FormatError) {
        let at = reader.offset
        after = try reader.u64()
        through = try reader.u64()
        guard after <= through else { throw FormatError(.outOfRange, at: at &+ 8) }
    }
}

/// What stands before the entries of one commit.
///
///     0   8  u64 first seq     8   8  i64 time, ms     16  4  u32 bytes of entries     20  …  entries
@frozen
public struct RunHeader: Hashable, Sendable {
    public static let byteCount = 20

    /// Of the commit: entries count from it.
    public var firstSeq: UInt64
    /// Of the commit, ms.
    public var time: Int64
    public var entriesByteCount: Int

    @inlinable
    public init(firstSeq: UInt64, time: Int64, entriesByteCount: Int) {
        self.firstSeq = firstSeq
        self.time = time
        self.entriesByteCount = entriesByteCount
    }

    @inlinable
    public func encode(into writer: inout RawWriter) {
        writer.u64(firstSeq)
        writer.u64(UInt64(bitPattern: time))
        writer.u32(UInt32(truncatingIfNeeded: entriesByteCount))
    }

    public func encode(into writer: inout ByteWriter) {
        writer.u64(firstSeq)
        writer.i64(time)
        writer.u32(UInt32(entriesByteCount))
    }

    @inlinable
    public init(from reader: inout ByteReader) throws(FormatError) {
        firstSeq = try reader.u64()
        time = try reader.i64()
        entriesByteCount = Int(try reader.u32())
    }
}

/// The entries of one commit, borrowed from the body of an EVENTS.
@frozen
public struct Run {
    public var header: RunHeader
    /// Whole entries, their lengths included. Not decoded and not checked.
    public var entries: UnsafeRawBufferPointer

    @inlinable
    public init(header: RunHeader, entries: UnsafeRawBufferPointer) {
        self.header = header
        self.entries = entries
    }

    /// A run without entries is refused.
    @inlinable
    public init(from reader: inout ByteReader) throws(FormatError) {
        let at = reader.offset
        header = try RunHeader(from: &reader)
        guard header.entriesByteCount > 0 else { throw FormatError(.outOfRange, at: at &+ 16) }
        guard header.entriesByteCount <= reader.remaining else { throw FormatError(.truncated, at: at &+ 16) }
        entries = try reader.slice(header.entriesByteCount)
    }

    /// Iterates over the entries' framing.
    @inlinable public var entryBytes: EntryBytes { EntryBytes(entries) }
}

/// Iterates over the runs of an EVENTS without allocating. The body outlives it, unchanged.
@frozen
public struct RunReader {
    public let header: EventsHeader
    @usableFromInline var reader: ByteReader

    @inlinable
    public init(body: UnsafeRawBufferPointer) throws(FormatError) {
        var reader = ByteReader(body)
        header = try EventsHeader(from: &reader)
        self.reader = reader
    }

    /// The next run, or nil at the end of the body. A run without entries is refused.
    @inlinable
    public mutating func next() throws(FormatError) -> Run? {
        if reader.isAtEnd { return nil }
        return try Run(from: &reader)
    }
}

/// Cuts bytes into entries by their length fields alone.
@frozen
public struct EntryBytes {
    @usableFromInline var reader: ByteReader

    @inlinable
    public init(_ entries: UnsafeRawBufferPointer) { reader = ByteReader(entries) }

    /// The next whole entry, its length field included, or nil at the end.
    @inlinable
    public mutating func next() throws(FormatError) -> UnsafeRawBufferPointer? {
        if reader.isAtEnd { return nil }
        let start = reader.offset
        _ = try reader.bytes()
        return UnsafeRawBufferPointer(start: reader.base + start, count: reader.offset &- start)
    }
}

// 04 WRITE: the fields before its operations. Operation.swift reads those, WriteBuilder.swift makes whole frames.

import LarderFormat

/// What holds for a whole batch; bits.
@frozen
public struct WriteFlags: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// All or none.
    public static let atomic = WriteFlags(rawValue: 1)
    /// Decide, change nothing.
    public static let dryRun = WriteFlags(rawValue: 2)
    /// One result per operation.
    public static let results = WriteFlags(rawValue: 4)
    @usableFromInline static let all: UInt8 = 7
}

/// The beginning of a WRITE's body.
@frozen
public struct WriteHeader: Equatable, Sendable {
    /// The most bytes it takes: flags, origin, batch and count.
    public static let byteCountMax = 1 + 10 + 10 + 10

    public var flags: WriteFlags
    /// From IMPORT_BEGUN, or 0: the client's own.
    public var origin: UInt64
    /// 0, or the batch's number in its import, ascending from 1.
    public var batch: UInt64
    /// Operations that follow, 1 or more.
    public var operationCount: Int

    @inlinable
    public init(flags: WriteFlags = [], origin: UInt64 = 0, batch: UInt64 = 0, operationCount: Int) {
        self.flags = flags
        self.origin = origin
        self.batch = batch
        self.operationCount = operationCount
    }

    public func encode(into writer: inout ByteWriter) {
        writer.u8(flags.rawValue)
        writer.varint(origin)
        writer.varint(batch)
        writer.varint(operationCount)
    }

    /// Leaves the reader at the first operation. The count is one that the bytes left can hold.
    @inlinable
    public init(from reader: inout ByteReader) throws(FormatError) {
        flags = WriteFlags(rawValue: try reader.flags(WriteFlags.all))
        origin = try reader.varint()
        batch = try reader.varint()
        let at = reader.offset
        operationCount = try reader.count(ofAtLeast: Operation.byteCountMin)
        guard operationCount > 0 else {
            reader.offset = at
            throw FormatError(.outOfRange, at: at)
        }
    }
}

// The operations of a WRITE, read where they lie.

import LarderFormat

/// Options of an operation; bits.
@frozen
public struct OperationOptions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Personal fields change too.
    public static let personal = OperationOptions(rawValue: 1)
    /// Only if the current entry has this seq.
    public static let ifSeq = OperationOptions(rawValue: 2)
    /// Only unless a record has the same value in an indexed field.
    public static let unlessExists = OperationOptions(rawValue: 4)
    /// Fields become absent (merge).
    public static let unset = OperationOptions(rawValue: 8)
    @usableFromInline static let all: UInt8 = 15
}

/// What an operation does; raw values are those of its first byte.
@frozen
public enum OperationAction: UInt8, CaseIterable, Sendable {
    case save = 1
    case delete = 2
    /// Saves a record under its own key instead of an old one.
    case move = 3
    /// Brings a record back to its old place in the order of saving.
    case restore = 4
}

/// One operation, borrowed from the body of a WRITE.
///
///     u8 1 save, 2 delete, 3 move, 4 restore · u8 mode · u8 options · varint kind · varint known
///     [varint if_seq] [varint unless_exists] [varint count, varint field*count]
///     [bytes old key] [varint first seq, svarint saved at] · bytes record or key
@frozen
public struct Operation {
    /// The fewest bytes one takes: five fields of one byte and an empty payload.
    public static let byteCountMin = 6

    public var action: OperationAction
    /// How a save meets an existing key; nil of the others.
    public var mode: SaveMode?
    public var options: OperationOptions
    /// Not checked against the library's kinds.
    public var kind: Int
    /// The highest field number that the client knows of the kind; 0 of a delete and a restore.
    public var known: Int
    /// With option `ifSeq`: the current entry's seq (of a move: that at the old key), 0 for "must not exist". Else 0.
    public var ifSeq: UInt64
    /// With option `unlessExists`: an indexed field. Else 0.
    public var unlessExists: Int
    /// With option `unset`: the fields' numbers as varints, already checked. Else empty.
    public var unsetFields: UnsafeRawBufferPointer
    /// Of a move: the key that the record has now. Not validated. Else empty.
    public var oldKey: UnsafeRawBufferPointer
    /// Of a restore: the seq of the entry that first saved the record, 1 or more. Else 0.
    public var firstSeq: UInt64
    /// Of a restore: when it was first saved, ms. Else 0.
    public var savedAt: Int64
    /// The record of a save, a move or a restore, the key of a delete. Not validated.
    public var payload: UnsafeRawBufferPointer

    @inlinable public var isDelete: Bool { action == .delete }

    /// The numbers in `unsetFields`, as an array.
    public var unsetFieldNumbers: [Int] {
        var reader = ByteReader(unsetFields)
        var numbers: [Int] = []
        while let number = try? reader.number() { numbers.append(number) }
        return numbers
    }

    /// Reads one, wholly checked but for its payload. An error's offset is that of the field at fault; where fields
    /// contradict each other, that of the operation.
    @inlinable
    public init(from reader: inout ByteReader) throws(FormatError) {
        let at = reader.offset
        let actionByte = try reader.u8()
        let modeByte = try reader.u8()
        let optionBits = try reader.u8()
        guard let action = OperationAction(rawValue: actionByte) else { throw FormatError(.outOfRange, at: at) }
        self.action = action
        mode = SaveMode(rawValue: modeByte)
        guard mode != nil || modeByte == 0 else { throw FormatError(.outOfRange, at: at &+ 1) }
        guard (mode != nil) == (action == .save) else { throw FormatError(.badStructure, at: at) }
        guard optionBits & ~OperationOptions.all == 0 else { throw FormatError(.badStructure, at: at &+ 2) }
        options = OperationOptions(rawValue: optionBits)
        kind = try reader.number()
        let knownAt = reader.offset
        known = try reader.number()
        guard action == .save || action == .move || known == 0 else { throw FormatError(.outOfRange, at: knownAt) }
        ifSeq = 0
        unlessExists = 0
        unsetFields = UnsafeRawBufferPointer(start: nil, count: 0)
        oldKey = UnsafeRawBufferPointer(start: nil, count: 0)
        firstSeq = 0
        savedAt = 0
        if optionBits & ~OperationOptions.personal.rawValue != 0 {
            guard mode == .merge || !options.contains(.unset),
                action != .delete || !options.contains(.unlessExists)
            else { throw FormatError(.badStructure, at: at) }
            if options.contains(.ifSeq) { ifSeq = try reader.varint() }
            if options.contains(.unlessExists) { unlessExists = try reader.number() }
            if options.contains(.unset) { unsetFields = try Operation.skipNumbers(&reader) }
        }
        if actionByte > OperationAction.delete.rawValue {
            if action == .move {
                oldKey = try reader.bytes()
            } else {
                (firstSeq, savedAt) = try Operation.readOldPlace(&reader)
            }
        }
        payload = try reader.bytes()
    }

    /// What only a restore has: first seq and saved at.
    @usableFromInline
    static func readOldPlace(_ reader: inout ByteReader) throws(FormatError) -> (UInt64, Int64) {
        let at = reader.offset
        let firstSeq = try reader.varint()
        guard firstSeq > 0 else { throw FormatError(.outOfRange, at: at) }
        return (firstSeq, try reader.svarint())
    }

    /// A varint count and that many varints: the bytes of the latter.
    @usableFromInline
    static func skipNumbers(_ reader: inout ByteReader) throws(FormatError) -> UnsafeRawBufferPointer {
        let count = try reader.count(ofAtLeast: 1)
        let start = reader.offset
        for _ in 0..<count { _ = try reader.number() }
        return UnsafeRawBufferPointer(start: reader.base + start, count: reader.offset - start)
    }
}

/// Iterates over the operations of a WRITE without allocating. The body outlives it, unchanged.
///
///     var operations = try OperationReader(body: body)
///     while let operation = try operations.next() { … }
@frozen
public struct OperationReader {
    public let header: WriteHeader
    @usableFromInline var reader: ByteReader
    @usableFromInline var left: Int

    @inlinable
    public init(body: UnsafeRawBufferPointer) throws(FormatError) {
        var reader = ByteReader(body)
        header = try WriteHeader(from: &reader)
        left = header.operationCount
        self.reader = reader
    }

    /// Operations that are still to come.
    @inlinable public var remainingCount: Int { left }
    /// Position of the next operation in the batch, from 0.
    @inlinable public var position: Int { header.operationCount &- left }

    /// The next operation, or nil when all were read and nothing is behind them.
    @inlinable
    public mutating func next() throws(FormatError) -> Operation? {
        guard left > 0 else {
            try reader.expectEnd()
            return nil
        }
        let operation = try Operation(from: &reader)
        left &-= 1
        return operation
    }

    /// Walks the rest without moving on, so that a batch is refused before any of it is staged.
    @inlinable
    public func check() throws(FormatError) {
        var copy = self
        while try copy.next() != nil {}
    }
}

// 0A SUBSCRIBE and 8A SUBSCRIBED.

import LarderFormat

/// "I have everything of that history up to and including seq."
public struct Cursor: Hashable, Sendable {
    public var epoch: UInt64
    public var seq: UInt64

    public init(epoch: UInt64, seq: UInt64) {
        self.epoch = epoch
        self.seq = seq
    }
}

extension Cursor: LosslessStringConvertible {
    /// The epoch as 16 hex digits, `-`, the seq in decimal.
    public var description: String {
        let hex = String(epoch, radix: 16)
        return String(repeating: "0", count: 16 - hex.utf8.count) + hex + "-\(seq)"
    }

    public init?(_ description: String) {
        let parts = description.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].utf8.count == 16, parts[0].utf8.first != 0x2B, parts[1].utf8.first != 0x2B,
            let epoch = UInt64(parts[0], radix: 16), let seq = UInt64(parts[1])
        else { return nil }
        self.init(epoch: epoch, seq: seq)
    }
}

/// Which entries a subscription is about; bits.
public struct EntryTypes: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Entry types 1 and 2.
    public static let downloaded = EntryTypes(rawValue: 1)
    /// 3.
    public static let deleted = EntryTypes(rawValue: 2)
    /// 16.
    public static let kind = EntryTypes(rawValue: 4)
    /// 17.
    public static let origin = EntryTypes(rawValue: 8)
    /// 18 to 20.
    public static let imports = EntryTypes(rawValue: 16)
    /// 21.
    public static let recovered = EntryTypes(rawValue: 32)
    static let all: UInt64 = 63

    /// Whether entries of this type of FORMAT.md section 8 are among them.
    @inlinable
    public func contains(entryType: UInt8) -> Bool {
        switch entryType {
        case 1, 2: rawValue & 1 != 0
        case 3: rawValue & 2 != 0
        case 16: rawValue & 4 != 0
        case 17: rawValue & 8 != 0
        case 18, 19, 20: rawValue & 16 != 0
        case 21: rawValue & 32 != 0
        default: false
        }
    }
}

public struct Subscribe: WireMessage {
    public static var type: MessageType { .subscribe }

    /// Where a subscription begins.
    public enum Start: Hashable, Sendable {
        /// After what the cursor stands for.
        case after(Cursor)
        case now
        /// The library as it is, then what happens.
        case snapshot
        /// A snapshot that was cut off: its last cursor and its S0.
        case resumedSnapshot(Cursor, s0: UInt64)
    }

    public var start: Start
    public var types: EntryTypes
    /// Empty: all. Of entries without a kind nothing is filtered.
    public var kinds: [Int]
    /// An origin whose entries are left out, or 0.
    public var exceptOrigin: UInt64
    /// With a deleted entry also the last record (draft 1: `unsupported`).
    public var wantsLastRecord: Bool
    /// Empty (draft 1: else `unsupported`).
    public var condition: String
    /// Bytes of EVENTS frames that the client can take to begin with.
    public var credit: UInt64

    public init(
        _ start: Start, types: EntryTypes = [.downloaded, .deleted], kinds: [Int] = [], exceptOrigin: UInt64 = 0,
        wantsLastRecord: Bool = false, condition: String = "", credit: UInt64
    ) {
        self.start = start
        self.types = types
        self.kinds = kinds
        self.exceptOrigin = exceptOrigin
        self.wantsLastRecord = wantsLastRecord
        self.condition = condition
        self.credit = credit
    }

    public func encode(into writer: inout ByteWriter) {
        switch start {
        case .after(let cursor):
            writer.u8(1)
            writer.u64(cursor.epoch)
            writer.u64(cursor.seq)
        case .now: writer.u8(2)
        case .snapshot: writer.u8(3)
        case .resumedSnapshot(let cursor, let s0):
            writer.u8(4)
            writer.u64(cursor.epoch)
            writer.u64(cursor.seq)
            writer.u64(s0)
        }
        writer.varint(Int(types.rawValue))
        writer.numbers(kinds)
        writer.varint(exceptOrigin)
        writer.u8(wantsLastRecord ? 1 : 0)
        writer.text(condition)
        writer.varint(credit)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        let at = reader.offset
        switch try reader.u8() {
        case 1: start = .after(Cursor(epoch: try reader.u64(), seq: try reader.u64()))
        case 2: start = .now
        case 3: start = .snapshot
        case 4:
            let cursor = Cursor(epoch: try reader.u64(), seq: try reader.u64())
            start = .resumedSnapshot(cursor, s0: try reader.u64())
        default: throw FormatError(.outOfRange, at: at)
        }
        types = EntryTypes(rawValue: UInt8(truncatingIfNeeded: try reader.bits(EntryTypes.all)))
        kinds = try reader.numbers()
        exceptOrigin = try reader.varint()
        wantsLastRecord = try reader.flags(1) == 1
        condition = try reader.text()
        credit = try reader.varint()
        try reader.expectEnd()
    }
}

public struct Subscribed: WireMessage {
    public static var type: MessageType { .subscribed }

    public var epoch: UInt64
    /// The events begin behind this seq.
    public var after: UInt64
    /// Of a snapshot, else 0.
    public var s0: UInt64
    public var floor: UInt64

    public init(epoch: UInt64, after: UInt64, s0: UInt64, floor: UInt64) {
        self.epoch = epoch
        self.after = after
        self.s0 = s0
        self.floor = floor
    }

    public func encode(into writer: inout ByteWriter) {
        writer.u64(epoch)
        writer.u64(after)
        writer.u64(s0)
        writer.u64(floor)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        epoch = try reader.u64()
        after = try reader.u64()
        s0 = try reader.u64()
        floor = try reader.u64()
        try reader.expectEnd()
    }
}

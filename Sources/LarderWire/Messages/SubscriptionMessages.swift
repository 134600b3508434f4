// What else is said about a subscription: 98 SNAPSHOT_END, 99 LOST, 0B CREDIT, 0C SYNC and 8C SYNCED,
// 0D UNSUBSCRIBE and 8D UNSUBSCRIBED.

import LarderFormat

/// The replay is complete: what was received is the library as of S1. Not final.
public struct SnapshotEnd: WireMessage {
    public static var type: MessageType { .snapshotEnd }

    public var s1: UInt64

    public init(s1: UInt64) { self.s1 = s1 }

    public func encode(into writer: inout ByteWriter) { writer.u64(s1) }

    public init(from reader: inout ByteReader) throws(FormatError) {
        s1 = try reader.u64()
        try reader.expectEnd()
    }
}

/// Entries in this span were damaged and cannot be had. Not final; the next EVENTS goes on behind it.
public struct Lost: WireMessage {
    public static var type: MessageType { .lost }

    public var after: UInt64
    public var through: UInt64

    public init(after: UInt64, through: UInt64) {
        self.after = after
        self.through = through
    }

    public func encode(into writer: inout ByteWriter) {
        writer.u64(after)
        writer.u64(through)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        after = try reader.u64()
        let at = reader.offset
        through = try reader.u64()
        guard after <= through else { throw FormatError(.outOfRange, at: at) }
        try reader.expectEnd()
    }
}

/// A notice that carries the subscription's id.
public struct Credit: WireMessage {
    public static var type: MessageType { .credit }

    /// Added to the credit, which ends at the limit of WELCOME.
    public var byteCount: UInt64

    public init(byteCount: UInt64) { self.byteCount = byteCount }

    public func encode(into writer: inout ByteWriter) { writer.varint(byteCount) }

    public init(from reader: inout ByteReader) throws(FormatError) {
        byteCount = try reader.varint()
        try reader.expectEnd()
    }
}

/// Answered when everything that was committed before it has been sent on that subscription.
public struct Sync: WireMessage {
    public static var type: MessageType { .sync }

    public var subscription: UInt32

    public init(subscription: UInt32) { self.subscription = subscription }

    public func encode(into writer: inout ByteWriter) { writer.u32(subscription) }

    public init(from reader: inout ByteReader) throws(FormatError) {
        subscription = try reader.u32()
        try reader.expectEnd()
    }
}

public struct Synced: WireMessage {
    public static var type: MessageType { .synced }

    public var through: UInt64

    public init(through: UInt64) { self.through = through }

    public func encode(into writer: inout ByteWriter) { writer.u64(through) }

    public init(from reader: inout ByteReader) throws(FormatError) {
        through = try reader.u64()
        try reader.expectEnd()
    }
}

public struct Unsubscribe: WireMessage {
    public static var type: MessageType { .unsubscribe }

    public var subscription: UInt32

    public init(subscription: UInt32) { self.subscription = subscription }

    public func encode(into writer: inout ByteWriter) { writer.u32(subscription) }

    public init(from reader: inout ByteReader) throws(FormatError) {
        subscription = try reader.u32()
        try reader.expectEnd()
    }
}

/// Nothing of the subscription follows it.
public struct Unsubscribed: WireMessage {
    public static var type: MessageType { .unsubscribed }

    public var through: UInt64

    public init(through: UInt64) { self.through = through }

    public func encode(into writer: inout ByteWriter) { writer.u64(through) }

    public init(from reader: inout ByteReader) throws(FormatError) {
        through = try reader.u64()
        try reader.expectEnd()
    }
}

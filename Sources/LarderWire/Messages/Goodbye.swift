// 11 GOODBYE of a client and 91 GOODBYE of the host.

import LarderFormat

/// A client is done: the host sends what it owes, its own GOODBYE, and closes.
public struct Goodbye: WireMessage {
    public static var type: MessageType { .goodbye }

    /// 0: nothing wrong. A number that this version does not know is kept.
    public var rawNumber: Int
    public var reason: String

    public init(_ number: ErrorNumber? = nil, reason: String = "") {
        rawNumber = Int(number?.rawValue ?? 0)
        self.reason = reason
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(rawNumber)
        writer.text(reason)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        rawNumber = try reader.number()
        reason = try reader.text()
        try reader.expectEnd()
    }

    /// Nil for 0 and for a number that this version does not know.
    public var number: ErrorNumber? { UInt16(exactly: rawNumber).flatMap(ErrorNumber.init(rawValue:)) }
}

/// The host will close once it has sent what it owes.
public struct HostGoodbye: WireMessage {
    public static var type: MessageType { .hostGoodbye }

    public var goodbye: Goodbye

    public init(_ number: ErrorNumber? = nil, reason: String = "") { goodbye = Goodbye(number, reason: reason) }

    public func encode(into writer: inout ByteWriter) { goodbye.encode(into: &writer) }

    public init(from reader: inout ByteReader) throws(FormatError) { goodbye = try Goodbye(from: &reader) }
}

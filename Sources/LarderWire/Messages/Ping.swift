// 0E PING, 8E PONG and 0F CANCEL.

import LarderFormat

/// Either side may ask; ids of the host's PINGs are the host's own.
public struct Ping: WireMessage {
    public static var type: MessageType { .ping }
    public static let byteCountMax = 64

    /// Up to 64 bytes, which PONG brings back.
    public var bytes: [UInt8]

    public init(_ bytes: [UInt8] = []) { self.bytes = bytes }

    public func encode(into writer: inout ByteWriter) { writer.byteString(bytes) }

    public init(from reader: inout ByteReader) throws(FormatError) { bytes = try reader.pingBytes() }
}

public struct Pong: WireMessage {
    public static var type: MessageType { .pong }

    /// Those of the PING.
    public var bytes: [UInt8]

    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    public func encode(into writer: inout ByteWriter) { writer.byteString(bytes) }

    public init(from reader: inout ByteReader) throws(FormatError) { bytes = try reader.pingBytes() }
}

extension ByteReader {
    fileprivate mutating func pingBytes() throws(FormatError) -> [UInt8] {
        let at = offset
        let value = try bytes()
        guard value.count <= Ping.byteCountMax else { throw FormatError(.tooLarge, at: at) }
        try expectEnd()
        return Array(value)
    }
}

/// A notice that carries the id of the request to be stopped.
public struct Cancel: EmptyMessage {
    public static var type: MessageType { .cancel }
    public init() {}
}

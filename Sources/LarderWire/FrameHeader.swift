// The 12 bytes before every body.

import LarderFormat

/// The header of a frame.
///
///     0  4  u32 length of the body   how much to wait for; judged before anything is allocated
///     4  1  u8  type                 a raw byte: an unknown one is the session's to answer
///     5  1  u8  flags, 0             room for what a later version says about the whole frame
///     6  2  u16 0                    keeps the id aligned
///     8  4  u32 request id           ties replies to requests; 0 on notices
@frozen
public struct FrameHeader: Equatable, Sendable {
    public static let byteCount = 12
    public static let bodyOffset = 0
    public static let typeOffset = 4
    public static let flagsOffset = 5
    public static let zeroOffset = 6
    public static let idOffset = 8

    /// The floor of every limit: the most a body has before WELCOME.
    public static let bodyByteCountMaxBeforeWelcome = 65_536
    /// The most that any limit allows.
    public static let bodyByteCountMax = 4_194_304

    public var bodyByteCount: Int
    public var type: UInt8
    public var id: UInt32

    @inlinable
    public init(bodyByteCount: Int, type: UInt8, id: UInt32) {
        self.bodyByteCount = bodyByteCount
        self.type = type
        self.id = id
    }

    @inlinable public var frameByteCount: Int { FrameHeader.byteCount &+ bodyByteCount }
    @inlinable public var messageType: MessageType? { MessageType(rawValue: type) }

    public func encode(into writer: inout ByteWriter) {
        writer.u32(UInt32(bodyByteCount))
        writer.u8(type)
        writer.u8(0)
        writer.u16(0)
        writer.u32(id)
    }

    /// Writes 12 bytes, for which the caller has made room.
    @inlinable
    public func encode(into writer: inout RawWriter) {
        writer.u32(UInt32(truncatingIfNeeded: bodyByteCount))
        writer.u32(UInt32(type))
        writer.u32(id)
    }

    /// Reads the 12 bytes at `base`, which the caller knows to be there.
    ///
    /// - Parameter limit: the most bytes a body may have now.
    @inlinable
    public init(at base: UnsafeRawPointer, limit: Int) throws(FrameError) {
        let length = UInt32(littleEndian: base.loadUnaligned(as: UInt32.self))
        let middle = UInt32(littleEndian: base.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
        let id = UInt32(littleEndian: base.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
        guard middle <= 0xFF else {
            let isFlag = middle & 0xFF00 != 0
            throw FrameError.reservedBitsSet(offset: isFlag ? FrameHeader.flagsOffset : FrameHeader.zeroOffset, id: id)
        }
        guard Int(length) <= limit else { throw FrameError.tooLarge(length: Int(length), limit: limit, id: id) }
        self.init(bodyByteCount: Int(length), type: UInt8(truncatingIfNeeded: middle), id: id)
    }
}

/// A header after which the next frame cannot be found: the connection ends.
public enum FrameError: Error, Equatable, Sendable {
    /// The flags or the zero field are not 0; the offset is that of the field in the header.
    case reservedBitsSet(offset: Int, id: UInt32)
    case tooLarge(length: Int, limit: Int, id: UInt32)
}

extension FrameError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .reservedBitsSet: "the flags and the zero field of a frame's header must be 0 (bytes 5 to 7)"
        case .tooLarge(let length, let limit, _): "a body of \(length) bytes is announced; the limit is \(limit) now"
        }
    }

    /// The answer, fatal in either case.
    public var reply: ErrorReply {
        switch self {
        case .reservedBitsSet: ErrorReply(.badFrame, message: description)
        case .tooLarge(let length, let limit, _):
            ErrorReply(
                .frameTooLarge, message: description,
                facts: [ErrorReply.Fact("length", "\(length)"), ErrorReply.Fact("limit", "\(limit)")])
        }
    }
}

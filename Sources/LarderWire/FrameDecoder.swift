// Finds frames in bytes as they arrive.

/// What the bytes at hand hold.
@frozen
public enum FrameStep: Equatable, Sendable {
    /// No whole frame yet: this many bytes from the buffer's start must be there before asking again is of use.
    case needMore(minimumTotalByteCount: Int)
    /// A whole frame. The range of its body counts from the buffer's start; the next frame begins behind it.
    case frame(FrameHeader, body: Range<Int>)
}

/// Finds the first frame of a buffer that the caller owns and lets grow at its end. Keeps no state and copies nothing.
public enum FrameDecoder {
    /// Judges the frame that begins at the buffer's first byte. Its header is judged as soon as its 12 bytes are
    /// there, so a body that is too long is refused before any of it is awaited.
    ///
    /// - Parameter limit: the most bytes a body may have now, 0 … `FrameHeader.bodyByteCountMax`.
    @inlinable
    public static func next(_ buffer: UnsafeRawBufferPointer, limit: Int) throws(FrameError) -> FrameStep {
        guard buffer.count >= FrameHeader.byteCount, let base = buffer.baseAddress else {
            return .needMore(minimumTotalByteCount: FrameHeader.byteCount)
        }
        let header = try FrameHeader(at: base, limit: limit)
        let end = header.frameByteCount
        guard buffer.count >= end else { return .needMore(minimumTotalByteCount: end) }
        return .frame(header, body: FrameHeader.byteCount..<end)
    }
}

// Cuts a stream into lines.

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Finds lines in bytes that come in chunks of any size, and numbers them as an editor does.
///
/// A line ends at a line feed, with or without a carriage return before it, or at the end of the stream. A byte order
/// mark at the start is passed over. Lines of white space alone are counted and not delivered.
public struct LineSplitter: ~Copyable {
    public enum Line {
        /// The bytes without the line's end, borrowed until the call returns.
        case text(UnsafeRawBufferPointer)
        /// More bytes than the limit; they were passed over, the next line is whole again.
        case tooLong
    }

    public static let lineByteCountMax = 2 * 1_048_576

    private let limit: Int
    /// The beginning of a line whose end has not come.
    private var pending: [UInt8] = []
    private var isTooLong = false
    private var isAtStart = true
    /// Of the last line that ended; the first is 1.
    public private(set) var lineNumber = 0

    /// - Parameter limit: bytes of a line without its line feed, at most.
    public init(limit: Int = LineSplitter.lineByteCountMax) { self.limit = limit }

    /// Takes the next bytes and hands out the lines that they end.
    ///
    /// - Parameter body: gets each line with its number. When it throws, the rest of the chunk is lost.
    public mutating func feed<Fault: Error>(
        _ chunk: UnsafeRawBufferPointer, _ body: (Int, Line) throws(Fault) -> Void
    ) throws(Fault) {
        guard let base = chunk.baseAddress else { return }
        var at = 0
        while at < chunk.count {
            guard let feed = memchr(base + at, 0x0A, chunk.count - at) else { break }
            let end = UnsafeRawPointer(feed) - base
            let piece = UnsafeRawBufferPointer(rebasing: chunk[at..<end])
            at = end + 1
            if pending.isEmpty && !isTooLong {
                try deliver(piece, body)
            } else {
                keep(piece)
                try deliverPending(body)
            }
        }
        keep(UnsafeRawBufferPointer(rebasing: chunk[at...]))
    }

    /// Hands out the last line, where the stream does not end with a line feed.
    public mutating func finish<Fault: Error>(_ body: (Int, Line) throws(Fault) -> Void) throws(Fault) {
        if !pending.isEmpty || isTooLong { try deliverPending(body) }
    }

    private mutating func keep(_ piece: UnsafeRawBufferPointer) {
        if isTooLong { return }
        // Three more than the limit: the byte order mark counts for nothing.
        if pending.count + piece.count > limit + (isAtStart ? 3 : 0) {
            isTooLong = true
            pending.removeAll()
        } else {
            pending.append(contentsOf: piece)
        }
    }

    private mutating func deliverPending<Fault: Error>(_ body: (Int, Line) throws(Fault) -> Void) throws(Fault) {
        if isTooLong {
            isTooLong = false
            isAtStart = false
            lineNumber += 1
            return try body(lineNumber, .tooLong)
        }
        var line: [UInt8] = []
        swap(&line, &pending)
        defer {
            line.removeAll(keepingCapacity: line.count < 65_536)
            swap(&line, &pending)
        }
        try line.withUnsafeBufferPointer { bytes throws(Fault) in try deliver(UnsafeRawBufferPointer(bytes), body) }
    }

    private mutating func deliver<Fault: Error>(
        _ piece: UnsafeRawBufferPointer, _ body: (Int, Line) throws(Fault) -> Void
    ) throws(Fault) {
        var line = piece
        if isAtStart && line.starts(with: [0xEF, 0xBB, 0xBF]) { line = UnsafeRawBufferPointer(rebasing: line[3...]) }
        isAtStart = false
        lineNumber += 1
        if line.count > limit { return try body(lineNumber, .tooLong) }
        if line.last == 0x0D { line = UnsafeRawBufferPointer(rebasing: line.dropLast()) }
        if trimmed(line).isEmpty { return }
        try body(lineNumber, .text(line))
    }
}

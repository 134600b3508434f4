// How far an opening has come in reading the log.

import LarderFormat

/// Counts what is read of the log, and tells of every percent once.
struct OpeningProgress {
    private let tell: (@Sendable (Int) -> Void)?
    private let byteCount: Int
    /// Bytes of the segments that were passed, and of the one before the position.
    private var passed = 0
    private var percent = -1

    /// - Parameter byteCount: what there is to read, asked for only where somebody listens.
    init(_ tell: (@Sendable (Int) -> Void)?, byteCount: () throws(StoreError) -> Int) throws(StoreError) {
        self.tell = tell
        self.byteCount = tell == nil ? 0 : try byteCount()
    }

    /// Reading has come to an offset of a segment, counted from where its reading began.
    mutating func reach(_ offset: Int) {
        guard let tell, byteCount > 0 else { return }
        // The log of another process grows meanwhile.
        let now = min(100, Int(Double(passed + offset) * 100 / Double(byteCount)))
        guard now > percent else { return }
        percent = now
        tell(now)
    }

    /// A segment was read, or a sidecar in its place.
    mutating func pass(_ count: Int) {
        passed += count
        reach(0)
    }
}

extension StoreCore {
    /// Bytes of the log from a position on.
    func logByteCount(_ numbers: [UInt32], from start: LogPosition?) throws(StoreError) -> Int {
        var sum = 0
        for number in numbers where number >= start?.segment ?? 0 {
            let path = logPath + "/" + Segment.name(number)
            do throws(SystemError) {
                let file = try files.openForReading(path)
                defer { files.close(file) }
                sum += try files.size(file) - (number == start?.segment ? Int(start?.offset ?? 0) : 0)
            } catch { throw .system(error) }
        }
        return sum
    }
}

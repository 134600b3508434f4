// How long to wait.

import Glibc

/// A point of the monotonic clock.
struct Deadline {
    /// ms; nil: never.
    private let end: Int64?

    static let never = Deadline(end: nil)

    private init(end: Int64?) { self.end = end }

    /// - Parameter milliseconds: from now; nil: never.
    init(milliseconds: Int?) {
        end = milliseconds.map { Deadline.now.addingReportingOverflow(Int64(max($0, 0))) }.flatMap {
            $0.overflow ? nil : $0.partialValue
        }
    }

    /// What `poll` takes: ms from now, at least 0; −1: never.
    var pollMilliseconds: Int32 {
        guard let end else { return -1 }
        return Int32(clamping: max(end - Deadline.now, 0))
    }

    var isOver: Bool { end.map { $0 <= Deadline.now } ?? false }

    /// The monotonic clock, ms.
    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }
}

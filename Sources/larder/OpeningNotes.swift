// What is said while a long log is read: by the host that reads it, and by the command that waits for it.

import LarderHost
import Synchronization

/// Says on standard error how far the opening of a library has come, once it takes long. The thread that opens.
final class OpeningNotes: Sendable {
    /// The line of a host that opens begins like this, behind the program's name.
    static let prefix = "opening the library: "
    private static let firstMilliseconds: Int64 = 2_000
    private static let restMilliseconds: Int64 = 5_000

    private let nextAt: Mutex<Int64>
    private let say: @Sendable (String) -> Void
    private let now: @Sendable () -> Int64

    /// - Parameter begun: on the monotonic clock, in milliseconds.
    init(
        since begun: Int64, now: @escaping @Sendable () -> Int64 = { Clock.monotonic },
        say: @escaping @Sendable (String) -> Void = { HostEntry.say($0) }
    ) {
        nextAt = Mutex(begun + OpeningNotes.firstMilliseconds)
        self.now = now
        self.say = say
    }

    /// So many percent of what is to be read of the log were.
    func reading(_ percent: Int) {
        guard percent < 100 else { return }
        let now = now()
        let isDue = nextAt.withLock { nextAt in
            guard now >= nextAt else { return false }
            nextAt = now + OpeningNotes.restMilliseconds
            return true
        }
        if isDue { say("\(OpeningNotes.prefix)\(percent) %") }
    }

    /// What a host said last of its opening, without its own name; nil: nothing yet.
    static func last(in text: some StringProtocol) -> String? {
        // A line that is not whole yet would be half a number.
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        return lines.last { $0.hasPrefix("larder: " + prefix) }.map { String($0.dropFirst("larder: ".count)) }
    }
}

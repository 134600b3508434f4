// What a command says while it waits for a host that opens its library.

import Glibc
import LarderWire

/// Says now and then how far the opening is: to a terminal at once, elsewhere when it takes long. One thread.
final class RecoveryNotes {
    private static let firstMilliseconds: Int64 = 2_000
    private static let restMilliseconds: Int64 = 5_000

    private let say: (String) -> Void
    private let now: () -> Int64
    private var nextAt: Int64

    /// - Parameter isTerminal: whether somebody watches.
    init(
        isTerminal: Bool = isatty(STDERR_FILENO) == 1, now: @escaping () -> Int64 = { Clock.monotonic },
        say: @escaping (String) -> Void
    ) {
        self.say = say
        self.now = now
        nextAt = now() + (isTerminal ? 0 : RecoveryNotes.firstMilliseconds)
    }

    /// The host has answered that it is not open yet.
    func recovering(_ status: StatusIs) {
        let now = now()
        guard now >= nextAt else { return }
        nextAt = now + RecoveryNotes.restMilliseconds
        say("process \(status.pid) opens the library: \(status.reason)")
    }
}

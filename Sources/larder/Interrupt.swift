// Ctrl-C as something to ask about, so that work ends where it may.

import Glibc

/// Holds SIGINT and SIGTERM back; the work asks now and then whether one came.
enum Interrupt {
    private static func signals() -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        sigaddset(&set, SIGTERM)
        return set
    }

    static func hold() {
        var set = signals()
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    static var isPending: Bool {
        var pending = sigset_t()
        guard sigpending(&pending) == 0 else { return false }
        return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1
    }

    /// Takes the one that came, and lets the next one end the process.
    static func release() {
        var set = signals()
        var none = timespec()
        while sigtimedwait(&set, nil, &none) > 0 {}
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
    }

    static let exitCode: Int32 = 130
}

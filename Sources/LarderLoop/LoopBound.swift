import Glibc

/// A value of the loop's thread that a `@Sendable` closure may carry elsewhere and back, but open only on that thread.
///
/// The last copy of it should go on the loop's thread too, since the value is released with it.
public struct LoopBound<Value>: @unchecked Sendable {
    private let storage: Value
    private let thread: pthread_t

    /// On the loop's thread.
    public init(_ value: Value, loop: Loop) {
        loop.preconditionOnThread()
        storage = value
        thread = loop.threadIdentity
    }

    /// The value. On any other thread than the loop's this stops the process.
    public var value: Value {
        precondition(pthread_equal(pthread_self(), thread) != 0, "a value of a loop was opened on another thread")
        return storage
    }
}

import CLibuv
import Synchronization

/// The one door by which other threads reach a loop: closures, run on the loop's thread in the order of posting.
///
/// Bounded, so that a loop that can't keep up is felt by those who post. One wake of the loop runs all that was posted
/// before it. Made and closed on the loop's thread; posted to from any.
public final class Mailbox: Sendable {
    private struct State {
        var entries: [@Sendable () -> Void] = []
        /// Emptied entries of an earlier wake, kept for their room.
        var spare: [@Sendable () -> Void] = []
        /// nil once closed. Used by other threads under the lock only, so never after `uv_close`.
        var async: AsyncPointer?
    }

    private let capacity: Int
    private let state: Mutex<State>

    /// At most `capacity` entries wait at a time. Unless `keepsLoopAlive`, the loop ends while only this is open.
    public init(loop: Loop, capacity: Int, keepsLoopAlive: Bool = true) throws(LoopError) {
        precondition(capacity > 0)
        // The handle retains itself and, by its closure, this box, until both are closed.
        let async = try AsyncHandle(loop: loop)
        async.keepsLoopAlive = keepsLoopAlive
        self.capacity = capacity
        state = Mutex(State(async: async.sender))
        async.onWake = { [self] in drain() }
    }

    /// Has `entry` run on the loop's thread, soon. False, and it will never run, if the box is full or closed.
    /// From any thread; from inside an entry too, which is then run in a later turn.
    @discardableResult
    public func post(_ entry: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard let async = state.async, state.entries.count < capacity else { return false }
            state.entries.append(entry)
            // The first entry wakes the loop; those after it are found by the same wake.
            if state.entries.count == 1 { async.send() }
            return true
        }
    }

    /// Refuses entries from now on; what waits is run before this returns. Loop thread only.
    public func close(onClosed: (() -> Void)? = nil) {
        let async = state.withLock { state in
            let async = state.async
            state.async = nil
            return async
        }
        guard let async else { return }
        async.handle.close(onClosed: onClosed)
        drain()
    }

    private func drain() {
        var entries = state.withLock { state in
            let entries = state.entries
            state.entries = state.spare
            state.spare = []
            return entries
        }
        for entry in entries { entry() }
        entries.removeAll(keepingCapacity: true)
        state.withLock { [entries] state in state.spare = entries }
    }
}

import CLibuv

/// Hears one signal of the process, on the loop. While any watcher of a signal is started its default action is off.
/// Loop thread only.
public final class SignalWatcher: Handle {
    fileprivate var onSignal: ((Int32) -> Void)?

    public init(loop: Loop, onSignal: @escaping (_ signal: Int32) -> Void) throws(LoopError) {
        self.onSignal = onSignal
        try super.init(loop: loop, operation: "uv_signal_init", initialize: uv_signal_init)
    }

    /// Starts hearing `signal`, instead of the one heard so far. Signals that arrive in a burst may be told as one.
    public func start(_ signal: Int32) throws(LoopError) {
        try requireOpen("uv_signal_start")
        // No signal comes to a simulated machine.
        if loop.simulation != nil { return }
        try LoopError.check(uv_signal_start(pointer(as: uv_signal_t.self), onSignalled, signal), "uv_signal_start")
    }

    /// Gives the signal its default action back, unless another watcher has it.
    public func stop() {
        if !isClosing, loop.simulation == nil { uv_signal_stop(pointer(as: uv_signal_t.self)) }
    }

    override func didClose() { onSignal = nil }
}

private let onSignalled: uv_signal_cb = { raw, signal in
    owner(of: raw, as: SignalWatcher.self).onSignal?(signal)
}

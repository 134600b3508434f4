import CLibuv

/// Calls back once or again and again. Loop thread only.
public final class Timer: Handle {
    fileprivate var onFire: (() -> Void)?
    /// Of a simulated loop's timer.
    private(set) var repeatMilliseconds: UInt64 = 0

    public init(loop: Loop, onFire: @escaping () -> Void) throws(LoopError) {
        self.onFire = onFire
        try super.init(loop: loop, operation: "uv_timer_init", initialize: uv_timer_init)
    }

    /// Fires after that many milliseconds, counted from the loop's `now`, then every `repeatMilliseconds` unless that
    /// is 0. A timer that runs already starts afresh. 0 fires in the next turn of the loop.
    public func start(afterMilliseconds: UInt64, repeatMilliseconds: UInt64 = 0) throws(LoopError) {
        try requireOpen("uv_timer_start")
        if let simulation = loop.simulation {
            self.repeatMilliseconds = repeatMilliseconds
            return simulation.start(self, after: afterMilliseconds)
        }
        let code = uv_timer_start(pointer(as: uv_timer_t.self), onTimer, afterMilliseconds, repeatMilliseconds)
        try LoopError.check(code, "uv_timer_start")
    }

    /// A timer that does not run is left alone.
    public func stop() {
        if isClosing { return }
        if let simulation = loop.simulation { return simulation.stop(self) }
        uv_timer_stop(pointer(as: uv_timer_t.self))
    }

    /// Whether it will fire.
    public var isActive: Bool { !isClosing && (loop.simulation?.isActive(self) ?? (uv_is_active(base) != 0)) }

    func fire() { onFire?() }

    override func didClose() { onFire = nil }
}

private let onTimer: uv_timer_cb = { raw in
    owner(of: raw, as: Timer.self).onFire?()
}

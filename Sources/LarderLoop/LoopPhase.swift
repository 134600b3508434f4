import CLibuv

/// Calls back once in every turn of the loop, at a fixed place in it, while started. Loop thread only.
///
/// A turn is: timers, idle, prepare, waiting and reads and writes, check, close callbacks.
public final class LoopPhase: Handle {
    public enum Place: Sendable {
        /// Before prepare; while one is started the loop does not wait, so work that is left goes on at once.
        case idle
        /// Just before the loop waits.
        case prepare
        /// After all reads of the turn.
        case check
    }

    public let place: Place
    fileprivate var onTurn: (() -> Void)?

    public init(loop: Loop, place: Place, onTurn: @escaping () -> Void) throws(LoopError) {
        self.place = place
        self.onTurn = onTurn
        switch place {
        case .idle: try super.init(loop: loop, operation: "uv_idle_init", initialize: uv_idle_init)
        case .prepare: try super.init(loop: loop, operation: "uv_prepare_init", initialize: uv_prepare_init)
        case .check: try super.init(loop: loop, operation: "uv_check_init", initialize: uv_check_init)
        }
    }

    /// Starting again is harmless. Cheap enough for every turn: no system call.
    public func start() throws(LoopError) {
        try requireOpen("uv_phase_start")
        if let simulation = loop.simulation { return simulation.start(self) }
        let code =
            switch place {
            case .idle: uv_idle_start(pointer(as: uv_idle_t.self), onIdle)
            case .prepare: uv_prepare_start(pointer(as: uv_prepare_t.self), onPrepare)
            case .check: uv_check_start(pointer(as: uv_check_t.self), onCheck)
            }
        try LoopError.check(code, "uv_phase_start")
    }

    /// Also from inside the callback.
    public func stop() {
        if isClosing { return }
        if let simulation = loop.simulation { return simulation.stop(self) }
        switch place {
        case .idle: uv_idle_stop(pointer(as: uv_idle_t.self))
        case .prepare: uv_prepare_stop(pointer(as: uv_prepare_t.self))
        case .check: uv_check_stop(pointer(as: uv_check_t.self))
        }
    }

    /// Whether it is started.
    public var isActive: Bool { !isClosing && (loop.simulation?.isActive(self) ?? (uv_is_active(base) != 0)) }

    func fire() { onTurn?() }

    override func didClose() { onTurn = nil }
}

private let onIdle: uv_idle_cb = { owner(of: $0, as: LoopPhase.self).onTurn?() }
private let onPrepare: uv_prepare_cb = { owner(of: $0, as: LoopPhase.self).onTurn?() }
private let onCheck: uv_check_cb = { owner(of: $0, as: LoopPhase.self).onTurn?() }

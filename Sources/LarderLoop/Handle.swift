import CLibuv

/// What all handles share: memory that libuv points into, and an end in two steps.
///
/// A handle retains itself from its making until its close callback has run, so it has to be closed; dropping the last
/// reference does not do it. Loop thread only.
public class Handle {
    public let loop: Loop

    /// True from `close` on; from then on every call throws `EBADF`, or does nothing where it can't throw.
    public private(set) var isClosing = false

    /// Owned; given back when the close callback runs.
    private let storage: UnsafeMutableRawPointer
    private var onClosed: (() -> Void)?
    private var isHeldInSimulation = true

    /// Allocates a `Raw`, which has to be one of libuv's handle types, and has `initialize` set it up. If that fails
    /// nothing is kept.
    init<Raw>(
        loop: Loop, operation: StaticString,
        initialize: (UnsafeMutablePointer<uv_loop_t>, UnsafeMutablePointer<Raw>) -> Int32
    ) throws(LoopError) {
        loop.preconditionOnThread()
        let memory = UnsafeMutablePointer<Raw>.allocate(capacity: 1)
        let code = loop.simulation == nil ? initialize(loop.raw, memory) : 0
        if code < 0 {
            memory.deallocate()
            throw LoopError(code: code, operation: operation)
        }
        self.loop = loop
        storage = UnsafeMutableRawPointer(memory)
        base.pointee.data = Unmanaged.passRetained(self).toOpaque()
        loop.simulation?.opened(self)
    }

    /// Stops whatever the handle does. Requests under way end with `ECANCELED`, then `onClosed` runs, in a later turn
    /// of the loop. Closing again is harmless, but only the first `onClosed` runs.
    public final func close(onClosed: (() -> Void)? = nil) {
        if isClosing { return }
        loop.preconditionOnThread()
        isClosing = true
        self.onClosed = onClosed
        if let simulation = loop.simulation { simulation.closes(self) } else { uv_close(base, onHandleClosed) }
        willClose()
    }

    /// Whether the loop goes on for this handle's sake while it is active. True at first.
    public final var keepsLoopAlive: Bool {
        get { !isClosing && (loop.simulation == nil ? uv_has_ref(base) != 0 : isHeldInSimulation) }
        set {
            if isClosing { return }
            isHeldInSimulation = newValue
            if loop.simulation != nil { return }
            if newValue { uv_ref(base) } else { uv_unref(base) }
        }
    }

    /// Valid until the close callback has run.
    final var base: UnsafeMutablePointer<uv_handle_t> { storage.assumingMemoryBound(to: uv_handle_t.self) }

    final func pointer<Raw>(as type: Raw.Type) -> UnsafeMutablePointer<Raw> {
        storage.assumingMemoryBound(to: type)
    }

    final func requireOpen(_ operation: StaticString) throws(LoopError) {
        if isClosing { throw LoopError(code: LoopError.EBADF, operation: operation) }
    }

    /// For a subclass: libuv has let go of the descriptor, but requests may still end.
    func willClose() {}

    /// For a subclass: nothing will be called any more; closures are dropped here, so that cycles through them end.
    func didClose() {}

    /// The last of it: gives back what `init` retained.
    func finishClosing() {
        defer { Unmanaged.passUnretained(self).release() }
        didClose()
        storage.deallocate()
        let onClosed = self.onClosed
        self.onClosed = nil
        onClosed?()
    }
}

/// The object of a handle. Retained by the handle itself until its close callback, so safe in every other callback.
func owner<Owner: Handle, Raw>(of raw: UnsafeMutablePointer<Raw>?, as type: Owner.Type = Owner.self) -> Owner {
    let handle = UnsafeMutableRawPointer(raw!).assumingMemoryBound(to: uv_handle_t.self)
    return Unmanaged<Owner>.fromOpaque(handle.pointee.data).takeUnretainedValue()
}

private let onHandleClosed: uv_close_cb = { raw in
    Unmanaged<Handle>.fromOpaque(raw!.pointee.data).takeUnretainedValue().finishClosing()
}

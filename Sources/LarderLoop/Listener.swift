import CLarder
import CLibuv
import Glibc

/// A listening Unix socket. Loop thread only.
///
/// When descriptors run out, a connection is taken with one kept in reserve and closed at once: its client sees an end
/// instead of waiting, and the loop does not spin on a socket that stays readable. libuv's own listener does so as
/// well, but tells nobody; hence `accept` here, over `uv_poll`.
public final class Listener: Handle {
    fileprivate static let acceptsPerTurnMax = 64
    private static let pauseMilliseconds: UInt64 = 100

    private var descriptor: Int32
    /// Removed on closing, if this listener made it.
    private let boundPath: String?
    private var reserve: Int32
    private var onConnection: ((Stream) -> Void)?
    private var onError: ((LoopError) -> Void)?
    private var pause: Timer?

    /// Takes over a socket that is bound and listens, and closes it in the end, removing the node at `boundPath` where
    /// one is named; if this throws, both are still the caller's. `onConnection` gets each connection as a stream, which
    /// is its to close. `onError` hears of a connection that was refused (`EMFILE`, `ENFILE`) or could not be accepted;
    /// listening goes on.
    public convenience init(
        loop: Loop, adopting descriptor: Int32, boundPath: String? = nil,
        onConnection: @escaping (Stream) -> Void, onError: @escaping (LoopError) -> Void
    ) throws(LoopError) {
        try self.init(loop, descriptor, boundPath: boundPath, onConnection, onError)
    }

    /// Binds `path`, which must not exist (`EADDRINUSE`) nor be longer than 107 bytes (`ENAMETOOLONG`), with the
    /// given permissions from its first moment, and listens. The node is removed on closing.
    public convenience init(
        loop: Loop, path: String, backlog: Int32 = 128, permissions: UInt32 = 0o600,
        onConnection: @escaping (Stream) -> Void, onError: @escaping (LoopError) -> Void
    ) throws(LoopError) {
        if let simulation = loop.simulation {
            try self.init(loop, -1, boundPath: nil, onConnection, onError)
            if simulation.listen(self, path: path) { return }
            close()
            throw LoopError(code: LoopError.EADDRINUSE, operation: "bind")
        }
        let descriptor = try listenAt(path, backlog: backlog, permissions: permissions)
        do throws(LoopError) {
            try self.init(loop, descriptor, boundPath: path, onConnection, onError)
        } catch {
            unlink(path)
            closeDescriptor(descriptor)
            throw error
        }
    }

    private init(
        _ loop: Loop, _ descriptor: Int32, boundPath: String?,
        _ onConnection: @escaping (Stream) -> Void, _ onError: @escaping (LoopError) -> Void
    ) throws(LoopError) {
        self.descriptor = descriptor
        self.boundPath = boundPath
        self.onConnection = onConnection
        self.onError = onError
        reserve = -1
        try super.init(loop: loop, operation: "uv_poll_init") { uv_poll_init($0, $1, descriptor) }
        if loop.simulation != nil { return }
        reserve = openReserve()
        do throws(LoopError) {
            try startPolling()
        } catch {
            self.descriptor = -1
            close()
            throw error
        }
    }

    override func willClose() {
        if let boundPath { unlink(boundPath) }
        if descriptor >= 0 { closeDescriptor(descriptor) }
        if reserve >= 0 { closeDescriptor(reserve) }
        reserve = -1
        pause?.close()
        pause = nil
    }

    override func didClose() {
        onConnection = nil
        onError = nil
    }

    private func startPolling() throws(LoopError) {
        let code = uv_poll_start(pointer(as: uv_poll_t.self), Int32(UV_READABLE.rawValue), onReadable)
        try LoopError.check(code, "uv_poll_start")
    }

    fileprivate func acceptPending() {
        // The rest is found in the next turn, since the socket stays readable.
        for _ in 0..<Self.acceptsPerTurnMax where !isClosing {
            let accepted = larder_accept(descriptor)
            if accepted >= 0 {
                deliver(accepted)
                continue
            }
            switch -accepted {
            case EAGAIN: return
            case EINTR, ECONNABORTED: continue
            case EMFILE, ENFILE:
                let isShed = shedOne()
                onError?(LoopError(code: accepted, operation: "accept"))
                if isShed { continue }
            default:
                onError?(LoopError(code: accepted, operation: "accept"))
            }
            pauseAccepting()
            return
        }
    }

    private func deliver(_ accepted: Int32) {
        do throws(LoopError) {
            let stream = try Stream(loop: loop, adopting: accepted)
            onConnection?(stream)
        } catch {
            closeDescriptor(accepted)
            onError?(error)
        }
    }

    /// A connection of a simulated loop.
    func deliver(_ socket: SimulatedSocket) {
        do throws(LoopError) { onConnection?(try Stream(loop: loop, socket: socket)) } catch { onError?(error) }
    }

    /// Whether the reserve was enough to take a connection, or to see that none is left.
    private func shedOne() -> Bool {
        if reserve < 0 { reserve = openReserve() }
        if reserve < 0 { return false }
        closeDescriptor(reserve)
        let accepted = larder_accept(descriptor)
        if accepted >= 0 { closeDescriptor(accepted) }
        // Another thread may have been quicker; the next one then waits out a pause.
        reserve = openReserve()
        return accepted >= 0 || accepted == -EAGAIN
    }

    /// The socket is readable, but nothing can be done about it now.
    private func pauseAccepting() {
        if isClosing { return }
        uv_poll_stop(pointer(as: uv_poll_t.self))
        do throws(LoopError) {
            if pause == nil {
                pause = try Timer(loop: loop) { [unowned self] in
                    do throws(LoopError) { try startPolling() } catch { onError?(error) }
                }
            }
            try pause?.start(afterMilliseconds: Self.pauseMilliseconds)
        } catch {
            onError?(error)
        }
    }
}

private func openReserve() -> Int32 { larder_open("/dev/null", O_RDONLY, 0) }

private let onReadable: uv_poll_cb = { raw, status, _ in
    // An error of the poll shows itself again, by name, when accepting.
    owner(of: raw, as: Listener.self).acceptPending()
}

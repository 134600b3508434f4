import CLibuv

/// A wake-up of the loop that `uv_async_send` asks for from any thread; several may be told as one.
final class AsyncHandle: Handle {
    var onWake: (() -> Void)?

    init(loop: Loop) throws(LoopError) {
        precondition(loop.simulation == nil, "no other thread reaches a simulated loop")
        try super.init(loop: loop, operation: "uv_async_init") { uv_async_init($0, $1, onAsync) }
    }

    /// Valid until `close`.
    var sender: AsyncPointer { AsyncPointer(raw: pointer(as: uv_async_t.self)) }

    override func didClose() { onWake = nil }
}

/// The part of an `AsyncHandle` that other threads may hold. Whoever does makes sure that it is not closed meanwhile.
struct AsyncPointer: @unchecked Sendable {
    fileprivate let raw: UnsafeMutablePointer<uv_async_t>

    /// From any thread.
    func send() { uv_async_send(raw) }

    /// Loop thread only.
    var handle: AsyncHandle { owner(of: raw) }
}

private let onAsync: uv_async_cb = { owner(of: $0, as: AsyncHandle.self).onWake?() }

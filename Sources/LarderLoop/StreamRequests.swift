import CLibuv

/// One `uv_write`: retains itself while libuv has it, and what it sends as long.
final class WriteRequest {
    let raw = UnsafeMutablePointer<uv_write_t>.allocate(capacity: 1)
    var keptOwner: AnyObject?
    var completion: ((LoopError?) -> Void)?
    /// Owned; the bytes under way where they had to be copied.
    private var copied: UnsafeMutableRawPointer?

    deinit {
        copied?.deallocate()
        raw.deallocate()
    }

    /// Memory of this request's that lasts until `end`; nil for no bytes.
    func copy(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutableRawPointer? {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return nil }
        let copy = UnsafeMutableRawPointer.allocate(byteCount: bytes.count, alignment: 16)
        copy.copyMemory(from: source, byteCount: bytes.count)
        copied = copy
        return copy
    }

    func begin() {
        raw.pointee.data = Unmanaged.passRetained(self).toOpaque()
    }

    /// Lets go of everything, itself included, and returns what is to be called.
    func end() -> ((LoopError?) -> Void)? {
        copied?.deallocate()
        copied = nil
        keptOwner = nil
        let completion = self.completion
        self.completion = nil
        Unmanaged.passUnretained(self).release()
        return completion
    }
}

/// One `uv_shutdown`: retains itself from the start.
final class ShutdownRequest {
    let raw = UnsafeMutablePointer<uv_shutdown_t>.allocate(capacity: 1)
    let completion: ((LoopError?) -> Void)?

    init(_ completion: ((LoopError?) -> Void)?) {
        self.completion = completion
        raw.pointee.data = Unmanaged.passRetained(self).toOpaque()
    }

    deinit { raw.deallocate() }

    /// libuv never took it.
    func abandon() { Unmanaged.passUnretained(self).release() }
}

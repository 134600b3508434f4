import CLarder
import CLibuv
import Glibc

/// A connected Unix socket, or one end of a pipe. Loop thread only.
///
/// Reads go into memory that the owner supplies. Writes are tried at once by `tryWrite`, and what did not fit goes by
/// `write`; while some of that waits, `tryWrite` takes nothing, so bytes keep their order.
public final class Stream: Handle {
    /// What one read brought.
    public enum ReadEvent: Equatable, Sendable {
        /// So many bytes at the start of the memory supplied last; 0 if there was nothing after all.
        case bytes(Int)
        /// The peer will send no more. Reading has stopped.
        case end
        /// Reading has stopped. `ENOBUFS`: the memory supplied was empty.
        case failed(LoopError)
    }

    /// Who was at the other end when it connected.
    public struct PeerCredentials: Equatable, Sendable {
        public let userID: UInt32
        /// Of another process namespace: 0.
        public let processID: Int32
    }

    fileprivate var allocate: ((Int) -> UnsafeMutableRawBufferPointer)?
    fileprivate var onRead: ((ReadEvent) -> Void)?
    /// Kept for the next write, so that writing in steady state allocates nothing.
    fileprivate var spareRequest: WriteRequest?
    /// Of a stream on a simulated loop, in the place of a descriptor.
    let simulated: SimulatedConnection?

    /// Takes over a connected socket or an end of a pipe, and makes it non-blocking. The stream closes it; if this
    /// throws, the descriptor is still the caller's.
    public init(loop: Loop, adopting descriptor: Int32) throws(LoopError) {
        simulated = nil
        try super.init(loop: loop, operation: "uv_pipe_init") { uv_pipe_init($0, $1, 0) }
        let code = uv_pipe_open(pointer(as: uv_pipe_t.self), descriptor)
        if code < 0 {
            close()
            throw LoopError(code: code, operation: "uv_pipe_open")
        }
    }

    /// The host's end of a simulated connection.
    init(loop: Loop, socket: SimulatedSocket) throws(LoopError) {
        simulated = loop.simulation.map { SimulatedConnection(socket, $0) }
        try super.init(loop: loop, operation: "uv_pipe_init") { uv_pipe_init($0, $1, 0) }
        loop.simulation?.opened(self)
    }

    // MARK: Reading

    /// Reads until `stopReading`, the end, or an error. Each call of `allocate` is followed at once by exactly one of
    /// `onRead`, and the memory it returned must last until then; an end or an error may come without `allocate`. Both
    /// closures are kept until the stream has closed. One turn of the loop reads at most 32 times; `stopReading` from
    /// inside `onRead` ends it earlier.
    public func startReading(
        allocate: @escaping (_ suggestedByteCount: Int) -> UnsafeMutableRawBufferPointer,
        onRead: @escaping (ReadEvent) -> Void
    ) throws(LoopError) {
        self.allocate = allocate
        self.onRead = onRead
        try resumeReading()
    }

    /// Goes on after `stopReading` with the same closures. Without an earlier `startReading` this throws `EINVAL`.
    public func resumeReading() throws(LoopError) {
        try requireOpen("uv_read_start")
        guard onRead != nil else { throw LoopError(code: LoopError.EINVAL, operation: "uv_read_start") }
        if let simulated {
            simulated.isReading = true
            return
        }
        let code = uv_read_start(rawStream, onAllocate, onBytes)
        if code != UV_EALREADY.rawValue { try LoopError.check(code, "uv_read_start") }
    }

    /// No `onRead` follows until reading is resumed. The kernel's buffer fills and the peer has to wait.
    public func stopReading() {
        if isClosing { return }
        if let simulated { simulated.isReading = false } else { uv_read_stop(rawStream) }
    }

    // MARK: Writing

    /// Sends what the socket takes now, in one system call (of at most 1,024 slices). Returns how many bytes went,
    /// which is 0 while the socket is full or earlier writes wait. Nothing of `slices` is kept.
    public func tryWrite(_ slices: UnsafeBufferPointer<iovec>) throws(LoopError) -> Int {
        try requireOpen("uv_try_write")
        guard let first = slices.baseAddress else { return 0 }
        if let simulated { return try simulated.tryWrite(slices) }
        // On Unix uv_buf_t has the layout of iovec, which libuv itself relies on.
        let buffers = UnsafeRawPointer(first).assumingMemoryBound(to: uv_buf_t.self)
        let code = uv_try_write(rawStream, buffers, UInt32(clamping: slices.count))
        if code == UV_EAGAIN.rawValue { return 0 }
        try LoopError.check(code, "uv_try_write")
        return Int(code)
    }

    /// As above, of one run of bytes.
    public func tryWrite(_ bytes: UnsafeRawBufferPointer) throws(LoopError) -> Int {
        var slice = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
        return try withUnsafePointer(to: &slice) { (pointer) throws(LoopError) in
            try tryWrite(UnsafeBufferPointer(start: pointer, count: 1))
        }
    }

    /// Sends all of `slices`, after what waits already. Their memory belongs to `owner`, which is retained until the
    /// end and must not change the bytes until then. `completion` runs once, with nil or the error (`ECANCELED` if the
    /// stream was closed first), unless this throws.
    public func write(
        _ slices: UnsafeBufferPointer<iovec>, keeping owner: AnyObject?,
        completion: ((LoopError?) -> Void)? = nil
    ) throws(LoopError) {
        try requireOpen("uv_write")
        if let simulated { return simulated.write(slices, completion) }
        let request = takeRequest()
        request.keptOwner = owner
        request.completion = completion
        try submit(request, slices)
    }

    /// Sends a copy of `bytes`, after what waits already; otherwise as above.
    public func write(
        copying bytes: UnsafeRawBufferPointer, completion: ((LoopError?) -> Void)? = nil
    ) throws(LoopError) {
        try requireOpen("uv_write")
        if let simulated { return simulated.write(Array(bytes), completion) }
        let request = takeRequest()
        let copy = request.copy(bytes)
        request.completion = completion
        var slice = iovec(iov_base: copy, iov_len: bytes.count)
        try withUnsafePointer(to: &slice) { (pointer) throws(LoopError) in
            try submit(request, UnsafeBufferPointer(start: pointer, count: 1))
        }
    }

    /// Bytes handed to `write` that have not been sent yet.
    public var pendingWriteByteCount: Int {
        isClosing ? 0 : simulated?.pendingByteCount ?? uv_stream_get_write_queue_size(rawStream)
    }

    /// Tells the peer that no more follows, once what waits is sent. `completion` runs once unless this throws.
    public func shutdown(completion: ((LoopError?) -> Void)? = nil) throws(LoopError) {
        try requireOpen("uv_shutdown")
        precondition(simulated == nil, "a simulated stream is closed as a whole")
        let request = ShutdownRequest(completion)
        let code = uv_shutdown(request.raw, rawStream, onShutDown)
        if code < 0 {
            request.abandon()
            throw LoopError(code: code, operation: "uv_shutdown")
        }
    }

    // MARK: The other end

    /// Who connected, as the kernel says; of sockets only.
    public var peerCredentials: PeerCredentials {
        get throws(LoopError) {
            if simulated != nil { return PeerCredentials(userID: geteuid(), processID: 1) }
            return try LarderLoop.peerCredentials(of: fileDescriptor)
        }
    }

    /// The descriptor, which stays the stream's; -1 once it is closed.
    public var fileDescriptor: Int32 {
        var descriptor: Int32 = -1
        if !isClosing, simulated == nil { uv_fileno(base, &descriptor) }
        return descriptor
    }

    override func willClose() { simulated?.close() }

    override func didClose() {
        simulated?.cancelWrites()
        allocate = nil
        onRead = nil
        spareRequest = nil
    }

    func allocation(_ byteCount: Int) -> UnsafeMutableRawBufferPointer? { allocate?(byteCount) }
    func deliver(_ event: ReadEvent) { onRead?(event) }

    private var rawStream: UnsafeMutablePointer<uv_stream_t> { pointer(as: uv_stream_t.self) }

    private func takeRequest() -> WriteRequest {
        guard let request = spareRequest else { return WriteRequest() }
        spareRequest = nil
        return request
    }

    private func submit(_ request: WriteRequest, _ slices: UnsafeBufferPointer<iovec>) throws(LoopError) {
        var nothing = uv_buf_t()
        let buffers = slices.baseAddress.map { UnsafeRawPointer($0).assumingMemoryBound(to: uv_buf_t.self) }
        let code = withUnsafePointer(to: &nothing) { nothing in
            request.begin()
            // uv_write copies the slices, but not what they point to.
            return uv_write(request.raw, rawStream, buffers ?? nothing, UInt32(max(slices.count, 1)), onWritten)
        }
        if code < 0 {
            _ = request.end()
            spareRequest = request
            throw LoopError(code: code, operation: "uv_write")
        }
    }
}

private let onAllocate: uv_alloc_cb = { raw, suggested, buffer in
    let memory = owner(of: raw, as: Stream.self).allocate?(suggested)
    buffer!.pointee.base = memory?.baseAddress?.assumingMemoryBound(to: CChar.self)
    buffer!.pointee.len = memory?.count ?? 0
}

private let onBytes: uv_read_cb = { raw, count, _ in
    let stream = owner(of: raw, as: Stream.self)
    if count >= 0 {
        stream.onRead?(.bytes(count))
    } else if count == Int(UV_EOF.rawValue) {
        stream.stopReading()
        stream.onRead?(.end)
    } else {
        stream.stopReading()
        stream.onRead?(.failed(LoopError(code: Int32(count), operation: "uv_read")))
    }
}

private let onWritten: uv_write_cb = { raw, status in
    let stream = owner(of: raw!.pointee.handle, as: Stream.self)
    let request = Unmanaged<WriteRequest>.fromOpaque(raw!.pointee.data).takeUnretainedValue()
    let completion = request.end()
    if stream.spareRequest == nil { stream.spareRequest = request }
    completion?(status < 0 ? LoopError(code: status, operation: "uv_write") : nil)
}

private let onShutDown: uv_shutdown_cb = { raw, status in
    let request = Unmanaged<ShutdownRequest>.fromOpaque(raw!.pointee.data).takeRetainedValue()
    request.completion?(status < 0 ? LoopError(code: status, operation: "uv_shutdown") : nil)
}

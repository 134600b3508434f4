import CLibuv

extension Loop {
    /// Runs `work` in libuv's pool, which all loops share (four threads unless UV_THREADPOOL_SIZE says otherwise), then
    /// `completion` with its result on the loop's thread, once, unless this throws. For work that waits, such as cold
    /// reads; in no particular order.
    public func queueWork<Result: Sendable>(
        _ work: @escaping @Sendable () -> Result, completion: @escaping (Result) -> Void
    ) throws(LoopError) {
        preconditionOnThread()
        if let simulation { return simulation.queue(ResultJob(work: work, completion: completion)) }
        let request = WorkRequest(loop: self, job: ResultJob(work: work, completion: completion))
        let code = uv_queue_work(raw, request.raw, onWork, onWorkDone)
        if code < 0 {
            request.abandon()
            throw LoopError(code: code, operation: "uv_queue_work")
        }
    }
}

/// One `uv_queue_work`: retains itself, and the loop, until it is done.
private final class WorkRequest {
    let raw = UnsafeMutablePointer<uv_work_t>.allocate(capacity: 1)
    let job: Job
    private let loop: Loop

    init(loop: Loop, job: Job) {
        self.loop = loop
        self.job = job
        raw.pointee.data = Unmanaged.passRetained(self).toOpaque()
    }

    deinit { raw.deallocate() }

    /// libuv never took it.
    func abandon() { Unmanaged.passUnretained(self).release() }
}

private let onWork: uv_work_cb = { raw in
    Unmanaged<WorkRequest>.fromOpaque(raw!.pointee.data).takeUnretainedValue().job.run()
}

private let onWorkDone: uv_after_work_cb = { raw, _ in
    // The status could only be ECANCELED, and nothing cancels.
    Unmanaged<WorkRequest>.fromOpaque(raw!.pointee.data).takeRetainedValue().job.finish()
}

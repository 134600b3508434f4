import CLarder
import CLibuv
import Glibc
import Synchronization

/// A thread that runs jobs one at a time, in order, for one loop: a commit's write and sync, which must not wait behind
/// other work in libuv's pool. Made, used and closed on the loop's thread. All signals are blocked in the thread.
public final class WorkerThread {
    public let loop: Loop

    /// Jobs whose completion has not run.
    public private(set) var pendingJobCount = 0

    private let capacity: Int
    private let backing: Backing
    private var thread = uv_thread_t()
    private var isClosing = false
    private var onClosed: (() -> Void)?

    private enum Backing {
        case thread(SharedQueue, AsyncHandle)
        /// Of a simulated loop, which runs the jobs itself.
        case simulated(SimulatedWorker)
    }

    /// At most `capacity` jobs are pending at a time. The name shows in `ps` and debuggers (15 bytes). It keeps the
    /// loop alive until closed.
    ///
    /// - Parameter givesWay: other threads go first where they compete for a CPU.
    public init(loop: Loop, name: String, capacity: Int = 8, givesWay: Bool = false) throws(LoopError) {
        precondition(capacity > 0)
        self.loop = loop
        self.capacity = capacity
        if let simulation = loop.simulation {
            backing = .simulated(simulation.openWorker())
            return
        }
        let async = try AsyncHandle(loop: loop)
        let shared: SharedQueue
        do throws(LoopError) {
            shared = try SharedQueue(name: name, givesWay: givesWay, wake: async.sender)
        } catch {
            async.close()
            throw error
        }
        backing = .thread(shared, async)
        let argument = Unmanaged.passRetained(shared)
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        let code = uv_thread_create(&thread, onThread, argument.toOpaque())
        pthread_sigmask(SIG_SETMASK, &before, nil)
        if code < 0 {
            argument.release()
            async.close()
            throw LoopError(code: code, operation: "uv_thread_create")
        }
        async.onWake = { [self] in finishJobs(shared, async) }
    }

    /// Runs `work` on the thread, after the jobs before it, then `completion` with its result on the loop's thread,
    /// in the same order. False, and neither runs, if `capacity` jobs are pending or the thread is closing.
    @discardableResult
    public func submit<Result: Sendable>(
        _ work: @escaping @Sendable () -> Result, completion: @escaping (Result) -> Void
    ) -> Bool {
        loop.preconditionOnThread()
        if isClosing || pendingJobCount == capacity { return false }
        pendingJobCount += 1
        switch backing {
        case .thread(let shared, _): shared.append(ResultJob(work: work, completion: completion))
        case .simulated(let worker):
            worker.append(
                ResultJob(work: work) { [self] result in
                    pendingJobCount -= 1
                    completion(result)
                })
        }
        return true
    }

    /// Ends the thread after the jobs that are pending, whose completions run as ever; then `onClosed` runs.
    public func close(onClosed: (() -> Void)? = nil) {
        if isClosing { return }
        loop.preconditionOnThread()
        isClosing = true
        self.onClosed = onClosed
        switch backing {
        case .thread(let shared, _): shared.stop()
        case .simulated(let worker):
            worker.end { [self] in
                loop.simulation?.ends(worker)
                self.onClosed?()
                self.onClosed = nil
            }
        }
    }

    private func finishJobs(_ shared: SharedQueue, _ async: AsyncHandle) {
        let (jobs, hasEnded) = shared.takeDone()
        for job in jobs {
            pendingJobCount -= 1
            job.finish()
        }
        if !hasEnded { return }
        uv_thread_join(&thread)
        async.close(onClosed: onClosed)
        onClosed = nil
    }
}

/// What the loop's thread and the worker share.
private final class SharedQueue: @unchecked Sendable {
    private struct State {
        var waiting: [Job] = []
        var done: [Job] = []
        var hasEnded = false
    }

    /// A tenth of the share of others, near enough.
    private static let givingWay: Int32 = 10
    private let name: String
    private let givesWay: Bool
    private let wake: AsyncPointer
    private let state = Mutex(State())
    /// Owned; its value is the number of waiting jobs, plus one for the stop.
    private let semaphore = UnsafeMutablePointer<uv_sem_t>.allocate(capacity: 1)

    init(name: String, givesWay: Bool, wake: AsyncPointer) throws(LoopError) {
        self.name = name
        self.givesWay = givesWay
        self.wake = wake
        let code = uv_sem_init(semaphore, 0)
        if code < 0 {
            semaphore.deallocate()
            throw LoopError(code: code, operation: "uv_sem_init")
        }
    }

    deinit {
        uv_sem_destroy(semaphore)
        semaphore.deallocate()
    }

    func append(_ job: Job) {
        state.withLock { $0.waiting.append(job) }
        uv_sem_post(semaphore)
    }

    func stop() {
        // A post without a job.
        uv_sem_post(semaphore)
    }

    func takeDone() -> (jobs: [Job], hasEnded: Bool) {
        state.withLock { state in
            let jobs = state.done
            state.done = []
            return (jobs, state.hasEnded)
        }
    }

    func runJobs() {
        larder_thread_name(name)
        // Of this thread alone, as Linux has it. Where it may not, it goes on as the others.
        if givesWay { _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, SharedQueue.givingWay) }
        while let job = next() {
            job.run()
            state.withLock { $0.done.append(job) }
            wake.send()
        }
        state.withLock { $0.hasEnded = true }
        // The handle is closed only after this thread was joined, so it is still there.
        wake.send()
    }

    private func next() -> Job? {
        uv_sem_wait(semaphore)
        // Jobs are appended before they are posted and none follows the stop, so empty means the stop.
        return state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
    }
}

private let onThread: uv_thread_cb = { argument in
    Unmanaged<SharedQueue>.fromOpaque(argument!).takeRetainedValue().runJobs()
}

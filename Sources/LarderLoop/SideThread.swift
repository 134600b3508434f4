// A thread beside the loop's, for one piece of work that blocks as it likes.

import CLarder
import CLibuv
import Glibc
import Synchronization

/// A thread that runs one piece of work and ends. All signals are blocked in it. Whoever starts one has to join it or to
/// let go of it.
public final class SideThread<Result: Sendable> {
    private let job: SideJob<Result>
    private var thread = uv_thread_t()

    /// Begins at once. The name shows in `ps` and debuggers (15 bytes).
    public init(name: String, work: @escaping @Sendable () -> Result) throws(LoopError) {
        let job = SideJob(name: name, work: work)
        self.job = job
        let argument = Unmanaged.passRetained(job as SideWork)
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        let code = uv_thread_create(&thread, onSideThread, argument.toOpaque())
        pthread_sigmask(SIG_SETMASK, &before, nil)
        if code < 0 {
            argument.release()
            throw LoopError(code: code, operation: "uv_thread_create")
        }
    }

    /// Nobody will join it: it goes when its work is done.
    public func letGo() { pthread_detach(thread) }

    /// Waits until the work is done. Once.
    public func join() -> Result {
        uv_thread_join(&thread)
        guard let result = job.result.withLock({ $0 }) else { preconditionFailure("the thread ended before its work") }
        return result
    }
}

/// What a C callback can hold without knowing the result's type.
private class SideWork {
    func run() {}
}

private final class SideJob<Result: Sendable>: SideWork {
    let result = Mutex<Result?>(nil)
    private let name: String
    private let work: @Sendable () -> Result

    init(name: String, work: @escaping @Sendable () -> Result) {
        self.name = name
        self.work = work
    }

    override func run() {
        larder_thread_name(name)
        let found = work()
        result.withLock { $0 = found }
    }
}

private let onSideThread: uv_thread_cb = { argument in
    Unmanaged<SideWork>.fromOpaque(argument!).takeRetainedValue().run()
}

import Glibc
import LarderLoop
import Synchronization
import Testing

@Suite("Work off the loop")
struct WorkerTests {
    @Test("a thread beside the loop gives its result to who joins it, and hears no signal")
    func sideThread() throws {
        let here = pthread_self()
        let thread = try SideThread(name: "test-side") {
            var blocked = sigset_t()
            pthread_sigmask(SIG_SETMASK, nil, &blocked)
            return (pthread_self() != here, sigismember(&blocked, SIGTERM) == 1)
        }
        let (isElsewhere, isDeaf) = thread.join()
        #expect(isElsewhere && isDeaf)
    }

    @Test("jobs run one at a time in order on another thread, and complete in order on the loop's")
    func order() throws {
        var results: [Int] = []
        var closed = 0
        let running = Atomic(0)
        let overlaps = Atomic(0)
        try withLoop { loop in
            let worker = try WorkerThread(loop: loop, name: "test-worker", capacity: 100)
            let loopThread = pthread_self()
            for value in 0..<100 {
                let isTaken = worker.submit {
                    if running.add(1, ordering: .relaxed).newValue != 1 || pthread_self() == loopThread {
                        overlaps.add(1, ordering: .relaxed)
                    }
                    running.subtract(1, ordering: .relaxed)
                    return value
                } completion: { value in
                    #expect(loop.isOnThread)
                    results.append(value)
                }
                #expect(isTaken)
            }
            let isTakenBeyond = worker.submit({ 0 }, completion: { _ in Issue.record("beyond capacity") })
            #expect(!isTakenBeyond)
            #expect(worker.pendingJobCount == 100)
            worker.close { closed += 1 }
            let isTakenAfter = worker.submit({ 0 }, completion: { _ in Issue.record("after close") })
            #expect(!isTakenAfter)
        }
        #expect(results == Array(0..<100))
        #expect(overlaps.load(ordering: .relaxed) == 0)
        #expect(closed == 1)
    }

    @Test("a completion may hand over the next job, at a capacity of one")
    func chained() throws {
        var rounds = 0
        try withLoop { loop in
            let worker = try WorkerThread(loop: loop, name: "test-worker", capacity: 1)
            func next() {
                let isTaken = worker.submit({}) {
                    rounds += 1
                    if rounds < 1000 { next() } else { worker.close() }
                }
                #expect(isTaken)
            }
            next()
        }
        #expect(rounds == 1000)
    }

    @Test("signals are blocked in the worker thread")
    func signalsBlocked() throws {
        try withLoop { loop in
            let worker = try WorkerThread(loop: loop, name: "test-worker")
            worker.submit {
                var mask = sigset_t()
                pthread_sigmask(SIG_BLOCK, nil, &mask)
                return sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGCHLD) == 1
            } completion: { isBlocked in
                #expect(isBlocked)
                worker.close()
            }
        }
    }

    @Test("queued work completes once each on the loop's thread")
    func queued() throws {
        var sum = 0
        try withLoop { loop in
            for value in 1...50 {
                try loop.queueWork({ value * 2 }) { result in
                    #expect(loop.isOnThread)
                    sum += result
                }
            }
        }
        #expect(sum == 50 * 51)
    }
}

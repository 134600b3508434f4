import Glibc
import LarderLoop
import Synchronization
import Testing

@Suite("Mailbox")
struct MailboxTests {
    /// Runs `body` on a thread of its own and returns what joins it.
    private func onThread(_ body: @escaping @Sendable () -> Void) -> pthread_t {
        final class Body {
            let run: @Sendable () -> Void
            init(_ run: @escaping @Sendable () -> Void) { self.run = run }
        }
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { argument in
                Unmanaged<Body>.fromOpaque(argument!).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(Body(body)).toOpaque())
        return thread
    }

    @Test("what another thread posts runs on the loop's thread, all of it, in order")
    func posts() throws {
        final class Seen { var values: [Int] = [] }
        let seen = Seen()
        let count = 10_000
        try withLoop { loop in
            let mailbox = try Mailbox(loop: loop, capacity: 64)
            let bound = LoopBound(seen, loop: loop)
            let thread = onThread {
                for value in 0..<count {
                    let entry: @Sendable () -> Void = {
                        bound.value.values.append(value)
                        if value == count - 1 { mailbox.close() }
                    }
                    while !mailbox.post(entry) { sched_yield() }
                }
            }
            loop.run()
            pthread_join(thread, nil)
        }
        #expect(seen.values == Array(0..<count))
    }

    @Test("a full box refuses, and takes again after it was drained")
    func bounded() throws {
        let ran = Atomic(0)
        try withLoop { loop in
            let mailbox = try Mailbox(loop: loop, capacity: 2)
            let entry: @Sendable () -> Void = { ran.add(1, ordering: .relaxed) }
            #expect(mailbox.post(entry))
            #expect(mailbox.post(entry))
            #expect(!mailbox.post(entry))
            loop.run(.once)
            #expect(ran.load(ordering: .relaxed) == 2)
            #expect(mailbox.post(entry))
            mailbox.close()
            #expect(ran.load(ordering: .relaxed) == 3)
            #expect(!mailbox.post(entry))
        }
        #expect(ran.load(ordering: .relaxed) == 3)
    }

    @Test("an entry posted by an entry runs in a later turn")
    func reposted() throws {
        let ran = Mutex<[Int]>([])
        try withLoop { loop in
            let mailbox = try Mailbox(loop: loop, capacity: 8)
            mailbox.post {
                ran.withLock { $0.append(1) }
                mailbox.post {
                    ran.withLock { $0.append(3) }
                    mailbox.close()
                }
                ran.withLock { $0.append(2) }
            }
        }
        #expect(ran.withLock { $0 } == [1, 2, 3])
    }
}

import Glibc
import LarderLoop
import Testing

@Suite("Loop")
struct LoopTests {
    @Test("a one-shot timer fires once and its close callback runs once")
    func oneShotTimer() throws {
        var fired = 0
        var closed = 0
        try withLoop { loop in
            var timer: LarderLoop.Timer?
            timer = try Timer(loop: loop) {
                fired += 1
                timer?.close { closed += 1 }
                timer?.close { closed += 100 }
                timer = nil
            }
            try timer?.start(afterMilliseconds: 1)
        }
        #expect(fired == 1)
        #expect(closed == 1)
    }

    @Test("a repeating timer fires until it is stopped")
    func repeatingTimer() throws {
        var fired = 0
        try withLoop { loop in
            var timer: LarderLoop.Timer!
            timer = try Timer(loop: loop) {
                fired += 1
                if fired == 3 {
                    timer.stop()
                    #expect(!timer.isActive)
                    timer.close()
                }
            }
            try timer.start(afterMilliseconds: 0, repeatMilliseconds: 1)
        }
        #expect(fired == 3)
    }

    @Test("a closed handle refuses to start, and its closures are released")
    func closedHandle() throws {
        final class Witness {}
        weak var witness: Witness?
        try withLoop { loop in
            let kept = Witness()
            witness = kept
            let timer = try Timer(loop: loop) { _ = kept }
            timer.close()
            #expect(throws: LoopError(code: LoopError.EBADF, operation: "uv_timer_start")) {
                try timer.start(afterMilliseconds: 1)
            }
            timer.stop()
        }
        #expect(witness == nil)
    }

    @Test("phases run in the order idle, prepare, check, and idle keeps the loop from waiting")
    func phases() throws {
        var seen: [String] = []
        try withLoop { loop in
            var all: [LoopPhase] = []
            for (place, name) in [(LoopPhase.Place.check, "check"), (.prepare, "prepare"), (.idle, "idle")] {
                all.append(
                    try LoopPhase(loop: loop, place: place) {
                        seen.append(name)
                        if seen.count == 6 { for phase in all { phase.close() } }
                    })
            }
            for phase in all { try phase.start() }
        }
        #expect(seen == ["idle", "prepare", "check", "idle", "prepare", "check"])
    }

    @Test("a signal is heard as often as it comes one at a time")
    func signals() throws {
        var heard: [Int32] = []
        try withLoop { loop in
            var watcher: SignalWatcher!
            watcher = try SignalWatcher(loop: loop) { signal in
                heard.append(signal)
                if heard.count == 2 { watcher.close() } else { kill(getpid(), SIGUSR1) }
            }
            try watcher.start(SIGUSR1)
            kill(getpid(), SIGUSR1)
        }
        #expect(heard == [SIGUSR1, SIGUSR1])
    }

    @Test("stop ends the run with handles open")
    func stop() throws {
        try withLoop { loop in
            let timer = try Timer(loop: loop) { loop.stop() }
            try timer.start(afterMilliseconds: 0, repeatMilliseconds: 1)
            #expect(loop.run())
            timer.close()
        }
    }

    @Test("an error says what failed, and why, by name")
    func errorDescription() {
        let error = LoopError(code: LoopError.EPIPE, operation: "uv_write")
        #expect(error.name == "EPIPE")
        #expect(error.description == "uv_write failed: broken pipe (EPIPE)")
    }

    @Test("closing a loop with a handle open stops the process")
    func leak() async {
        await #expect(processExitsWith: .failure) {
            let loop = try Loop()
            _ = try Timer(loop: loop) {}
            loop.close()
        }
    }
}

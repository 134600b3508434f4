// What is said while a long log is read.

import LarderWire
import Synchronization
import Testing

@testable import larder

@Suite struct OpeningNotesTests {
    private final class Said: Sendable {
        let lines = Mutex<[String]>([])
        let clock = Mutex<Int64>(0)
    }

    @Test("a quick opening says nothing, a long one says now and then how far it is")
    func now() {
        let said = Said()
        let notes = OpeningNotes(
            since: 100, now: { said.clock.withLock { $0 } }, say: { line in said.lines.withLock { $0.append(line) } })
        for percent in 0...100 {
            said.clock.withLock { $0 = 100 + Int64(percent) * 150 }
            notes.reading(percent)
        }
        #expect(
            said.lines.withLock { $0 }
                == ["opening the library: 14 %", "opening the library: 48 %", "opening the library: 82 %"])
    }

    @Test("the command that waits hears the last whole line of it")
    func last() {
        #expect(OpeningNotes.last(in: "") == nil)
        #expect(OpeningNotes.last(in: "larder: opening the library: 1") == nil)
        #expect(
            OpeningNotes.last(in: "larder: something\nlarder: opening the library: 12 %\n")
                == "opening the library: 12 %")
        let text = "larder: opening the library: 12 %\nlarder: opening the library: 40 %\nlarder: opening the lib"
        #expect(OpeningNotes.last(in: text) == "opening the library: 40 %")
    }
}

@Suite struct RecoveryNotesTests {
    @Test("a command tells a terminal at once and others after two seconds what it waits for, then now and then")
    func notes() {
        for (isTerminal, expected) in [(true, [0, 50, 100]), (false, [20, 70])] {
            var clock: Int64 = 1_000
            var said: [String] = []
            let notes = RecoveryNotes(isTerminal: isTerminal, now: { clock }, say: { said.append($0) })
            for percent in 0...100 {
                var status = StatusIs()
                status.pid = 7
                status.reason = "recovering \(percent) %"
                notes.recovering(status)
                clock += 100
            }
            #expect(said == expected.map { "process 7 opens the library: recovering \($0) %" })
        }
    }
}

// When a host compacts of its own accord, and what it keeps then.

import Testing

@testable import LarderHost

/// The schedule with sizes in MiB.
private final class Schedule {
    private var schedule = CompactionSchedule(CompactionOptions())

    func looks(now: UInt64) -> Bool { schedule.looks(now: now) }

    func isDue(_ reclaimable: Int, of log: Int, at now: UInt64) -> Bool {
        schedule.isDue(reclaimable: reclaimable << 20, log: log << 20, now: now)
    }

    func end(hasFailed: Bool = false, left: Int, of log: Int, at now: UInt64) {
        schedule.ended(hasFailed: hasFailed, reclaimable: left << 20, log: log << 20, now: now)
    }
}

@Suite("Compaction schedule")
struct CompactionScheduleTests {
    private static let dayMilliseconds: Int64 = 86_400_000

    @Test("it takes 16 MiB and a quarter of the log", arguments: [(15, 20, false), (16, 64, true), (16, 65, false)])
    func thresholds(reclaimable: Int, log: Int, isDue: Bool) {
        let schedule = Schedule()
        #expect(schedule.isDue(reclaimable, of: log, at: 0) == isDue)
    }

    @Test("what one has left is no reason for another before it has grown, or a day has passed")
    func leftover() {
        let schedule = Schedule()
        schedule.end(left: 40, of: 100, at: 1_000)
        #expect(!schedule.isDue(40, of: 100, at: 2_000))
        #expect(!schedule.isDue(55, of: 120, at: 2_000))
        #expect(schedule.isDue(56, of: 120, at: 2_000))
        #expect(!schedule.isDue(40, of: 100, at: 86_400_999))
        #expect(schedule.isDue(40, of: 100, at: 86_401_000))
        // Of a large log it has to grow by an eighth of it.
        schedule.end(left: 400, of: 1_600, at: 90_000_000)
        #expect(!schedule.isDue(599, of: 1_600, at: 90_000_000))
        #expect(schedule.isDue(600, of: 1_600, at: 90_000_000))
    }

    @Test("it is looked at every five seconds, and after a failure in ten minutes")
    func looks() {
        let schedule = Schedule()
        #expect(schedule.looks(now: 100))
        #expect(!schedule.looks(now: 5_099))
        #expect(schedule.looks(now: 5_100))
        schedule.end(hasFailed: true, left: 40, of: 100, at: 6_000)
        #expect(!schedule.looks(now: 605_999))
        #expect(schedule.looks(now: 606_000))
        #expect(schedule.isDue(40, of: 100, at: 606_000))
    }

    @Test("history is kept for 90 days, for another time, or for ever")
    func history() {
        var options = CompactionOptions()
        #expect(options.historySince(now: 100 * CompactionScheduleTests.dayMilliseconds) == 10 * 86_400_000)
        options.historyMilliseconds = 0
        #expect(options.historySince(now: 5) == 5)
        options.historyMilliseconds = .max
        #expect(options.historySince(now: 5) == .min)
        options.historyMilliseconds = .max - 1
        #expect(options.historySince(now: -5) == .min)
    }
}

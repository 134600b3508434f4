import LarderWire
import Testing

@testable import larder

// One at a time: getopt has a state of its own.
@Suite("Amounts", .serialized)
struct AmountTests {
    @Test("bytes with and without a unit")
    func bytes() {
        #expect(Amounts.bytes("0") == 0)
        #expect(Amounts.bytes("512MiB") == 512 << 20)
        #expect(Amounts.bytes("4 gib") == 4 << 30)
        #expect(Amounts.bytes("3 GB") == 3_000_000_000)
        #expect(Amounts.bytes("1000 bytes") == 1000)
        for text in ["", "GiB", "-1", "1.5 GiB", "1 furlong", "9223372036854775807 k", "1 2"] {
            #expect(Amounts.bytes(text) == nil, "\(text)")
        }
    }

    @Test("durations with and without a unit")
    func durations() {
        #expect(Amounts.milliseconds("90") == 90_000)
        #expect(Amounts.milliseconds("5 min") == 300_000)
        #expect(Amounts.milliseconds("2h") == 7_200_000)
        #expect(Amounts.milliseconds("250ms") == 250)
        for text in ["", "s", "-1 s", "1.5 s", "2 weeks", "9223372036854775807"] {
            #expect(Amounts.milliseconds(text) == nil, "\(text)")
        }
    }

    @Test("history is kept for days, all of it, or none")
    func history() throws {
        func limit(_ text: String) throws -> HistoryLimit? {
            try HistoryLimit(
                Options(["--keep-history", text], [HistoryLimit.option], command: "compact"), command: "compact")
        }
        let now: Int64 = 1_000 * 86_400_000
        #expect(try limit("all")?.since(now: now) == .min && limit("all")?.duration == .max)
        #expect(try limit("none")?.since(now: now) == .max && limit("none")?.duration == 0)
        #expect(try limit("90")?.since(now: now) == 910 * 86_400_000)
        // 0 would leave it to the host.
        #expect(try limit("1000")?.since(now: now) == 1)
        #expect(throws: Failure.self) { try limit("1000001") }
        #expect(throws: Failure.self) { try limit("ninety") }
    }

    @Test("what a compaction came to, in one line")
    func report() {
        var compacted = Compacted(
            byteCountBefore: 412 << 20, byteCountAfter: 97 << 20, segmentCount: 7, rewrittenCount: 6,
            droppedCount: 1_204_332, floor: 5, historySince: .max)
        #expect(CompactionRun.text(compacted) == "412 MiB → 97 MiB, 1,204,332 entries gone, no history kept")
        compacted.historySince = .min
        compacted.droppedCount = 1
        #expect(CompactionRun.text(compacted) == "412 MiB → 97 MiB, 1 entry gone, all history kept")
    }
}

// A compaction by itself, and what is done beside one.

import Glibc

extension Bench {
    /// One record in so many is changed, one in so many deleted, before a compaction.
    private static let changedStride = 2
    private static let deletedStride = 10
    private static let pacedPerSecond = 1_000

    /// Changes half of the records, makes those anew that were deleted, and deletes a tenth.
    private func age(_ host: HostProcess, run: Int) throws(BenchError) {
        _ = try host.client(
            importArguments(["--changed", "\(run)", "--changed-every", "\(Bench.changedStride)", "--no-read-back"]))
        let report = try host.client(["delete", dataset, "\(recordCount)", "\(Bench.deletedStride)", "0"])
        try expect(report.integer("deleted") == agedDeletedCount, "\(report.integer("deleted")) records were deleted")
    }

    private var agedDeletedCount: Int { (recordCount + Bench.deletedStride - 1) / Bench.deletedStride }

    // MARK: By itself

    func measureCompaction() throws(BenchError) {
        progress("importing, for a compaction")
        let host = try freshHost()
        _ = try host.client(importArguments())
        var samples = Samples()
        var hostCPU = Samples()
        var ratios = Samples()
        var before = Samples()
        var after = Samples()
        for run in 1...options.runCount {
            progress("compaction, run \(run) of \(options.runCount)")
            try age(host, run: run)
            let live = try LiveEntries(ofLibrary: host.library)
            try expect(live.recordCount == recordCount - agedDeletedCount, "\(live.recordCount) records are in the log")
            settle()
            let cpu = host.cpuSeconds
            let report = try host.client(["compact", dataset, "\(recordCount)", "\(Int.max)"])
            hostCPU.add(host.cpuSeconds - cpu)
            samples.add(report.elapsed)
            let byteCount = diskBytes(ofLibrary: host.library).segments
            before.add(Double(report.integer("bytes_before")))
            after.add(Double(byteCount))
            ratios.add(Double(byteCount) / Double(live.recordByteCount))
            let kept = try LiveEntries(ofLibrary: host.library)
            try expect(kept == live, "\(kept) was kept of \(live)")
        }
        try host.stop()
        removeDirectory(host.library)
        var line = ResultLine("compaction")
        line.set(seconds: samples, records: recordCount, byteCount: Int(before.median))
        line.set(hostCPU: hostCPU, records: recordCount)
        line.set("bytes_before", Int(before.median))
        line.set("bytes_after", Int(after.median))
        line.setRatio("ratio_to_live", ratios)
        say(line)
    }

    // MARK: Beside it

    /// What was measured beside one rate of a compaction; that of 0 is none.
    private struct Beside {
        let name: String
        /// As COMPACT says it; nil: no compaction.
        let bytesPerSecond: Int?
        var rates = Samples()
        var toNone = Samples()
        var p50 = Samples()
        var p99 = Samples()
        var longest = Samples()
        var length = Samples()
        /// How much of the measurements it was at work for.
        var atWork = Samples()
    }

    /// Imports of a part of the records under new ids, which are deleted again, and gets at a fixed pace: without a
    /// compaction, beside one at the host's rate, and beside one at full rate, in turn.
    func measureBesideCompaction() throws(BenchError) {
        progress("importing, to compact beside other work")
        let host = try freshHost()
        _ = try host.client(importArguments())
        var all = [
            Beside(name: "none", bytesPerSecond: nil), Beside(name: "host", bytesPerSecond: 0),
            Beside(name: "full", bytesPerSecond: .max),
        ]
        for run in 1...options.runCount {
            var rates: [Double] = [0, 0, 0]
            for turn in all.indices {
                let at = (turn + run) % all.count
                progress("beside compaction \(all[at].name), run \(run) of \(options.runCount)")
                rates[at] = try measure(&all[at], host, run: run)
            }
            for at in all.indices { all[at].toNone.add(rates[at] / rates[0]) }
        }
        try host.stop()
        removeDirectory(host.library)
        for beside in all { say(beside) }
    }

    /// Imports beside one compaction, then gets beside another. Returns records a second.
    private func measure(_ beside: inout Beside, _ host: HostProcess, run: Int) throws(BenchError) -> Double {
        let count = max(1, recordCount / 16)
        // At the host's rate a segment takes four seconds, and what is done to it is not the same all the time.
        let cycleCount = beside.bytesPerSecond == .max ? 4 : 16
        var elapsed = 0.0
        if beside.bytesPerSecond != nil { try age(host, run: run * 2) }
        try work(&beside, host) { () throws(BenchError) in
            let started = monotonicNanoseconds()
            for cycle in 1...cycleCount {
                let total = recordCount - agedDeletedCount + count
                let report = try host.client(
                    importArguments(
                        ["--copy", "\(cycle)", "--total", "\(total)", "--no-read-back"], count: count))
                try expect(report.integer("created") == count, "not all records were created")
                elapsed += report.elapsed
                _ = try host.client(["delete", dataset, "\(count)", "1", "\(cycle)"])
            }
            return started
        }
        let rate = Double(count * cycleCount) / elapsed
        beside.rates.add(rate)
        let duration = beside.bytesPerSecond == 0 ? options.getSeconds * 4 : options.getSeconds
        var report: Report?
        if beside.bytesPerSecond == .max { try age(host, run: run * 2 + 1) }
        try work(&beside, host) { () throws(BenchError) in
            let paced = try host.client(["pace", dataset, "\(recordCount)", "\(Bench.pacedPerSecond)", "\(duration)"])
            report = paced
            return Int64(paced.integer("started"))
        }
        beside.p50.add(report?.number("p50_microseconds") ?? 0)
        beside.p99.add(report?.number("p99_microseconds") ?? 0)
        beside.longest.add(report?.number("max_microseconds") ?? 0)
        return rate
    }

    /// Has a compaction begin, and does something beside it; then it is cancelled, or, at full rate, waited for.
    ///
    /// - Parameter body: returns when what it measures began.
    private func work(
        _ beside: inout Beside, _ host: HostProcess, _ body: () throws(BenchError) -> Int64
    ) throws(BenchError) {
        settle()
        guard let rate = beside.bytesPerSecond else {
            _ = try body()
            return
        }
        let compaction = try host.startClient(["compact", dataset, "\(recordCount)", "\(rate)"])
        guard compaction.line() != nil else { throw .child("the compaction did not begin") }
        let began = try body()
        let ended = monotonicNanoseconds()
        if rate == 0 { compaction.signal(SIGTERM) }
        let report = try compaction.result()
        beside.length.add(report.elapsed)
        let atWork = seconds(from: began, to: min(ended, Int64(report.integer("ended"))))
        beside.atWork.add(max(0, atWork) / seconds(from: began, to: ended))
    }

    private func say(_ beside: Beside) {
        var line = ResultLine("beside_compaction")
        line.set("rate", beside.name)
        line.set("records_per_second", beside.rates.median, places: 0)
        line.setRange("records_per_second", beside.rates, places: 0)
        if beside.bytesPerSecond != nil { line.setRatio("ratio_to_none", beside.toNone) }
        line.set("get_p50_microseconds", beside.p50.median, places: 1)
        line.set("get_p99_microseconds", beside.p99.median, places: 1)
        line.set("get_p99_microseconds_min", beside.p99.min, places: 1)
        line.set("get_p99_microseconds_max", beside.p99.max, places: 1)
        line.set("get_longest_microseconds", beside.longest.median, places: 1)
        if beside.bytesPerSecond != nil {
            line.set("compaction_seconds_min", beside.length.min)
            line.set("share_at_work_min", beside.atWork.min, places: 2)
        }
        say(line)
    }
}

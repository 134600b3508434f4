// A library whose blocks are compressed: its bytes against SQLite's, and what reading it costs.

import LarderFormat

extension Bench {
    /// Plain, then compressed: bytes of the segments against a SQLite file of the same records, single reads at random
    /// and the whole log to a subscriber, in the page cache.
    func measureCompression() throws(BenchError) {
        guard Zstandard.isInstalled else {
            progress("there is no libzstd on this machine: nothing can be compressed")
            return
        }
        progress("importing, to be compressed")
        let host = try freshHost()
        _ = try host.client(importArguments())
        let sqliteByteCount = try sqliteByteCount()
        let plain = try measureForm(host, "plain", sqliteByteCount)
        progress("compressing")
        let report = try host.client(["compact", dataset, "\(recordCount)", "\(Int.max)", "compressed"])
        var line = try measureForm(host, "zstd", sqliteByteCount)
        let (segments, plainSegments) = (line.number("segment_bytes") ?? 0, plain.number("segment_bytes") ?? 0)
        line.set("ratio_to_plain", segments / max(plainSegments, 1), places: 3)
        line.set("seconds", report.elapsed, places: 3)
        try host.stop()
        removeDirectory(host.library)
        say(plain)
        say(line)
    }

    private func measureForm(
        _ host: HostProcess, _ name: String, _ sqliteByteCount: Int?
    ) throws(BenchError) -> ResultLine {
        // Not from a cursor: a compaction has raised the floor.
        _ = try host.client(followArguments(.snapshot))
        settle()
        var line = ResultLine("compressed")
        line.set("blocks", name)
        line.set("records", recordCount)
        let byteCount = diskBytes(ofLibrary: host.library).segments
        line.set("segment_bytes", byteCount)
        if let sqliteByteCount {
            line.set("sqlite_bytes", sqliteByteCount)
            line.set("ratio_to_sqlite", Double(byteCount) / Double(sqliteByteCount), places: 3)
        }
        var rates = Samples()
        var p99 = Samples()
        var replays = Samples()
        for run in 1...options.runCount {
            progress("reading \(name) blocks, run \(run) of \(options.runCount)")
            let report = try host.client(["get", dataset, "\(recordCount)", "1", "\(options.getSeconds)", "-1"])
            rates.add(Double(report.integer("count")) / report.elapsed)
            p99.add(report.number("p99_microseconds"))
            replays.add(Double(recordCount) / (try host.client(followArguments(.snapshot))).elapsed)
        }
        line.set("gets_per_second", rates.median, places: 0)
        line.set("get_p99_microseconds", p99.median, places: 1)
        line.set("replayed_per_second", replays.median, places: 0)
        return line
    }

    /// Of a table as the measured rivals have it; nil where the machine has no SQLite.
    private func sqliteByteCount() throws(BenchError) -> Int? {
        let path = directory + "/rivals.sqlite"
        guard let sqlite = try SQLite(path: path) else {
            progress("there is no libsqlite3 on this machine: nothing to compare with")
            return nil
        }
        progress("filling SQLite \(sqlite.version)")
        try sqlite.fill(try PackedTitles(path: dataset, recordCount: recordCount), keyedById: true)
        try sqlite.run("vacuum")
        return files(in: directory).first { $0.name == "rivals.sqlite" }?.byteCount
    }
}

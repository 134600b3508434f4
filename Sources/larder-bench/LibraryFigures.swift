// What is done with a library that holds the dataset.

import Glibc
import LarderClient
import LarderFormat

extension Bench {
    func measureShuffled() throws(BenchError) {
        var samples = Samples()
        var hostCPU = Samples()
        for run in 1...options.runCount {
            progress("shuffled import, run \(run) of \(options.runCount)")
            let host = try freshHost()
            let report = try host.client(importArguments(["--shuffled"]))
            try expect(report.integer("created") == recordCount, "not all records were created")
            samples.add(report.elapsed)
            hostCPU.add(host.cpuSeconds)
            try host.stop()
            removeDirectory(host.library)
            settle()
        }
        var line = ResultLine("import_shuffled")
        line.set(seconds: samples, records: recordCount, byteCount: recordByteCount)
        line.set(hostCPU: hostCPU, records: recordCount)
        say(line)
    }

    /// Imports what is there already: with the log on the disk alone, then in the page cache.
    func measureReimport() throws(BenchError) {
        let host = try libraryHost()
        for isCold in [true, false] {
            var samples = Samples()
            var hostCPU = Samples()
            var entries = 0
            for run in 1...options.runCount {
                progress("re-import, \(isCold ? "cold" : "warm"), run \(run) of \(options.runCount)")
                if isCold { dropCache(ofLibrary: host.library) }
                let before = host.cpuSeconds
                let report = try host.client(importArguments())
                hostCPU.add(host.cpuSeconds - before)
                try expect(report.integer("unchanged") == recordCount, "not all records were unchanged")
                samples.add(report.elapsed)
                entries = report.integer("last_seq_after") - report.integer("last_seq_before")
            }
            var line = ResultLine("reimport")
            line.set("cache", isCold ? "cold" : "warm")
            line.set(seconds: samples, records: recordCount, byteCount: recordByteCount)
            line.set(hostCPU: hostCPU, records: recordCount)
            line.set("records_written", 0)
            // What the import says of itself: its beginning, its batches, its end.
            line.set("bookkeeping_entries", entries)
            say(line)
        }
        try host.stop()
    }

    func measureChanged() throws(BenchError) {
        let host = try libraryHost()
        try warm(host)
        let changed = EncodedTitles.changedCount(of: recordCount)
        var samples = Samples()
        var hostCPU = Samples()
        for run in 1...options.runCount {
            progress("changed import, run \(run) of \(options.runCount)")
            let before = host.cpuSeconds
            let report = try host.client(importArguments(["--changed", "\(run)"]))
            hostCPU.add(host.cpuSeconds - before)
            try expect(report.integer("updated") == changed, "\(report.integer("updated")) updates for \(changed)")
            try expect(report.integer("unchanged") == recordCount - changed, "the others were not all unchanged")
            samples.add(report.elapsed)
        }
        try host.stop()
        var line = ResultLine("import_changed")
        line.set(seconds: samples, records: recordCount, byteCount: recordByteCount)
        line.set(hostCPU: hostCPU, records: recordCount)
        line.set("updated", changed)
        say(line)
    }

    func measureReplay() throws(BenchError) {
        let host = try libraryHost()
        for start in [FollowStart.cursor, .snapshot] {
            for isCold in [true, false] {
                var samples = Samples()
                var hostCPU = Samples()
                for run in 1...options.runCount {
                    progress("replay from \(start), \(isCold ? "cold" : "warm"), run \(run) of \(options.runCount)")
                    if isCold { dropCache(ofLibrary: host.library) }
                    let before = host.cpuSeconds
                    samples.add(try host.client(followArguments(start)).elapsed)
                    hostCPU.add(host.cpuSeconds - before)
                }
                var line = ResultLine("replay")
                line.set("start", start.rawValue)
                line.set("cache", isCold ? "cold" : "warm")
                line.set(seconds: samples, records: recordCount, byteCount: recordByteCount)
                line.set(hostCPU: hostCPU, records: recordCount)
                say(line)
            }
        }
        try host.stop()
    }

    /// Has the log in the page cache.
    func warm(_ host: HostProcess) throws(BenchError) { _ = try host.client(followArguments(.cursor)) }

    func measureGet() throws(BenchError) {
        let host = try libraryHost()
        try warm(host)
        for placement in Placement.all {
            for depth in [1, 16] {
                progress("get at depth \(depth), \(placement.name)")
                var rates = Samples()
                var p50 = Samples()
                var p99 = Samples()
                for _ in 1...options.runCount {
                    host.pin(placement.host)
                    let report = try host.client(
                        ["get", dataset, "\(recordCount)", "\(depth)", "\(options.getSeconds)", "\(placement.client)"])
                    rates.add(Double(report.integer("count")) / report.elapsed)
                    p50.add(report.number("p50_microseconds"))
                    p99.add(report.number("p99_microseconds"))
                }
                var line = ResultLine("get")
                line.set("depth", depth)
                line.set("cpus", placement.name)
                line.set("records_per_second", rates.median, places: 0)
                line.set("p50_microseconds", p50.median, places: 1)
                line.set("p99_microseconds", p99.median, places: 1)
                line.setRange("records_per_second", rates, places: 0)
                say(line)
            }
        }
        try host.stop()
    }

    /// How a host ended before it is started again.
    private enum Ending: String {
        /// Killed behind an import, and never closed.
        case kill
        case close
        /// Killed behind a compaction of a library that was opened from a checkpoint and that has lost a tenth of its
        /// records since.
        case compaction
    }

    /// From the start of the process to the first answered GET.
    func measureOpen() throws(BenchError) {
        let titles = try PackedTitles(path: dataset, recordCount: recordCount)
        let records = try EncodedTitles(titles)
        progress("importing, for a host that is killed")
        var host = try freshHost()
        let total = recordCount * options.copyCount
        for copy in 0..<options.copyCount {
            _ = try host.client(importArguments(["--copy", "\(copy)", "--total", "\((copy + 1) * recordCount)"]))
        }
        var random = SplitMix(seed: 6)
        let deletedStride = 10
        for ending in [Ending.kill, .close, .compaction] {
            if ending == .compaction {
                progress("deleting and compacting, for a host that is killed")
                _ = try host.client(["delete", dataset, "\(recordCount)", "\(deletedStride)", "0"])
                _ = try host.client(["compact", dataset, "\(recordCount)", "\(Int.max)"])
            }
            var samples = Samples()
            var closing = Samples()
            var hostCPU = Samples()
            for run in 1...5 {
                progress("open after \(ending), run \(run) of 5")
                let before = monotonicNanoseconds()
                if ending == .close { try host.stop() } else { host.kill() }
                // Only the first close has something to write.
                if run == 1 { closing.add(seconds(from: before, to: monotonicNanoseconds())) }
                host = try HostProcess(library: host.library, socket: socket)
                let client = try host.connect()
                var position = random.below(records.count)
                if ending == .compaction, position % deletedStride == 0 { position += position == 0 ? 1 : -1 }
                let stored = try told { () throws(ClientError) in
                    try client.get(kind: Kind.title.number, key: Array(records.key(position)))
                }
                samples.add(seconds(from: host.startedAt, to: monotonicNanoseconds()))
                hostCPU.add(host.cpuSeconds)
                try expect(stored?.record.elementsEqual(records[position]) == true, "record \(position) differs")
                client.close()
            }
            var line = ResultLine("open")
            line.set("after", ending.rawValue)
            line.set(seconds: samples, records: total, byteCount: logByteCount * options.copyCount)
            line.set("host_cpu_seconds", hostCPU.median)
            if ending == .close { line.set("close_seconds", closing.median, places: 4) }
            let anonymous = host.anonymousByteCount
            line.set("anonymous_bytes", anonymous)
            line.set("anonymous_bytes_per_record", Double(max(0, anonymous - 67_108_864)) / Double(total), places: 1)
            say(line)
        }
        try host.stop()
        removeDirectory(host.library)
    }
}

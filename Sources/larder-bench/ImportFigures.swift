// Imports into an empty library, in rounds with the probes they are compared with.

import Glibc

extension Bench {
    /// What the rounds came to.
    private struct Rounds {
        var probe = Samples(), socket = Samples(), socketSmall = Samples()
        var ceiling = Samples(), ceilingReplay = Samples()
        var ceilingGet: [(placement: Placement, depth: Int, rates: Samples)] = []
        var plain = Samples(), subscriber = Samples(), null = Samples()
        var plainCPU = Samples(), subscriberCPU = Samples(), nullCPU = Samples()
        var toProbe = Samples(), toCeiling = Samples(), toPlain = Samples(), nullToSocket = Samples()
        var subscriberToProbe = Samples(), subscriberToCeiling = Samples()
        var anonymous = Samples(), residentMax = Samples()
        var segments = 0, others = 0
    }

    func measureImports() throws(BenchError) {
        var rounds = Rounds()
        for run in 1...options.runCount {
            progress("import, run \(run) of \(options.runCount)")
            try measureRound(&rounds)
        }
        sayProbes(rounds)
        sayCeiling(rounds)
        sayImports(rounds)
    }

    private func measureRound(_ rounds: inout Rounds) throws(BenchError) {
        settle()
        let wantsImport = wants(.import) || wants(.memory) || wants(.size)
        var probe: Double?
        if wants(.probe) || wants(.import) || wants(.subscriber) {
            let time = try probeDisk(path: directory + "/probe", byteCount: logByteCount)
            rounds.probe.add(time)
            probe = time
        }
        var socketSeconds: Double?
        if wants(.socket) || wants(.null) {
            let time = try probeSocket(path: socket, byteCount: recordByteCount, chunkByteCount: 262_144)
            rounds.socket.add(time)
            rounds.socketSmall.add(try probeSocket(path: socket, byteCount: recordByteCount, chunkByteCount: 65_536))
            socketSeconds = time
        }
        let ceiling = wants(.ceiling) ? try measureCeiling(&rounds) : nil
        var plain: Double?
        if wantsImport {
            let time = try measurePlain(&rounds)
            plain = time
            if let probe { rounds.toProbe.add(probe / time) }
            if let ceiling { rounds.toCeiling.add(ceiling / time) }
        }
        if wants(.subscriber) {
            let time = try measureWithSubscriber(&rounds)
            rounds.subscriber.add(time)
            if let plain { rounds.toPlain.add(plain / time) }
            if let probe { rounds.subscriberToProbe.add(probe / time) }
            if let ceiling { rounds.subscriberToCeiling.add(ceiling / time) }
        }
        if wants(.null) {
            let host = try freshHost(memoryLogByteCount: logByteCount + logByteCount / 8)
            // Without what it took to touch the memory.
            let before = host.cpuSeconds
            let report = try host.client(importArguments(["--no-read-back"]))
            try expect(report.integer("created") == recordCount, "not all records were created")
            rounds.null.add(report.elapsed)
            rounds.nullCPU.add(host.cpuSeconds - before)
            if let socketSeconds { rounds.nullToSocket.add(socketSeconds / report.elapsed) }
            // Its log is gone with it, so its end is of no use to anybody.
            host.kill()
            removeDirectory(host.library)
        }
    }

    /// Seconds of an import; its library is kept for the figures that read.
    private func measurePlain(_ rounds: inout Rounds) throws(BenchError) -> Double {
        let host = try freshHost()
        let report = try host.client(importArguments())
        try expect(report.integer("created") == recordCount, "not all records were created")
        rounds.plainCPU.add(host.cpuSeconds)
        rounds.anonymous.add(Double(host.anonymousByteCount))
        rounds.residentMax.add(Double(host.residentByteCountMax))
        try host.stop()
        if let library { removeDirectory(library) }
        settle()
        library = host.library
        (rounds.segments, rounds.others) = diskBytes(ofLibrary: host.library)
        logByteCount = rounds.segments
        rounds.plain.add(report.elapsed)
        return report.elapsed
    }

    /// Seconds from the import's start to the last event that a subscriber has checked.
    private func measureWithSubscriber(_ rounds: inout Rounds) throws(BenchError) -> Double {
        let host = try freshHost()
        let follower = try host.startClient(followArguments(.now))
        guard follower.line() != nil else { throw .child("the subscriber did not start") }
        let report = try host.client(importArguments())
        let followed = try follower.result()
        rounds.subscriberCPU.add(host.cpuSeconds)
        try host.stop()
        removeDirectory(host.library)
        settle()
        let ended = max(followed.integer("ended"), report.integer("ended"))
        return seconds(from: Int64(report.integer("started")), to: Int64(ended))
    }

    /// Seconds of the yardstick's import, if there is one.
    private func measureCeiling(_ rounds: inout Rounds) throws(BenchError) -> Double? {
        guard let program = options.ceiling else { return nil }
        let path = directory + "/ceiling"
        let ceiling = try Ceiling(
            program: program, directory: path, socket: socket, dataset: dataset, recordCount: recordCount)
        let time = try ceiling.importAll()
        rounds.ceiling.add(time)
        rounds.ceilingReplay.add(try ceiling.replay())
        for placement in Placement.all {
            for depth in [1, 16] {
                let rate = try ceiling.gets(depth: depth, seconds: options.getSeconds, on: placement)
                let known = rounds.ceilingGet.firstIndex { $0.placement.name == placement.name && $0.depth == depth }
                if known == nil { rounds.ceilingGet.append((placement, depth, Samples())) }
                rounds.ceilingGet[known ?? rounds.ceilingGet.count - 1].rates.add(rate)
            }
        }
        ceiling.stop()
        removeDirectory(path)
        unlink(socket)
        settle()
        return time
    }

    // MARK: Lines

    private func sayProbes(_ rounds: Rounds) {
        if !rounds.probe.isEmpty {
            var line = ResultLine("probe")
            line.set("bytes", logByteCount)
            line.set("seconds", rounds.probe.median)
            line.set("bytes_per_second", Double(logByteCount) / rounds.probe.median, places: 0)
            line.setRange("seconds", rounds.probe)
            say(line)
        }
        for (chunk, samples) in [(262_144, rounds.socket), (65_536, rounds.socketSmall)] where !samples.isEmpty {
            var line = ResultLine("socket")
            line.set("write_bytes", chunk)
            line.set("bytes", recordByteCount)
            line.set("seconds", samples.median)
            line.set("bytes_per_second", Double(recordByteCount) / samples.median, places: 0)
            line.setRange("seconds", samples)
            say(line)
        }
    }

    private func sayCeiling(_ rounds: Rounds) {
        guard !rounds.ceiling.isEmpty else { return }
        for (name, samples) in [("ceiling_import", rounds.ceiling), ("ceiling_replay", rounds.ceilingReplay)] {
            var line = ResultLine(name)
            line.set(seconds: samples, records: recordCount, byteCount: recordByteCount)
            say(line)
        }
        for (placement, depth, rates) in rounds.ceilingGet {
            var line = ResultLine("ceiling_get")
            line.set("depth", depth)
            line.set("cpus", placement.name)
            line.set("records_per_second", rates.median, places: 0)
            line.setRange("records_per_second", rates, places: 0)
            say(line)
        }
    }

    private func sayImports(_ rounds: Rounds) {
        if wants(.import) {
            var line = ResultLine("import")
            line.set("subscribers", 0)
            line.set(seconds: rounds.plain, records: recordCount, byteCount: rounds.segments)
            line.set(hostCPU: rounds.plainCPU, records: recordCount)
            line.setRatio("ratio_to_probe", rounds.toProbe)
            line.setRatio("ratio_to_ceiling", rounds.toCeiling)
            say(line)
        }
        if wants(.subscriber) {
            var line = ResultLine("import")
            line.set("subscribers", 1)
            line.set(seconds: rounds.subscriber, records: recordCount, byteCount: logByteCount)
            line.set(hostCPU: rounds.subscriberCPU, records: recordCount)
            line.setRatio("ratio_to_probe", rounds.subscriberToProbe)
            line.setRatio("ratio_to_ceiling", rounds.subscriberToCeiling)
            line.setRatio("ratio_to_none", rounds.toPlain)
            say(line)
        }
        if wants(.null) {
            var line = ResultLine("import_null_log")
            line.set(seconds: rounds.null, records: recordCount, byteCount: recordByteCount)
            line.set(hostCPU: rounds.nullCPU, records: recordCount)
            line.setRatio("ratio_to_socket", rounds.nullToSocket)
            say(line)
        }
        if wants(.memory) {
            var line = ResultLine("memory")
            line.set("records", recordCount)
            line.set("rss_anon_bytes", Int(rounds.anonymous.median))
            line.set("rss_anon_bytes_per_record", rounds.anonymous.median / Double(recordCount), places: 1)
            line.set("limit_bytes", 67_108_864 + 40 * recordCount)
            line.set("rss_peak_bytes", Int(rounds.residentMax.median))
            line.setRange("rss_anon_bytes", rounds.anonymous, places: 0)
            say(line)
        }
        if wants(.size) {
            let count = Double(recordCount)
            var line = ResultLine("size")
            line.set("records", recordCount)
            line.set("encoded_bytes_per_record", Double(recordByteCount) / count, places: 1)
            line.set("protobuf_bytes_per_record", Double(protobufByteCount) / count, places: 1)
            line.set("ratio_to_protobuf", Double(recordByteCount) / Double(protobufByteCount))
            line.set("segment_bytes_per_record", Double(rounds.segments) / count, places: 1)
            line.set("ratio_to_encoded", Double(rounds.segments) / Double(recordByteCount))
            line.set("other_bytes_per_record", Double(rounds.others) / count, places: 1)
            say(line)
        }
    }
}

// A run: its files, its library, and what the figures share.

import Glibc

/// Measures what the options ask for. The figures are in extensions of their own.
final class Bench {
    let options: Options
    /// This run's own directory.
    let directory: String
    let dataset: String
    let recordCount: Int
    /// Of the dataset, encoded.
    let recordByteCount: Int
    let protobufByteCount: Int
    /// Bytes that an import writes, near enough, before one was made.
    var logByteCount: Int
    private(set) var lines: [ResultLine] = []
    /// An import of the whole dataset that figures of reading use.
    var library: String?
    private var libraryNumber = 0

    init(_ options: Options) throws(BenchError) {
        self.options = options
        recordCount = options.recordCount
        let base = options.directory ?? getenv("TMPDIR").map { String(cString: $0) } ?? "/var/tmp"
        directory = base + "/larder-bench-\(getpid())"
        try makeDirectory(directory)
        if let given = options.dataset {
            dataset = given
        } else {
            dataset = directory + "/titles.bin"
            progress("making \(recordCount) records")
            try Dataset.write(recordCount: recordCount, to: dataset)
        }
        let titles = try PackedTitles(path: dataset, recordCount: recordCount)
        recordByteCount = try EncodedTitles(titles).byteCount
        protobufByteCount = (0..<titles.count).reduce(0) { $0 + titles[$1].protobufByteCount }
        logByteCount = recordByteCount + recordCount * 11
    }

    deinit { removeDirectory(directory) }

    var socket: String { directory + "/socket" }

    /// Prints a result and keeps it for the table.
    func say(_ line: ResultLine) {
        line.print()
        lines.append(line)
    }

    func wants(_ figure: Figure) -> Bool { options.figures.contains(figure) }

    func run() throws(BenchError) {
        sayMachine()
        if Figure.allCases.contains(where: { wants($0) && $0.isOfImport }) { try measureImports() }
        if wants(.shuffled) { try measureShuffled() }
        if wants(.reimport) { try measureReimport() }
        if wants(.replay) { try measureReplay() }
        if wants(.get) { try measureGet() }
        if wants(.open) { try measureOpen() }
        if wants(.where) { try measureWhere() }
        if wants(.pages) { try measurePages() }
        if wants(.search) { try measureSearch() }
        if wants(.latency) { try measureLatency() }
        // Last, for it changes the library.
        if wants(.changed) { try measureChanged() }
        if wants(.compact) { try measureCompaction() }
        if wants(.beside) { try measureBesideCompaction() }
        if wants(.compressed) { try measureCompression() }
    }

    /// Has what was written or removed so far reach the disk, so that it does not disturb what is measured next.
    func settle() { sync() }

    private func sayMachine() {
        var line = ResultLine("machine")
        line.set("cpus", Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        var loads = [0.0]
        if getloadavg(&loads, 1) == 1 { line.set("load_average", loads[0], places: 2) }
        line.set("records", recordCount)
        line.set("record_bytes", recordByteCount)
        say(line)
    }

    // MARK: Hosts

    /// Starts a host on a new, empty library.
    func freshHost(memoryLogByteCount: Int? = nil) throws(BenchError) -> HostProcess {
        libraryNumber += 1
        let host = try HostProcess(
            library: directory + "/library-\(libraryNumber)", socket: socket, memoryLogByteCount: memoryLogByteCount)
        try host.connect().close()
        return host
    }

    /// Starts a host on the library that holds the dataset.
    func libraryHost() throws(BenchError) -> HostProcess {
        if library == nil {
            progress("importing, for the figures that read")
            let host = try freshHost()
            _ = try host.client(importArguments())
            try host.stop()
            library = host.library
        }
        let host = try HostProcess(library: library ?? "", socket: socket)
        try host.connect().close()
        return host
    }

    /// - Parameter count: records of the dataset; nil: all.
    func importArguments(_ more: [String] = [], count: Int? = nil) -> [String] {
        [
            "import", dataset, "\(count ?? recordCount)", "--batch", "\(options.bulk.batchByteCount)", "--window",
            "\(options.bulk.windowByteCount)",
        ] + more
    }

    func followArguments(_ start: FollowStart) -> [String] {
        ["follow", dataset, "\(recordCount)", start.rawValue, "4194304"]
    }
}

// `client`: one role of a measurement, in a process of its own.

import CLarder
import Glibc

/// Runs `client ROLE SOCKET DATASET RECORDS …`, which the bench starts.
func runClient(_ arguments: [String]) throws(BenchError) {
    _ = larder_set_death_signal(SIGKILL)
    guard arguments.count >= 4, let recordCount = Int(arguments[3]) else {
        throw .usage("client ROLE SOCKET DATASET RECORDS …")
    }
    let socket = arguments[1]
    let dataset = arguments[2]
    let rest = Array(arguments[4...])
    switch arguments[0] {
    case "import":
        try runImport(socket: socket, dataset: dataset, recordCount: recordCount, try importOptions(rest))
    case "follow":
        guard rest.count == 2, let start = FollowStart(rawValue: rest[0]), let window = Int(rest[1]) else {
            throw .usage("client follow SOCKET DATASET RECORDS now|cursor|snapshot WINDOW")
        }
        try runFollow(
            socket: socket, dataset: dataset, recordCount: recordCount, start: start, windowByteCount: window)
    case "get":
        guard rest.count == 3, let depth = Int(rest[0]), let duration = Double(rest[1]), let cpu = Int32(rest[2]),
            (1...1_024).contains(depth)
        else { throw .usage("client get SOCKET DATASET RECORDS DEPTH SECONDS CPU") }
        if cpu >= 0 { _ = larder_pin(0, cpu) }
        try runGets(socket: socket, dataset: dataset, recordCount: recordCount, depth: depth, seconds: duration)
    case "pace":
        guard rest.count == 2, let perSecond = Int(rest[0]), let duration = Double(rest[1]), perSecond > 0 else {
            throw .usage("client pace SOCKET DATASET RECORDS PER_SECOND SECONDS")
        }
        try runPacedGets(
            socket: socket, dataset: dataset, recordCount: recordCount, perSecond: perSecond, seconds: duration)
    case "delete":
        guard rest.count == 2, let stride = Int(rest[0]), let copy = Int(rest[1]), stride > 0 else {
            throw .usage("client delete SOCKET DATASET RECORDS STRIDE COPY")
        }
        try runDeletes(socket: socket, dataset: dataset, recordCount: recordCount, stride: stride, copy: copy)
    case "compact":
        let compresses = rest.dropFirst().first == "compressed"
        guard rest.count == (compresses ? 2 : 1), let rate = Int(rest[0]), rate >= 0 else {
            throw .usage("client compact SOCKET DATASET RECORDS BYTES_PER_SECOND [compressed]")
        }
        try runCompaction(socket: socket, bytesPerSecond: rate, compresses: compresses)
    case "scan":
        try runScans(socket: socket)
    default: throw .usage("no client is called \(arguments[0])")
    }
}

private func importOptions(_ arguments: [String]) throws(BenchError) -> ImportOptions {
    var options = ImportOptions()
    var arguments = arguments[...]
    while let option = arguments.popFirst() {
        switch option {
        case "--shuffled": options.shape.isShuffled = true
        case "--changed": options.shape.changedBy = try Options.integer(option, &arguments, 1...1_000)
        case "--changed-every": options.shape.changedStride = try Options.integer(option, &arguments, 1...1_000)
        case "--copy": options.shape.copy = try Options.integer(option, &arguments, 0...1_000)
        case "--total": options.totalCount = try Options.integer(option, &arguments, 0...1_000_000_000)
        case "--no-read-back": options.skipsReadBack = true
        case "--batch": options.bulk.batchByteCount = try Options.integer(option, &arguments, 1...4_000_000)
        case "--window": options.bulk.windowByteCount = try Options.integer(option, &arguments, 1...1_000_000_000)
        default: throw .usage("there is no option \(option)")
        }
    }
    return options
}

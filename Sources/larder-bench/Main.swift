// `larder-bench`: measures a host on this machine.

import Glibc

@main
struct Main {
    static func main() {
        do throws(BenchError) { exit(try run(Array(CommandLine.arguments.dropFirst()))) } catch {
            progress("larder-bench: \(error)")
            if case .usage = error {
                progress("`larder-bench --help` says more.")
                exit(2)
            }
            exit(1)
        }
    }

    /// Returns the exit code.
    private static func run(_ arguments: [String]) throws(BenchError) -> Int32 {
        guard let command = arguments.first else { throw .usage("a command is missing") }
        let rest = Array(arguments.dropFirst())
        if arguments.contains("--help") || command == "-h" || command == "help" {
            writeAll(1, Options.usage)
            return 0
        }
        switch command {
        case "dataset":
            guard rest.count == 2, let count = Int(rest[0]), count > 0 else { throw .usage("dataset N OUT.bin") }
            try Dataset.write(recordCount: count, to: rest[1])
        case "host":
            guard rest.count == 2 || rest.count == 4 && rest[2] == "--null-log" else {
                throw .usage("host LIBRARY SOCKET [--null-log BYTES]")
            }
            return try runHost(
                library: rest[0], socket: rest[1], memoryLogByteCount: rest.count == 4 ? Int(rest[3]) : nil)
        case "client": try runClient(rest)
        case "sink":
            guard rest.count == 2, let count = Int(rest[1]) else { throw .usage("sink SOCKET BYTES") }
            try runSink(socket: rest[0], byteCount: count)
        default:
            var options = try Options(rest)
            if let figure = Figure(rawValue: command) {
                options.figures = [figure]
            } else if command != "all" {
                throw .usage("there is no command \(command)")
            }
            try measure(options)
        }
        return 0
    }

    private static func measure(_ options: Options) throws(BenchError) {
        signal(SIGPIPE, SIG_IGN)
        let bench = try Bench(options)
        try bench.run()
        progress("\n" + bench.summary)
    }
}

// The C yardstick, a program outside of this repository that does the same work with as little as possible.

import Glibc

/// `ceiling serve SOCKET DIRECTORY`, and its clients.
final class Ceiling {
    private let program: String
    private let socket: String
    private let dataset: String
    private let recordCount: Int
    private let server: Child

    init(program: String, directory: String, socket: String, dataset: String, recordCount: Int) throws(BenchError) {
        self.program = program
        self.socket = socket
        self.dataset = dataset
        self.recordCount = recordCount
        try makeDirectory(directory)
        server = try Child(program, ["serve", socket, directory])
        let started = monotonicNanoseconds()
        while true {
            do throws(BenchError) {
                close(try connectUnix(socket))
                return
            } catch {
                if seconds(from: started, to: monotonicNanoseconds()) > 20 { throw error }
                usleep(1_000)
            }
        }
    }

    func stop() { server.end(SIGTERM) }

    /// Seconds of a durable import, which it has verified.
    func importAll(isShuffled: Bool = false) throws(BenchError) -> Double {
        let client = try Child(
            program, ["import", socket, dataset, "\(recordCount)"], environment: isShuffled ? ["SHUFFLE=1"] : [])
        return try client.result().number("seconds")
    }

    func replay() throws(BenchError) -> Double {
        try Child(program, ["replay", socket, dataset, "\(recordCount)"]).result().number("seconds")
    }

    /// Gets a second over one connection; its client is pinned if `cpus` says so.
    func gets(depth: Int, seconds: Double, on cpus: Placement) throws(BenchError) -> Double {
        server.pin(cpus.host)
        defer { server.pin(-1) }
        let client = try Child(program, ["get", socket, dataset, "\(recordCount)", "1", "\(depth)", "\(seconds)"])
        client.pin(cpus.client)
        return try client.result().number("per_s")
    }
}

// A host as the bench sees it.

import Glibc
import LarderClient
import LarderFormat
import LarderWire

/// A host process with a library of its own.
final class HostProcess {
    let library: String
    let socket: String
    private let child: Child
    /// When it was started.
    let startedAt: Int64

    /// Starts it; `connect` waits until it answers.
    init(library: String, socket: String, memoryLogByteCount: Int? = nil) throws(BenchError) {
        self.library = library
        self.socket = socket
        var arguments = ["host", library, socket]
        if let memoryLogByteCount { arguments += ["--null-log", "\(memoryLogByteCount)"] }
        startedAt = monotonicNanoseconds()
        child = try Child(Child.program, arguments)
    }

    /// Connects, waiting for the host to be there.
    @discardableResult
    func connect() throws(BenchError) -> LarderClient { try HostProcess.connect(socket, startedAt: startedAt) }

    static func connect(_ socket: String, startedAt: Int64 = 0) throws(BenchError) -> LarderClient {
        while true {
            do throws(ClientError) {
                return try LarderClient(
                    path: socket, name: "bench", version: "1",
                    timeouts: .init(connectMilliseconds: 60_000, requestMilliseconds: 60_000))
            } catch {
                guard startedAt > 0, seconds(from: startedAt, to: monotonicNanoseconds()) < 60 else {
                    throw .child("the host does not answer: \(error)")
                }
                usleep(200)
            }
        }
    }

    /// Runs a client process against it.
    func client(_ arguments: [String], started: ((Child) -> Void)? = nil) throws(BenchError) -> Report {
        let client = try Child(Child.program, ["client", arguments[0], socket] + arguments.dropFirst())
        started?(client)
        return try client.result()
    }

    func startClient(_ arguments: [String]) throws(BenchError) -> Child {
        try Child(Child.program, ["client", arguments[0], socket] + arguments.dropFirst())
    }

    var anonymousByteCount: Int { child.memory("RssAnon") }
    var residentByteCountMax: Int { child.memory("VmHWM") }
    var cpuSeconds: Double { child.cpuSeconds }
    func pin(_ cpu: Int) { child.pin(cpu) }

    /// Stops it as a user would.
    func stop() throws(BenchError) {
        let code = child.end(SIGTERM)
        try expect(code == 0, "the host ended with \(code)")
    }

    func kill() { child.end(SIGKILL) }
}

// The built program, run as a user does, in a directory of its own.

import CLarder
import Glibc
import LarderClient
import LarderFormat
import LarderWire
import Testing

@testable import larder

/// What a command printed, and its exit code.
struct Outcome {
    var code: Int32
    var output: String
    var errors: String

    /// The objects on standard output.
    var objects: [JSONValue] {
        get throws { try output.split(separator: "\n").map { try JSONValue(parsing: String($0)) } }
    }
}

/// A library in a temporary directory. Its host, if one is left, is asked to go at the end.
final class TestLibrary {
    let directory: String
    var library: String { directory + "/library" }
    private var counter = 0

    init() throws {
        var template = Array("/tmp/larder-command-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        let environment = ["XDG_RUNTIME_DIR": directory + "/run"]
        let socket = SocketPath.derived(library: library, environment: { environment[$0] }, userId: getuid())
        if let client = try? LarderClient(path: socket, name: "test", version: "0") { try? client.giveWay() }
        let process = Spawn(program: "rm", arguments: ["rm", "-rf", directory])
        if case .success(let pid) = process.run() { waitpid(pid, nil, 0) }
    }

    /// A file of the repository's cases.
    static func file(_ name: String) -> String {
        let here = #filePath
        return String(here[..<(here.lastIndex(of: "/") ?? here.startIndex)]) + "/Cases/" + name
    }

    /// Writes a file into the temporary directory.
    func write(_ name: String, _ text: String) throws -> String {
        let path = directory + "/" + name
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            try #require(count > 0)
            bytes = bytes.dropFirst(count)
        }
        return path
    }

    /// The program next to the test's own.
    static func program() throws -> String {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
        try #require(count > 0)
        let own = String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return String(own[..<(own.lastIndex(of: "/") ?? own.startIndex)]) + "/larder"
    }

    /// A command that runs, with its outputs in files.
    struct Running {
        let pid: pid_t
        let output: String
        let errors: String

        func wait() -> Outcome {
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
            let signal = status & 0x7F
            return Outcome(
                code: signal == 0 ? status >> 8 & 0xFF : 128 + signal, output: TestLibrary.text(output),
                errors: TestLibrary.text(errors))
        }
    }

    /// - Parameter input: a descriptor for standard input; nil: /dev/null.
    func start(_ words: [String], input: Int32? = nil) throws -> Running {
        counter += 1
        let paths = (output: directory + "/out\(counter)", errors: directory + "/err\(counter)")
        let output = open(paths.output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        let errors = open(paths.errors, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        defer {
            close(output)
            close(errors)
        }
        let spawn = Spawn(
            program: try TestLibrary.program(), arguments: ["larder"] + words,
            environment: [
                "LARDER_LIBRARY=\(library)", "LARDER_SOCKET=", "XDG_RUNTIME_DIR=\(directory)/run", "TZ=UTC",
                "NO_COLOR=1", "SWIFT_BACKTRACE=enable=no",
            ],
            input: input, output: output, errors: errors)
        return Running(pid: try spawn.run().get(), output: paths.output, errors: paths.errors)
    }

    /// Runs a command to its end.
    func run(_ words: String..., input: String? = nil) throws -> Outcome { try run(words, input: input) }

    func run(_ words: [String], input: String? = nil) throws -> Outcome {
        var descriptor: Int32?
        if let input { descriptor = open(try write("input", input), O_RDONLY | O_CLOEXEC) }
        defer { if let descriptor { close(descriptor) } }
        return try start(words, input: descriptor).wait()
    }

    private static func text(_ path: String) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &room, room.count)
            if count <= 0 { break }
            bytes += room[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The records as `list --json` prints them.
    func records(_ kind: String = "title") throws -> [JSONValue] {
        let outcome = try run("list", kind, "--json")
        try #require(outcome.code == 0)
        return try outcome.objects
    }
}

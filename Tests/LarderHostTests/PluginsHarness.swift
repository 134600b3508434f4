import Glibc
import LarderLoop
import LarderStore
import Testing

@testable import LarderHost

/// A directory that is gone at the end of the test.
final class PluginsDirectory {
    let path: String

    init() {
        var template = Array("/tmp/larder-plugins-XXXXXX".utf8CString)
        #expect(mkdtemp(&template) != nil)
        path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }

    deinit { PluginsDirectory.remove(path) }

    private static func remove(_ path: String) {
        var status = stat()
        if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
            for name in (try? SystemFiles().list(path)) ?? [] { remove(path + "/" + name) }
            rmdir(path)
        } else {
            unlink(path)
        }
    }

    @discardableResult
    func write(_ name: String, _ text: String, isExecutable: Bool = false) -> String {
        let file = path + "/" + name
        var directory = path
        for part in name.split(separator: "/").dropLast() {
            directory += "/" + part
            mkdir(directory, 0o700)
        }
        let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, isExecutable ? 0o700 : 0o600)
        #expect(text.withCString { Glibc.write(descriptor, $0, strlen($0)) } == text.utf8.count)
        close(descriptor)
        return file
    }

    /// Empty if there is no such file.
    func read(_ name: String) -> String {
        let bytes = try? PluginFiles.readWhole(path + "/" + name, byteCountMax: 4 << 20)
        return String(decoding: bytes ?? [], as: UTF8.self)
    }

    /// A process id that a script wrote.
    func processID(_ name: String) -> pid_t? { pid_t(read(name).prefix { $0 != "\n" }) }

    /// A plugin whose program is a shell script; `more` is put into its manifest.
    func plugin(_ name: String, script: String, more: String = "") -> String {
        write("\(name)/run.sh", "#!/bin/sh\nT=\(path)\n" + script + "\n", isExecutable: true)
        write(
            "\(name)/larder-plugin.json",
            "{\"name\": \"\(name)\", \"version\": \"1\", \"roles\": [\"notifier\"], \"program\": [\"./run.sh\"]\(more)}"
        )
        return path + "/" + name
    }
}

/// The program that was built beside the tests.
func larderProgram() throws -> String {
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
    let path = String(decoding: buffer[..<max(count, 0)].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let directory = path[..<(path.lastIndex(of: "/") ?? path.endIndex)]
    for candidate in ["\(directory)/larder"] + [PluginFiles.variable("LARDER_PROGRAM")].compactMap({ $0 })
    where access(candidate, X_OK) == 0 {
        return candidate
    }
    throw PluginError.missingFile(path: "\(directory)/larder")
}

/// Whether the process runs, or waits to be reaped.
func isThere(_ process: pid_t) -> Bool { kill(process, 0) == 0 }

/// Whether the process has ended, reaped or not: what is orphaned waits for a parent that is none of ours.
func hasEnded(_ process: pid_t) -> Bool {
    guard let line = try? PluginFiles.readWhole("/proc/\(process)/stat", byteCountMax: 4096),
        let end = line.lastIndex(of: UInt8(ascii: ")"))
    else { return true }
    return line.dropFirst(end + 2).first == UInt8(ascii: "Z")
}

/// The child of this process that guards a plugin's process.
func guardProcess(of plugin: pid_t) -> pid_t? {
    ProcessTable.children(of: getpid()).first { ProcessTable.children(of: $0).contains(plugin) }
}

extension Loop {
    /// Runs until `condition` holds; fails the test after `seconds`.
    func run(
        seconds: UInt64 = 15, until condition: () -> Bool, _ comment: Comment? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let waker = try Timer(loop: self) {}
        try waker.start(afterMilliseconds: 5, repeatMilliseconds: 5)
        let end = Loop.monotonicNanoseconds + seconds * 1_000_000_000
        var isMet = condition()
        while !isMet && Loop.monotonicNanoseconds < end {
            run(.once)
            isMet = condition()
        }
        #expect(isMet, comment ?? "the condition did not come to hold", sourceLocation: sourceLocation)
        waker.close()
        run(.noWait)
    }
}

/// A guard, with the host's ends of its pipes.
final class GuardHarness {
    let loop: Loop
    let lifeLine: InputPipe
    private(set) var process: ChildProcess!
    private(set) var exit: ChildProcess.Exit?
    private(set) var reports: [GuardReport] = []
    private(set) var hasEnded = false
    private let status: OutputPipe

    init(_ loop: Loop, _ command: [String]) throws {
        self.loop = loop
        lifeLine = try InputPipe(loop: loop)
        status = try OutputPipe(loop: loop)
        let arguments = GuardArguments(lifeLine: 4, status: 5, inherited: -1, command: command)
        let options = ChildOptions(
            program: try larderProgram(), arguments: ["guard"] + arguments.arguments,
            descriptors: [.null, .null, .null, .null, .input(lifeLine), .output(status)], isSessionLeader: true)
        process = try ChildProcess(loop: loop, options: options) { [self] in exit = $0 }
        var bytes: [UInt8] = []
        try status.startReading(
            onOutput: { [self] in
                bytes += $0
                while bytes.count >= 8 {
                    if let report = GuardReport(bytes) { reports.append(report) }
                    bytes.removeFirst(8)
                }
            }, onEnd: { [self] _ in hasEnded = true })
    }

    convenience init(_ loop: Loop, script: String) throws { try self.init(loop, ["/bin/sh", "-c", script]) }

    var processID: Int32? {
        for case .spawned(let processID) in reports { return processID }
        return nil
    }

    func finish(seconds: UInt64 = 15) throws {
        try loop.run(seconds: seconds, until: { exit != nil && hasEnded })
        lifeLine.close()
        status.close()
        process.close()
        loop.run()
    }
}

// Other processes: started, listened to, ended, reaped.

import CLarder
import Glibc
import LarderFormat

/// A process that this one started. Ended and reaped at the latest with the last reference.
final class Child {
    let pid: pid_t
    private let name: String
    private var output: Int32
    private var buffer: [UInt8] = []
    private var status: Int32?

    /// How long a process may take to end before it is killed.
    private static let patienceNanoseconds: Int64 = 30_000_000_000

    /// This program.
    static let program = "/proc/self/exe"

    /// - Parameter environment: added to this process's own, NAME=VALUE.
    init(_ program: String, _ arguments: [String], environment: [String] = []) throws(BenchError) {
        name = arguments.prefix(2).joined(separator: " ")
        var pipe: [Int32] = [0, 0]
        let code = larder_pipe(&pipe)
        guard code == 0 else { throw .system("pipe", code: -code) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, pipe[1], 1)
        var argv: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        var environ: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) }
        let ownCount = environ.count
        var at = Glibc.environ
        while let entry = at.pointee {
            environ.append(entry)
            at += 1
        }
        environ.append(nil)
        var pid: pid_t = 0
        let failure = Child.spawn(&pid, program, &actions, &argv, &environ)
        posix_spawn_file_actions_destroy(&actions)
        for pointer in argv { free(pointer) }
        for pointer in environ[..<ownCount] { free(pointer) }
        close(pipe[1])
        output = pipe[0]
        self.pid = pid
        guard failure == 0 else {
            close(pipe[0])
            status = 0
            throw .system("starting \(program)", code: failure)
        }
    }

    deinit {
        if status == nil { end(SIGKILL) }
        if output >= 0 { close(output) }
    }

    /// Starts it with no signal blocked and none ignored, whatever holds for this thread.
    private static func spawn(
        _ pid: inout pid_t, _ program: String, _ actions: inout posix_spawn_file_actions_t,
        _ argv: inout [UnsafeMutablePointer<CChar>?], _ environ: inout [UnsafeMutablePointer<CChar>?]
    ) -> Int32 {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for signal in [SIGPIPE, SIGTERM, SIGINT, SIGHUP] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        return posix_spawn(&pid, program, &actions, &attributes, &argv, &environ)
    }

    /// The next line of its standard output; nil at the end.
    func line() -> String? {
        while true {
            if let feed = buffer.firstIndex(of: 0x0A) {
                let line = String(decoding: buffer[..<feed], as: UTF8.self)
                buffer.removeFirst(feed + 1)
                return line
            }
            var chunk = [UInt8](repeating: 0, count: 4_096)
            let count = read(output, &chunk, chunk.count)
            if count > 0 {
                buffer.append(contentsOf: chunk[..<count])
            } else if count == 0 || errno != EINTR {
                return nil
            }
        }
    }

    /// Waits for its end; the exit code, or 128 and the signal's number.
    @discardableResult
    func wait() -> Int32 {
        if let status { return status }
        var raw: Int32 = 0
        while waitpid(pid, &raw, 0) < 0 && errno == EINTR {}
        let code = raw & 0x7F == 0 ? (raw >> 8) & 0xFF : 128 + (raw & 0x7F)
        status = code
        return code
    }

    /// Sends a signal, as long as it was not reaped.
    func signal(_ number: Int32) {
        if status == nil { kill(pid, number) }
    }

    /// Sends a signal and waits for the end; what does not end is killed.
    @discardableResult
    func end(_ signal: Int32) -> Int32 {
        if let status { return status }
        kill(pid, signal)
        let limit = monotonicNanoseconds() + Child.patienceNanoseconds
        while true {
            var facts = siginfo_t()
            // WNOWAIT leaves it to be reaped; the process id is 0 while it runs.
            let isThere =
                waitid(P_PID, id_t(pid), &facts, Int32(WEXITED | WNOHANG | WNOWAIT)) == 0 && facts.si_signo == 0
            if !isThere { return wait() }
            if monotonicNanoseconds() > limit { kill(pid, SIGKILL) }
            usleep(500)
        }
    }

    /// Its last line, as JSON, once it has ended well.
    func result() throws(BenchError) -> Report {
        var last = ""
        while let line = line() { last = line }
        let code = wait()
        guard code == 0 else { throw .child("`\(name)` ended with \(code)") }
        return try Report(last)
    }

    /// Binds all of its threads to a CPU; below 0 to none.
    func pin(_ cpu: Int) {
        guard let directory = opendir("/proc/\(pid)/task") else { return }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if let thread = pid_t(name) { _ = larder_pin(thread, Int32(cpu)) }
        }
    }

    /// Seconds of CPU that it has used, those of the kernel for it included.
    var cpuSeconds: Double {
        guard let file = fopen("/proc/\(pid)/stat", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 1_024)
        guard fgets(&line, Int32(line.count), file) != nil else { return 0 }
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // Fields 14 and 15 of proc(5); the name, field 2, is in brackets and may hold spaces.
        let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
        guard fields.count > 13, let user = Double(fields[12]), let kernel = Double(fields[13]) else { return 0 }
        return (user + kernel) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// A figure of /proc/PID/status in bytes, such as RssAnon.
    func memory(_ name: String) -> Int {
        guard let file = fopen("/proc/\(pid)/status", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, Int32(line.count), file) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            guard text.hasPrefix(name + ":") else { continue }
            return text.split(whereSeparator: { $0 == " " || $0 == "\t" }).compactMap { Int($0) }.first.map {
                $0 * 1_024
            } ?? 0
        }
        return 0
    }
}

/// The figures that a process printed.
struct Report {
    private let value: JSONValue

    init(_ line: String) throws(BenchError) {
        do throws(JSONError) { value = try JSONValue(parsing: line) } catch {
            throw .child("`\(line)` is no JSON: \(error)")
        }
    }

    func integer(_ name: String) -> Int { value[name]?.int64.map { Int($0) } ?? 0 }
    func number(_ name: String) -> Double { value[name]?.double ?? 0 }

    /// Seconds between the clock's start and its end.
    var elapsed: Double { seconds(from: Int64(integer("started")), to: Int64(integer("ended"))) }
}

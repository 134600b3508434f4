// What the demo works with: its directory, the host's process, the pieces that come with the sources.

import CLarder
import Glibc
import LarderClient
import LarderFormat
import LarderHost

/// The demo's directory and its host. One thread.
final class DemoStage {
    let directory: String
    let library: String
    let socket: String
    let plugins: String
    let sample: String
    /// The folder that the importer watches.
    let inbox: String
    private let isKept: Bool
    private(set) var host: pid_t = 0
    private let log: Int32

    static let pluginNames = ["tmdb-import", "jsonl-mirror", "desktop-notify"]

    init(_ context: Context) throws(Failure) {
        let sources = DemoStage.sources()
        guard let plugins = context.options.value("plugins") ?? sources.map({ $0 + "/Plugins" }),
            let sample = context.options.value("sample")
                ?? sources.map({ $0 + "/Sources/larder/Demo/Sample/wikidata-films.jsonl" })
        else {
            throw Failure(
                "the demo", "the sources of Larder are not above this program",
                "name what it needs with --plugins DIR and --sample FILE")
        }
        self.plugins = plugins
        self.sample = sample
        isKept = context.options.has("keep") || context.options.value("directory") != nil
        directory = try DemoStage.makeDirectory(context.options.value("directory"))
        library = directory + "/library"
        socket = directory + "/socket"
        inbox = directory + "/inbox"
        mkdir(inbox, 0o700)
        log = larder_open(directory + "/host.log", O_WRONLY | O_CREAT | O_APPEND, 0o600)
        try register()
    }

    /// The directory of the sources that this program was built from, found from where it lies.
    private static func sources() -> String? {
        var path = Substring(HostStarter.programPath())
        while let slash = path.lastIndex(of: "/") {
            path = path[..<slash]
            if access("\(path)/Plugins/jsonl-mirror/larder-plugin.json", R_OK) == 0 { return String(path) }
        }
        return nil
    }

    private static func makeDirectory(_ named: String?) throws(Failure) -> String {
        if let named {
            guard mkdir(named, 0o700) == 0 else {
                throw Failure("making \(named)", errorText(errno), "the demo needs a directory that is not there yet")
            }
            guard let path = realpath(named, nil) else { throw Failure("making \(named)", errorText(errno)) }
            defer { free(path) }
            return String(cString: path)
        }
        var template = Array("/tmp/larder-demo-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Failure("making a temporary directory", errorText(errno)) }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private func register() throws(Failure) {
        mkdir(library, 0o700)
        let registry = PluginRegistry(library: library)
        do throws(PluginError) {
            for name in DemoStage.pluginNames { _ = try registry.add(path: "\(plugins)/\(name)") }
            var json = JSONWriter()
            json.string(inbox)
            try registry.setSetting("tmdb-import", "watch", to: json.text)
        } catch { throw Failure("registering the plugins of \(plugins)", "\(error)") }
    }

    // MARK: The host

    /// Starts `larder serve` and connects to it.
    func start() throws(Failure) -> LarderClient {
        let process = Spawn(
            program: HostStarter.programPath(),
            arguments: ["larder", "serve", "--library", library, "--socket", socket],
            // The notifier is to tell its log, not whoever sits at this machine.
            environment: ["DISPLAY=", "WAYLAND_DISPLAY="], errors: log)
        switch process.run() {
        case .success(let pid): host = pid
        case .failure(let error): throw Failure("starting the host", errorText(error.number))
        }
        let client = try wait("the host", seconds: 60) { try? Session.connect(Place(library: library, socket: socket)) }
        return client
    }

    /// kill -9, and reaped.
    func kill() {
        guard host != 0 else { return }
        Glibc.kill(host, SIGKILL)
        waitpid(host, nil, 0)
        host = 0
    }

    /// Stops it in order. Returns its exit code, or nil if it had to be killed.
    func stop() -> Int32? {
        guard host != 0 else { return nil }
        Glibc.kill(host, SIGTERM)
        var status: Int32 = 0
        for _ in 0..<1_000 {
            if waitpid(host, &status, WNOHANG) == host {
                host = 0
                return status & 0x7F == 0 ? (status >> 8) & 0xFF : nil
            }
            usleep(10_000)
        }
        kill()
        return nil
    }

    /// Asks until there is an answer.
    func wait<R>(_ what: String, seconds: Int64, _ ask: () -> R?) throws(Failure) -> R {
        let deadline = Clock.monotonic + seconds * 1_000
        while true {
            if let answer = ask() { return answer }
            var status: Int32 = 0
            if host != 0, waitpid(host, &status, WNOHANG) == host {
                host = 0
                throw Failure(
                    "waiting for \(what)", "the host ended: \(lastWords())", "its log is \(directory)/host.log")
            }
            if Clock.monotonic > deadline {
                throw Failure(
                    "waiting for \(what)", "nothing came in \(seconds) s", "the host's log is \(directory)/host.log")
            }
            usleep(20_000)
        }
    }

    private func lastWords() -> String {
        text(of: directory + "/host.log").split(separator: "\n").last.map(String.init) ?? "without a word"
    }

    /// A small file's text, or "".
    func text(of path: String) -> String { String(decoding: DemoStage.bytes(of: path) ?? [], as: UTF8.self) }

    static func bytes(of path: String) -> [UInt8]? {
        let fd = larder_open(path, O_RDONLY, 0)
        guard fd >= 0 else { return nil }
        defer { close(fd) }
        var bytes: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 262_144)
        while true {
            let count = read(fd, &room, room.count)
            if count <= 0 { return count == 0 ? bytes : nil }
            bytes += room[..<count]
        }
    }

    static func write(_ text: String, to path: String) -> Bool {
        let fd = larder_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard fd >= 0 else { return false }
        defer { close(fd) }
        let bytes = Array(text.utf8)
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.write(fd, $0.baseAddress.map { $0 + done }, bytes.count - done) }
            if count <= 0 { return false }
            done += count
        }
        return true
    }

    /// Runs a plugin's own command; its exit code and what it printed.
    func runPlugin(_ arguments: [String]) -> (code: Int32, text: String) {
        let path = directory + "/command.txt"
        let fd = larder_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard fd >= 0 else { return (1, errorText(errno)) }
        defer { close(fd) }
        let process = Spawn(program: arguments[0], arguments: arguments, output: fd, errors: fd)
        guard case .success(let pid) = process.run() else { return (1, "\(arguments[0]) could not be started") }
        var status: Int32 = 0
        waitpid(pid, &status, 0)
        return (status & 0x7F == 0 ? (status >> 8) & 0xFF : 1, text(of: path))
    }

    func tearDown() {
        kill()
        if log >= 0 { close(log) }
        guard !isKept else { return }
        _ = Spawn(program: "rm", arguments: ["rm", "-rf", directory]).run().map { waitpid($0, nil, 0) }
    }
}

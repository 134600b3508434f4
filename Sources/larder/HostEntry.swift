// From the command line into the host.

import Glibc
import LarderClient
import LarderHost
import LarderWire

/// Starts the host in this process.
struct HostEntry {
    let place: Place
    let isTransient: Bool
    /// nil: the host's own.
    let idleMilliseconds: Int?
    /// nil: the store's own.
    let segmentKibibytes: Int?
    /// How long reading the log takes at least, in milliseconds; for tests.
    let slowOpeningMilliseconds: Int
    let isVerbose: Bool
    let compaction: CompactionOptions
    /// A host that goes finishes first what it has begun.
    private static let takeOverMilliseconds: Int64 = 30_000
    /// How long one may have the library without listening.
    private static let silentMilliseconds: Int64 = 6_000

    init(
        place: Place, isTransient: Bool, idleMilliseconds: Int?, segmentKibibytes: Int? = nil,
        slowOpeningMilliseconds: Int = 0, isVerbose: Bool, compaction: CompactionOptions
    ) {
        self.place = place
        self.isTransient = isTransient
        self.idleMilliseconds = idleMilliseconds
        self.segmentKibibytes = segmentKibibytes
        self.slowOpeningMilliseconds = slowOpeningMilliseconds
        self.isVerbose = isVerbose
        self.compaction = compaction
    }

    /// Serves until the host is stopped.
    ///
    /// - Returns: its exit code.
    func run() throws -> Int32 {
        signal(SIGPIPE, SIG_IGN)
        let begun = Clock.monotonic
        var options = HostOptions(library: place.library, socket: place.socket)
        options.isTransient = isTransient
        options.compaction = compaction
        if let idleMilliseconds { options.idleMilliseconds = idleMilliseconds }
        if let segmentKibibytes { options.store.segmentByteCountMax = segmentKibibytes << 10 }
        options.programPath = HostStarter.programPath()
        options.version = larderVersion
        let isQuiet = isTransient && !isVerbose
        options.log = { if !isQuiet { HostEntry.say($0) } }
        let notes = OpeningNotes(since: begun)
        options.store.onReading = { [slowOpeningMilliseconds] percent in
            notes.reading(percent)
            if slowOpeningMilliseconds > 0 {
                HostEntry.sleep(until: begun + Int64(percent * slowOpeningMilliseconds / 100))
            }
        }
        let ready = Ready()
        options.onReady = { ready.say?() }
        try refuseForeignDirectory()
        let host = try makeHost(options)
        ready.say = { [place, isTransient] in
            let count = host.recordCount
            HostEntry.say(
                "ready, serving \(place.library) on \(place.socket): \(Formats.count(count, "record")), process \(getpid())"
                    + (isTransient ? "" : ", after \(Formats.duration(milliseconds: Clock.monotonic - begun))"))
            // The command that waits for this line reads nothing more.
            if isTransient { HostEntry.closeErrors() }
        }
        return host.run()
    }

    /// What a library has before its identity is there; see FORMAT.md section 5.
    private static let ownNames: Set<String> = ["larder", "larder.tmp", "lock", "log", "plugins", "aside", ".", ".."]

    /// A new library is made where nothing else is, so that a mistyped directory stays as it was.
    private func refuseForeignDirectory() throws(Failure) {
        if access(place.library + "/larder", F_OK) == 0 { return }
        guard let directory = opendir(place.library) else { return }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !HostEntry.ownNames.contains(name) {
                throw Failure(
                    "serving \(place.library)", "it is no library, and there is something else in it (\(name))",
                    "name an empty or a new directory with --library")
            }
        }
    }

    /// Makes the host. A transient one in the way, as commands may start at any moment, is asked to go and waited for;
    /// so is one that has the library and does not listen yet, or no longer.
    private func makeHost(_ options: HostOptions) throws -> Host {
        var deadline = Clock.monotonic + HostEntry.takeOverMilliseconds
        var waitingSince: Int64?
        while true {
            let fault: HostError
            do throws(HostError) { return try Host(options: options) } catch { fault = error }
            let now = Clock.monotonic
            var mayWait = !isTransient && HostEntry.isOccupied(fault) && now < deadline
            if mayWait {
                if try HostEntry.askToGo(place) {
                    waitingSince = nil
                    // A host that opens its library can be asked only behind that.
                    deadline += Clock.monotonic - now
                } else {
                    mayWait = now - (waitingSince ?? now) < HostEntry.silentMilliseconds
                    waitingSince = waitingSince ?? now
                }
            }
            guard mayWait else {
                throw Failure("serving \(place.library)", "\(fault)", HostEntry.advice(fault))
            }
            usleep(10_000)
        }
    }

    /// Asks a transient host to go, waiting for it while it opens its library; one that stays is a failure.
    ///
    /// - Returns: whether there was one.
    static func askToGo(_ place: Place) throws -> Bool {
        let notes = RecoveryNotes(say: HostEntry.say)
        var opening: StatusIs?
        let client: LarderClient
        do throws(ClientError) {
            client = try Session.connect(place) { status in
                opening = status
                notes.recovering(status)
                return status.mode == .transient
            }
        } catch {
            if case .recovering = error, let opening { throw stays(opening, place) }
            return false
        }
        defer { client.close() }
        guard let status = try? client.status() else { return true }
        guard status.mode == .transient else { throw stays(status, place) }
        // One that is stopping already does not answer.
        try? client.giveWay()
        return true
    }

    private static func stays(_ status: StatusIs, _ place: Place) -> Failure {
        Failure(
            "serving \(place.library)", "process \(status.pid) serves \(status.library) already",
            "stop it with kill \(status.pid), or use it as it is")
    }

    /// Another process has the library or the socket.
    private static func isOccupied(_ error: HostError) -> Bool {
        switch error {
        case .store(.locked), .socketInUse: true
        case .store, .loop, .badSocket: false
        }
    }

    /// What is said when connections are accepted; the host is made before it is known.
    private final class Ready {
        var say: (() -> Void)?
    }

    private static func advice(_ error: HostError) -> String {
        switch error {
        case .store(.locked): "stop that process first, or use the host that it is"
        case .store(.newerFormat): "use a newer larder"
        case .store(.system(let error)) where error.code == EROFS:
            "a host writes; copy the library to where that is possible, and name the copy with --library"
        case .store(.system(let error)) where error.code == EACCES || error.code == EPERM:
            "a library belongs to one user: run as its owner, or give it to yourself with chown -R"
        case .store(.system(let error)) where error.code == ENOSPC || error.code == EDQUOT:
            "make room on that disk"
        case .store(.notALibrary): "name another directory with --library"
        case .badSocket, .socketInUse: "name another path with --socket"
        case .store, .loop: ""
        }
    }

    /// - Parameter time: on the monotonic clock, in milliseconds.
    private static func sleep(until time: Int64) {
        let rest = time - Clock.monotonic
        if rest > 0 { usleep(UInt32(clamping: rest * 1_000)) }
    }

    static func say(_ line: String) {
        _ = "larder: \(line)\n".withCString { write(STDERR_FILENO, $0, strlen($0)) }
    }

    private static func closeErrors() {
        let null = open("/dev/null", O_WRONLY)
        guard null >= 0 else { return }
        dup2(null, STDERR_FILENO)
        if null > STDERR_FILENO { close(null) }
    }
}

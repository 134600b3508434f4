// Starts a host in the background for commands that found none.

import CLarder
import Glibc

/// Runs `larder serve --transient` on its own: in a session of its own, with nothing of the command's terminal.
enum HostStarter {
    /// The line that says a host is ready begins like this.
    static let readyPrefix = "larder: ready, "

    /// How long it may say nothing: opening a large library after a crash reads all of its log.
    private static let deadlineMilliseconds: Int64 = 300_000
    private static let noteMilliseconds: Int64 = 2_000

    /// Another host may have taken the library in the meantime.
    static func mayBeARace(_ failure: Failure) -> Bool {
        failure.why.contains("is open in") || failure.why.contains("another process answers")
    }

    /// Returns once the host serves.
    ///
    /// - Returns: its process.
    static func start(_ place: Place, note: (String) -> Void) throws(Failure) -> pid_t {
        let what = "starting a host for \(place.library)"
        var ends: [Int32] = [-1, -1]
        let made = larder_pipe(&ends)
        guard made == 0 else { throw Failure(what, "making a pipe: \(errorText(-made))") }
        defer { close(ends[0]) }
        let process = Spawn(
            program: programPath(),
            arguments: [
                "larder", "serve", "--transient", "--library", place.library, "--socket", place.socket,
            ],
            errors: ends[1], isDetached: true)
        let started = process.run()
        close(ends[1])
        let pid: pid_t
        switch started {
        case .success(let found): pid = found
        case .failure(let error): throw Failure(what, errorText(error.number))
        }
        return try wait(for: pid, ends[0], what, note)
    }

    private static func wait(
        for pid: pid_t, _ end: Int32, _ what: String, _ note: (String) -> Void
    ) throws(Failure) -> pid_t {
        let begun = Clock.monotonic
        var heardAt = begun
        var noted = ""
        var text = ""
        while true {
            let passed = Clock.monotonic - begun
            if Clock.monotonic - heardAt > deadlineMilliseconds {
                throw Failure(what, "it is not ready, and has said nothing for \(deadlineMilliseconds / 1_000) s")
            }
            if passed > noteMilliseconds {
                let now = OpeningNotes.last(in: text) ?? "opening the library …"
                if now != noted { note(now) }
                noted = now
            }
            var ready = pollfd(fd: end, events: Int16(POLLIN), revents: 0)
            if poll(&ready, 1, 500) <= 0 { continue }
            var room = [UInt8](repeating: 0, count: 4_096)
            let count = read(end, &room, room.count)
            if count < 0 { continue }
            heardAt = Clock.monotonic
            text += String(decoding: room.prefix(count), as: UTF8.self)
            if text.split(separator: "\n").contains(where: { $0.hasPrefix(readyPrefix) }), text.contains("\n") {
                return pid
            }
            if count == 0 {
                waitpid(pid, nil, 0)
                throw Failure(what, words(of: text))
            }
        }
    }

    /// The last line that the host said, without the program's name.
    private static func words(of text: String) -> String {
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("larder: " + OpeningNotes.prefix) }
        guard let line = lines.last.map(String.init) else { return "it ended without a word" }
        return line.hasPrefix("larder: ") ? String(line.dropFirst(8)) : line
    }

    /// This program's file.
    static func programPath() -> String {
        guard let path = realpath("/proc/self/exe", nil) else { return CommandLine.arguments.first ?? "larder" }
        defer { free(path) }
        return String(cString: path)
    }
}

// The editor of the person at the terminal.

import Glibc
import LarderClient

/// A file that is opened in $VISUAL, $EDITOR, or vi. It stays where it is until it is removed, so that nothing written in
/// it is lost.
struct Editor {
    let path: String

    /// A new file, of the owner's alone.
    init() throws(Failure) {
        let directory = LarderClient.environment("TMPDIR").flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
        var template = Array("\(directory)/larder-XXXXXX.txt".utf8CString)
        let descriptor = mkstemps(&template, 4)
        guard descriptor >= 0 else { throw Failure("making a file in \(directory)", errorText(errno)) }
        close(descriptor)
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    func remove() { unlink(path) }

    /// Writes `text`, opens it, and gives what is there when the editor ends.
    func edit(_ text: String) throws(Failure) -> String {
        try write(text)
        let command =
            ["VISUAL", "EDITOR"].lazy.compactMap { LarderClient.environment($0) }.first { !$0.isEmpty } ?? "vi"
        // The variable may have words of its own: “code --wait”.
        let spawn = Spawn(
            program: "/bin/sh", arguments: ["sh", "-c", command + " \"$1\"", "larder", path], input: STDIN_FILENO,
            output: STDOUT_FILENO)
        // Ctrl-C is the editor's.
        signal(SIGINT, SIG_IGN)
        defer { signal(SIGINT, SIG_DFL) }
        let pid: pid_t
        switch spawn.run() {
        case .success(let started): pid = started
        case .failure(let error): throw Failure("starting the editor", errorText(error.number))
        }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        guard status == 0 else {
            throw Failure(
                "the editor (\(command)) ended with an error", "nothing was saved",
                "what was written is in \(path); set VISUAL or EDITOR to another editor")
        }
        return try read()
    }

    private func write(_ text: String) throws(Failure) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Failure("writing \(path)", errorText(errno)) }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress! + done, $0.count - done) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Failure("writing \(path)", errorText(errno)) }
            done += count
        }
    }

    private func read() throws(Failure) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        // Removed by the editor: as good as empty.
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(descriptor, &room, room.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure("reading \(path)", errorText(errno)) }
            if count == 0 { break }
            bytes += room[..<count]
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Failure("reading \(path)", "it is not UTF-8", "what was written is still there")
        }
        return text
    }
}

// The file calls of plugins: manifests, records, and the log that a plugin's output goes to.

import CLarder
import Glibc
import LarderStore

/// Small files and paths. Any thread; every call may wait for the disk.
public enum PluginFiles {
    /// A small regular file as a whole.
    static func readWhole(_ path: String, byteCountMax: Int) throws(PluginError) -> [UInt8] {
        // Non-blocking, so that a named pipe in the place of a manifest holds nobody up.
        let descriptor = larder_open(path, O_RDONLY | O_NONBLOCK, 0)
        if descriptor == -ENOENT || descriptor == -ENOTDIR { throw .missingFile(path: path) }
        if descriptor < 0 { throw .system(SystemError("open", path, code: -descriptor)) }
        defer { close(descriptor) }
        var status = stat()
        if fstat(descriptor, &status) != 0 { throw .system(SystemError("fstat", path, code: errno)) }
        if status.st_mode & S_IFMT != S_IFREG { throw .badFile(path: path, reason: "is not a regular file") }
        var bytes = [UInt8](repeating: 0, count: byteCountMax + 1)
        var count = 0
        while count <= byteCountMax {
            let n = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress! + count, $0.count - count) }
            if n == 0 { break }
            if n > 0 {
                count += n
            } else if errno != EINTR {
                throw .system(SystemError("read", path, code: errno))
            }
        }
        if count > byteCountMax { throw .badFile(path: path, reason: "is larger than \(byteCountMax) bytes") }
        return Array(bytes[..<count])
    }

    /// The absolute path without links, `.` and `..`.
    static func resolve(_ path: String) throws(PluginError) -> String {
        guard let resolved = realpath(path, nil) else {
            if errno == ENOENT { throw .missingFile(path: path) }
            throw .system(SystemError("realpath", path, code: errno))
        }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Whether the program of a manifest could be executed; a bare name is left to PATH.
    static func checkProgram(of manifest: Manifest) throws(PluginError) {
        let path = manifest.directory + "/" + Manifest.fileName
        let program = manifest.program
        guard program.utf8.contains(0x2F) else {
            if access(manifest.directory + "/" + program, F_OK) == 0, !isInPath(program) {
                throw .badProgram(
                    path: path, program: program, reason: "is not in PATH; write \"./\(program)\" for the file here")
            }
            return
        }
        if access(program, X_OK) == 0 { return }
        let reason = errno == EACCES ? "is not executable" : "can't be found: \(String(cString: strerror(errno)))"
        throw .badProgram(path: path, program: program, reason: reason)
    }

    private static func isInPath(_ program: String) -> Bool {
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        return path.split(separator: ":").contains { access($0 + "/" + program, X_OK) == 0 }
    }

    /// Milliseconds since 1970, for lines of the log.
    static var wallMilliseconds: Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
    }

    /// A variable of this process's environment.
    public static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}

/// A file that is only appended to, and moved to `<path>.1` when it is full. One thread.
///
/// Writing never fails: what the disk does not take is counted and dropped, since a log must not stop a plugin.
final class RotatingFile {
    let path: String
    private let byteCountMax: Int
    private var descriptor: Int32 = -1
    private var byteCount = 0
    private(set) var droppedByteCount = 0

    init(path: String, byteCountMax: Int) {
        self.path = path
        self.byteCountMax = byteCountMax
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Appends all of `bytes` or counts what was lost.
    func append(_ bytes: [UInt8]) {
        if descriptor >= 0 && byteCount + bytes.count > byteCountMax { rotate() }
        if descriptor < 0 { open() }
        var done = 0
        while done < bytes.count {
            let n = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress! + done, $0.count - done) }
            if n > 0 {
                done += n
            } else if n == 0 || errno != EINTR {
                break
            }
        }
        byteCount += done
        droppedByteCount += bytes.count - done
    }

    func closeFile() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }

    private func open() {
        // Non-blocking: somebody may have put a named pipe here.
        let opened = larder_open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOFOLLOW, 0o600)
        if opened < 0 { return }
        descriptor = opened
        byteCount = max(0, Int(lseek(opened, 0, SEEK_END)))
        if byteCount > byteCountMax { rotateOpened() }
    }

    private func rotate() {
        closeFile()
        rename(path, path + ".1")
        byteCount = 0
    }

    private func rotateOpened() {
        rotate()
        let opened = larder_open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOFOLLOW, 0o600)
        if opened >= 0 { descriptor = opened }
    }
}

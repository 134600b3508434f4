// Where to connect to when nobody says.

import CLarder
import Glibc
import LarderWire

extension LarderClient {
    /// The value of an environment variable, or nil where it is unset or no UTF-8.
    public static func environment(_ name: String) -> String? {
        getenv(name).flatMap { String(validatingCString: $0) }
    }

    /// The absolute real path of a directory. Where its last parts do not exist yet they are kept as they are.
    public static func realPath(_ path: String) throws(ClientError) -> String {
        var rest: [Substring] = []
        var parts = path.split(separator: "/", omittingEmptySubsequences: true)
        let isAbsolute = path.utf8.first == 0x2F
        while true {
            let existing = (isAbsolute ? "/" : parts.isEmpty ? "." : "") + parts.joined(separator: "/")
            if let real = realpath(existing, nil) {
                defer { free(real) }
                let base = String(cString: real)
                if rest.isEmpty { return base }
                return (base == "/" ? "" : base) + "/" + rest.reversed().joined(separator: "/")
            }
            guard errno == ENOENT, let last = parts.popLast() else {
                throw .system(errno: errno, operation: "finding \(path)")
            }
            rest.append(last)
        }
    }

    /// The socket of `$LARDER_SOCKET`, else of a library.
    ///
    /// - Parameter library: the library's directory; nil: `$LARDER_LIBRARY` or its default.
    public static func socketPath(library: String? = nil) throws(ClientError) -> String {
        if library == nil, let path = SocketPath.explicit(environment: environment) { return path }
        guard let library = library ?? LibraryPath.chosen(environment: environment) else {
            throw .system(errno: ENOENT, operation: "finding the library: neither LARDER_LIBRARY nor HOME is set")
        }
        return SocketPath.derived(library: try realPath(library), environment: environment, userId: getuid())
    }

    /// Connects as a plugin does: over the descriptor of `LARDER_FD`, else to `LARDER_SOCKET` or the library's socket,
    /// with the bytes of `LARDER_TOKEN`.
    public static func connectFromEnvironment(
        name: String, version: String, timeouts: Timeouts = Timeouts(), deadlineMilliseconds: Int = 0
    ) throws(ClientError) -> LarderClient {
        let token = getenv("LARDER_TOKEN").map { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) } ?? []
        if let number = environment("LARDER_FD"), !number.isEmpty {
            guard let fd = Int32(number), fd >= 0, fcntl(fd, F_GETFD) >= 0 else {
                throw .system(errno: EBADF, operation: "LARDER_FD is \(number)")
            }
            _ = larder_set_cloexec(fd, 1)
            return try LarderClient(
                fd: fd, name: name, version: version, timeouts: timeouts, deadlineMilliseconds: deadlineMilliseconds,
                token: token)
        }
        return try LarderClient(
            path: try socketPath(), name: name, version: version, timeouts: timeouts,
            deadlineMilliseconds: deadlineMilliseconds, token: token)
    }
}

// The place of the host's socket.

import Glibc
import LarderLoop
import LarderStore

enum HostSocket {
    /// Listens at `path`, making its directory, in the place of a socket that is left from a host that is gone. Only for
    /// one that holds the library's lock. The caller owns the descriptor and the node.
    static func listen(at path: String, files: any StoreFiles) throws(HostError) -> Int32 {
        try prepare(path, files: files)
        do throws(LoopError) { return try listenAt(path) } catch {
            throw .badSocket(path: path, reason: "\(error)")
        }
    }

    /// Makes the directory of a socket, and takes away what a host that is gone has left.
    static func prepare(_ path: String, files: any StoreFiles) throws(HostError) {
        guard path.utf8.count < 108 else {
            throw .badSocket(path: path, reason: "a socket's path has at most 107 bytes; --socket gives another")
        }
        let directory = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        do throws(SystemError) { try files.makeDirectory(directory) } catch {
            throw .badSocket(path: path, reason: "\(error)")
        }
        if isAnswered(path) { throw .socketInUse(path: path) }
        var status = stat()
        if lstat(path, &status) == 0, status.st_mode & S_IFMT != S_IFSOCK {
            throw .badSocket(path: path, reason: "something is there that is no socket; --socket gives another")
        }
        // A socket that is there is left from a host that is gone: the library's lock is ours.
        unlink(path)
    }

    /// Whether a process accepts connections at this path.
    private static func isAnswered(_ path: String) -> Bool {
        let fd = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard fd >= 0 else { return false }
        defer { Glibc.close(fd) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(fd, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }

    /// Whether who connects may have the library: its owner and root.
    static func admits(_ peer: Stream.PeerCredentials) -> Bool { peer.userID == geteuid() || peer.userID == 0 }
}

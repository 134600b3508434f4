// The file calls of Linux.

import CLarder
import Glibc
import LarderFormat

func systemMessage(_ code: Int32) -> String { String(cString: strerror(code)) }

/// Files as the kernel has them. Retries EINTR and short transfers; any thread.
public final class SystemFiles: StoreFiles {
    public init() {}

    public func openForReading(_ path: String) throws(SystemError) -> FileHandle {
        try open(path, O_RDONLY | O_CLOEXEC)
    }

    public func openForWriting(_ path: String) throws(SystemError) -> FileHandle {
        let flags = O_RDWR | O_CREAT | O_CLOEXEC
        do throws(SystemError) {
            return try open(path, flags | larder_o_direct())
        } catch  where error.code == EINVAL {
            // tmpfs and some overlays have no direct writes.
            return try open(path, flags)
        }
    }

    private func open(_ path: String, _ flags: Int32) throws(SystemError) -> FileHandle {
        while true {
            let fd = larder_open(path, flags, 0o600)
            if fd >= 0 { return FileHandle(raw: fd) }
            let code = errno
            if code != EINTR { throw SystemError("open", path, code: code) }
        }
    }

    public func close(_ file: FileHandle) { _ = Glibc.close(file.raw) }

    public func read(
        _ file: FileHandle, at offset: Int, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int {
        var done = 0
        while done < buffer.count {
            let n = pread(file.raw, buffer.baseAddress.map { $0 + done }, buffer.count - done, off_t(offset + done))
            if n == 0 { break }
            if n > 0 {
                done += n
            } else {
                let code = errno
                if code != EINTR { throw SystemError("pread", "descriptor \(file.raw)", code: code) }
            }
        }
        return done
    }

    public func readQuickly(
        _ file: FileHandle, at offset: Int, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> QuickRead {
        guard let base = buffer.baseAddress else { return .bytes(0) }
        while true {
            let n = larder_preadv2_nowait(file.raw, base, buffer.count, Int64(offset))
            if n == buffer.count || n == 0 { return .bytes(n) }
            // A short read may be the end of what is cached or of the file: the slow path tells.
            if n > 0 { return .wouldBlock }
            switch errno {
            case EINTR: continue
            case EAGAIN, EOPNOTSUPP, ENOSYS: return .wouldBlock
            case let code: throw SystemError("preadv2", "descriptor \(file.raw)", code: code)
            }
        }
    }

    public func willRead(_ file: FileHandle, at offset: Int, count: Int) {
        _ = posix_fadvise(file.raw, off_t(offset), off_t(count), POSIX_FADV_WILLNEED)
    }

    public func write(_ file: FileHandle, at offset: Int, _ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        var done = 0
        while done < bytes.count {
            let n = pwrite(file.raw, bytes.baseAddress.map { $0 + done }, bytes.count - done, off_t(offset + done))
            if n > 0 {
                done += n
            } else {
                let code = n == 0 ? EIO : errno
                if code != EINTR { throw SystemError("pwrite", "descriptor \(file.raw)", code: code) }
            }
        }
    }

    public func sync(_ file: FileHandle) throws(SystemError) {
        // Never retried, whatever the code, EINTR too: after a failed sync the kernel may have dropped the pages, and a
        // second one that succeeds says nothing about them.
        if fdatasync(file.raw) != 0 { throw SystemError("fdatasync", "descriptor \(file.raw)", code: errno) }
    }

    public func truncate(_ file: FileHandle, to size: Int) throws(SystemError) {
        while ftruncate(file.raw, off_t(size)) != 0 {
            let code = errno
            if code != EINTR { throw SystemError("ftruncate", "descriptor \(file.raw)", code: code) }
        }
    }

    public func layOut(_ file: FileHandle, from start: Int, to end: Int) throws(SystemError) {
        guard end > start else { return }
        let code = larder_fallocate_keep(file.raw, Int64(start), Int64(end - start))
        if code < 0 { throw SystemError("fallocate", "descriptor \(file.raw)", code: -code) }
    }

    public func size(_ file: FileHandle) throws(SystemError) -> Int {
        let size = lseek(file.raw, 0, SEEK_END)
        if size < 0 { throw SystemError("lseek", "descriptor \(file.raw)", code: errno) }
        return Int(size)
    }

    public func syncDirectory(_ path: String) throws(SystemError) {
        let directory = try open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { close(directory) }
        if fsync(directory.raw) != 0 { throw SystemError("fsync", path, code: errno) }
    }

    public func makeDirectory(_ path: String) throws(SystemError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        let code = errno
        guard code == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
            throw SystemError("mkdir", path, code: code)
        }
        try makeDirectory(String(path[..<slash]))
        if mkdir(path, 0o700) != 0 && errno != EEXIST { throw SystemError("mkdir", path, code: errno) }
    }

    public func list(_ path: String) throws(SystemError) -> [String]? {
        guard let directory = opendir(path) else {
            if errno == ENOENT { return nil }
            throw SystemError("opendir", path, code: errno)
        }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }

    public func rename(_ path: String, to newPath: String) throws(SystemError) {
        if Glibc.rename(path, newPath) != 0 { throw SystemError("rename", path, code: errno) }
    }

    public func remove(_ path: String) throws(SystemError) {
        if unlink(path) != 0 && errno != ENOENT { throw SystemError("unlink", path, code: errno) }
    }

    public func link(_ path: String, to newPath: String) throws(SystemError) {
        if Glibc.link(path, newPath) != 0 { throw SystemError("link", newPath, code: errno) }
    }

    public func isSameFile(_ path: String, _ other: String) throws(SystemError) -> Bool {
        var a = stat()
        var b = stat()
        for (path, isFirst) in [(path, true), (other, false)] {
            if (isFirst ? lstat(path, &a) : lstat(path, &b)) != 0 {
                if errno == ENOENT { return false }
                throw SystemError("lstat", path, code: errno)
            }
        }
        return a.st_dev == b.st_dev && a.st_ino == b.st_ino
    }

    public func isLocked(_ path: String) throws(SystemError) -> Bool {
        let file: FileHandle
        do throws(SystemError) { file = try openForReading(path) } catch {
            if error.code == ENOENT { return false }
            throw error
        }
        defer { close(file) }
        let probed = larder_lock_probe(file.raw)
        if probed < 0 { throw SystemError("fcntl", path, code: -probed) }
        return probed == 1
    }

    public func readWhole(_ path: String) throws(SystemError) -> [UInt8]? {
        let file: FileHandle
        do throws(SystemError) { file = try openForReading(path) } catch {
            if error.code == ENOENT { return nil }
            throw error
        }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: try size(file))
        var count = 0
        var failure: SystemError?
        bytes.withUnsafeMutableBytes { buffer in
            do throws(SystemError) { count = try read(file, at: 0, into: buffer) } catch { failure = error }
        }
        if let failure { throw failure }
        bytes.removeLast(bytes.count - count)
        return bytes
    }

    public func replaceWhole(_ path: String, with bytes: [UInt8]) throws(SystemError) {
        let temporary = path + ".tmp"
        let file = try open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC)
        var failure: SystemError?
        bytes.withUnsafeBytes { buffer in
            do throws(SystemError) {
                try write(file, at: 0, buffer)
                try sync(file)
            } catch { failure = error }
        }
        close(file)
        if let failure { throw failure }
        try rename(temporary, to: path)
        try syncDirectory(directory(of: path))
    }

    public func hold(_ directory: String, alone: Bool) throws(SystemError) -> FileHandle? {
        let file = try open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        while flock(file.raw, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0 {
            let code = errno
            if code == EINTR { continue }
            close(file)
            if code == EWOULDBLOCK { return nil }
            throw SystemError("flock", directory, code: code)
        }
        return file
    }

    public func lock(_ path: String) throws(SystemError) -> FileHandle? {
        let file = try open(path, O_RDWR | O_CREAT | O_CLOEXEC)
        let code = larder_lock_exclusive(file.raw)
        if code == 0 {
            let text = Array("\(getpid())\n".utf8)
            // In this order: a full disk would not give back the block that a cut gave away.
            if pwrite(file.raw, text, text.count, 0) == text.count { _ = ftruncate(file.raw, off_t(text.count)) }
            return file
        }
        close(file)
        if code == EAGAIN || code == EACCES { return nil }
        throw SystemError("fcntl", path, code: code)
    }
}

/// The part of a path before its last slash.
func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
}

// The library's directory as it lies on the disk. Nothing is changed, and no lock is taken.

import CLarder
import Glibc
import LarderFormat
import LarderStore

struct LibraryChecks {
    let place: Place
    private var library: String { place.library }

    func run() -> [Finding] {
        var status = stat()
        guard stat(library, &status) == 0 else {
            if errno == ENOENT {
                return [Finding("library", .ok, "\(library) is not there yet; the first command makes it")] + system()
            }
            return [Finding("library", .bad, "\(library): \(errorText(errno))", fix: "name another with --library")]
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            return [Finding("library", .bad, "\(library) is no directory", fix: "name another with --library")]
        }
        return [permissions(status), identity(), lock()] + clock() + [damage()] + system()
    }

    private func permissions(_ status: stat) -> Finding {
        if status.st_uid != getuid() {
            return Finding(
                "permissions", .bad, "\(library) belongs to user \(status.st_uid), this is user \(getuid())",
                fix: "run larder as its owner, or chown -R it")
        }
        if access(library, R_OK | W_OK | X_OK) != 0 {
            return Finding("permissions", .bad, "\(library): \(errorText(errno))", fix: "chmod -R u+rwX \(library)")
        }
        let names = ["", "/larder", "/lock", "/log", "/aside", "/plugins"] + segments().map { "/log/" + $0.name }
        let open = names.filter { name in
            var status = stat()
            return stat(library + name, &status) == 0 && status.st_mode & 0o077 != 0
        }
        guard let first = open.first else { return Finding("permissions", .ok, "only you can read the library") }
        return Finding(
            "permissions", .warn,
            "others can look into \(library + first)"
                + (open.count > 1 ? " and \(Formats.count(open.count - 1)) more" : ""),
            fix: "chmod -R go-rwx \(library)")
    }

    private func identity() -> Finding {
        guard let bytes = FileText.bytes(library + "/larder", limit: 4_096) else {
            if errno == ENOENT, segments().isEmpty {
                return Finding("format", .ok, "the library is empty; the first command makes its files")
            }
            return Finding(
                "format", .bad, "\(library)/larder: \(errorText(errno)): without it the log belongs to nobody",
                fix: "bring the file back from a copy of the library")
        }
        do throws(StoreError) {
            let identity = try Identity(bytes, path: library)
            return Finding(
                "format", .ok,
                "version \(Identity.formatVersion), made \(Formats.localTime(milliseconds: identity.createdAt))")
        } catch {
            if case .newerFormat = error { return Finding("format", .bad, "\(error)", fix: "use a newer larder") }
            return Finding("format", .bad, "\(error)", fix: "bring \(library)/larder back from a copy of the library")
        }
    }

    private func lock() -> Finding {
        let descriptor = open(library + "/lock", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return Finding("lock", .ok, "nobody has the library open") }
        defer { close(descriptor) }
        let probed = larder_lock_probe(descriptor)
        guard probed >= 0 else {
            return Finding(
                "lock", .warn, "whether somebody has the library open can't be seen: \(errorText(-probed))",
                fix: "keep the library on a local disk")
        }
        guard probed == 1 else { return Finding("lock", .ok, "nobody has the library open") }
        let text = FileText.text(library + "/lock", limit: 32) ?? ""
        let pid = Int32(text.prefix { $0.isASCII && $0.isNumber }) ?? 0
        let name = FileText.text("/proc/\(pid)/comm", limit: 64).map { $0.prefix { $0 != "\n" } } ?? ""
        return Finding(
            "lock", .ok, "open in process \(pid)" + (name.isEmpty ? "" : " (\(DisplayText.visible(String(name))))"))
    }

    private func clock() -> [Finding] {
        let now = Clock.wall
        // 2024-01-01 and 2100-01-01: before this program was, and after it will be.
        guard now > 1_704_067_200_000, now < 4_102_444_800_000 else {
            return [
                Finding(
                    "clock", .bad, "it is \(Formats.localTime(milliseconds: now)) here: what is saved gets that time",
                    fix: "set the clock (timedatectl set-ntp true)")
            ]
        }
        let written = segments().map(\.changedAt).max() ?? 0
        guard written > now + 60_000 else { return [Finding("clock", .ok, "not before the last change of the log")] }
        return [
            Finding(
                "clock", .warn,
                "it is \(Formats.localTime(milliseconds: now)), and the log was written at "
                    + "\(Formats.localTime(milliseconds: written)): what is saved now seems older than what is there",
                fix: "set the clock (timedatectl set-ntp true)")
        ]
    }

    private func damage() -> Finding {
        let names = FileText.names(library + "/aside")
        guard !names.isEmpty else { return Finding("damage", .ok, "nothing was ever put aside") }
        return Finding(
            "damage", .warn,
            "\(Formats.count(names.count, "file")) in \(library)/aside: ends that a crash left unfinished, or damaged "
                + "parts of the log; the rest is served",
            fix: "larder serve says what is lost as it opens; once you need them no more, the files may be deleted")
    }

    // MARK: The disk

    private func system() -> [Finding] {
        var existing = library
        while access(existing, F_OK) != 0, existing != "/", let slash = existing.lastIndex(of: "/") {
            existing = slash == existing.startIndex ? "/" : String(existing[..<slash])
        }
        return [room(existing), fileSystem(existing)]
    }

    private func room(_ path: String) -> Finding {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return Finding("disk", .warn, "\(path): \(errorText(errno))") }
        let free = Int(
            clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue)
        let used = segments().reduce(0) { $0 &+ $1.byteCount }
        let text = "\(Formats.bytes(free)) free, the log has \(Formats.bytes(used))"
        // A segment and its index; without them nothing more is saved.
        if free < 64 << 20 {
            return Finding("disk", .bad, text + ": soon nothing more can be saved", fix: "make room on that disk")
        }
        if free < used {
            return Finding("disk", .warn, text + ": no room for a copy of it", fix: "make room on that disk")
        }
        return Finding("disk", .ok, text)
    }

    /// Kinds of file systems that are not as durable or as exclusive as a local disk, by statfs's numbers.
    private static let doubtful: [Int: (name: String, why: String)] = [
        0x6969: ("nfs", "locks and syncs over a network do not always hold"),
        0xFF53_4D42: ("cifs", "locks and syncs over a network do not always hold"),
        0xFE53_4D42: ("smb2", "locks and syncs over a network do not always hold"),
        0x0102_1997: ("9p", "locks and syncs may not reach the disk"),
        0x6573_5546: ("fuse", "what a sync means is up to the program behind it"),
        0x0102_1994: ("tmpfs", "it is gone at the next start of the computer"),
        0x8584_58F6: ("ramfs", "it is gone at the next start of the computer"),
    ]

    private func fileSystem(_ path: String) -> Finding {
        let type = Int(larder_file_system_type(path))
        guard type >= 0 else { return Finding("file_system", .warn, "\(path): \(errorText(Int32(-type)))") }
        guard let known = LibraryChecks.doubtful[type] else {
            return Finding("file_system", .ok, "a local one (type \(String(type, radix: 16)))")
        }
        return Finding(
            "file_system", .warn, "the library is on \(known.name): \(known.why)",
            fix: "keep the library on a local disk, and copies elsewhere")
    }

    // MARK: Segments

    private func segments() -> [(name: String, byteCount: Int, changedAt: Int64)] {
        FileText.names(library + "/log").filter { $0.hasSuffix(".seg") }.map { name in
            var status = stat()
            guard stat("\(library)/log/\(name)", &status) == 0 else { return (name, 0, 0) }
            return (name, Int(status.st_size), Int64(status.st_mtim.tv_sec) * 1_000)
        }
    }
}

/// Small files, read as they are.
enum FileText {
    /// nil where it can't be read; errno says why.
    static func bytes(_ path: String, limit: Int) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var room = [UInt8](repeating: 0, count: limit)
        let count = read(descriptor, &room, limit)
        return count < 0 ? nil : Array(room[..<count])
    }

    static func text(_ path: String, limit: Int) -> String? {
        bytes(path, limit: limit).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Names in a directory, sorted, without those that begin with a dot.
    static func names(_ path: String) -> [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted()
    }
}

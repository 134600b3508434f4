// What the computer has that Larder and its plugins can use.

import Glibc

struct SystemChecks {
    func run() -> [Finding] {
        [
            program("python3", "the plugins that come with larder are written in it", fix: "apt install python3"),
            zstd(),
            program("notify-send", "desktop-notify shows its notices with it", fix: "apt install libnotify-bin"),
            openFiles(), watches(), sharedMemory(),
        ]
    }

    /// Where a program is: as it stands where it has a slash, else in PATH; nil: nowhere.
    static func path(of program: String) -> String? {
        if program.utf8.contains(0x2F) { return access(program, X_OK) == 0 ? program : nil }
        let variable = getenv("PATH").map { String(cString: $0) } ?? "/usr/local/bin:/usr/bin:/bin"
        for directory in variable.split(separator: ":", omittingEmptySubsequences: true) {
            let path = "\(directory)/\(program)"
            if access(path, X_OK) == 0 { return path }
        }
        return nil
    }

    private func program(_ name: String, _ use: String, fix: String) -> Finding {
        guard let path = SystemChecks.path(of: name) else {
            return Finding(name, .warn, "not found; \(use)", fix: fix)
        }
        return Finding(name, .ok, path)
    }

    private func zstd() -> Finding {
        guard let library = dlopen("libzstd.so.1", RTLD_LAZY | RTLD_LOCAL) else {
            return Finding(
                "zstd", .warn, "its library is not found; compressed parts of a log can't be read without it",
                fix: "apt install libzstd1")
        }
        dlclose(library)
        return Finding("zstd", .ok, "libzstd.so.1")
    }

    private func openFiles() -> Finding {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return Finding("open_files", .warn, errorText(errno))
        }
        let count = Int(clamping: limit.rlim_cur)
        let text = count == .max ? "no limit" : "up to \(Formats.count(count))"
        // A connection takes one, a plugin four, a segment one.
        if count < 256 {
            return Finding(
                "open_files", .warn, text + ": few for many connections and plugins", fix: "ulimit -n 1024")
        }
        return Finding("open_files", .ok, text)
    }

    private func watches() -> Finding {
        let directory = "/proc/sys/fs/inotify/"
        func number(_ name: String) -> Int? {
            FileText.text(directory + name, limit: 32).flatMap { Int($0.prefix { $0.isNumber }) }
        }
        guard let watches = number("max_user_watches"), let instances = number("max_user_instances") else {
            return Finding("inotify", .warn, "its limits can't be read; plugins that watch directories may not work")
        }
        let text = "\(Formats.count(instances)) instances, \(Formats.count(watches)) watches"
        if watches < 8_192 || instances < 64 {
            return Finding(
                "inotify", .warn, text + ": few for plugins that watch directories",
                fix: "sysctl fs.inotify.max_user_watches=65536 fs.inotify.max_user_instances=128")
        }
        return Finding("inotify", .ok, text)
    }

    private func sharedMemory() -> Finding {
        guard access("/dev/shm", W_OK | X_OK) == 0 else {
            return Finding(
                "shm", .warn, "/dev/shm: \(errorText(errno)); programs that share memory may not work",
                fix: "mount -t tmpfs tmpfs /dev/shm")
        }
        return Finding("shm", .ok, "/dev/shm can be used")
    }
}

// Who started whom, from /proc.

import CLarder
import Glibc

/// The processes of this machine as they are now. O(processes); empty where there is no /proc.
enum ProcessTable {
    static func children(of parent: pid_t) -> [pid_t] {
        entries().filter { $0.parent == parent }.map(\.process)
    }

    /// Children, their children, and so on; parents first.
    static func descendants(of root: pid_t) -> [pid_t] {
        let entries = entries()
        var found: [pid_t] = []
        var parents: Set<pid_t> = [root]
        while !parents.isEmpty {
            let next = entries.filter { parents.contains($0.parent) }.map(\.process)
            found += next
            // No process is its own ancestor, but this list is not of one moment.
            parents = Set(next).subtracting([root])
            if found.count > entries.count { break }
        }
        return found
    }

    private static func entries() -> [(process: pid_t, parent: pid_t)] {
        guard let directory = opendir("/proc") else { return [] }
        defer { closedir(directory) }
        var entries: [(process: pid_t, parent: pid_t)] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard let process = pid_t(name), let parent = parent(of: process) else { continue }
            entries.append((process, parent))
        }
        return entries
    }

    /// nil once it has been reaped.
    private static func parent(of process: pid_t) -> pid_t? {
        let descriptor = larder_open("/proc/\(process)/stat", O_RDONLY, 0)
        if descriptor < 0 { return nil }
        defer { close(descriptor) }
        var line = [UInt8](repeating: 0, count: 512)
        let n = read(descriptor, &line, line.count)
        return n > 0 ? parent(inLine: line[..<n]) : nil
    }

    /// `process (name) state parent …`, where the name may hold anything, even `) S 1`.
    static func parent(inLine line: some BidirectionalCollection<UInt8>) -> pid_t? {
        guard let end = line.lastIndex(of: 0x29) else { return nil }
        let fields = line[line.index(after: end)...].split(separator: 0x20, maxSplits: 2)
        guard fields.count > 1 else { return nil }
        return pid_t(String(decoding: fields[1], as: UTF8.self))
    }
}

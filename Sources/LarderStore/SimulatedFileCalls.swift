// The file calls of the simulated disk. Everything runs under its lock.

import Glibc
import LarderFormat

extension SimulatedFiles {
    public func openForReading(_ path: String) throws(SystemError) -> FileHandle {
        try locked { () throws(SystemError) in
            try look("open", path)
            guard let node = node(path), !node.isDirectory else { throw SystemError("open", path, code: ENOENT) }
            return handle(node, path, isWritable: false)
        }
    }

    public func openForWriting(_ path: String) throws(SystemError) -> FileHandle {
        try locked { () throws(SystemError) in
            try checkPower("open", path)
            return handle(try create(path), path, isWritable: true)
        }
    }

    public func close(_ file: FileHandle) {
        locked {
            guard let open = openFiles.removeValue(forKey: file.raw) else { return }
            if open.node.lockedBy == file.raw { open.node.lockedBy = nil }
        }
    }

    public func read(
        _ file: FileHandle, at offset: Int, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int {
        try locked { () throws(SystemError) in
            let open = try opened("pread", file)
            try look("pread", open.path)
            return copy(open.node, offset, buffer)
        }
    }

    public func readQuickly(
        _ file: FileHandle, at offset: Int, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> QuickRead {
        try locked { () throws(SystemError) in
            let open = try opened("preadv2", file)
            try look("preadv2", open.path)
            if Int.random(in: 0..<100, using: &generator) < blockingPercent { return .wouldBlock }
            return .bytes(copy(open.node, offset, buffer))
        }
    }

    private func copy(_ node: SimulatedNode, _ offset: Int, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = max(0, min(buffer.count, node.content.count - offset))
        guard count > 0 else { return 0 }
        node.content.withUnsafeBytes { source in
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: source[offset..<offset + count]))
        }
        return count
    }

    public func willRead(_ file: FileHandle, at offset: Int, count: Int) {}

    /// Refuses what SystemFiles could not write past the page cache.
    public func write(_ file: FileHandle, at offset: Int, _ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        try locked { () throws(SystemError) in
            let open = try opened("pwrite", file, writes: true)
            let address = bytes.baseAddress.map { UInt(bitPattern: $0) } ?? 0
            guard offset % 4096 == 0, bytes.count % 4096 == 0, address % 4096 == 0 else {
                throw SystemError("pwrite", open.path, code: EINVAL)
            }
            try checkRoom("pwrite", open.node, open.path, byteCount: offset + bytes.count)
            try mutate("pwrite", open.path) { isFault in
                let count = isFault ? bytes.count / 2 : bytes.count
                open.node.write(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: offset)
            }
            open.node.write(bytes, at: offset)
        }
    }

    public func sync(_ file: FileHandle) throws(SystemError) {
        try locked { () throws(SystemError) in
            let open = try opened("fdatasync", file)
            try mutate("fdatasync", open.path)
            open.node.sync()
        }
    }

    public func truncate(_ file: FileHandle, to size: Int) throws(SystemError) {
        try locked { () throws(SystemError) in
            let open = try opened("ftruncate", file, writes: true)
            try mutate("ftruncate", open.path) { isFault in if !isFault { open.node.truncate(to: size) } }
            open.node.truncate(to: size)
        }
    }

    public func layOut(_ file: FileHandle, from start: Int, to end: Int) throws(SystemError) {
        try locked { () throws(SystemError) in
            let open = try opened("fallocate", file, writes: true)
            try mutate("fallocate", open.path)
            try checkRoom("fallocate", open.node, open.path, byteCount: end)
            open.node.laidOut = max(open.node.laidOut, end)
        }
    }

    public func size(_ file: FileHandle) throws(SystemError) -> Int {
        try locked { () throws(SystemError) in
            let open = try opened("lseek", file)
            try look("lseek", open.path)
            return open.node.content.count
        }
    }

    public func syncDirectory(_ path: String) throws(SystemError) {
        try locked { () throws(SystemError) in
            guard let node = node(path), node.isDirectory else { throw SystemError("open", path, code: ENOENT) }
            try mutate("fsync", path)
            let renames = Set(node.nameChanges.compactMap(\.rename))
            settle(node) { _ in true }
            // A rename is one change of the file system: its other half is durable too.
            if !renames.isEmpty { settleEverywhere(root) { $0.rename.map(renames.contains) ?? false } }
        }
    }

    private func settle(_ directory: SimulatedNode, _ isDue: (PendingName) -> Bool) {
        for change in directory.nameChanges where isDue(change) { directory.durableEntries[change.name] = change.node }
        directory.nameChanges.removeAll(where: isDue)
    }

    private func settleEverywhere(_ directory: SimulatedNode, _ isDue: (PendingName) -> Bool) {
        settle(directory, isDue)
        for child in directory.entries.values where child.isDirectory { settleEverywhere(child, isDue) }
    }

    public func makeDirectory(_ path: String) throws(SystemError) {
        try locked { () throws(SystemError) in
            var directory = root
            for part in parts(path) {
                if directory.entries[part] == nil {
                    try mutate("mkdir", path)
                    directory.setName(part, SimulatedNode(isDirectory: true))
                }
                guard let next = directory.entries[part], next.isDirectory else {
                    throw SystemError("mkdir", path, code: ENOTDIR)
                }
                directory = next
            }
        }
    }

    public func list(_ path: String) throws(SystemError) -> [String]? {
        try locked { () throws(SystemError) in
            try look("opendir", path)
            guard let node = node(path) else { return nil }
            guard node.isDirectory else { throw SystemError("opendir", path, code: ENOTDIR) }
            return node.entries.keys.shuffled(using: &generator)
        }
    }

    public func rename(_ path: String, to newPath: String) throws(SystemError) {
        try locked { () throws(SystemError) in
            let (from, name) = try parent("rename", path)
            let (to, newName) = try parent("rename", newPath)
            guard let node = from.entries[name] else { throw SystemError("rename", path, code: ENOENT) }
            try mutate("rename", path)
            nextRename += 1
            to.setName(newName, node, rename: nextRename)
            from.setName(name, nil, rename: nextRename)
        }
    }

    public func remove(_ path: String) throws(SystemError) {
        try locked { () throws(SystemError) in
            guard let (directory, name) = try? parent("unlink", path), directory.entries[name] != nil else { return }
            try mutate("unlink", path)
            directory.setName(name, nil)
        }
    }

    public func link(_ path: String, to newPath: String) throws(SystemError) {
        try locked { () throws(SystemError) in
            guard let node = node(path), !node.isDirectory else { throw SystemError("link", newPath, code: ENOENT) }
            let (directory, name) = try parent("link", newPath)
            guard directory.entries[name] == nil else { throw SystemError("link", newPath, code: EEXIST) }
            try mutate("link", newPath)
            directory.setName(name, node)
        }
    }

    public func isSameFile(_ path: String, _ other: String) throws(SystemError) -> Bool {
        try locked { () throws(SystemError) in
            try checkPower("lstat", path)
            guard let node = node(path) else { return false }
            return node === self.node(other)
        }
    }

    public func isLocked(_ path: String) throws(SystemError) -> Bool {
        try locked { () throws(SystemError) in
            try checkPower("fcntl", path)
            return node(path)?.lockedBy != nil
        }
    }

    /// There is one process, and nobody to wait for.
    public func hold(_ directory: String, alone: Bool) throws(SystemError) -> FileHandle? {
        try locked { () throws(SystemError) in try look("flock", directory) }
        return FileHandle(raw: -1)
    }

    public func readWhole(_ path: String) throws(SystemError) -> [UInt8]? {
        try locked { () throws(SystemError) in
            try look("open", path)
            return node(path)?.content
        }
    }

    public func replaceWhole(_ path: String, with bytes: [UInt8]) throws(SystemError) {
        let temporary = path + ".tmp"
        try locked { () throws(SystemError) in
            let node = try create(temporary)
            if !node.content.isEmpty {
                try mutate("open", temporary)
                node.truncate(to: 0)
            }
            try checkRoom("pwrite", node, temporary, byteCount: bytes.count)
            try mutate("pwrite", temporary) { _ in bytes.withUnsafeBytes { node.write($0, at: 0) } }
            bytes.withUnsafeBytes { node.write($0, at: 0) }
            try mutate("fdatasync", temporary)
            node.sync()
        }
        try rename(temporary, to: path)
        try syncDirectory(directory(of: path))
    }

    public func lock(_ path: String) throws(SystemError) -> FileHandle? {
        try locked { () throws(SystemError) in
            try checkPower("open", path)
            let node = try create(path)
            guard node.lockedBy == nil else { return nil }
            let file = handle(node, path, isWritable: true)
            node.lockedBy = file.raw
            node.truncate(to: 0)
            Array("\(processIdentifier)\n".utf8).withUnsafeBytes { node.write($0, at: 0) }
            return file
        }
    }
}

// Files in memory that can fail and lose power: the twin of SystemFiles for tests and rehearsals.

import Glibc
import LarderFormat

/// A call that is to fail.
public struct SimulatedFault: Sendable {
    /// The C name of the call, as in `SystemError`; nil: any call that changes something.
    public var call: String?
    /// Only calls about paths that end so; nil: all.
    public var pathSuffix: String?
    /// Calls that still succeed before it.
    public var callsBefore: Int
    public var code: Int32
    /// Every later one fails too.
    public var isSticky: Bool
    /// A write puts its first half on the disk before it fails.
    public var isShort: Bool

    public init(
        call: String?, pathSuffix: String? = nil, callsBefore: Int = 0, code: Int32 = EIO, isSticky: Bool = false,
        isShort: Bool = false
    ) {
        self.call = call
        self.pathSuffix = pathSuffix
        self.callsBefore = callsBefore
        self.code = code
        self.isSticky = isSticky
        self.isShort = isShort
    }
}

/// A disk in memory. Any thread.
///
/// A write is durable once its file was synced; a name once its directory was. `powerCut` gives the disk as it is found
/// after a restart, with any part of the rest. What was written in one call can be torn at any sector of 512 bytes.
public final class SimulatedFiles: StoreFiles, @unchecked Sendable {
    private struct OpenFile {
        var node: SimulatedNode
        var path: String
        var isWritable: Bool
    }

    private let gate: UnsafeMutablePointer<pthread_mutex_t>
    private let root: SimulatedNode
    private var openFiles: [Int32: OpenFile] = [:]
    private var nextHandle: Int32 = 3
    private var nextRename = 0
    private var generator: SplitMix64
    private var faults: [SimulatedFault] = []
    private var mutations = 0
    private var mutationsUntilCut: Int?
    private var isPowerless = false
    private var blockingPercent = 0

    /// What `lock` writes into the lock file.
    public let processIdentifier: Int

    public convenience init(seed: UInt64 = 0, processIdentifier: Int = 4242) {
        self.init(root: SimulatedNode(isDirectory: true), seed: seed, processIdentifier: processIdentifier)
    }

    private init(root: SimulatedNode, seed: UInt64, processIdentifier: Int) {
        gate = .allocate(capacity: 1)
        gate.initialize(to: pthread_mutex_t())
        pthread_mutex_init(gate, nil)
        self.root = root
        self.processIdentifier = processIdentifier
        generator = SplitMix64(seed: seed)
    }

    deinit {
        pthread_mutex_destroy(gate)
        gate.deallocate()
    }

    private func locked<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
        pthread_mutex_lock(gate)
        defer { pthread_mutex_unlock(gate) }
        return try body()
    }
}

// MARK: What a test asks of the disk

extension SimulatedFiles {
    /// Calls so far that changed something.
    public var mutationCount: Int { locked { mutations } }

    /// Lets a call fail. Several can be set; the first that fits is used.
    public func inject(_ fault: SimulatedFault) { locked { faults.append(fault) } }
    public func clearFaults() { locked { faults = [] } }

    /// Percent of the quick reads that answer `wouldBlock`.
    public func setBlockingReads(percent: Int) { locked { blockingPercent = percent } }

    /// The power goes during the change that follows `count` others; from then on every call fails.
    public func cutPower(afterMutations count: Int) { locked { mutationsUntilCut = count } }
    public var hasPower: Bool { locked { !isPowerless } }

    /// The disk as it is found after a power cut now. Nothing is open or locked there.
    public func powerCut(_ mode: PowerCutMode, using random: inout some RandomNumberGenerator) -> SimulatedFiles {
        locked {
            var cut = PowerCut(mode: mode)
            let survivor = cut.survivor(of: root, using: &random)
            let found = SimulatedFiles(root: survivor, seed: random.next(), processIdentifier: processIdentifier)
            found.blockingPercent = blockingPercent
            return found
        }
    }

    public func powerCut(using random: inout some RandomNumberGenerator) -> SimulatedFiles {
        powerCut(PowerCutMode.allCases.randomElement(using: &random) ?? .losesAll, using: &random)
    }

    /// The content of a file; nil when there is none.
    public func content(_ path: String) -> [UInt8]? {
        locked { node(path).flatMap { $0.isDirectory ? nil : $0.content } }
    }

    /// Puts a durable file there, with its directories, or changes one: for laying out damage.
    public func setContent(_ path: String, _ bytes: [UInt8]) {
        locked {
            var directory = root
            let parts = parts(path)
            for part in parts.dropLast() {
                let next = directory.entries[part] ?? SimulatedNode(isDirectory: true)
                directory.entries[part] = next
                directory.durableEntries[part] = next
                directory = next
            }
            guard let name = parts.last else { return }
            let file = directory.entries[name] ?? SimulatedNode(isDirectory: false)
            file.content = bytes
            file.durable = bytes
            file.changes = []
            directory.entries[name] = file
            directory.durableEntries[name] = file
        }
    }
}

// MARK: Paths, power and faults; under the lock

extension SimulatedFiles {
    private func parts(_ path: String) -> [String] { path.split(separator: "/").map(String.init).filter { $0 != "." } }

    private func node(_ path: String) -> SimulatedNode? {
        var node = root
        for part in parts(path) {
            guard let next = node.entries[part] else { return nil }
            node = next
        }
        return node
    }

    private func parent(_ call: String, _ path: String) throws(SystemError) -> (SimulatedNode, String) {
        let parts = parts(path)
        guard let name = parts.last, let node = node(parts.dropLast().joined(separator: "/")), node.isDirectory else {
            throw SystemError(call, path, code: ENOENT)
        }
        return (node, name)
    }

    private func opened(_ call: String, _ file: FileHandle, writes: Bool = false) throws(SystemError) -> OpenFile {
        guard let open = openFiles[file.raw], !writes || open.isWritable else {
            throw SystemError(call, "descriptor \(file.raw)", code: EBADF)
        }
        return open
    }

    private func checkPower(_ call: String, _ path: String) throws(SystemError) {
        if isPowerless { throw SystemError(call, path, code: EIO) }
    }

    /// Says whether a change goes on. `partial` does what is left of it when the power goes in its midst.
    private func mutate(_ call: String, _ path: String, partial: (_ isFault: Bool) -> Void = { _ in }) throws(SystemError) {
        try checkPower(call, path)
        mutations += 1
        if let left = mutationsUntilCut {
            mutationsUntilCut = left - 1
            if left == 0 {
                isPowerless = true
                partial(false)
                throw SystemError(call, path, code: EIO)
            }
        }
        for at in faults.indices {
            let fault = faults[at]
            guard fault.call ?? call == call, path.hasSuffix(fault.pathSuffix ?? "") else { continue }
            if fault.callsBefore > 0 {
                faults[at].callsBefore -= 1
                continue
            }
            if !fault.isSticky { faults.remove(at: at) }
            if fault.isShort { partial(true) }
            throw SystemError(call, path, code: fault.code)
        }
    }

    private func handle(_ node: SimulatedNode, _ path: String, isWritable: Bool) -> FileHandle {
        nextHandle += 1
        openFiles[nextHandle] = OpenFile(node: node, path: path, isWritable: isWritable)
        return FileHandle(raw: nextHandle)
    }

    private func create(_ path: String) throws(SystemError) -> SimulatedNode {
        let (directory, name) = try parent("open", path)
        if let there = directory.entries[name] { return there }
        try mutate("open", path)
        let node = SimulatedNode(isDirectory: false)
        directory.setName(name, node)
        return node
    }
}

// MARK: StoreFiles

extension SimulatedFiles {
    public func openForReading(_ path: String) throws(SystemError) -> FileHandle {
        try locked { () throws(SystemError) in
            try checkPower("open", path)
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
            try checkPower("pread", open.path)
            return copy(open.node, offset, buffer)
        }
    }

    public func readQuickly(
        _ file: FileHandle, at offset: Int, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> QuickRead {
        try locked { () throws(SystemError) in
            let open = try opened("preadv2", file)
            try checkPower("preadv2", open.path)
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

    public func size(_ file: FileHandle) throws(SystemError) -> Int {
        try locked { () throws(SystemError) in try opened("lseek", file).node.content.count }
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
            try checkPower("opendir", path)
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

    public func readWhole(_ path: String) throws(SystemError) -> [UInt8]? {
        try locked { () throws(SystemError) in
            try checkPower("open", path)
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

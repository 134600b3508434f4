// Files in memory that can fail and lose power: the twin of SystemFiles for tests and rehearsals.

import Glibc
import LarderFormat

/// A disk in memory. Any thread.
///
/// A write is durable once its file was synced; a name once its directory was. `powerCut` gives the disk as it is found
/// after a restart, with any part of the rest. What was written in one call can be torn at any sector of 512 bytes.
public final class SimulatedFiles: StoreFiles, @unchecked Sendable {
    struct OpenFile {
        var node: SimulatedNode
        var path: String
        var isWritable: Bool
    }

    let gate: UnsafeMutablePointer<pthread_mutex_t>
    let root: SimulatedNode
    var openFiles: [Int32: OpenFile] = [:]
    var nextHandle: Int32 = 3
    var nextRename = 0
    var generator: SplitMix64
    var faults: [SimulatedFault] = []
    var faultsAreOn = true
    var mutations = 0
    var mutationsUntilCut: Int?
    var isPowerless = false
    var blockingPercent = 0
    var byteCountMax: Int?

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

    func locked<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
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

    /// Whether calls fail, or count towards a fault, at present.
    public func setFaults(_ isOn: Bool) { locked { faultsAreOn = isOn } }

    /// Bytes that the disk can hold; nil: any number.
    public func setRoom(byteCountMax: Int?) { locked { self.byteCountMax = byteCountMax } }
    public var usedByteCount: Int { locked { root.usedByteCount } }

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
            found.byteCountMax = byteCountMax
            return found
        }
    }

    /// The process that uses the disk dies and the system lives: what was written stays, durable or not. Nothing is open
    /// or locked any more, and the power is on.
    public func processDies() {
        locked {
            for open in openFiles.values { open.node.lockedBy = nil }
            openFiles = [:]
            isPowerless = false
            mutationsUntilCut = nil
        }
    }

    public func powerCut(using random: inout some RandomNumberGenerator) -> SimulatedFiles {
        powerCut(PowerCutMode.allCases.randomElement(using: &random) ?? .losesAll, using: &random)
    }

    /// How many open files can be written whose path ends so.
    public func openForWriting(suffix: String) -> Int {
        locked { openFiles.values.count { $0.isWritable && $0.path.hasSuffix(suffix) } }
    }

    public var openFileCount: Int { locked { openFiles.count } }

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
    func parts(_ path: String) -> [String] { path.split(separator: "/").map(String.init).filter { $0 != "." } }

    func node(_ path: String) -> SimulatedNode? {
        var node = root
        for part in parts(path) {
            guard let next = node.entries[part] else { return nil }
            node = next
        }
        return node
    }

    func parent(_ call: String, _ path: String) throws(SystemError) -> (SimulatedNode, String) {
        let parts = parts(path)
        guard let name = parts.last, let node = node(parts.dropLast().joined(separator: "/")), node.isDirectory else {
            throw SystemError(call, path, code: ENOENT)
        }
        return (node, name)
    }

    func opened(_ call: String, _ file: FileHandle, writes: Bool = false) throws(SystemError) -> OpenFile {
        guard let open = openFiles[file.raw], !writes || open.isWritable else {
            throw SystemError(call, "descriptor \(file.raw)", code: EBADF)
        }
        return open
    }

    func checkPower(_ call: String, _ path: String) throws(SystemError) {
        if isPowerless { throw SystemError(call, path, code: EIO) }
    }

    /// Says whether a change goes on. `partial` does what is left of it when the power goes in its midst.
    func mutate(_ call: String, _ path: String, partial: (_ isFault: Bool) -> Void = { _ in }) throws(SystemError) {
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
        guard let fault = fault(call, path, isRead: false) else { return }
        if fault.isShort { partial(true) }
        throw SystemError(call, path, code: fault.code)
    }

    /// Says whether a call that changes nothing goes on.
    func look(_ call: String, _ path: String) throws(SystemError) {
        try checkPower(call, path)
        guard let fault = fault(call, path, isRead: true) else { return }
        throw SystemError(call, path, code: fault.code)
    }

    private func fault(_ call: String, _ path: String, isRead: Bool) -> SimulatedFault? {
        guard faultsAreOn else { return nil }
        for at in faults.indices {
            let fault = faults[at]
            guard fault.isOfReads == isRead, fault.call ?? call == call, path.hasSuffix(fault.pathSuffix ?? "") else {
                continue
            }
            if fault.callsBefore > 0 {
                faults[at].callsBefore -= 1
                continue
            }
            if !fault.isSticky { faults.remove(at: at) }
            return fault
        }
        return nil
    }

    /// Whether a file may come to take so many bytes.
    func checkRoom(_ call: String, _ node: SimulatedNode, _ path: String, byteCount: Int) throws(SystemError) {
        guard let byteCountMax else { return }
        let more = ((byteCount + 4095) & ~4095) - node.usedByteCount
        if more > 0 && root.usedByteCount + more > byteCountMax { throw SystemError(call, path, code: ENOSPC) }
    }

    func handle(_ node: SimulatedNode, _ path: String, isWritable: Bool) -> FileHandle {
        nextHandle += 1
        openFiles[nextHandle] = OpenFile(node: node, path: path, isWritable: isWritable)
        return FileHandle(raw: nextHandle)
    }

    func create(_ path: String) throws(SystemError) -> SimulatedNode {
        let (directory, name) = try parent("open", path)
        if let there = directory.entries[name] { return there }
        try mutate("open", path)
        let node = SimulatedNode(isDirectory: false)
        directory.setName(name, node)
        return node
    }
}

// A library between its lock and its log: what an opening has before it begins to read.

import LarderFormat

/// A library whose lock is held, and of which nothing but the identity is read. One that is opened to be read alone has
/// no lock.
public struct LockedLibrary {
    public let path: String
    public let identity: Identity
    /// How it will be opened.
    public var options: StoreOptions
    let files: any StoreFiles
    let lock: FileHandle?

    /// Takes the lock of the library at `path`, making the library if need be.
    ///
    /// - Parameter now: milliseconds since 1970, for a new library's identity.
    /// - Throws: `locked`, `noLibrary`, `notALibrary`, `newerFormat`, `system`.
    public init(
        path: String, options: StoreOptions = StoreOptions(), files: any StoreFiles = SystemFiles(), now: Int64
    ) throws(StoreError) {
        self.path = path
        self.options = options
        self.files = files
        (identity, lock) = try LockedLibrary.prepare(path, options, files, now)
    }

    /// Gives the lock back, of a library that was not opened.
    public func giveUp() {
        if let lock { files.close(lock) }
    }

    private static func prepare(
        _ path: String, _ options: StoreOptions, _ files: any StoreFiles, _ now: Int64
    ) throws(StoreError) -> (Identity, FileHandle?) {
        let identityPath = path + "/larder"
        let existing = try system { () throws(SystemError) in try files.readWhole(identityPath) }
        if existing == nil {
            guard options.creates, !options.isReadOnly else { throw .noLibrary(path: path) }
            let names = try system { () throws(SystemError) in try files.list(path + "/log") }
            if let names, names.contains(where: { Segment.number(ofName: $0) != nil }) {
                throw .notALibrary(path: path, reason: "it has a log but no file `larder` that says whose it is")
            }
            try system { () throws(SystemError) in try files.makeDirectory(path) }
        }
        let lock = options.isReadOnly ? nil : try takeLock(path, files)
        do throws(StoreError) {
            // Another process may have made it before the lock was taken.
            let made = try system { () throws(SystemError) in try files.readWhole(identityPath) }
            if lock != nil, made != nil { try system { () throws(SystemError) in try removeLeftovers(path, files) } }
            if let bytes = made ?? existing { return (try Identity(bytes, path: path), lock) }
            let identity = Identity(now: now, seed: options.identitySeed)
            try system { () throws(SystemError) in
                try files.makeDirectory(path + "/log")
                // Before there is an identity: one without a log would be refused for ever, and whoever finds one looks
                // at the directories no more.
                try files.syncDirectory(path)
                try files.syncDirectory(directory(of: path))
                try files.replaceWhole(identityPath, with: identity.encoded)
            }
            return (identity, lock)
        } catch {
            if let lock { files.close(lock) }
            throw error
        }
    }

    /// Unfinished replacements of whole files.
    private static func removeLeftovers(_ path: String, _ files: any StoreFiles) throws(SystemError) {
        for directory in [path, path + "/log"] {
            for name in try files.list(directory) ?? [] where name.hasSuffix(".tmp") {
                try files.remove(directory + "/" + name)
            }
        }
    }

    private static func takeLock(_ path: String, _ files: any StoreFiles) throws(StoreError) -> FileHandle {
        if let lock = try system({ () throws(SystemError) in try files.lock(path + "/lock") }) { return lock }
        let text = try system { () throws(SystemError) in try files.readWhole(path + "/lock") } ?? []
        let digits = text.prefix { $0 >= 0x30 && $0 <= 0x39 }
        throw .locked(path: path, holder: Int(String(decoding: digits, as: UTF8.self)))
    }
}

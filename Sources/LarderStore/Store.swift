// The store: a library's records, its log, and its index. A Swift library usable alone; the host drives it.

import LarderFormat

/// An open library.
///
/// Confined to one thread. What may wait for the disk is handed out as values to be run elsewhere: a `CommitJob` (its
/// result goes to `finish`) and a `ColdRead` (its result goes to `supply`). Reads see only what is durable.
public final class Store {
    var core: StoreCore
    private var lockHandle: FileHandle?
    private var isClosed = false

    /// The files, for callers that keep some of their own beside the library's.
    public let files: any StoreFiles

    /// Opens the library at `path`, making it if need be, and reads its log.
    ///
    /// - Parameter now: milliseconds since 1970, for what has to be written.
    /// - Throws: `locked`, `noLibrary`, `notALibrary`, `newerFormat`, `damaged`, `system`.
    /// - Returns: with everything durable that was found, and with the kinds of the options declared.
    public init(
        path: String, options: StoreOptions = StoreOptions(), files: any StoreFiles = SystemFiles(), now: Int64
    ) throws(StoreError) {
        self.files = files
        let (identity, lock) = try Store.prepare(path, options, files, now)
        core = StoreCore(files: files, path: path, options: options, identity: identity)
        lockHandle = lock
        do throws(StoreError) {
            try core.recover()
            if !options.isReadOnly { try core.begin(now: now) }
        } catch {
            core.closeFiles()
            if let lock { files.close(lock) }
            throw error
        }
    }

    deinit { close() }

    /// Closes the files and gives up the lock. What was staged and not committed is gone; take and finish commits first.
    public func close() {
        guard !isClosed else { return }
        isClosed = true
        core.closeFiles()
        if let lockHandle { files.close(lockHandle) }
    }

    private static func prepare(
        _ path: String, _ options: StoreOptions, _ files: any StoreFiles, _ now: Int64
    ) throws(StoreError) -> (Identity, FileHandle?) {
        do throws(SystemError) {
            let identityPath = path + "/larder"
            let existing = try files.readWhole(identityPath)
            if existing == nil {
                guard options.creates, !options.isReadOnly else { throw StoreOpening.noLibrary }
                if let names = try files.list(path), names.contains("log") { throw StoreOpening.noIdentity }
                try files.makeDirectory(path)
            }
            var lock: FileHandle?
            if !options.isReadOnly {
                lock = try files.lock(path + "/lock")
                if lock == nil {
                    let text = try files.readWhole(path + "/lock") ?? []
                    let digits = text.prefix { $0 >= 0x30 && $0 <= 0x39 }
                    throw StoreOpening.locked(Int(String(decoding: digits, as: UTF8.self)))
                }
            }
            // Another process may have made it before the lock was taken.
            if let bytes = try existing ?? files.readWhole(identityPath) {
                return (try StoreOpening.identity(bytes, path), lock)
            }
            var generator = SystemRandomNumberGenerator()
            let identity = Identity(now: now, using: &generator)
            try files.makeDirectory(path + "/log")
            try files.replaceWhole(identityPath, with: identity.encoded)
            try files.syncDirectory(directory(of: path))
            return (identity, lock)
        } catch let error as StoreOpening {
            throw error.storeError(path)
        } catch let error as SystemError {
            throw .system(error)
        } catch let error as StoreError {
            throw error
        } catch {
            throw .notALibrary(path: path, reason: "\(error)")
        }
    }
}

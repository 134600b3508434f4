// Makes a library of a log that comes from elsewhere. It is a library once its file `larder` is there, which is last.

import LarderFormat

/// A directory that becomes a library, locked until then.
struct NewLibrary {
    let files: any StoreFiles
    let path: String
    private let lock: FileHandle

    var logPath: String { path + "/log" }

    /// - Throws: `notFree` where there is a library, a log or a backup.
    init(_ files: any StoreFiles, path: String) throws(StoreError) {
        self.files = files
        self.path = path
        let names = try system { () throws(SystemError) in try files.list(path) } ?? []
        if names.contains("larder") { throw .notFree(path: path, reason: "there is a library") }
        if names.contains(BackupManifest.fileName) { throw .notFree(path: path, reason: "there is a backup") }
        let log = try system { () throws(SystemError) in try files.list(path + "/log") } ?? []
        if !log.isEmpty {
            throw .notFree(
                path: path,
                reason: "there is a log without a library, as a restore leaves it that did not end; remove it")
        }
        try system { () throws(SystemError) in try files.makeDirectory(path + "/log") }
        guard let lock = try system({ () throws(SystemError) in try files.lock(path + "/lock") }) else {
            throw .locked(path: path, holder: nil)
        }
        self.lock = lock
    }

    /// Writes the identity, after everything else is durable.
    func complete(_ identity: Identity) throws(StoreError) {
        try system { () throws(SystemError) in
            try files.syncDirectory(path)
            try files.syncDirectory(directory(of: path))
            try files.replaceWhole(path + "/larder", with: identity.encoded)
        }
    }

    func close() { files.close(lock) }
}

extension Identity {
    /// The same library with a new history.
    func renewed(using generator: inout some RandomNumberGenerator) -> Identity {
        var renewed = self
        while renewed.epoch == epoch { renewed.epoch = UInt64.random(in: 1...UInt64.max, using: &generator) }
        return renewed
    }
}

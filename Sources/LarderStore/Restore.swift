// Rehearsing a backup, and making a library of it.

import LarderFormat

/// What a look at a backup found.
public struct BackupCheck: Sendable {
    public let manifest: BackupManifest
    /// Files that are not there or have another content, for people.
    public internal(set) var faults: [String] = []
    /// What its log holds; nil where a file is missing.
    public internal(set) var verified: VerifyReport?

    public var isSound: Bool { faults.isEmpty && verified?.isSound == true }
}

extension LogSource {
    /// Rehearses a restore: every file against its checksum, then the log as `verify` does. Changes nothing.
    ///
    /// - Throws: `notABackup`, `newerFormat`, `damaged` (its identity), `system`.
    public static func checkBackup(
        _ path: String, files storeFiles: any StoreFiles = SystemFiles()
    ) throws(StoreError) -> BackupCheck {
        let (source, manifest) = try backup(path, files: storeFiles)
        var check = BackupCheck(manifest: manifest)
        var isMissing = false
        for (file, segment) in zip(source.files, manifest.segments) {
            do throws(SystemError) {
                let crc = try checksum(storeFiles, file.path, byteCount: segment.byteCount)
                if crc != segment.crc {
                    check.faults.append(
                        "\(file.path) has checksum \(eightDigits(crc)), not \(eightDigits(segment.crc))")
                }
            } catch {
                if error.call == "open" { isMissing = true }
                check.faults.append(error.description)
            }
        }
        guard !isMissing else { return check }
        let verified = try source.verify()
        check.verified = verified
        if let tail = verified.tail {
            check.faults.append("its log ends at segment \(tail.segment), offset \(tail.offset), before its files do")
        } else if verified.isSound, verified.lastSeq != manifest.lastSeq {
            check.faults.append("its log ends with seq \(verified.lastSeq), not \(manifest.lastSeq)")
        }
        return check
    }

    /// Makes a library of a backup: the same id, kinds, records and seqs; a new epoch, so that cursors of before are
    /// refused. The backup is checked first and not changed.
    ///
    /// - Throws: `notABackup` where a file is not what the manifest says, `unsound` where its log is damaged; `notFree`,
    ///   `locked`, `newerFormat`, `system`. Then nothing is left at `target` that is a library.
    /// - Returns: what the new library's log holds, read back.
    public static func restore(
        backup path: String, to target: String, files storeFiles: any StoreFiles = SystemFiles()
    ) throws(StoreError) -> VerifyReport {
        let check = try checkBackup(path, files: storeFiles)
        if let fault = check.faults.first { throw .notABackup(path: path, reason: fault) }
        if let verified = check.verified, let first = verified.damages.first {
            throw .unsound(path: path, damageCount: verified.damageCount, first: first)
        }
        let (source, _) = try backup(path, files: storeFiles)
        guard let identity = source.identity else { throw .notABackup(path: path, reason: "it has no identity") }
        var generator = SystemRandomNumberGenerator()
        let new = identity.renewed(using: &generator)
        let library = try NewLibrary(storeFiles, path: target)
        defer { library.close() }
        var relay = LogRelay(storeFiles, directory: library.logPath, epoch: new.epoch, places: .kept)
        do throws(StoreError) {
            var walk = try LogWalk(source)
            try walk.run(&relay)
            try relay.finish(lost: [])
            let written = LogSource(
                storeFiles, path: target, identity: new, epoch: new.epoch,
                files: try list(library.logPath, storeFiles))
            let verified = try written.verify()
            if let first = verified.damages.first {
                throw .unsound(path: target, damageCount: verified.damageCount, first: first)
            }
            try library.complete(new)
            return verified
        } catch {
            relay.abandon()
            throw error
        }
    }
}

// Backup: a durable prefix of a log as files that stay, made beside a running host. The source is never changed.

import LarderFormat

/// How a backup is made.
public struct BackupOptions: Sendable {
    /// All entries up to this seq are durable, as a host's STATUS says; nil: only what blocks vouch for is.
    public var durableSeq: UInt64?
    /// Copies also where links could be had.
    public var copiesAll = false
    /// Takes a damaged log as it is.
    public var takesDamaged = false

    public init() {}
}

/// What a backup came to.
public struct BackupReport: Sendable {
    public internal(set) var manifest: BackupManifest
    public internal(set) var linkedCount = 0
    public internal(set) var copiedCount = 0
    public internal(set) var copiedByteCount = 0
    /// Files that were there and equal.
    public internal(set) var keptCount = 0
    public internal(set) var verified: VerifyReport
    /// Bytes of the log behind the prefix that was taken: written, and not known to be durable.
    public internal(set) var leftOutByteCount = 0

    public var byteCount: Int { manifest.segments.reduce(0) { $0 + $1.byteCount } }
}

/// Finds how much of a log is durable while it is verified.
private struct PrefixFinder: LogVisitor {
    var verifier = LogVerifier()
    /// nil: all of it.
    let durableSeq: UInt64?
    let isOpen: Bool
    let synced: LogPosition
    private(set) var end = LogPosition(segment: 0, offset: 0)
    private(set) var lastSeq: UInt64 = 0
    private var seq: UInt64 = 0

    init(durableSeq: UInt64?, isOpen: Bool, synced: LogPosition) {
        self.durableSeq = durableSeq
        self.isOpen = isOpen
        self.synced = synced
    }

    mutating func begin(segment: UInt32, byteCount: Int) throws(StoreError) {
        verifier.begin(segment: segment, byteCount: byteCount)
    }

    mutating func found(_ damage: LogDamage) throws(StoreError) { verifier.found(damage) }

    mutating func visit(_ contents: BlockContents) throws(StoreError) {
        try verifier.visit(contents)
        let header = contents.header
        seq = max(seq, contents.pieces.last?.lastSeq ?? header.commits.last?.firstSeq ?? 0)
        let isDurable = !isOpen || header.position < synced || durableSeq.map { seq <= $0 } ?? false
        guard isDurable, header.flags & BlockHeader.continues == 0 else { return }
        end = LogPosition(
            segment: header.position.segment, offset: header.position.offset &+ header.blockByteCount)
        lastSeq = seq
    }
}

extension LogSource {
    /// Makes or renews a backup of this library in `target`. Beside a running host only what is durable is taken.
    ///
    /// Every file is complete or absent, and the manifest is replaced last: a backup that breaks off leaves the one
    /// before. Files that are there and equal are not written again.
    ///
    /// - Throws: `notFree`, `unsound`, `newerFormat`, `notABackup` (what is there), `system`.
    public func backup(
        to target: String, options: BackupOptions = BackupOptions(), now: Int64
    ) throws(StoreError) -> BackupReport {
        guard let identity else { throw .notALibrary(path: path, reason: "its identity is lost; salvage it first") }
        let isOpen = try system { () throws(SystemError) in try storeFiles.isLocked(path + "/lock") }
        var walk = try LogWalk(self)
        if !isOpen { try makeDurable(from: walk.map.synced.segment) }
        var finder = PrefixFinder(durableSeq: options.durableSeq, isOpen: isOpen, synced: walk.map.synced)
        try walk.run(&finder)
        let verified = finder.verifier.finish(walk)
        if !options.takesDamaged, let first = verified.damages.first {
            throw .unsound(path: path, damageCount: verified.damageCount, first: first)
        }
        let place = try BackupPlace(storeFiles, target, identity)
        let end = finder.end
        var report = BackupReport(
            manifest: BackupManifest(epoch: epoch, madeAt: now, lastSeq: finder.lastSeq, segments: []),
            verified: verified)
        for file in files {
            let byteCount =
                file.number < end.segment ? file.byteCount : file.number == end.segment ? Int(end.offset) : 0
            report.leftOutByteCount += file.byteCount - byteCount
            guard byteCount > 0 else { continue }
            // A segment that a host may still write to must not have two names.
            let isVouchedFor =
                LogPosition(segment: file.number, offset: UInt32(clamping: byteCount - 1)) < walk.map.synced
            let isSealed = isVouchedFor && byteCount == file.byteCount && file.number < end.segment
            try place.take(file, byteCount, mayLink: isSealed && !options.copiesAll, into: &report)
        }
        try place.complete(report.manifest)
        return report
    }
}

extension LogSource {
    /// Nobody has the library open, and what was written last may be in memory only: it is synced, as an opening would.
    private func makeDurable(from segment: UInt32) throws(StoreError) {
        do throws(SystemError) {
            for file in files where file.number >= segment {
                let handle = try storeFiles.openForReading(file.path)
                defer { storeFiles.close(handle) }
                try storeFiles.sync(handle)
            }
            try storeFiles.syncDirectory(path + "/log")
        } catch { throw .system(error) }
    }
}

/// The directory of a backup.
private struct BackupPlace {
    let files: any StoreFiles
    let path: String
    let identity: Identity
    /// What is there, if it is a backup.
    let before: BackupManifest?

    private var logPath: String { path + "/log" }

    init(_ files: any StoreFiles, _ path: String, _ identity: Identity) throws(StoreError) {
        self.files = files
        self.path = path
        self.identity = identity
        let own = ["log", BackupManifest.fileName, BackupManifest.identityName]
        let names = try system { () throws(SystemError) in try files.list(path) } ?? []
        if let other = names.first(where: { !own.contains($0) && !own.map { $0 + ".tmp" }.contains($0) }) {
            throw .notFree(path: path, reason: "“\(other)” is there, which is no part of a backup")
        }
        if let bytes = try system({ () throws(SystemError) in
            try files.readWhole(path + "/" + BackupManifest.identityName)
        }) {
            let there = try Identity(bytes, path: path)
            guard there.library == identity.library else {
                throw .notFree(path: path, reason: "it is a backup of another library")
            }
            guard there.epoch == identity.epoch else {
                throw .notFree(
                    path: path,
                    reason: "it is a backup of the library's history before a restore; keep it, and take another place")
            }
        }
        before = try system { () throws(SystemError) in
            try files.readWhole(path + "/" + BackupManifest.fileName)
        }.map { bytes throws(StoreError) in try BackupManifest(bytes, path: path) }
        try system { () throws(SystemError) in
            try files.makeDirectory(path + "/log")
            try files.syncDirectory(path)
            try files.syncDirectory(directory(of: path))
        }
    }

    func take(
        _ file: LogSource.File, _ byteCount: Int, mayLink: Bool, into report: inout BackupReport
    ) throws(StoreError) {
        do throws(SystemError) {
            if let same = before?.segments.first(where: { $0.number == file.number && $0.byteCount == byteCount }),
                mayLink, try files.isSameFile(file.path, logPath + "/" + same.fileName)
            {
                report.manifest.segments.append(same)
                report.keptCount += 1
                return
            }
            let crc = try checksum(files, file.path, byteCount: byteCount)
            let segment = BackupManifest.Segment(number: file.number, byteCount: byteCount, crc: crc)
            report.manifest.segments.append(segment)
            let target = logPath + "/" + segment.fileName
            if try isThere(target, segment) {
                report.keptCount += 1
                return
            }
            try files.remove(target)
            if mayLink, try link(file.path, target) {
                report.linkedCount += 1
                return
            }
            try copy(file.path, target, byteCount)
            report.copiedCount += 1
            report.copiedByteCount += byteCount
        } catch { throw .system(error) }
    }

    /// Whether a file has the content that its name says.
    private func isThere(_ target: String, _ segment: BackupManifest.Segment) throws(SystemError) -> Bool {
        do throws(SystemError) {
            let handle = try files.openForReading(target)
            defer { files.close(handle) }
            guard try files.size(handle) == segment.byteCount else { return false }
        } catch  where error.call == "open" {
            return false
        }
        return try checksum(files, target, byteCount: segment.byteCount) == segment.crc
    }

    /// False where the file system has no links for these two places.
    private func link(_ path: String, _ target: String) throws(SystemError) -> Bool {
        do throws(SystemError) {
            try files.link(path, to: target)
            return true
        } catch  where error.call == "link" {
            return false
        }
    }

    private func copy(_ path: String, _ target: String, _ byteCount: Int) throws(SystemError) {
        let temporary = target + ".tmp"
        var copy = try AlignedFile(files, path: temporary)
        do throws(SystemError) {
            try readPieces(files, path, byteCount: byteCount) { piece throws(SystemError) in try copy.append(piece) }
        } catch {
            copy.abandon()
            try? files.remove(temporary)
            throw error
        }
        try copy.finish()
        try files.rename(temporary, to: target)
    }

    /// Makes the files durable, then the manifest that names them, then takes away what it no longer names.
    func complete(_ manifest: BackupManifest) throws(StoreError) {
        do throws(SystemError) {
            try files.syncDirectory(logPath)
            let identityPath = path + "/" + BackupManifest.identityName
            if try files.readWhole(identityPath) != identity.encoded {
                try files.replaceWhole(identityPath, with: identity.encoded)
            }
            try files.replaceWhole(path + "/" + BackupManifest.fileName, with: manifest.encoded)
            let names = Set(manifest.segments.map(\.fileName))
            for name in try files.list(logPath) ?? [] where !names.contains(name) {
                guard name.hasSuffix(".part") || name.hasSuffix(".part.tmp") else { continue }
                try files.remove(logPath + "/" + name)
            }
            try files.syncDirectory(logPath)
        } catch { throw .system(error) }
    }
}

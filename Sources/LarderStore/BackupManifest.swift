// The manifest of a backup: which files make it, with their checksums. Protocol/design/backup-and-restore.md.

import LarderFormat

/// What a backup consists of. As text, one fact a line, and a checksum of all lines before in the last.
public struct BackupManifest: Equatable, Sendable {
    public static let fileName = "manifest"
    public static let identityName = "identity"
    public static let formatVersion = 1
    private static let heading = "larder backup"

    /// A stretch of the log from a segment's beginning.
    public struct Segment: Equatable, Sendable {
        public var number: UInt32
        public var byteCount: Int
        public var crc: UInt32

        /// The name tells the content, so that a file is never written over by another version of itself.
        public var fileName: String {
            "\(LarderStore.Segment.name(number).dropLast(4)).\(byteCount).\(eightDigits(crc)).part"
        }
    }

    public var epoch: UInt64
    /// Milliseconds since 1970.
    public var madeAt: Int64
    /// Seq of the last entry in it; 0 for none.
    public var lastSeq: UInt64
    public var segments: [Segment]

    var encoded: [UInt8] {
        var text = "\(BackupManifest.heading) \(BackupManifest.formatVersion)\n"
        text += "epoch \(hexadecimal(epoch))\nmade \(madeAt)\nseq \(lastSeq)\n"
        for segment in segments {
            text += "segment \(segment.number) \(segment.byteCount) \(eightDigits(segment.crc))\n"
        }
        let crc = Array(text.utf8).withUnsafeBytes { crc32c($0) }
        return Array((text + "crc32c \(eightDigits(crc))\n").utf8)
    }

    /// - Throws: `notABackup`, `newerFormat`.
    init(_ bytes: [UInt8], path: String) throws(StoreError) {
        func broken(_ reason: String) -> StoreError { .notABackup(path: path, reason: "its manifest \(reason)") }
        var lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        guard let first = lines.first, first.hasPrefix(BackupManifest.heading + " ") else {
            throw broken("does not begin with “\(BackupManifest.heading)”")
        }
        guard let version = Int(first.dropFirst(BackupManifest.heading.count + 1)), version > 0 else {
            throw broken("names no format")
        }
        guard version <= BackupManifest.formatVersion else {
            throw .newerFormat(path: path, found: version, supported: BackupManifest.formatVersion)
        }
        guard lines.count >= 2, lines.removeLast().isEmpty, let last = lines.popLast() else {
            throw broken("ends too early")
        }
        let checked = bytes.count - last.utf8.count - 1
        let crc = bytes.withUnsafeBytes { crc32c(UnsafeRawBufferPointer(rebasing: $0[..<max(checked, 0)])) }
        guard last == "crc32c \(eightDigits(crc))" else { throw broken("has another checksum than it says") }
        var facts: [Substring: UInt64] = [:]
        segments = []
        for line in lines.dropFirst() {
            let words = line.split(separator: " ")
            if words.count == 4, words[0] == "segment", let number = UInt32(words[1]), let count = Int(words[2]),
                let crc = UInt32(words[3], radix: 16), number > segments.last?.number ?? 0, count > 0
            {
                segments.append(Segment(number: number, byteCount: count, crc: crc))
            } else if words.count == 2, let value = UInt64(words[1], radix: words[0] == "epoch" ? 16 : 10) {
                facts[words[0]] = value
            } else {
                throw broken("has the line “\(line.prefix(80))”")
            }
        }
        guard let epoch = facts["epoch"], let made = facts["made"], let seq = facts["seq"] else {
            throw broken("lacks a line")
        }
        self.epoch = epoch
        madeAt = Int64(clamping: made)
        lastSeq = seq
    }

    init(epoch: UInt64, madeAt: Int64, lastSeq: UInt64, segments: [Segment]) {
        self.epoch = epoch
        self.madeAt = madeAt
        self.lastSeq = lastSeq
        self.segments = segments
    }
}

func eightDigits(_ value: UInt32) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
}

extension LogSource {
    /// A backup's log.
    ///
    /// - Throws: `notABackup`, `newerFormat`, `damaged` (its identity), `system`.
    public static func backup(
        _ path: String, files storeFiles: any StoreFiles = SystemFiles()
    ) throws(StoreError) -> (source: LogSource, manifest: BackupManifest) {
        func read(_ name: String) throws(StoreError) -> [UInt8] {
            guard
                let bytes = try system({ () throws(SystemError) in try storeFiles.readWhole(path + "/" + name) })
            else { throw .notABackup(path: path, reason: "it has no file `\(name)`") }
            return bytes
        }
        let manifest = try BackupManifest(try read(BackupManifest.fileName), path: path)
        let identity = try Identity(try read(BackupManifest.identityName), path: path)
        guard identity.epoch == manifest.epoch else {
            throw .notABackup(path: path, reason: "its identity and its manifest name different epochs")
        }
        let files = manifest.segments.map {
            File(number: $0.number, path: path + "/log/" + $0.fileName, byteCount: $0.byteCount)
        }
        return (
            LogSource(storeFiles, path: path, identity: identity, epoch: identity.epoch, files: files), manifest
        )
    }
}

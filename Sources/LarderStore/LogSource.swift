// The files of a log that is read without being opened: those of a library, or of a backup.

import Glibc
import LarderFormat

/// Where a log lies that is only read. Takes no lock and changes nothing; any thread.
public struct LogSource: Sendable {
    /// One file of the log, as long as it was when the log was listed: what a host adds later is left out.
    struct File: Sendable {
        let number: UInt32
        let path: String
        let byteCount: Int
    }

    let storeFiles: any StoreFiles
    /// The library's or backup's directory.
    public let path: String
    /// Nil where the file `larder` is lost and the epoch was had from the blocks.
    public let identity: Identity?
    public let epoch: UInt64
    let files: [File]
    /// Keeps compaction from changing files for as long as the source is there.
    let hold: LogHold?

    init(
        _ storeFiles: any StoreFiles, path: String, identity: Identity?, epoch: UInt64, files: [File],
        hold: LogHold? = nil
    ) {
        self.hold = hold
        self.storeFiles = storeFiles
        self.path = path
        self.identity = identity
        self.epoch = epoch
        self.files = files
    }

    /// A library's log, as it lies now.
    ///
    /// - Throws: `noLibrary`, `notALibrary`, `newerFormat`, `damaged` (its identity), `system`.
    public init(library path: String, files storeFiles: any StoreFiles = SystemFiles()) throws(StoreError) {
        guard let bytes = try system({ () throws(SystemError) in try storeFiles.readWhole(path + "/larder") }) else {
            if try LogSource.list(path + "/log", storeFiles).isEmpty { throw .noLibrary(path: path) }
            throw .notALibrary(path: path, reason: "it has a log but no file `larder` that says whose it is")
        }
        let identity = try Identity(bytes, path: path)
        let hold = try system { () throws(SystemError) in try LogHold(storeFiles, path + "/log") }
        self.init(
            storeFiles, path: path, identity: identity, epoch: identity.epoch,
            files: try LogSource.list(path + "/log", storeFiles), hold: hold)
    }

    var byteCount: Int { files.reduce(0) { $0 + $1.byteCount } }

    func byteCountNow(of file: File) throws(StoreError) -> Int {
        try system { () throws(SystemError) in
            let handle = try storeFiles.openForReading(file.path)
            defer { storeFiles.close(handle) }
            return try storeFiles.size(handle)
        }
    }

    func scanner(_ file: File) throws(StoreError) -> SegmentScanner {
        try SegmentScanner(
            files: storeFiles, path: file.path, number: file.number, byteCountMax: file.byteCount)
    }

    /// The segments of a directory in their order.
    static func list(_ directory: String, _ storeFiles: any StoreFiles) throws(StoreError) -> [File] {
        do throws(SystemError) {
            let numbers = (try storeFiles.list(directory) ?? []).compactMap { Segment.number(ofName: $0) }.sorted()
            var files: [File] = []
            for number in numbers {
                let path = directory + "/" + Segment.name(number)
                let handle = try storeFiles.openForReading(path)
                defer { storeFiles.close(handle) }
                files.append(File(number: number, path: path, byteCount: try storeFiles.size(handle)))
            }
            return files
        } catch { throw .system(error) }
    }
}

/// Held by whoever reads a log that a host may have open: no file of it is put in another's place meanwhile.
final class LogHold: Sendable {
    private let files: any StoreFiles
    private let handle: FileHandle

    /// Waits while a file is being put in its place, which takes milliseconds.
    init(_ files: any StoreFiles, _ directory: String) throws(SystemError) {
        self.files = files
        var attempt = 0
        while true {
            if let handle = try files.hold(directory, alone: false) {
                self.handle = handle
                return
            }
            attempt += 1
            if attempt > 3_000 { throw SystemError("flock", directory, code: EWOULDBLOCK) }
            usleep(10_000)
        }
    }

    deinit { files.close(handle) }
}

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

    init(_ storeFiles: any StoreFiles, path: String, identity: Identity?, epoch: UInt64, files: [File]) {
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
        self.init(
            storeFiles, path: path, identity: identity, epoch: identity.epoch,
            files: try LogSource.list(path + "/log", storeFiles))
    }

    /// Reads a library's log; where compaction takes a segment away meanwhile, begins anew.
    public static func reading<Result>(
        library path: String, files: any StoreFiles = SystemFiles(),
        _ body: (LogSource) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        var attempt = 1
        while true {
            let source = try LogSource(library: path, files: files)
            do throws(StoreError) { return try body(source) } catch {
                guard case .system(let failure) = error, failure.call == "open", failure.code == ENOENT,
                    source.files.contains(where: { $0.path == failure.path }), attempt < 5
                else { throw error }
                attempt += 1
            }
        }
    }

    var byteCount: Int { files.reduce(0) { $0 + $1.byteCount } }

    func scanner(_ file: File) throws(StoreError) -> SegmentScanner {
        try SegmentScanner(
            files: storeFiles, path: file.path, number: file.number, byteCountMax: file.byteCount)
    }

    /// The segments of a directory in their order. One that compaction takes away meanwhile has the list begun anew.
    static func list(_ directory: String, _ storeFiles: any StoreFiles) throws(StoreError) -> [File] {
        var attempt = 0
        while true {
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
            } catch {
                attempt += 1
                if error.call != "open" || attempt > 8 { throw .system(error) }
            }
        }
    }
}

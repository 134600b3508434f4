// What can go wrong in a library on disk.

import Glibc
import LarderFormat

/// A file call that failed, with the system's code kept.
public struct SystemError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The C name of the call: "open", "pwrite", "fdatasync", …
    public var call: String
    /// The path or file that it was about.
    public var path: String
    /// errno as the call left it.
    public var code: Int32

    public init(_ call: String, _ path: String, code: Int32) {
        self.call = call
        self.path = path
        self.code = code
    }

    public var description: String { "\(call) of \(path) failed: \(systemMessage(code)) (errno \(code))" }
}

/// Errors of opening and using a store.
public enum StoreError: Error, Equatable, Sendable {
    /// A file call failed.
    case system(SystemError)
    /// Another process has the library open.
    case locked(path: String, holder: Int?)
    /// There is no library here, and none was to be made.
    case noLibrary(path: String)
    /// The directory holds something that is not a library.
    case notALibrary(path: String, reason: String)
    /// The directory holds something that is not a backup, or a backup that is not whole.
    case notABackup(path: String, reason: String)
    /// A place that must be free is taken.
    case notFree(path: String, reason: String)
    /// What was asked needs a log without damage, and this one has some.
    case unsound(path: String, damageCount: Int, first: LogDamage)
    /// The library was written by a newer version.
    case newerFormat(path: String, found: Int, supported: Int)
    /// A compressed block lies in this file, and zstd's library is not installed.
    case needsZstd(path: String)
    /// Bytes on disk that are not what they must be.
    case damaged(path: String, offset: Int, fault: FormatError)
    /// There is no room on the disk for what was to be written. Nothing of it was; it can be tried again.
    case full(reason: String)
    /// A write or sync failed earlier; the store only reads until it is opened again.
    case readOnly(reason: String)
}

extension StoreError {
    /// The disk does not give what was written, or gives something else. Other calls fail for reasons that pass, as want
    /// of descriptors.
    public var isOfDamage: Bool {
        switch self {
        case .damaged: true
        case .system(let error): error.code == EIO
        default: false
        }
    }

    /// A segment whose blocks unpack to more than offsets can name.
    static func tooLarge(_ scanner: SegmentScanner) -> StoreError {
        .notALibrary(path: scanner.path, reason: "its compressed blocks hold more than 4 GiB")
    }
}

extension StoreError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .system(let error): error.description
        case .locked(let path, let holder):
            holder.map { "the library \(path) is open in process \($0)" }
                ?? "the library \(path) is open in another process"
        case .noLibrary(let path): "there is no library at \(path)"
        case .notALibrary(let path, let reason): "\(path) is not a library: \(reason)"
        case .notABackup(let path, let reason): "\(path) is not a whole backup: \(reason)"
        case .notFree(let path, let reason): "\(path) can't be used: \(reason)"
        case .unsound(let path, let count, let first):
            "\(path) has \(count) damaged \(count == 1 ? "place" : "places"), the first in segment \(first.segment) at "
                + "\(first.offset): \(first.reason)"
        case .newerFormat(let path, let found, let supported):
            "the library \(path) has format \(found); this program reads up to \(supported)"
        case .needsZstd(let path):
            "\(path) holds compressed blocks; to read them zstd has to be installed (libzstd.so.1; Debian: apt install "
                + "libzstd1)"
        case .damaged(let path, let offset, let fault): "\(path) is damaged at \(offset): \(fault)"
        case .full(let reason): "there is no room on the disk: \(reason)"
        case .readOnly(let reason): "the store only reads: \(reason)"
        }
    }
}

/// Runs file calls and says their failure as the store's.
@inline(__always)
func system<R>(_ body: () throws(SystemError) -> R) throws(StoreError) -> R {
    do throws(SystemError) { return try body() } catch { throw .system(error) }
}

import CLibuv

/// A call to the system that failed, through libuv or directly.
///
/// The code is libuv's, which on Linux is a negated `errno`; the constants have the names that C gives them.
public struct LoopError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The libuv code, below 0.
    public let code: Int32

    /// The call that failed, such as `uv_spawn`.
    public let operation: StaticString

    public init(code: Int32, operation: StaticString) {
        self.code = code
        self.operation = operation
    }

    /// The code's name, such as `EPIPE`.
    public var name: String { String(cString: uv_err_name(code)) }

    public var description: String { "\(operation) failed: \(String(cString: uv_strerror(code))) (\(name))" }

    public static func == (left: LoopError, right: LoopError) -> Bool {
        left.code == right.code && left.operation.description == right.operation.description
    }

    /// Throws if `code` is one of libuv's errors.
    static func check(_ code: Int32, _ operation: StaticString) throws(LoopError) {
        if code < 0 { throw LoopError(code: code, operation: operation) }
    }
}

extension LoopError {
    /// The handle was closed before the request was done.
    public static var ECANCELED: Int32 { UV_ECANCELED.rawValue }
    /// The handle is closed or closing.
    public static var EBADF: Int32 { UV_EBADF.rawValue }
    /// No descriptor is left in this process.
    public static var EMFILE: Int32 { UV_EMFILE.rawValue }
    /// No descriptor is left in the system.
    public static var ENFILE: Int32 { UV_ENFILE.rawValue }
    /// The reader has gone.
    public static var EPIPE: Int32 { UV_EPIPE.rawValue }
    /// The peer has gone with bytes unread.
    public static var ECONNRESET: Int32 { UV_ECONNRESET.rawValue }
    /// The owner of a stream had no room for a read.
    public static var ENOBUFS: Int32 { UV_ENOBUFS.rawValue }
    /// No such file or program.
    public static var ENOENT: Int32 { UV_ENOENT.rawValue }
    /// No such process.
    public static var ESRCH: Int32 { UV_ESRCH.rawValue }
    /// Something is bound to the path.
    public static var EADDRINUSE: Int32 { UV_EADDRINUSE.rawValue }
    /// An argument that can't be passed on, such as a string with NUL inside.
    public static var EINVAL: Int32 { UV_EINVAL.rawValue }
}

import CLibuv
import Glibc

/// A process that this one started, until it has been reaped. Loop thread only.
///
/// Descriptors that are not listed are not inherited, provided they are close-on-exec. The child has the default
/// action for every signal and an empty mask.
public final class ChildProcess: Handle {
    /// How a child ended.
    public struct Exit: Equatable, Sendable {
        /// What it passed to `exit`; 0 if a signal ended it.
        public let status: Int64
        /// The signal that ended it, or 0.
        public let signal: Int32

        public init(status: Int64, signal: Int32) {
            self.status = status
            self.signal = signal
        }
    }

    /// Also known after the exit, when the number may belong to another process.
    public private(set) var processID: Int32 = 0

    /// nil while it runs.
    public fileprivate(set) var exit: Exit?
    fileprivate var onExit: ((Exit) -> Void)?
    private let isSessionLeader: Bool

    /// Starts the program, and returns once it has been executed: a missing program or directory throws here
    /// (`ENOENT`, `EACCES`), and `onExit` then never runs. Else it runs once, after the child has been reaped, unless
    /// the handle was closed before; the child itself outlives a closed handle, and nobody reaps it. The pipes among
    /// the descriptors pass to this child, even if this throws. The loop stands still meanwhile.
    public init(loop: Loop, options: ChildOptions, onExit: @escaping (Exit) -> Void) throws(LoopError) {
        defer { for descriptor in options.descriptors { descriptor.closeChildEnd() } }
        let image = try ChildImage(options)
        isSessionLeader = options.isSessionLeader
        self.onExit = onExit
        var code: Int32 = 0
        try super.init(loop: loop, operation: "uv_spawn") { (rawLoop, process: UnsafeMutablePointer<uv_process_t>) in
            // uv_spawn sets up the handle even where it fails, so a failure is told when it is ours to close.
            code = image.spawn(rawLoop, process, onExited)
            return 0
        }
        if code < 0 {
            close()
            throw LoopError(code: code, operation: "uv_spawn")
        }
        processID = uv_process_get_pid(pointer(as: uv_process_t.self))
    }

    /// Sends a signal to the child. `ESRCH` once it has been reaped: its number may be another's by then.
    public func kill(_ signal: Int32) throws(LoopError) {
        try requireOpen("uv_process_kill")
        if exit != nil { throw LoopError(code: LoopError.ESRCH, operation: "uv_process_kill") }
        try LoopError.check(uv_process_kill(pointer(as: uv_process_t.self), signal), "uv_process_kill")
    }

    /// Sends a signal to the child and all that is in its process group, where it leads a session (`EINVAL` if not).
    /// Allowed until the end of `onExit` to end what the child left; later the number may be another's.
    public func killGroup(_ signal: Int32) throws(LoopError) {
        try requireOpen("kill")
        if !isSessionLeader { throw LoopError(code: LoopError.EINVAL, operation: "kill") }
        if exit != nil && onExit == nil { throw LoopError(code: LoopError.ESRCH, operation: "kill") }
        if Glibc.kill(-processID, signal) < 0 { throw LoopError(code: -errno, operation: "kill") }
    }

    override func didClose() { onExit = nil }

    fileprivate func finish(_ exit: Exit) {
        self.exit = exit
        let onExit = self.onExit
        onExit?(exit)
        self.onExit = nil
    }
}

/// The options in the form that C wants. Owns its strings; libuv has copied or used them when `spawn` returns.
private struct ChildImage: ~Copyable {
    private let program: UnsafeMutablePointer<CChar>
    private let arguments: StringVector
    private let environment: StringVector?
    private let workingDirectory: UnsafeMutablePointer<CChar>?
    private let descriptors: [Int32?]
    private let isSessionLeader: Bool

    init(_ options: ChildOptions) throws(LoopError) {
        let names = [options.program, options.workingDirectory ?? ""]
        let strings = names + options.arguments + (options.environment ?? [])
        let descriptors = options.descriptors.map(\.inherited)
        if options.program.isEmpty || strings.contains(where: { $0.utf8.contains(0) })
            || descriptors.contains(where: { $0.map { $0 < 0 } ?? false })
        {
            throw LoopError(code: LoopError.EINVAL, operation: "uv_spawn")
        }
        self.descriptors = descriptors
        program = strdup(options.program)
        arguments = StringVector([options.program] + options.arguments)
        if let environment = options.environment {
            self.environment = StringVector(environment)
        } else {
            environment = nil
        }
        workingDirectory = options.workingDirectory.map { strdup($0) }
        isSessionLeader = options.isSessionLeader
    }

    deinit {
        free(program)
        free(workingDirectory)
    }

    func spawn(
        _ loop: UnsafeMutablePointer<uv_loop_t>, _ process: UnsafeMutablePointer<uv_process_t>, _ onExit: uv_exit_cb?
    ) -> Int32 {
        var containers = descriptors.map { descriptor in
            var container = uv_stdio_container_t()
            container.flags = descriptor == nil ? UV_IGNORE : UV_INHERIT_FD
            container.data.fd = descriptor ?? -1
            return container
        }
        return containers.withUnsafeMutableBufferPointer { containers in
            var options = uv_process_options_t()
            options.exit_cb = onExit
            options.file = UnsafePointer(program)
            options.args = arguments.pointer
            options.env = environmentPointer
            options.cwd = UnsafePointer(workingDirectory)
            options.flags = isSessionLeader ? UInt32(UV_PROCESS_DETACHED.rawValue) : 0
            options.stdio_count = Int32(containers.count)
            options.stdio = containers.baseAddress
            return uv_spawn(loop, process, &options)
        }
    }

    private var environmentPointer: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? {
        switch environment {
        case .some(let vector): vector.pointer
        case .none: nil
        }
    }
}

/// A NULL-terminated vector of C strings, owned.
private struct StringVector: ~Copyable {
    let pointer: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
    private let count: Int

    init(_ strings: [String]) {
        count = strings.count
        pointer = .allocate(capacity: count + 1)
        for (index, string) in strings.enumerated() { pointer[index] = strdup(string) }
        pointer[count] = nil
    }

    deinit {
        for index in 0..<count { free(pointer[index]) }
        pointer.deallocate()
    }
}

private let onExited: uv_exit_cb = { raw, status, signal in
    owner(of: raw, as: ChildProcess.self).finish(ChildProcess.Exit(status: status, signal: signal))
}

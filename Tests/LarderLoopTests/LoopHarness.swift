import Glibc
import LarderLoop
import Testing

/// Runs `body`, then the loop until nothing is left on it, and closes it, which fails if anything is. A test that
/// hangs is ended by a limit that no test waits for.
func withLoop(_ body: (Loop) throws -> Void) throws {
    let loop = try Loop()
    let limit = try Timer(loop: loop) {
        Issue.record("the loop did not come to an end")
        fflush(nil)
        abort()
    }
    limit.keepsLoopAlive = false
    try limit.start(afterMilliseconds: 30_000)
    try body(loop)
    loop.run()
    limit.close()
    loop.run()
    #expect(loop.openHandleCount == 0)
    loop.close()
}

/// A path for a socket that no other test uses.
func temporarySocketPath() -> String {
    var directory = Array("/tmp/larder-loop-XXXXXX".utf8CString)
    #expect(mkdtemp(&directory) != nil)
    return directory.withUnsafeBufferPointer { String(cString: $0.baseAddress!) } + "/socket"
}

func removeTemporarySocket(_ path: String) {
    unlink(path)
    rmdir(String(path.dropLast("/socket".count)))
}

/// A blocking client socket; the descriptor, or -errno.
func connectUnix(_ path: String) -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let result = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
    if result == 0 { return descriptor }
    let error = errno
    close(descriptor)
    return -error
}

/// Collects what a stream brings, in memory of its own.
final class Collector {
    private(set) var bytes: [UInt8] = []
    private(set) var endCount = 0
    private(set) var failures: [LoopError] = []
    private(set) var allocateCount = 0
    private(set) var readCount = 0
    private let buffer: UnsafeMutableRawBufferPointer

    /// `chunk` bytes are read at a time.
    init(chunk: Int = 4096) { buffer = .allocate(byteCount: chunk, alignment: 16) }

    deinit { buffer.deallocate() }

    func read(_ stream: LarderLoop.Stream, onEnd: @escaping () -> Void) throws {
        try stream.startReading(
            allocate: { [self] _ in
                allocateCount += 1
                return buffer
            },
            onRead: { [self] event in
                readCount += 1
                switch event {
                case .bytes(let count): bytes += buffer[..<count]
                case .end:
                    endCount += 1
                    onEnd()
                case .failed(let error):
                    failures.append(error)
                    onEnd()
                }
            })
    }
}

import Glibc
import LarderLoop
import Testing

@Suite("Stream and Listener")
struct StreamTests {
    private func pair(_ loop: Loop) throws -> (LarderLoop.Stream, LarderLoop.Stream) {
        let ends = try socketPair()
        return (try Stream(loop: loop, adopting: ends.0), try Stream(loop: loop, adopting: ends.1))
    }

    @Test("an echo over a Unix socket returns every byte, read in small pieces")
    func echo() throws {
        let sent = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let received = Collector(chunk: 777)
        var closed = 0
        var written = 0
        let path = temporarySocketPath()
        defer { removeTemporarySocket(path) }
        try withLoop { loop in
            var listener: Listener!
            listener = try Listener(
                loop: loop, path: path,
                onConnection: { server in
                    do {
                        #expect(try server.peerCredentials.userID == getuid())
                        #expect(try server.peerCredentials.processID == getpid())
                        let echoed = Collector(chunk: 1000)
                        try echoed.read(server) {
                            do {
                                try echoed.bytes.withUnsafeBytes { try server.write(copying: $0) { _ in written += 1 } }
                                try server.shutdown { _ in server.close { closed += 1 } }
                            } catch { Issue.record(error) }
                        }
                    } catch { Issue.record(error) }
                    listener.close { closed += 1 }
                }, onError: { Issue.record($0) })
            var status = stat()
            #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)

            let client = try Stream(loop: loop, adopting: connectUnix(path))
            try sent.withUnsafeBytes { try client.write(copying: $0) { _ in written += 1 } }
            try client.shutdown()
            try received.read(client) { client.close { closed += 1 } }
        }
        #expect(received.bytes == sent)
        #expect(received.endCount == 1 && received.failures.isEmpty)
        // The end may be told without memory being asked for.
        #expect(received.readCount - 1 <= received.allocateCount && received.allocateCount <= received.readCount)
        #expect(closed == 3)
        #expect(written == 2)
        #expect(access(path, F_OK) != 0)
    }

    @Test("what tryWrite could not send follows by write, in order, and tryWrite takes nothing meanwhile")
    func partialWrite() throws {
        let sent = (0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }
        let received = Collector(chunk: 65_536)
        var completions: [LoopError?] = []
        try withLoop { loop in
            let (writer, reader) = try pair(loop)
            try sent.withUnsafeBytes { bytes in
                let half = UnsafeMutableRawPointer(mutating: bytes.baseAddress!)
                let slices = [
                    iovec(iov_base: half, iov_len: 1_000_000),
                    iovec(iov_base: half + 1_000_000, iov_len: bytes.count - 1_000_000),
                ]
                let count = try slices.withUnsafeBufferPointer { try writer.tryWrite($0) }
                #expect(count > 0 && count < bytes.count)
                // The second half of what is left is kept alive by an owner, the first is copied.
                let middle = (count + bytes.count) / 2
                try writer.write(copying: UnsafeRawBufferPointer(rebasing: bytes[count..<middle])) {
                    completions.append($0)
                }
                #expect(writer.pendingWriteByteCount == middle - count)
                #expect(try writer.tryWrite(bytes) == 0)

                final class Slab {
                    let memory: UnsafeMutableRawBufferPointer
                    init(_ bytes: Slice<UnsafeRawBufferPointer>) {
                        memory = .allocate(byteCount: bytes.count, alignment: 1)
                        memory.copyBytes(from: bytes)
                    }
                    deinit {
                        memory.initializeMemory(as: UInt8.self, repeating: 0)
                        memory.deallocate()
                    }
                }
                let slab = Slab(bytes[middle...])
                let rest = [iovec(iov_base: slab.memory.baseAddress, iov_len: slab.memory.count)]
                try rest.withUnsafeBufferPointer {
                    try writer.write($0, keeping: slab) { error in
                        completions.append(error)
                        #expect(writer.pendingWriteByteCount == 0)
                        writer.close()
                    }
                }
            }
            try received.read(reader) { reader.close() }
        }
        #expect(received.bytes == sent)
        #expect(completions.count == 2 && completions.allSatisfy { $0 == nil })
    }

    @Test("a stream closed inside its read callback reads no more, and queued writes end as cancelled")
    func closeDuringRead() throws {
        var reads = 0
        var closed = 0
        var writeErrors: [LoopError?] = []
        try withLoop { loop in
            let (writer, reader) = try pair(loop)
            let big = [UInt8](repeating: 1, count: 4_000_000)
            try big.withUnsafeBytes { try writer.write(copying: $0) { writeErrors.append($0) } }
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 1)
            try reader.startReading(
                allocate: { _ in buffer },
                onRead: { _ in
                    reads += 1
                    if reads < 3 { return }
                    reader.close {
                        closed += 1
                        buffer.deallocate()
                    }
                    writer.close { closed += 1 }
                })
        }
        #expect(reads == 3)
        #expect(closed == 2)
        #expect(writeErrors == [LoopError(code: LoopError.ECANCELED, operation: "uv_write")])
    }

    @Test("reading stops on demand and goes on with the same closures")
    func stopAndResume() throws {
        var reads = 0
        try withLoop { loop in
            let (writer, reader) = try pair(loop)
            let byte: [UInt8] = [1]
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 1)
            let resume = try Timer(loop: loop) {
                #expect(reads == 1)
                do { try reader.resumeReading() } catch { Issue.record(error) }
            }
            try reader.startReading(
                allocate: { _ in buffer },
                onRead: { _ in
                    reads += 1
                    reader.stopReading()
                    do {
                        if reads == 2 {
                            for handle in [reader, writer, resume] as [Handle] { handle.close() }
                            buffer.deallocate()
                        } else {
                            _ = try byte.withUnsafeBytes { try writer.tryWrite($0) }
                            try resume.start(afterMilliseconds: 5)
                        }
                    } catch { Issue.record(error) }
                })
            #expect(try byte.withUnsafeBytes { try writer.tryWrite($0) } == 1)
        }
        #expect(reads == 2)
    }

    @Test("an owner without room for a read is told ENOBUFS")
    func noRoom() throws {
        var events: [LarderLoop.Stream.ReadEvent] = []
        try withLoop { loop in
            let (writer, reader) = try pair(loop)
            let byte: [UInt8] = [1]
            #expect(try byte.withUnsafeBytes { try writer.tryWrite($0) } == 1)
            try reader.startReading(allocate: { _ in .init(start: nil, count: 0) }) { event in
                events.append(event)
                reader.close()
                writer.close()
            }
        }
        #expect(events == [.failed(LoopError(code: LoopError.ENOBUFS, operation: "uv_read"))])
    }

    @Test("writing to a peer that has gone is EPIPE and no signal")
    func brokenPipe() throws {
        var completions: [LoopError?] = []
        try withLoop { loop in
            let ends = try socketPair()
            let writer = try Stream(loop: loop, adopting: ends.0)
            closeDescriptor(ends.1)
            let byte: [UInt8] = [1]
            #expect(throws: LoopError(code: LoopError.EPIPE, operation: "uv_try_write")) {
                _ = try byte.withUnsafeBytes { try writer.tryWrite($0) }
            }
            try byte.withUnsafeBytes {
                try writer.write(copying: $0) {
                    completions.append($0)
                    writer.close()
                }
            }
        }
        #expect(completions == [LoopError(code: LoopError.EPIPE, operation: "uv_write")])
    }

    @Test("calls on a closed stream fail at once and their completions never run")
    func closedStream() throws {
        try withLoop { loop in
            let (one, other) = try pair(loop)
            one.close()
            other.close()
            let byte: [UInt8] = [1]
            #expect(throws: LoopError.self) {
                try byte.withUnsafeBytes { try one.write(copying: $0) { _ in Issue.record("completed") } }
            }
            #expect(throws: LoopError.self) { try one.shutdown { _ in Issue.record("completed") } }
            #expect(throws: LoopError.self) { try one.resumeReading() }
            #expect(one.fileDescriptor == -1)
        }
    }

    @Test("a descriptor that is none is refused and leaves nothing behind")
    func badDescriptor() throws {
        try withLoop { loop in
            #expect(throws: LoopError(code: LoopError.EBADF, operation: "uv_pipe_open")) {
                _ = try Stream(loop: loop, adopting: 1_000_000)
            }
        }
    }

    @Test("a path that is taken is EADDRINUSE, and stays")
    func pathTaken() throws {
        let path = temporarySocketPath()
        defer { removeTemporarySocket(path) }
        try withLoop { loop in
            let first = try Listener(loop: loop, path: path, onConnection: { _ in }, onError: { _ in })
            #expect(throws: LoopError(code: LoopError.EADDRINUSE, operation: "bind")) {
                _ = try Listener(loop: loop, path: path, onConnection: { _ in }, onError: { _ in })
            }
            #expect(access(path, F_OK) == 0)
            first.close()
        }
    }

    @Test("with no descriptor left a connection is ended and told, and the next one is served once there are some")
    func descriptorsExhausted() async {
        await #expect(processExitsWith: .exitCode(0)) {
            let path = temporarySocketPath()
            let loop = try Loop()
            var errors: [LoopError] = []
            var served = 0
            var listener: Listener!
            listener = try Listener(
                loop: loop, path: path,
                onConnection: { stream in
                    served += 1
                    stream.close()
                    listener.close()
                }, onError: { errors.append($0) })
            let first = connectUnix(path)
            let second = connectUnix(path)
            var taken: [Int32] = []
            var limit = rlimit(rlim_cur: 64, rlim_max: 64)
            setrlimit(__rlimit_resource_t(UInt32(RLIMIT_NOFILE.rawValue)), &limit)
            while case let copy = dup(first), copy >= 0 { taken.append(copy) }
            guard errno == EMFILE else { exit(2) }
            while errors.count < 2 { loop.run(.once) }
            guard errors.allSatisfy({ $0.code == LoopError.EMFILE }), served == 0 else { exit(3) }
            // Both clients see the end.
            var byte: UInt8 = 0
            guard read(first, &byte, 1) == 0, read(second, &byte, 1) == 0 else { exit(4) }
            for copy in taken { close(copy) }
            close(first)
            let third = connectUnix(path)
            guard third >= 0 else { exit(5) }
            loop.run()
            guard served == 1 else { exit(6) }
            loop.close()
            removeTemporarySocket(path)
            exit(0)
        }
    }
}

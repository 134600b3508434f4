// What a Unix socket can do: bytes from one process to another.

import CLarder
import Glibc

/// `sink`: takes one connection, reads `byteCount` bytes, answers with one byte. Prints `{}` once it listens.
func runSink(socket path: String, byteCount: Int) throws(BenchError) {
    _ = larder_set_death_signal(SIGKILL)
    let listener = larder_listen_unix(path, 1, 0o600)
    guard listener >= 0 else { throw .system("listen \(path)", code: -listener) }
    writeAll(1, "{}\n")
    // The listener does not block, what it accepts does.
    var waiting = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
    _ = poll(&waiting, 1, 10_000)
    let descriptor = accept(listener, nil, nil)
    guard descriptor >= 0 else { throw .system("accept", code: errno) }
    let room = UnsafeMutableRawPointer.allocate(byteCount: 262_144, alignment: 4_096)
    var left = byteCount
    while left > 0 {
        let count = recv(descriptor, room, 262_144, 0)
        if count == 0 { throw .child("the source has closed") }
        if count > 0 { left -= count }
    }
    _ = send(descriptor, room, 1, Int32(MSG_NOSIGNAL))
    close(descriptor)
    close(listener)
    unlink(path)
}

/// Sends bytes to a sink in writes of `chunkByteCount`; returns the seconds until it has them all.
func probeSocket(path: String, byteCount: Int, chunkByteCount: Int) throws(BenchError) -> Double {
    unlink(path)
    let sink = try Child(Child.program, ["sink", path, "\(byteCount)"])
    guard sink.line() != nil else { throw .child("the sink did not start") }
    let descriptor = try connectUnix(path)
    defer { close(descriptor) }
    let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: chunkByteCount, alignment: 4_096)
    defer { chunk.deallocate() }
    chunk.initializeMemory(as: UInt8.self, repeating: 0x5A)
    let started = monotonicNanoseconds()
    var left = byteCount
    while left > 0 {
        let count = min(left, chunkByteCount)
        try sendAll(descriptor, UnsafeRawBufferPointer(rebasing: chunk[..<count]))
        left -= count
    }
    var byte: UInt8 = 0
    guard recv(descriptor, &byte, 1, 0) == 1 else { throw .child("the sink did not answer") }
    let ended = monotonicNanoseconds()
    let code = sink.wait()
    try expect(code == 0, "the sink ended with \(code)")
    return seconds(from: started, to: ended)
}

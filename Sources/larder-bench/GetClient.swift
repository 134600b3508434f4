// `client get`: random point reads over one connection, in a process of its own.

import Glibc
import LarderClient
import LarderFormat
import LarderWire

/// Asks for `depth` random records at a time for some seconds, checks that each answer is of the key that was asked for,
/// and prints how many there were. Bare frames over a blocking socket, so that the host is what is measured.
func runGets(
    socket path: String, dataset: String, recordCount: Int, depth: Int, seconds duration: Double
) throws(BenchError) {
    let keys = try KeyTable(try EncodedTitles(try PackedTitles(path: dataset, recordCount: recordCount)))
    let socket = try GreetedSocket(path: path)
    var random = SplitMix(seed: UInt64(depth) + 4)
    var asked = ContiguousArray(repeating: 0, count: depth)
    let room = UnsafeMutableRawPointer.allocate(byteCount: depth * 64, alignment: 16)
    defer { room.deallocate() }
    var latencies = ContiguousArray<Int64>()
    latencies.reserveCapacity(1 << 20)
    var count = 0
    var byteCount = 0
    let started = monotonicNanoseconds()
    let stop = started + Int64(duration * 1e9)
    var now = started
    while now < stop {
        var writer = RawWriter(room)
        for at in 0..<depth {
            let position = random.below(keys.count)
            asked[at] = position
            let key = keys[position]
            FrameHeader(bodyByteCount: 2 + key.count, type: MessageType.get.rawValue, id: UInt32(at + 1)).encode(
                into: &writer)
            writer.u8(UInt8(Kind.title.number))
            writer.u8(UInt8(key.count))
            writer.raw(key)
        }
        try socket.send(UnsafeRawBufferPointer(start: room, count: writer.at - room))
        for _ in 0..<depth {
            let (header, body) = try socket.frame()
            guard header.messageType == .record, header.id >= 1, header.id <= UInt32(depth) else {
                throw .wrong("type \(header.type) answers GET \(header.id)")
            }
            byteCount += try check(body, against: keys[asked[Int(header.id) - 1]])
        }
        count += depth
        let after = monotonicNanoseconds()
        latencies.append(after - now)
        now = after
    }
    latencies.sort()
    var line = ResultLine()
    line.set("started", Int(started))
    line.set("ended", Int(now))
    line.set("count", count)
    line.set("byte_count", byteCount)
    line.set("p50_microseconds", Double(latencies[latencies.count / 2]) / 1_000, places: 1)
    line.set("p99_microseconds", Double(latencies[latencies.count * 99 / 100]) / 1_000, places: 1)
    line.print()
}

/// Asks for one random record at a time, so many a second, and prints how long an answer took from when its request was
/// due: one that was held up counts for those that wait behind it too. One record in ten may be deleted.
func runPacedGets(
    socket path: String, dataset: String, recordCount: Int, perSecond: Int, seconds duration: Double
) throws(BenchError) {
    let keys = try KeyTable(try EncodedTitles(try PackedTitles(path: dataset, recordCount: recordCount)))
    let socket = try GreetedSocket(path: path)
    var random = SplitMix(seed: 8)
    let room = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 16)
    defer { room.deallocate() }
    var latencies = ContiguousArray<Int64>()
    let interval = 1_000_000_000 / Int64(perSecond)
    let started = monotonicNanoseconds()
    var due = started
    var now = started
    while due < started + Int64(duration * 1e9) {
        if now < due { usleep(UInt32((due - now) / 1_000)) }
        let key = keys[random.below(keys.count)]
        var writer = RawWriter(room)
        FrameHeader(bodyByteCount: 2 + key.count, type: MessageType.get.rawValue, id: 1).encode(into: &writer)
        writer.u8(UInt8(Kind.title.number))
        writer.u8(UInt8(key.count))
        writer.raw(key)
        try socket.send(UnsafeRawBufferPointer(start: room, count: writer.at - room))
        let (header, body) = try socket.frame()
        switch header.messageType {
        case .record: _ = try check(body, against: key)
        case .error:
            var reader = ByteReader(body)
            let reply = try? ErrorReply(from: &reader)
            try expect(reply?.number == .notFound, "an error answers GET: \(reply?.message ?? "it does not parse")")
        default: throw .wrong("type \(header.type) answers GET")
        }
        now = monotonicNanoseconds()
        latencies.append(now - due)
        due += interval
    }
    latencies.sort()
    var line = ResultLine()
    line.set("started", Int(started))
    line.set("ended", Int(now))
    line.set("count", latencies.count)
    line.set("p50_microseconds", Double(latencies[latencies.count / 2]) / 1_000, places: 1)
    line.set("p99_microseconds", Double(latencies[latencies.count * 99 / 100]) / 1_000, places: 1)
    line.set("max_microseconds", Double(latencies[latencies.count - 1]) / 1_000, places: 1)
    line.print()
}

/// The keys alone, close together, so that the client misses the cache about once for each.
private final class KeyTable {
    private let memory: UnsafeMutableRawPointer
    let count: Int
    /// A key, and its byte count in the last byte.
    private static let stride = 16

    init(_ records: EncodedTitles) throws(BenchError) {
        count = records.count
        memory = UnsafeMutableRawPointer.allocate(byteCount: count * KeyTable.stride, alignment: 64)
        for position in 0..<count {
            let key = records.key(position)
            try expect(key.count < KeyTable.stride, "a key of \(key.count) bytes")
            let place = memory + position * KeyTable.stride
            if let base = key.baseAddress { place.copyMemory(from: base, byteCount: key.count) }
            place.storeBytes(of: UInt8(key.count), toByteOffset: KeyTable.stride - 1, as: UInt8.self)
        }
    }

    deinit { memory.deallocate() }

    subscript(_ position: Int) -> UnsafeRawBufferPointer {
        let place = memory + position * KeyTable.stride
        let byteCount = place.load(fromByteOffset: KeyTable.stride - 1, as: UInt8.self)
        return UnsafeRawBufferPointer(start: place, count: Int(byteCount))
    }
}

/// Bytes of the record in a RECORD, which is of that key.
@inline(__always)
private func check(_ body: UnsafeRawBufferPointer, against key: UnsafeRawBufferPointer) throws(BenchError) -> Int {
    var reader = ByteReader(body)
    do throws(FormatError) {
        let record = try StoredRecordView(from: &reader).record
        let start = EncodedTitles.keyOffset
        guard record.count > start + key.count, let base = record.baseAddress, let expected = key.baseAddress,
            memcmp(base + start, expected, key.count) == 0
        else { throw FormatError(.badStructure, at: 0) }
        return record.count
    } catch { throw .wrong("an answer is not the record that was asked for: \(error)") }
}

/// A blocking socket on which the greeting is done.
final class GreetedSocket {
    private let descriptor: Int32
    private let memory = UnsafeMutableRawPointer.allocate(byteCount: GreetedSocket.capacity, alignment: 4_096)
    private static let capacity = 1_048_576
    private var start = 0
    private var end = 0

    init(path: String) throws(BenchError) {
        descriptor = try connectUnix(path)
        let hello = Preface.bytes + Hello(name: "bench", version: "1").framed(id: 1)
        var failure: BenchError?
        hello.withUnsafeBytes { bytes in
            do throws(BenchError) { try send(bytes) } catch { failure = error }
        }
        if let failure { throw failure }
        let (header, _) = try frame()
        try expect(header.messageType == .welcome, "type \(header.type) answers HELLO")
    }

    deinit {
        close(descriptor)
        memory.deallocate()
    }

    func send(_ bytes: UnsafeRawBufferPointer) throws(BenchError) { try sendAll(descriptor, bytes) }

    /// The next frame; its body is valid until the next call.
    @inline(__always)
    func frame() throws(BenchError) -> (FrameHeader, UnsafeRawBufferPointer) {
        while true {
            let received = UnsafeRawBufferPointer(start: memory + start, count: end - start)
            do throws(FrameError) {
                if case .frame(let header, let body) = try FrameDecoder.next(
                    received, limit: FrameHeader.bodyByteCountMax)
                {
                    start += body.upperBound
                    return (header, UnsafeRawBufferPointer(rebasing: received[body]))
                }
            } catch { throw .wrong("\(error)") }
            if start > 0 {
                memory.copyMemory(from: memory + start, byteCount: end - start)
                end -= start
                start = 0
            }
            let count = recv(descriptor, memory + end, GreetedSocket.capacity - end, 0)
            if count > 0 { end += count } else if count == 0 || errno != EINTR { throw .child("the host has closed") }
        }
    }
}

/// A blocking Unix stream socket, connected.
func connectUnix(_ path: String) throws(BenchError) -> Int32 {
    var address = sockaddr_un()
    guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
        throw .usage("\(path) is too long for a socket; give another --directory")
    }
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let result = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
    guard result == 0 else {
        let code = errno
        close(descriptor)
        throw .system("connect \(path)", code: code)
    }
    return descriptor
}

func sendAll(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) throws(BenchError) {
    var sent = 0
    while sent < bytes.count {
        let count = send(descriptor, bytes.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
        if count > 0 { sent += count } else if errno != EINTR { throw .system("send", code: errno) }
    }
}

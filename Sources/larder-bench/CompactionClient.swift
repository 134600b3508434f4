// `client compact`: has the library compacted, in a process of its own.

import Glibc
import LarderClient
import LarderFormat
import LarderWire

/// Set by a signal.
private nonisolated(unsafe) var isToEnd: sig_atomic_t = 0

/// Asks for one compaction that keeps no history, and says so on a line. Prints what became of it when it has ended, or
/// was cancelled after SIGTERM.
///
/// - Parameter bytesPerSecond: 0: as the host is set; else at most so much, `Int.max` as fast as it goes.
func runCompaction(socket path: String, bytesPerSecond: Int, compresses: Bool) throws(BenchError) {
    signal(SIGTERM) { _ in isToEnd = 1 }
    let socket = try GreetedSocket(path: path)
    var id: UInt32 = 1
    var started = monotonicNanoseconds()
    let compact = Compact(
        historySince: .max, includesLast: true, compression: compresses ? .zstd : .kept, bytesPerSecond: bytesPerSecond)
    try send(compact, id, socket)
    var hasBegun = false
    var isCancelled = false
    var compacted: Compacted?
    var ended = started
    var isOver = false
    while !isOver {
        // PROGRESS comes once a second at least.
        let (header, body) = try socket.frame()
        ended = monotonicNanoseconds()
        var reader = ByteReader(body)
        let refusal = header.messageType == .error ? try? ErrorReply(from: &reader) : nil
        if !hasBegun, refusal?.number == .busy {
            // One that was cancelled still has to end.
            usleep(20_000)
            id += 1
            started = monotonicNanoseconds()
            try send(compact, id, socket)
            continue
        }
        if !hasBegun { ResultLine("compacting").print() }
        hasBegun = true
        switch header.messageType {
        case .progress: break
        case .compacted:
            do throws(FormatError) { compacted = try Compacted(from: &reader) } catch { throw .wrong("\(error)") }
            isOver = true
        case .error where isCancelled: isOver = true
        case .error:
            throw .child("no compaction: \(refusal?.message ?? "an error that does not parse")")
        default: throw .wrong("type \(header.type) answers COMPACT")
        }
        if isToEnd != 0, !isOver, !isCancelled {
            isCancelled = true
            try send(Cancel(), id, socket)
        }
    }
    var line = ResultLine()
    line.set("started", Int(started))
    line.set("ended", Int(ended))
    if let compacted {
        line.set("bytes_before", compacted.byteCountBefore)
        line.set("bytes_after", compacted.byteCountAfter)
        line.set("dropped", compacted.droppedCount)
        line.set("rewritten", compacted.rewrittenCount)
    }
    line.print()
}

private func send<M: WireMessage>(_ message: M, _ id: UInt32, _ socket: GreetedSocket) throws(BenchError) {
    var failure: BenchError?
    message.framed(id: id).withUnsafeBytes { bytes in
        do throws(BenchError) { try socket.send(bytes) } catch { failure = error }
    }
    if let failure { throw failure }
}

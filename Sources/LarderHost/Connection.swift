// One client: its bytes in and out, and the state machine between them.

import Glibc
import LarderFormat
import LarderLoop
import LarderStore
import LarderWire

/// A connection. Loop thread only; kept alive by the host until its stream has closed.
final class Connection {
    let host: Host
    let stream: Stream
    let number: UInt64
    // Confined to the loop; without dynamic checks of access, which are a twentieth of a GET.
    @exclusivity(unchecked) var session: Session
    /// The plugin that this connection belongs to, or empty.
    var pluginName = ""
    /// From HELLO.
    var name = ""
    var version = ""
    var processID: Int32 = 0
    var register: Register?

    @exclusivity(unchecked) private var input = ByteBuffer(capacity: Connection.inputByteCount)
    @exclusivity(unchecked) var output = ByteBuffer(capacity: 4096)
    /// Frames are not taken up: a batch waits for room, for the disk, or for a clear.
    private(set) var isPaused = false
    private var isReading = false
    /// A write of what the socket did not take is under way.
    private var isWriting = false
    private var isClosing = false
    /// Close once everything is written.
    private(set) var closesWhenWritten = false

    var subscriptions: [Subscription] = []
    /// The subscription that is served first next time.
    var nextSubscription = 0
    let batch = WriteBatch()
    /// `batch` holds the frame at the front of the input, which is paused.
    var hasParsedBatch = false

    static let inputByteCount = 65_536
    /// Replies that a client does not read: beyond this its requests are not read either.
    static let outputByteCountMax = 1_048_576

    init(host: Host, stream: Stream, number: UInt64) {
        self.host = host
        self.stream = stream
        self.number = number
        session = Session()
    }

    // MARK: Reading

    /// - Parameter waited: what was read and not sent of this connection before it was the host's.
    func start(after waited: WaitingClient? = nil) {
        if let waited {
            input.append(waited.kept)
            output.append(waited.unsent)
            // As what is read: in a turn of the loop.
            host.later { [weak self] in
                guard let self, !isClosing else { return }
                process()
            }
        }
        do throws(LoopError) {
            isReading = true
            try stream.startReading(
                allocate: { [unowned self] _ in input.room(wantedRoom) },
                onRead: { [unowned self] event in received(event) })
        } catch { close() }
    }

    /// Room for the rest of a large frame, once its header is there.
    private var wantedRoom: Int {
        let held = input.bytes
        guard held.count >= FrameHeader.byteCount, session.state != .preface, let base = held.baseAddress,
            let header = try? FrameHeader(at: base, limit: session.frameBodyByteCountMax)
        else { return Connection.inputByteCount / 2 }
        return max(header.frameByteCount &- held.count, 0) &+ Connection.inputByteCount
    }

    private func received(_ event: Stream.ReadEvent) {
        switch event {
        case .bytes(let count):
            input.filled(count)
            process()
        case .end, .failed:
            // A client that closes its sending half waits for nothing more.
            close()
        }
    }

    /// Takes up whole frames from the front of the input until there are none or one has to wait.
    func process() {
        if session.state == .open { prefetchGets() }
        while !isPaused && !isClosing && session.state != .closed {
            if session.state == .preface {
                guard takePreface() else { break }
                continue
            }
            let step: FrameStep
            do throws(FrameError) {
                step = try FrameDecoder.next(input.bytes, limit: session.frameBodyByteCountMax)
            } catch {
                send(session.received(error), id: 0)
                closeWhenWritten()
                break
            }
            guard case .frame(let header, let body) = step else { break }
            handle(header, UnsafeRawBufferPointer(rebasing: input.bytes[body]))
            if !isPaused { input.consume(header.frameByteCount) }
            if output.count > Connection.outputByteCountMax { break }
        }
        if input.isEmpty { input.shrink(to: host.isBulk(self) ? 1 << 20 : Connection.inputByteCount) }
        flush()
        adjustReading()
    }

    /// Has the memory fetched that a row of GETs will need, so that they wait for it together and not in turn.
    private func prefetchGets() {
        let bytes = input.bytes
        guard bytes.count > FrameHeader.byteCount, bytes[FrameHeader.typeOffset] == MessageType.get.rawValue else {
            return
        }
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { fingerprints in
            var count = 0
            var rest = bytes
            while count < fingerprints.count,
                case .frame(let header, let body)? = try? FrameDecoder.next(rest, limit: 4_096),
                header.type == MessageType.get.rawValue
            {
                var reader = ByteReader(UnsafeRawBufferPointer(rebasing: rest[body]))
                guard let view = try? GetView(from: &reader) else { break }
                fingerprints[count] = host.store.prefetch(kind: view.kind, key: view.key)
                count += 1
                rest = UnsafeRawBufferPointer(rebasing: rest[header.frameByteCount...])
            }
            guard count > 1 else { return }
            for fingerprint in fingerprints[..<count] { host.store.prefetchRecord(fingerprint) }
        }
    }

    private func takePreface() -> Bool {
        switch session.received(preface: input.bytes) {
        case .needMore: return false
        case .isPreface:
            input.consume(Preface.byteCount)
            return true
        case .wrong(let client):
            host.options.log("a connection was refused: \(client.line.dropLast())")
            output.append(Array(client.line.utf8))
            closeWhenWritten()
            return false
        }
    }

    /// Leaves the frame at the front of the input for later.
    func pause() {
        isPaused = true
        adjustReading()
    }

    /// The paused frame was dealt with.
    func consumePausedFrame() {
        guard isPaused, let base = input.bytes.baseAddress,
            let header = try? FrameHeader(at: base, limit: session.frameBodyByteCountMax)
        else { return }
        isPaused = false
        input.consume(header.frameByteCount)
    }

    /// The header and body of the frame that waits.
    var pausedFrame: (FrameHeader, UnsafeRawBufferPointer)? {
        guard isPaused,
            case .frame(let header, let body)? = try? FrameDecoder.next(
                input.bytes, limit: session.frameBodyByteCountMax)
        else { return nil }
        return (header, UnsafeRawBufferPointer(rebasing: input.bytes[body]))
    }

    private func adjustReading() {
        guard !isClosing else { return }
        let wants =
            !isPaused && !closesWhenWritten
            && output.count + stream.pendingWriteByteCount < Connection.outputByteCountMax
        if wants == isReading { return }
        isReading = wants
        if wants {
            do throws(LoopError) { try stream.resumeReading() } catch { close() }
        } else {
            stream.stopReading()
        }
    }

    // MARK: Writing

    /// Whether bytes handed to the socket would go at once.
    var canWriteNow: Bool { !isClosing && !isWriting && output.isEmpty }

    func send<M: WireMessage>(_ message: M, id: UInt32) {
        guard !isClosing else { return }
        output.append(message.framed(id: id))
    }

    /// Sends what is in the output; what the socket does not take goes when it can.
    func flush() {
        guard !isClosing, !isWriting else { return }
        if !output.isEmpty {
            do throws(LoopError) {
                let sent = try stream.tryWrite(output.bytes)
                output.consume(sent)
                if !output.isEmpty {
                    try stream.write(copying: output.bytes) { [weak self] error in self?.wrote(error) }
                    output.consume(output.count)
                    isWriting = true
                } else {
                    output.shrink(to: 65_536)
                }
            } catch {
                close()
                return
            }
        }
        if !isWriting && closesWhenWritten { close() }
    }

    /// Sends a frame that lies in pieces. Nothing is kept of them: an unsent rest is copied.
    func send(_ slices: UnsafeBufferPointer<iovec>, byteCount: Int) {
        guard !isClosing else { return }
        do throws(LoopError) {
            let sent = try stream.tryWrite(slices)
            if sent == byteCount { return }
            var rest = ByteBuffer(capacity: byteCount - sent)
            var skip = sent
            for slice in slices {
                let piece = UnsafeRawBufferPointer(start: slice.iov_base, count: slice.iov_len)
                if skip >= piece.count {
                    skip -= piece.count
                } else {
                    rest.append(UnsafeRawBufferPointer(rebasing: piece[skip...]))
                    skip = 0
                }
            }
            try stream.write(copying: rest.bytes) { [weak self] error in self?.wrote(error) }
            isWriting = true
        } catch { close() }
    }

    private func wrote(_ error: LoopError?) {
        isWriting = false
        if error != nil {
            close()
            return
        }
        flush()
        guard !isClosing else { return }
        adjustReading()
        if !input.isEmpty && !isPaused { process() }
        host.serve(self)
    }

    // MARK: The end

    /// Sends what is owed and closes.
    func closeWhenWritten() {
        closesWhenWritten = true
        flush()
    }

    func close() {
        guard !isClosing else { return }
        isClosing = true
        session.close()
        stream.stopReading()
        host.connectionCloses(self)
        stream.close()
    }

    var isClosed: Bool { isClosing }
}

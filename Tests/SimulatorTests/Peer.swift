// A client of the simulated host: its connection, its frames, and what it waits for.

import LarderFormat
import LarderLoop
import LarderWire

/// What a peer waits for, by request id.
enum Pending {
    case hello(knownSeq: UInt64)
    case register
    case batch(Batch, ImportTask?)
    case clear(ClearRequest)
    case get(Key, knownSeq: UInt64)
    case count(kind: Int, knownSeq: UInt64)
    case page(Paging, knownSeq: UInt64)
    case find(kind: Int, price: Int, knownSeq: UInt64)
    case history(Key, knownSeq: UInt64)
    case beginImport(ImportTask)
    case endImport(ImportTask)
    case subscribe(Follower, knownSeq: UInt64)
    case unsubscribe(Follower)
    case sync(Follower, knownSeq: UInt64)
    case ping
    case compact
    case status
    case entries([UInt64], knownSeq: UInt64)
    case listed(kind: Int, price: Int, knownSeq: UInt64)
}

/// A listing under way.
final class Paging {
    let kind: Int
    let isReverse: Bool
    let knownSeq: UInt64
    var firstSeqs: [UInt64] = []

    init(kind: Int, isReverse: Bool, knownSeq: UInt64) {
        self.kind = kind
        self.isReverse = isReverse
        self.knownSeq = knownSeq
    }
}

/// What an importer remembers of its import, also when the connection is lost.
final class ImportTask {
    let token: String
    var origin: UInt64 = 0
    var isBegun = false
    /// Asked for on this connection.
    var isAsked = false
    var isEnding = false
    var lastNumber: UInt64 = 0
    /// Sent and not answered, or answered in a way that leaves it open.
    var unanswered: [(number: UInt64, operations: [Operation])] = []
    /// The highest number that was answered for, of a batch that changed something.
    var answered: UInt64 = 0

    init(token: String) { self.token = token }
}

final class Peer {
    let name: String
    let truth: Truth
    let dice: Dice
    let trace: Trace
    private(set) var socket: SimulatedSocket?
    /// How willing it is to send and to receive; of a connection.
    private(set) var sendPercent = 70
    private(set) var receivePercent = 70
    private var outgoing: [UInt8] = []
    private var incoming: [UInt8] = []
    var isOpen = false
    /// GOODBYE was sent or came.
    var isLeaving = false
    /// The host is stopping, and in the end waits for nobody.
    var mayBeCut = false
    var pending: [UInt32: Pending] = [:]
    private var lastID: UInt32 = 0
    /// What was sent last ended within a frame, or with others behind it.
    private var isInFrame = false
    var followers: [Follower] = []
    var importTask: ImportTask?
    var importCount = 0
    var epoch: UInt64 = 0
    /// The library's, when it was welcomed.
    var floor: UInt64 = 1
    /// Requests that an answer gave rise to.
    var followUps: [() -> Void] = []
    /// How many answers came.
    var answerCount = 0

    init(name: String, truth: Truth, dice: Dice, trace: Trace) {
        self.name = name
        self.truth = truth
        self.dice = dice
        self.trace = trace
    }

    // MARK: The connection

    var isConnected: Bool { socket != nil }
    var hasOutgoing: Bool { !outgoing.isEmpty }

    /// - Parameter mayHurry: its requests may have a deadline.
    func connect(_ loop: SimulatedLoop, path: String, mayHurry: Bool = true) {
        guard let socket = loop.connect(path) else { return }
        trace.note("\(name) connects")
        self.socket = socket
        sendPercent = dice.pick([30, 70, 100])
        receivePercent = dice.pick([5, 70, 70, 100])
        isInFrame = false
        mayBeCut = false
        outgoing = Preface.bytes
        let deadline = mayHurry && dice.chance(15) ? 1 + dice.below(dice.pick([20, 3_000])) : 0
        request(Hello(name: name, version: "1", deadlineMilliseconds: deadline), .hello(knownSeq: truth.knownSeq))
    }

    /// The connection is gone; what was asked for stays open.
    func disconnect() {
        guard let socket else { return }
        trace.note("\(name) is disconnected, \(outgoing.count) bytes unsent")
        if isInFrame { truth.tally.count(.cutInFrame) }
        socket.close()
        self.socket = nil
        outgoing = []
        incoming = []
        isOpen = false
        isLeaving = false
        pending = [:]
        followUps = []
        for follower in followers { follower.disconnected() }
        importTask?.isAsked = false
    }

    /// Sends up to `count` bytes of what waits.
    func send(_ count: Int) {
        guard let socket, !outgoing.isEmpty else { return }
        let sent = socket.send(outgoing.prefix(count))
        outgoing.removeFirst(sent)
        isInFrame = !outgoing.isEmpty && sent > 0
    }

    /// Receives up to `count` bytes and handles the frames that are whole.
    func receive(_ count: Int) throws {
        guard let socket else { return }
        let bytes = socket.receive(count)
        incoming += bytes
        try takeFrames()
        let next = followUps
        followUps = []
        for followUp in next where isOpen && !isLeaving { followUp() }
        if socket.isEnded {
            if !incoming.isEmpty && !mayBeCut { throw Difference("\(name): the host closed in the midst of a frame") }
            disconnect()
        }
    }

    private func takeFrames() throws {
        var at = 0
        while at < incoming.count {
            var frame: (FrameHeader, [UInt8])?
            try incoming.withUnsafeBytes { bytes in
                let rest = UnsafeRawBufferPointer(rebasing: bytes[at...])
                let step: FrameStep
                do throws(FrameError) { step = try FrameDecoder.next(rest, limit: FrameHeader.bodyByteCountMax) } catch
                {
                    throw Difference("\(name): what came is no frame: \(error)")
                }
                if case .frame(let header, let body) = step { frame = (header, Array(rest[body])) }
            }
            guard let (header, body) = frame else { break }
            at += header.frameByteCount
            // STATUS names the process.
            if header.messageType != .statusIs { trace.received(header.type, body) }
            try received(header, body)
            if socket == nil { return }
        }
        incoming.removeFirst(min(at, incoming.count))
    }

    // MARK: Sending

    func nextID() -> UInt32 {
        lastID += 1
        return lastID
    }

    @discardableResult
    func request<M: WireMessage>(_ message: M, _ waits: Pending) -> UInt32 {
        let id = nextID()
        pending[id] = waits
        outgoing += message.framed(id: id)
        return id
    }

    func notify<M: WireMessage>(_ message: M, id: UInt32 = 0) { outgoing += message.framed(id: id) }

    func send(_ batch: Batch, _ task: ImportTask? = nil) {
        batch.sender = name
        truth.add(batch)
        trace.note("\(name) sends \(batch)")
        let id = nextID()
        pending[id] = .batch(batch, task)
        outgoing += batch.frame(id: id)
    }

    func goodbye() {
        guard isOpen, !isLeaving else { return }
        trace.note("\(name) says goodbye")
        isLeaving = true
        notify(Goodbye())
    }
}

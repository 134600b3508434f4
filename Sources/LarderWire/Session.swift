// What a client may send when, and what the host owes it: SPEC.md sections 2 and 3, without I/O.

import LarderFormat

/// The host's side of one connection. Events go in, an action comes out, and the caller performs it.
///
/// Every frame is asked about with `received(_:)`, in the order of arrival. A request that is answered within the same
/// call needs nothing more; one that waits is entered with `begin` and left with `end`. Time is the caller's: monotonic
/// milliseconds. A value; one thread.
public struct Session: Sendable {
    public enum State: UInt8, CaseIterable, Sendable {
        case preface
        case greeting
        case open
        /// After a GOODBYE of either side.
        case draining
        case closed
    }

    public private(set) var state = State.preface
    public let limits: Limits
    /// REGISTER was accepted.
    public private(set) var isRegistered = false
    /// READY came.
    public private(set) var isReady = false
    /// The host said GOODBYE first, so requests that crossed it get `shutting_down`.
    public private(set) var isStopping = false
    /// The minor version agreed on.
    public private(set) var version = 0

    private var deadlineMilliseconds: Int64 = 0
    private var deadlines = DeadlineQueue()
    private var taken = RequestTable()
    private var lastPingId: UInt32 = 0
    private var isPingOpen = false

    public init(limits: Limits = Limits()) { self.limits = limits }

    /// The most bytes that a body may have now.
    public var frameBodyByteCountMax: Int {
        switch state {
        case .preface, .greeting: FrameHeader.bodyByteCountMaxBeforeWelcome
        default: limits.frameBodyByteCountMax
        }
    }

    // MARK: Preface and greeting

    /// The first bytes of the connection, from its beginning. `isPreface` moves on to greeting; 8 bytes are consumed.
    /// After `wrong` its line is sent and the connection closed.
    public mutating func received(preface bytes: UnsafeRawBufferPointer) -> Preface.Step {
        let step = Preface.check(bytes)
        switch step {
        case .needMore: break
        case .isPreface: if state == .preface { state = .greeting }
        case .wrong: state = .closed
        }
        return step
    }

    public enum HelloAction: Equatable, Sendable {
        /// Send WELCOME with these.
        case welcome(version: Int, capabilities: [String])
        /// Send ERROR with the HELLO's id and close.
        case end(ErrorReply)
    }

    /// A HELLO that was decoded. The caller has checked its token; where that is bad it calls `end(_:)` instead.
    ///
    /// - Parameter capabilities: those that the host has.
    public mutating func received(_ hello: Hello, capabilities: [String] = []) -> HelloAction {
        let ours = ProtocolVersion.current
        guard hello.versionMin <= ours, ours <= hello.versionMax else {
            let facts = [ErrorReply.Fact("min", "\(ours)"), ErrorReply.Fact("max", "\(ours)")]
            let asked = "\(hello.versionMin) to \(hello.versionMax)"
            return .end(
                end(
                    ErrorReply(
                        .versionUnsupported, message: "the host speaks minor version \(ours), the client \(asked)",
                        facts: facts)))
        }
        if let unknown = hello.required.first(where: { !capabilities.contains($0) }) {
            return .end(
                end(
                    ErrorReply(
                        .capabilityUnsupported, message: "the host does not have the capability \(unknown)",
                        facts: [ErrorReply.Fact("capability", unknown)])))
        }
        state = .open
        version = ours
        deadlineMilliseconds = Int64(hello.deadlineMilliseconds)
        return .welcome(
            version: ours,
            capabilities: capabilities.filter { hello.required.contains($0) || hello.optional.contains($0) })
    }

    // MARK: Frames

    @frozen
    public enum FrameAction: Equatable, Sendable {
        /// Decode the body and perform it; where it does not decode, ask `refusal(ofBody:)`.
        case handle(MessageType)
        /// Send ERROR with the frame's id; the connection goes on. `reply(_:to:)` has the words.
        case refuse(ErrorNumber)
        /// Send ERROR, with id 0 if the frame has none, and close.
        case end(ErrorNumber)
        /// Skip the body, answer nothing.
        case ignore
    }

    /// A frame whose header was decoded and whose body is at hand.
    public mutating func received(_ header: FrameHeader) -> FrameAction {
        if state == .open, let type = header.messageType { return receivedOpen(type, header.id) }
        switch state {
        case .open: return .refuse(.unknownMessage)
        case .preface, .closed: return .ignore
        case .greeting:
            if header.messageType == .hello, header.id != 0 { return .handle(.hello) }
            state = .closed
            if header.messageType == .hello { return .end(.badFrame) }
            return .end(header.messageType?.isClients == true ? .wrongState : .unknownMessage)
        case .draining: return receivedDraining(header)
        }
    }

    private mutating func receivedOpen(_ type: MessageType, _ id: UInt32) -> FrameAction {
        switch type {
        case .credit: return taken.serial(of: id) == 0 ? .handle(.credit) : .ignore
        case .cancel: return (taken.serial(of: id) ?? 0) != 0 ? .handle(.cancel) : .ignore
        case .pong: return receivedPong(id)
        case .ready:
            guard id == 0 else { return .refuse(.badMessage) }
            guard isRegistered else { return .refuse(.wrongState) }
            isReady = true
            return .handle(.ready)
        case .goodbye:
            guard id == 0 else { return .refuse(.badMessage) }
            state = .draining
            return .handle(.goodbye)
        default: break
        }
        guard type.rawValue < 0x80 else { return .refuse(.unknownMessage) }
        guard id != 0 else {
            state = .closed
            return .end(.badFrame)
        }
        guard taken.serial(of: id) == nil else { return .refuse(.requestInUse) }
        guard taken.count < limits.openRequestCountMax else { return .refuse(.tooManyRequests) }
        if type == .hello || type == .register && isRegistered { return .refuse(.wrongState) }
        return .handle(type)
    }

    private mutating func receivedPong(_ id: UInt32) -> FrameAction {
        guard isPingOpen, id == lastPingId else { return .ignore }
        isPingOpen = false
        return .handle(.pong)
    }

    private mutating func receivedDraining(_ header: FrameHeader) -> FrameAction {
        guard let type = header.messageType, type.isClients else { return .refuse(.unknownMessage) }
        switch type {
        case .credit: return taken.serial(of: header.id) == 0 ? .handle(.credit) : .ignore
        case .cancel: return (taken.serial(of: header.id) ?? 0) != 0 ? .handle(.cancel) : .ignore
        case .pong: return receivedPong(header.id)
        case .goodbye: return .ignore
        case .ready: return .refuse(.wrongState)
        default: break
        }
        guard header.id != 0 else {
            state = .closed
            return .end(.badFrame)
        }
        return .refuse(isStopping && type != .hello ? .shuttingDown : .wrongState)
    }

    /// A body that did not decode.
    public mutating func refusal(ofBody error: FormatError, of type: MessageType) -> ErrorReply {
        let reply = ErrorReply(badMessage: error, in: type.name)
        // What did not parse was not said.
        if type == .goodbye && state == .draining { state = .open }
        if type == .ready { isReady = false }
        return state == .greeting ? end(reply) : reply
    }

    /// A header after which no frame can be found. Send the reply with id 0 and close.
    public mutating func received(_ error: FrameError) -> ErrorReply { end(error.reply) }

    /// Marks a reply as the connection's last and closes.
    public mutating func end(_ reply: ErrorReply) -> ErrorReply {
        state = .closed
        var last = reply
        last.flags.insert(.fatal)
        return last
    }

    // MARK: Requests and subscriptions

    /// Enters a request that waits for its answer. Its frame was handled and its id is not taken.
    public mutating func begin(_ id: UInt32, now: Int64) -> OpenRequest {
        let request = taken.insertRequest(id)
        if deadlineMilliseconds > 0 {
            let (deadline, overflow) = now.addingReportingOverflow(deadlineMilliseconds)
            let table = taken
            deadlines.append(request, deadline: overflow ? .max : deadline, openCount: table.requestCount) {
                table.serial(of: $0.id) == $0.serial
            }
        }
        return request
    }

    /// Leaves a request. False if it was left before (its deadline passed): then no answer is sent.
    public mutating func end(_ request: OpenRequest) -> Bool { taken.remove(request.id, serial: request.serial) }

    public func isOpen(_ request: OpenRequest) -> Bool { taken.serial(of: request.id) == request.serial }

    /// The open request with this id, for CANCEL.
    public func openRequest(_ id: UInt32) -> OpenRequest? {
        guard let serial = taken.serial(of: id), serial != 0 else { return nil }
        return OpenRequest(id: id, serial: serial)
    }

    /// The next request to be answered `deadline_exceeded`, which the caller then ends; nil when there is none.
    public mutating func expiredRequest(now: Int64) -> OpenRequest? {
        let table = taken
        return deadlines.expired(now: now) { table.serial(of: $0.id) == $0.serial }
    }

    /// When to ask `expiredRequest` next.
    public mutating func nextDeadline() -> Int64? {
        let table = taken
        return deadlines.next { table.serial(of: $0.id) == $0.serial }
    }

    /// The id of a SUBSCRIBE that was answered SUBSCRIBED stays taken. A request that was begun is ended before.
    public mutating func beginSubscription(_ id: UInt32) { taken.insertSubscription(id) }
    /// False for an id that is no subscription's.
    public mutating func endSubscription(_ id: UInt32) -> Bool { taken.remove(id, serial: 0) }
    public func isSubscription(_ id: UInt32) -> Bool { id != 0 && taken.serial(of: id) == 0 }

    public var openRequestCount: Int { taken.requestCount }
    public var subscriptionCount: Int { taken.subscriptionCount }
    /// Not in any order.
    public var openRequests: [OpenRequest] { taken.requests }
    public var subscriptions: [UInt32] { taken.subscriptions }

    /// A REGISTER was accepted; a refused one may be tried again.
    public mutating func accepted(_ register: Register) { isRegistered = true }

    /// The id for a PING of the host's, which replaces one that was not answered.
    public mutating func beginPing() -> UInt32 {
        lastPingId = lastPingId == .max ? 1 : lastPingId + 1
        isPingOpen = true
        return lastPingId
    }
    /// A PING of the host's waits for its PONG.
    public var awaitsPong: Bool { isPingOpen }

    // MARK: The end

    public enum StopAction: Equatable, Sendable {
        /// Send GOODBYE once nothing is owed any more, and close.
        case drain
        /// Close at once: the client was not greeted yet.
        case close
        /// It was draining or closed already.
        case nothing
    }

    /// The host stops.
    public mutating func stop() -> StopAction {
        switch state {
        case .preface, .greeting:
            state = .closed
            return .close
        case .open:
            state = .draining
            isStopping = true
            return .drain
        case .draining, .closed: return .nothing
        }
    }

    /// The other side is gone, or this side has closed. What is open stays listed, for the caller to drop.
    public mutating func close() { state = .closed }

    /// Draining, and every request has its answer: send GOODBYE and close.
    public var isDrained: Bool { state == .draining && taken.requestCount == 0 }
}

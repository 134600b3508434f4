// The table of SPEC.md section 3, the ids of a connection, and its deadlines.

import LarderFormat
import LarderWire
import Testing

@Suite("session")
struct SessionTests {
    /// A session in that state. Draining comes from the client's GOODBYE, or the host's when it is stopping.
    private func session(_ state: Session.State, isStopping: Bool = false, limits: Limits = Limits(), deadline: Int = 0)
        -> Session
    {
        var session = Session(limits: limits)
        if state == .preface { return session }
        _ = Preface.bytes.withUnsafeBytes { session.received(preface: $0) }
        if state == .greeting { return session }
        _ = session.received(Hello(name: "t", version: "1", deadlineMilliseconds: deadline))
        switch state {
        case .draining:
            if isStopping { _ = session.stop() } else { _ = session.received(frame(.goodbye, id: 0)) }
        case .closed: session.close()
        default: break
        }
        #expect(session.state == state)
        return session
    }

    private func frame(_ type: MessageType, id: UInt32 = 5) -> FrameHeader {
        FrameHeader(bodyByteCount: 0, type: type.rawValue, id: id)
    }

    private static let notices: Set<MessageType> = [.ready, .goodbye]

    private func expected(_ type: MessageType, in state: Session.State, isStopping: Bool) -> Session.FrameAction {
        let isRequest = type.isClients && type.role == .request
        switch state {
        case .preface, .closed: return .ignore
        case .greeting:
            if type == .hello { return .handle(.hello) }
            return .end(type.isClients ? .wrongState : .unknownMessage)
        case .open:
            switch type {
            case .hello, .ready: return .refuse(.wrongState)
            case .credit, .cancel, .pong: return .ignore
            case .goodbye: return .handle(.goodbye)
            default: return isRequest ? .handle(type) : .refuse(.unknownMessage)
            }
        case .draining:
            switch type {
            case .hello, .ready: return .refuse(.wrongState)
            case .credit, .cancel, .pong, .goodbye: return .ignore
            default:
                guard isRequest else { return .refuse(.unknownMessage) }
                return .refuse(isStopping ? .shuttingDown : .wrongState)
            }
        }
    }

    @Test("every message in every state", arguments: Session.State.allCases, [false, true])
    func table(_ state: Session.State, _ isStopping: Bool) {
        for type in MessageType.allCases {
            var session = session(state, isStopping: isStopping)
            let header = frame(type, id: SessionTests.notices.contains(type) ? 0 : 5)
            let action = session.received(header)
            #expect(action == expected(type, in: state, isStopping: isStopping), "\(type.name)")
            if case .refuse(let number) = action {
                let reply = session.reply(number, to: header)
                #expect(!reply.isFatal && !reply.message.isEmpty && reply.number == number)
            }
            if case .end(let number) = action {
                #expect(session.state == .closed && session.reply(number, to: header).isFatal)
            }
        }
    }

    @Test("a type that is none is unknown_message", arguments: [0, 0x18, 0x1A, 0x7F, 0x80, 0x9A, 0xFF] as [UInt8])
    func unknownTypes(_ type: UInt8) {
        let header = FrameHeader(bodyByteCount: 0, type: type, id: 5)
        var open = session(.open)
        #expect(open.received(header) == .refuse(.unknownMessage))
        var draining = session(.draining)
        #expect(draining.received(header) == .refuse(.unknownMessage))
        var greeting = session(.greeting)
        #expect(greeting.received(header) == .end(.unknownMessage))
    }

    @Test("a request without an id ends the connection, a notice with one is refused")
    func ids() {
        for type in MessageType.allCases where type.isClients && type.role == .request {
            var greeting = session(.greeting)
            if type == .hello { #expect(greeting.received(frame(type, id: 0)) == .end(.badFrame)) }
            var open = session(.open)
            #expect(open.received(frame(type, id: 0)) == .end(.badFrame))
            #expect(open.state == .closed)
        }
        for type in SessionTests.notices {
            var open = session(.open)
            #expect(open.received(frame(type, id: 5)) == .refuse(.badMessage))
            #expect(open.state == .open)
        }
    }

    @Test("REGISTER comes once, READY after it")
    func register() {
        var session = session(.open)
        #expect(session.received(frame(.register)) == .handle(.register))
        #expect(session.received(frame(.register)) == .handle(.register), "a refused one may be tried again")
        session.accepted(Register(roles: .notifier))
        #expect(session.received(frame(.register)) == .refuse(.wrongState))
        #expect(session.received(frame(.ready, id: 0)) == .handle(.ready))
        #expect(session.isReady)
    }

    @Test("HELLO agrees on a version and on capabilities, or ends")
    func hello() {
        var good = session(.greeting)
        let hello = Hello(name: "t", version: "1", versionMin: 1, versionMax: 9, required: ["a"], optional: ["b", "c"])
        #expect(good.frameBodyByteCountMax == 65_536)
        #expect(
            good.received(hello, capabilities: ["a", "c", "d"]) == .welcome(version: 1, capabilities: ["a", "c"]))
        #expect(good.state == .open && good.frameBodyByteCountMax == 4_194_304)
        for (hello, number) in [
            (Hello(name: "t", version: "1", versionMin: 2, versionMax: 9), ErrorNumber.versionUnsupported),
            (Hello(name: "t", version: "1", versionMin: 0, versionMax: 0), .versionUnsupported),
            (Hello(name: "t", version: "1", required: ["a", "z"]), .capabilityUnsupported),
        ] {
            var session = session(.greeting)
            guard case .end(let reply) = session.received(hello, capabilities: ["a"]) else {
                Issue.record("welcomed")
                continue
            }
            #expect(reply.number == number && reply.isFatal && session.state == .closed)
        }
    }

    @Test("a bad body ends the connection before WELCOME only")
    func badBody() {
        var greeting = session(.greeting)
        let early = greeting.refusal(ofBody: FormatError(.truncated, at: 3), of: .hello)
        #expect(early.isFatal && early.place == 4 && early.number == .badMessage && greeting.state == .closed)
        var open = session(.open)
        #expect(open.refusal(ofBody: FormatError(.truncated, at: 0), of: .get).isFatal == false)
        #expect(open.state == .open)
        #expect(open.received(FrameError.reservedBitsSet(offset: 5, id: 1)).isFatal == true)
        #expect(open.state == .closed)
    }

    @Test("an id that is taken is refused until it is left")
    func inUse() {
        var session = session(.open)
        #expect(session.received(frame(.write, id: 9)) == .handle(.write))
        let request = session.begin(9, now: 0)
        #expect(session.received(frame(.get, id: 9)) == .refuse(.requestInUse))
        #expect(session.received(frame(.get, id: 8)) == .handle(.get))
        #expect(session.received(frame(.cancel, id: 9)) == .handle(.cancel))
        #expect(session.received(frame(.credit, id: 9)) == .ignore)
        #expect(session.openRequest(9) == request)
        #expect(session.end(request) == true)
        #expect(session.end(request) == false)
        #expect(session.received(frame(.get, id: 9)) == .handle(.get))
        session.beginSubscription(9)
        #expect(session.isSubscription(9) && !session.isSubscription(8) && !session.isSubscription(0))
        #expect(session.received(frame(.get, id: 9)) == .refuse(.requestInUse))
        #expect(session.received(frame(.credit, id: 9)) == .handle(.credit))
        #expect(session.received(frame(.cancel, id: 9)) == .ignore)
        #expect(session.endSubscription(9) == true)
        #expect(session.endSubscription(9) == false)
    }

    @Test("one request more than the limit is too many")
    func tooMany() {
        var session = session(.open, limits: Limits(openRequestCountMax: 3))
        var requests: [OpenRequest] = []
        for id in 1...3 as ClosedRange<UInt32> {
            #expect(session.received(frame(.write, id: id)) == .handle(.write))
            requests.append(session.begin(id, now: 0))
        }
        #expect(session.received(frame(.write, id: 4)) == .refuse(.tooManyRequests))
        #expect(session.end(requests[1]) == true)
        #expect(session.received(frame(.write, id: 4)) == .handle(.write))
    }

    @Test("a request expires at its deadline, and an answer that comes later is dropped")
    func deadlines() throws {
        var session = session(.open, deadline: 100)
        let first = session.begin(1, now: 1_000)
        let second = session.begin(2, now: 1_050)
        #expect(session.nextDeadline() == 1_100)
        #expect(session.expiredRequest(now: 1_099) == nil)
        #expect(session.expiredRequest(now: 1_100) == first)
        #expect(session.end(first) == true)
        let again = session.begin(1, now: 1_120)
        #expect(session.end(first) == false, "the id is the same, the request is not")
        #expect(session.isOpen(again))
        #expect(session.nextDeadline() == 1_150)
        #expect(session.end(second) == true)
        #expect(session.nextDeadline() == 1_220)
        #expect(session.end(again) == true)
        #expect(session.nextDeadline() == nil)
        var far = self.session(.open, deadline: .max)
        _ = far.begin(1, now: 5)
        #expect(far.nextDeadline() == .max)
        var none = self.session(.open)
        _ = none.begin(1, now: 5)
        #expect(none.nextDeadline() == nil)
    }

    @Test("ids in any order are found and left, compared with a set")
    func tableAgainstModel() {
        var generator = SplitMix(state: 3)
        var session = session(.open, limits: Limits(openRequestCountMax: 1_000_000), deadline: 10)
        var model: [UInt32: OpenRequest] = [:]
        for step in 0..<20_000 {
            let id = UInt32.random(in: 1...400, using: &generator) &* (step % 3 == 0 ? 0x1000 : 1)
            if let request = model[id] {
                #expect(session.received(frame(.get, id: id)) == .refuse(.requestInUse))
                #expect(session.end(request) == true)
                model[id] = nil
            } else {
                #expect(session.received(frame(.get, id: id)) == .handle(.get))
                model[id] = session.begin(id, now: Int64(step))
            }
        }
        #expect(Set(session.openRequests) == Set(model.values) && session.openRequestCount == model.count)
    }

    @Test("after GOODBYE what is owed is sent first")
    func draining() {
        var session = session(.open)
        let request = session.begin(1, now: 0)
        #expect(session.received(frame(.goodbye, id: 0)) == .handle(.goodbye))
        #expect(session.state == .draining && !session.isDrained)
        #expect(session.received(frame(.cancel, id: 1)) == .handle(.cancel))
        #expect(session.end(request) == true)
        #expect(session.isDrained)
        #expect(session.stop() == .nothing)
    }

    @Test("the host stops an open connection with GOODBYE and closes one that was not greeted")
    func stop() {
        for state in Session.State.allCases {
            var session = session(state)
            let action = session.stop()
            switch state {
            case .preface, .greeting: #expect(action == .close && session.state == .closed)
            case .open: #expect(action == .drain && session.state == .draining)
            default: #expect(action == .nothing && session.state == state)
            }
        }
    }

    @Test("a PONG answers the host's PING once")
    func ping() {
        var session = session(.open)
        let id = session.beginPing()
        #expect(session.awaitsPong)
        #expect(session.received(frame(.pong, id: id + 1)) == .ignore)
        #expect(session.received(frame(.pong, id: id)) == .handle(.pong))
        #expect(!session.awaitsPong)
        #expect(session.received(frame(.pong, id: id)) == .ignore)
    }
}

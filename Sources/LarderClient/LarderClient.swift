// A program's side of a connection: the greeting, and which frame is for whom.

import Glibc
import LarderFormat
import LarderWire

/// A connection to a host. Calls wait for their answers. Not Sendable: one thread.
///
/// One connection can have requests, subscriptions and an import at once. What arrives for another of them while one
/// waits is copied and kept for it.
public final class LarderClient {
    public struct Timeouts: Sendable {
        /// From connecting to WELCOME, ms; of a host that opens its library, from one sign of life to the next.
        public var connectMilliseconds: Int
        /// How long WELCOME may take before the host is asked how far it is, and the time between two such questions, ms.
        public var statusMilliseconds: Int
        /// Of one request, ms. CLEAR, COMPACT and imports count it from the last sign of life. Nil: none.
        public var requestMilliseconds: Int?

        public init(
            connectMilliseconds: Int = 5_000, requestMilliseconds: Int? = 60_000, statusMilliseconds: Int = 1_000
        ) {
            self.connectMilliseconds = connectMilliseconds
            self.statusMilliseconds = statusMilliseconds
            self.requestMilliseconds = requestMilliseconds
        }
    }

    /// What the host said of itself and its library.
    public let welcome: Welcome
    public let timeouts: Timeouts
    /// The GOODBYE of the host, once it came: finish, store the cursor, close.
    public private(set) var hostGoodbye: Goodbye?
    /// Errors about the connection that did not end it, the first 100.
    public private(set) var notices: [ErrorReply] = []
    private static let noticeCountMax = 100

    let connection: Connection
    private enum Owner {
        case request
        /// Its caller gave up; the answer is dropped.
        case abandoned
        case subscription
    }
    private var owners: [UInt32: Owner] = [:]
    private var lastId: UInt32
    private var kept: [(header: FrameHeader, body: [UInt8])] = []

    public var limits: Limits { welcome.limits }

    // MARK: Connecting

    /// Connects to a socket and greets the host. One that opens its library is waited for.
    ///
    /// - Parameters:
    ///   - name: of the program, 1 to 64 bytes; origins carry it.
    ///   - deadlineMilliseconds: after which the host gives up a request; 0: never.
    ///   - token: `LARDER_TOKEN`'s bytes, else empty.
    ///   - whileRecovering: told now and then how the host is while it opens its library, its reason being how far that
    ///     has come; false ends the waiting with `recovering`.
    public convenience init(
        path: String, name: String, version: String, timeouts: Timeouts = Timeouts(), deadlineMilliseconds: Int = 0,
        token: [UInt8] = [], whileRecovering: (StatusIs) -> Bool = { _ in true }
    ) throws(ClientError) {
        let socket = try Socket.connect(path: path, timeoutMilliseconds: timeouts.connectMilliseconds)
        try self.init(
            socket, Hello(name: name, version: version, deadlineMilliseconds: deadlineMilliseconds, token: token),
            timeouts, whileRecovering)
    }

    /// Greets the host over a connected stream socket, which the client closes from now on.
    public convenience init(
        fd: Int32, name: String, version: String, timeouts: Timeouts = Timeouts(), deadlineMilliseconds: Int = 0,
        token: [UInt8] = [], whileRecovering: (StatusIs) -> Bool = { _ in true }
    ) throws(ClientError) {
        try self.init(
            Socket(fd: fd),
            Hello(name: name, version: version, deadlineMilliseconds: deadlineMilliseconds, token: token), timeouts,
            whileRecovering)
    }

    private init(
        _ socket: Socket, _ hello: Hello, _ timeouts: Timeouts, _ whileRecovering: (StatusIs) -> Bool
    ) throws(ClientError) {
        connection = Connection(socket)
        self.timeouts = timeouts
        let greeted = try Greeting(connection: connection, timeouts: timeouts).run(hello, whileRecovering)
        welcome = greeted.welcome
        lastId = greeted.lastId
        if let id = greeted.openStatus { owners[id] = .abandoned }
        connection.frameBodyByteCountMax = min(welcome.limits.frameBodyByteCountMax, FrameHeader.bodyByteCountMax)
    }

    /// Closes at once. What was acknowledged stays; what was not may or may not be done.
    public func close() { connection.close() }

    static func decode<M: WireMessage>(
        _: M.Type, _ frame: Connection.Frame, _ connection: Connection
    ) throws(ClientError) -> M {
        do throws(FormatError) { return try M(body: frame.body) } catch {
            throw connection.violation("\(M.type.name): \(error)")
        }
    }

    // MARK: Ids and frames

    var requestDeadline: Deadline { Deadline(milliseconds: timeouts.requestMilliseconds) }

    /// Takes an id for a request.
    func takeId() -> UInt32 {
        repeat { lastId = lastId == .max ? 1 : lastId + 1 } while owners[lastId] != nil
        owners[lastId] = .request
        return lastId
    }

    /// The id now belongs to a subscription.
    func becomesSubscription(_ id: UInt32) { owners[id] = .subscription }
    /// The id is free.
    func release(_ id: UInt32) { owners[id] = nil }
    /// Nobody waits for its answer any more.
    func abandon(_ id: UInt32) { owners[id] = .abandoned }

    /// The next frame whose id `isMine` takes, or nil at the deadline. Others are kept, answered or dropped.
    ///
    /// - Throws: `larder` for an ERROR that ends the connection, `connectionLost` at the end of the stream.
    func receive(
        until deadline: Deadline, _ isMine: (UInt32) -> Bool
    ) throws(ClientError) -> Connection.Frame? {
        if !kept.isEmpty, let index = kept.firstIndex(where: { isMine($0.header.id) }) {
            let frame = kept.remove(at: index)
            return Connection.Frame(header: frame.header, body: holding(frame.body))
        }
        while true {
            let frame: Connection.Frame
            switch try connection.receive(until: deadline) {
            case .frame(let next): frame = next
            case .timedOut: return nil
            case .ended:
                connection.close()
                throw .connectionLost
            }
            guard try isForRequests(frame) else { continue }
            if isMine(frame.header.id) { return frame }
            kept.append((frame.header, Array(frame.body)))
        }
    }

    /// The body of a kept frame, alive until the next one is held.
    private func holding(_ body: [UInt8]) -> UnsafeRawBufferPointer {
        held.deallocate()
        held = UnsafeMutableRawBufferPointer.allocate(byteCount: max(body.count, 1), alignment: 8)
        held.copyBytes(from: body)
        return UnsafeRawBufferPointer(rebasing: held[..<body.count])
    }
    private var held = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    deinit { held.deallocate() }

    /// Deals with what is for nobody in particular.
    private func isForRequests(_ frame: Connection.Frame) throws(ClientError) -> Bool {
        guard let type = frame.header.messageType else { return false }
        switch type {
        case .ping:
            let ping = try LarderClient.decode(Ping.self, frame, connection)
            if !connection.isClosed, hostGoodbye == nil {
                try connection.send(Pong(ping.bytes), id: frame.header.id, until: requestDeadline)
            }
            return false
        case .hostGoodbye:
            hostGoodbye = try LarderClient.decode(HostGoodbye.self, frame, connection).goodbye
            return false
        case .error:
            if frame.header.id != 0, owners[frame.header.id] == .request || owners[frame.header.id] == .subscription {
                return true
            }
            let reply = try LarderClient.decode(ErrorReply.self, frame, connection)
            if reply.isFatal {
                connection.close()
                throw .larder(reply)
            }
            if owners.removeValue(forKey: frame.header.id) == nil, notices.count < LarderClient.noticeCountMax {
                notices.append(reply)
            }
            return false
        case .welcome: throw connection.violation("a second WELCOME")
        default:
            guard type.isHosts else { throw connection.violation("\(type.name) from the host") }
        }
        switch owners[frame.header.id] {
        case .request, .subscription: return true
        case .abandoned:
            if type.role == .reply { owners[frame.header.id] = nil }
            return false
        case nil: throw connection.violation("\(type.name) with id \(frame.header.id), which nobody asked with")
        }
    }

    // MARK: One request

    /// Sends a request and gives its final reply to `body`. Frames that are not final go to `part`.
    func request<M: WireMessage, R>(
        _ message: M, part: (Connection.Frame) throws(ClientError) -> Void = { _ in },
        _ body: (Connection.Frame) throws(ClientError) -> R
    ) throws(ClientError) -> R {
        let id = takeId()
        try connection.send(message, id: id, until: requestDeadline)
        return try answer(to: M.type, id: id, part: part, body)
    }

    /// Waits for the final reply of a request that was sent.
    func answer<R>(
        to type: MessageType, id: UInt32, part: (Connection.Frame) throws(ClientError) -> Void = { _ in },
        _ body: (Connection.Frame) throws(ClientError) -> R
    ) throws(ClientError) -> R {
        while true {
            guard let frame = try receive(until: requestDeadline, { $0 == id }) else {
                abandon(id)
                throw .timedOut(operation: type.name)
            }
            guard let found = frame.header.messageType, found.role != .part else {
                try part(frame)
                continue
            }
            release(id)
            if found == .error { throw try failure(frame) }
            guard found == type.finalReply else { throw connection.violation("\(found.name) answers \(type.name)") }
            return try body(frame)
        }
    }

    /// The error that an ERROR frame stands for.
    func failure(_ frame: Connection.Frame) throws(ClientError) -> ClientError {
        let reply = try LarderClient.decode(ErrorReply.self, frame, connection)
        if reply.isFatal { connection.close() }
        return .larder(reply)
    }

    /// Sends a request whose reply is one message.
    func ask<M: WireMessage, R: WireMessage>(_ message: M, _: R.Type) throws(ClientError) -> R {
        try request(message) { (frame) throws(ClientError) in
            try LarderClient.decode(R.self, frame, self.connection)
        }
    }
}

// From the first byte to WELCOME, however long the host takes to open its library.

import LarderFormat
import LarderWire

/// Says HELLO and waits for WELCOME. Where that is late it asks for the status: for as long as a host says that it is
/// `recovering` it is waited for, and one that says nothing is given up at the deadline.
struct Greeting {
    private static let helloId: UInt32 = 1

    let connection: Connection
    let timeouts: LarderClient.Timeouts

    struct Outcome {
        let welcome: Welcome
        /// The last id that was used.
        let lastId: UInt32
        /// A STATUS whose answer is still to come.
        let openStatus: UInt32?
    }

    /// - Throws: `recovering` where `whileRecovering` would not wait. The connection is closed if this throws.
    func run(_ hello: Hello, _ whileRecovering: (StatusIs) -> Bool) throws(ClientError) -> Outcome {
        do throws(ClientError) { return try greet(hello, whileRecovering) } catch {
            connection.close()
            throw error
        }
    }

    private func greet(_ hello: Hello, _ whileRecovering: (StatusIs) -> Bool) throws(ClientError) -> Outcome {
        var deadline = Deadline(milliseconds: timeouts.connectMilliseconds)
        try connection.send(Preface.bytes + hello.framed(id: Greeting.helloId), until: deadline)
        var lastId = Greeting.helloId
        var openStatus: UInt32?
        var askAt = nextAsk
        while true {
            switch try connection.receive(until: openStatus == nil ? askAt : deadline) {
            case .timedOut:
                guard openStatus == nil, !deadline.isOver else { throw .timedOut(operation: "HELLO") }
                lastId = lastId == .max ? Greeting.helloId + 1 : lastId + 1
                try connection.send(Status(), id: lastId, until: deadline)
                openStatus = lastId
            case .ended: throw .connectionLost
            case .frame(let frame):
                switch (frame.header.messageType, frame.header.id) {
                case (.welcome, Greeting.helloId):
                    let welcome = try LarderClient.decode(Welcome.self, frame, connection)
                    return Outcome(welcome: welcome, lastId: lastId, openStatus: openStatus)
                case (.error, _): throw .larder(try LarderClient.decode(ErrorReply.self, frame, connection))
                case (.statusIs, openStatus):
                    let status = try LarderClient.decode(StatusIs.self, frame, connection)
                    openStatus = nil
                    askAt = nextAsk
                    guard status.state == "recovering" else { continue }
                    guard whileRecovering(status) else { throw .recovering(reason: status.reason) }
                    deadline = Deadline(milliseconds: timeouts.connectMilliseconds)
                default: throw connection.violation("type \(frame.header.type) before WELCOME")
                }
            }
        }
    }

    /// Early enough for an answer to come before the deadline.
    private var nextAsk: Deadline {
        Deadline(milliseconds: min(timeouts.statusMilliseconds, timeouts.connectMilliseconds / 2))
    }
}

// What can go wrong for a client.

import Glibc
import LarderFormat
import LarderWire

public enum ClientError: Error, Equatable, Sendable {
    /// A call of the system failed; `operation` names it and what it was about.
    case system(errno: Int32, operation: String)
    /// The host answered ERROR.
    case larder(ErrorReply)
    /// The host said something that the protocol does not allow. The connection was closed.
    case protocolViolation(String)
    /// The connection ended without a word.
    case connectionLost
    /// No answer in time. Its work may still be done.
    case timedOut(operation: String)
    /// The host opens its library, and was not to be waited for; its reason says how far it is.
    case recovering(reason: String)
    /// One operation is larger than what a WRITE can hold.
    case recordTooLarge(byteCount: Int)
}

extension ClientError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .system(let number, let operation):
            "\(operation): \(strerror(number).map { String(cString: $0) } ?? "error") (errno \(number))"
        case .larder(let reply): "the host answered \(reply)"
        case .protocolViolation(let what): "the host broke the protocol: \(what)"
        case .connectionLost: "the connection to the host was lost"
        case .timedOut(let operation): "no answer to \(operation) in time"
        case .recovering(let reason): "the host opens its library (\(reason))"
        case .recordTooLarge(let byteCount): "a record of \(byteCount) bytes fits into no WRITE"
        }
    }

    /// The host's error number, where it answered ERROR with one that is known.
    public var number: ErrorNumber? {
        if case .larder(let reply) = self { reply.number } else { nil }
    }

    static func body(_ error: FormatError, of type: MessageType) -> ClientError {
        .protocolViolation("\(type.name): \(error)")
    }
}

// What a session says when it refuses a frame.

extension Session {
    /// The ERROR for a frame that was refused.
    public func reply(_ number: ErrorNumber, to header: FrameHeader) -> ErrorReply {
        let name = header.messageType?.name ?? "type \(header.type)"
        let message =
            switch number {
            case .unknownMessage: "\(name) is no message that a client sends in version \(ProtocolVersion.current)"
            case .badFrame: "\(name) needs a request id, 1 to 4294967295"
            case .badMessage: "\(name) gets no reply, its request id must be 0"
            case .requestInUse: "id \(header.id) belongs to an open request or subscription"
            case .tooManyRequests: "\(limits.openRequestCountMax) requests are open, the limit of WELCOME"
            case .shuttingDown: "the host is stopping"
            default: reasonOfWrongState(header.messageType)
            }
        var reply = ErrorReply(number, message: message)
        if state == .closed { reply.flags.insert(.fatal) }
        return reply
    }

    private func reasonOfWrongState(_ type: MessageType?) -> String {
        let name = type?.name ?? "it"
        switch type {
        case .register where isRegistered: return "REGISTER comes at most once"
        case .hello: return "HELLO comes first and once"
        case .ready where state == .open: return "READY needs REGISTER before it"
        default:
            return state == .draining ? "\(name) after GOODBYE" : "\(name) before HELLO"
        }
    }
}

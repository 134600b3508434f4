// What a command says when it could not do what was asked.

import Glibc
import LarderClient
import LarderWire

/// An error for people: what was attempted, why it failed, what to do about it.
struct Failure: Error, Equatable {
    /// What was attempted, or what is wrong.
    var what: String
    var why: String
    /// Words of advice, or "".
    var advice: String
    var exitCode: Int32

    init(_ what: String, _ why: String, _ advice: String = "", exitCode: Int32 = 1) {
        self.what = what
        self.why = why
        self.advice = advice
        self.exitCode = exitCode
    }

    /// The command line itself is wrong.
    static func usage(_ what: String, _ why: String, _ advice: String = "") -> Failure {
        Failure(what, why, advice, exitCode: 2)
    }

    /// Ends the command quietly with this code; everything was said before.
    static func silent(_ exitCode: Int32) -> Failure { Failure("", "", exitCode: exitCode) }

    /// Without the program's name and a line's end; "" for a silent one.
    var text: String {
        var text = what
        if !why.isEmpty { text += (text.isEmpty ? "" : ": ") + why }
        if !advice.isEmpty { text += "; " + advice }
        return text
    }
}

extension Failure {
    /// Says what a client's error means for somebody at a terminal.
    init(_ what: String, _ error: ClientError) {
        switch error {
        case .connectionLost:
            self.init(
                what, "the connection to the host was lost", "run the command again; nothing that was answered is lost")
        case .timedOut(let operation):
            self.init(what, "no answer to \(operation) in time", "see whether the host is at work: larder status")
        case .system(let number, let operation):
            self.init(what, "\(operation): \(errorText(number))")
        case .protocolViolation(let fault):
            self.init(
                what, "the host and this program do not understand each other (\(fault))",
                "use the same version for both")
        case .recovering(let reason):
            self.init(what, "the host opens its library (\(reason))", "run the command again when that is done")
        case .recordTooLarge(let byteCount):
            self.init(what, "a record of \(byteCount) bytes is too large")
        case .larder(let reply):
            self.init(what, reply.message.isEmpty ? reply.number?.name ?? "error \(reply.rawNumber)" : reply.message)
            advice = Failure.advice(for: reply)
        }
    }

    private static func advice(for reply: ErrorReply) -> String {
        switch reply.number {
        case .unknownKind: "larder kinds lists the kinds"
        case .storeFull: "make room on the disk and try again"
        case .failedToSave, .failedToDelete: "start the host again, and see what is there before you repeat it"
        case .busy: "try again when it has ended"
        case .shuttingDown: "the host is stopping; run the command again"
        case .cursorExpired: "start over with --snapshot, or with --from start"
        case .unknownPlugin: "larder plugin list shows the plugins"
        case .corrupt: "the library is damaged there; everything else can still be read"
        case .internal: "this is a defect of the host; please report it"
        default: ""
        }
    }
}

/// The system's words for an errno.
func errorText(_ number: Int32) -> String { strerror(number).map { String(cString: $0) } ?? "error \(number)" }

/// Runs calls of a client; what they throw becomes a failure of `what`.
func attempt<Result>(_ what: String, _ body: () throws -> Result) throws -> Result {
    do { return try body() } catch let error as ClientError { throw Failure(what, error) }
}

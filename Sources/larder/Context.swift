// What a command works with.

import Glibc
import LarderClient
import LarderFormat
import LarderWire

/// Options, outputs and, once asked for, the connection. One thread.
final class Context {
    let options: Options
    let output: Output
    let errors: Output
    /// One JSON object a line on standard output.
    let isJSON: Bool
    private var opened: Session?

    init(_ options: Options) {
        self.options = options
        isJSON = options.has("json")
        output = Output(descriptor: STDOUT_FILENO, mayColour: !options.has("no-color"))
        errors = Output(descriptor: STDERR_FILENO, mayColour: !options.has("no-color"))
    }

    /// Where the library and the socket are, whether or not a host is there.
    func place() throws(Failure) -> Place { try Place(options) }

    /// The connection, made at the first call. Starts a host where there is none.
    ///
    /// - Parameter whileRecovering: told how a host is that opens its library; whether to wait for it.
    func session(whileRecovering: (StatusIs) -> Bool = { _ in true }) throws -> Session {
        if let opened { return opened }
        let session = try Session(
            place: try place(), note: { [self] in note($0) }, whileRecovering: whileRecovering)
        opened = session
        return session
    }

    func client() throws -> LarderClient { try session().client }

    /// A line for people beside the result.
    func note(_ text: String) {
        errors.line(errors.styled(DisplayText.visibleLines(text), .dim))
        errors.flush()
    }

    func warn(_ text: String) {
        errors.line("larder: " + DisplayText.visibleLines(text))
        errors.flush()
    }

    /// Says goodbye; what it brings no longer matters.
    func close() { opened?.client.close() }
}

// Standard output and standard error: bytes out, colours, and what kind of reader there is.

import CLarder
import Glibc
import LarderFormat

/// Collects output and writes it in large pieces. One thread.
final class Output {
    private static let flushByteCount = 65_536

    let descriptor: Int32
    let isTerminal: Bool
    /// Colours are wanted and shown.
    let hasColours: Bool
    /// Called with the errno where bytes can't be written; nil: as `flush` says.
    var onFault: ((Int32) -> Void)?
    private var writer = ByteWriter(reserving: flushByteCount + 4_096)

    init(descriptor: Int32, mayColour: Bool) {
        self.descriptor = descriptor
        isTerminal = isatty(descriptor) == 1
        let isDumb = getenv("TERM").map { strcmp($0, "dumb") == 0 } ?? false
        let isForbidden = getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
        hasColours = isTerminal && mayColour && !isDumb && !isForbidden
    }

    /// Columns of the terminal, or nil where there is none and nothing should be cut.
    var width: Int? {
        guard isTerminal else { return nil }
        if let columns = getenv("COLUMNS").flatMap({ Int(String(cString: $0)) }), columns > 0 { return columns }
        let columns = Int(larder_terminal_width(descriptor))
        return columns > 0 ? columns : 80
    }

    func line(_ text: String) {
        writer.raw(Array(text.utf8))
        writer.u8(0x0A)
        flushIfFull()
    }

    func raw(_ text: String) {
        writer.raw(Array(text.utf8))
        flushIfFull()
    }

    /// One JSON object on a line of its own.
    func json(_ body: (inout JSONWriter) -> Void) {
        var json = JSONWriter(into: writer)
        // The writer's bytes are lent to the JSON writer and taken back, so that nothing is copied.
        writer = ByteWriter()
        json.beginObject()
        body(&json)
        json.endObject()
        json.newline()
        writer = json.out
        flushIfFull()
    }

    private func flushIfFull() {
        if writer.count >= Output.flushByteCount { flush() }
    }

    /// Writes what was collected. Where nobody reads any more the process ends by SIGPIPE; any other failure of standard
    /// output ends it with 1, for a command whose result is lost has failed.
    func flush() {
        var done = 0
        while done < writer.count {
            let count = writer.bytes.withUnsafeBytes { write(descriptor, $0.baseAddress! + done, $0.count - done) }
            if count > 0 {
                done += count
            } else if errno == EAGAIN {
                var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&ready, 1, -1)
            } else if errno != EINTR {
                let number = errno
                if let onFault {
                    onFault(number)
                    break
                }
                if descriptor == STDOUT_FILENO && number != EPIPE {
                    _ = "larder: writing the output: \(errorText(number))\n".withCString {
                        write(STDERR_FILENO, $0, strlen($0))
                    }
                }
                if descriptor == STDOUT_FILENO { exit(1) }
                break
            }
        }
        writer.bytes.removeAll(keepingCapacity: true)
    }

    // MARK: Colours

    enum Style: String {
        case bold = "1"
        case dim = "2"
        case red = "31"
        case green = "32"
        case yellow = "33"
    }

    func styled(_ text: String, _ style: Style) -> String {
        hasColours && !text.isEmpty ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }
}

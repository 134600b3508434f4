// What a client has sent before there is a library to answer it.

import LarderFormat
import LarderWire

/// The bytes of a connection from its beginning, and the STATUS in them that can be answered at once: SPEC.md section 7.
///
/// A STATUS is taken out of the bytes when it is found, so that the host finds HELLO and what else was said. Nothing is
/// refused here: bytes that are wrong are left as they are, for the host to say so.
struct WaitingBytes: Sendable {
    enum Step: Equatable, Sendable {
        /// More must come.
        case needMore
        /// STATUS with this id is to be answered.
        case status(id: UInt32)
        /// What is next is for the host.
        case waits
    }

    /// The preface, the longest HELLO, and a STATUS.
    static let byteCountMax =
        Preface.byteCount + 2 * FrameHeader.byteCount + FrameHeader.bodyByteCountMaxBeforeWelcome

    private(set) var bytes: [UInt8] = []
    /// Its id, and where the frame behind it begins; nil: it is not there yet.
    private var hello: (id: UInt32, end: Int)?

    /// How many more bytes are taken.
    var room: Int { max(WaitingBytes.byteCountMax - bytes.count, 0) }

    mutating func append(_ more: [UInt8]) { bytes += more }

    /// What is to be done with what is there.
    mutating func next() -> Step {
        let hello: (id: UInt32, end: Int)
        if let known = self.hello {
            hello = known
        } else {
            switch findHello() {
            case .needMore: return .needMore
            case .waits: return .waits
            case .found(let id, let end): hello = (id, end)
            }
            self.hello = hello
        }
        let step = bytes.withUnsafeBytes {
            try? FrameDecoder.next(
                UnsafeRawBufferPointer(rebasing: $0[hello.end...]), limit: FrameHeader.bodyByteCountMaxBeforeWelcome)
        }
        switch step {
        case .needMore(FrameHeader.byteCount): return .needMore
        case .frame(let header, let body)
        where header.messageType == .status && body.isEmpty && header.id != 0 && header.id != hello.id:
            bytes.removeSubrange(hello.end..<hello.end + header.frameByteCount)
            return .status(id: header.id)
        default: return .waits
        }
    }

    private enum Search {
        case needMore
        case found(id: UInt32, end: Int)
        case waits
    }

    private func findHello() -> Search {
        bytes.withUnsafeBytes { bytes in
            switch Preface.check(bytes) {
            case .needMore: return .needMore
            case .wrong: return .waits
            case .isPreface: break
            }
            let rest = UnsafeRawBufferPointer(rebasing: bytes[Preface.byteCount...])
            switch try? FrameDecoder.next(rest, limit: FrameHeader.bodyByteCountMaxBeforeWelcome) {
            case .needMore: return .needMore
            case .frame(let header, let body):
                guard header.messageType == .hello, header.id != 0,
                    (try? Hello(body: UnsafeRawBufferPointer(rebasing: rest[body]))) != nil
                else { return .waits }
                return .found(id: header.id, end: Preface.byteCount + header.frameByteCount)
            case nil: return .waits
            }
        }
    }
}

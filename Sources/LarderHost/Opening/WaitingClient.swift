// A connection that came while the library is opened.

import LarderLoop
import LarderWire

/// A client that waits for WELCOME: its socket, what it said, and what it was not told yet. Of the waiting room's thread,
/// then of the host.
struct WaitingClient: Sendable {
    let descriptor: Int32
    let processID: Int32
    private var said = WaitingBytes()
    /// The rest of an answer that the socket did not take: it goes before anything else.
    private(set) var unsent: [UInt8] = []
    /// Whether more is read. What is not read waits in the socket, and its sender with it.
    private(set) var isHeard = true
    private(set) var isGone = false

    init(descriptor: Int32, processID: Int32) {
        self.descriptor = descriptor
        self.processID = processID
    }

    /// What the host has to read before it reads the socket.
    var kept: [UInt8] { said.bytes }

    /// Something happened to the socket: takes what is there, and answers with `status` what can be answered.
    mutating func turn(status: () -> StatusIs) {
        guard isHeard else {
            // It is watched for its end alone.
            isGone = true
            return
        }
        switch receiveNow(descriptor, atMost: said.room) {
        case .nothing: return
        case .end:
            isGone = true
            return
        case .bytes(let bytes): said.append(bytes)
        }
        while true {
            switch said.next() {
            case .needMore:
                isHeard = said.room > 0
                return
            case .waits:
                isHeard = false
                return
            case .status(let id):
                answer(status().framed(id: id))
                if isGone || !isHeard { return }
            }
        }
    }

    private mutating func answer(_ frame: [UInt8]) {
        guard let sent = sendNow(descriptor, frame) else {
            isGone = true
            return
        }
        guard sent < frame.count else { return }
        // It does not read what it asks for: it is told the rest when it is the host's.
        unsent = Array(frame[sent...])
        isHeard = false
    }
}

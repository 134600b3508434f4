// Where clients wait while the library is opened: a thread that takes their connections and says how far it is.

import CLarder
import Glibc
import LarderLoop
import LarderWire
import Synchronization

/// Accepts connections, keeps what they send, and answers STATUS behind HELLO, until the host takes them over.
///
/// The opening blocks the loop's thread, and WELCOME needs what is known behind it. So this is a thread of its own that
/// has nothing of the library. It begins when the opening has taken a while: those who came until then wait in the
/// socket's backlog, and a short opening does not wait for a thread to end. SIGTERM and SIGINT are blocked in the thread
/// that makes it, and are heard here: they end the process at once, as they would by default, but the socket does not
/// stay. Whoever has made it unblocks them.
final class WaitingRoom {
    /// What it had when it ended; all of it is the caller's.
    struct Left: Sendable {
        let listening: Int32
        var clients: [WaitingClient] = []
        /// Connections of other users.
        var refusedCount = 0

        /// Closes everything. The node of the socket is the caller's to remove before.
        func close() {
            for client in clients { closeDescriptor(client.descriptor) }
            closeDescriptor(listening)
        }
    }

    private let thread: SideThread<Left>
    private let listening: Int32
    private let wakeEnd: Int32
    private let shared: WaitingRoomState

    /// - Parameters:
    ///   - listening: its own until `end`; if this throws it is still the caller's.
    ///   - path: where that listens.
    ///   - status: what is known of the host; state and reason are filled in.
    init(listening: Int32, path: String, status: StatusIs) throws(LoopError) {
        let (readEnd, wakeEnd) = try makePipe()
        // Without one the signals do what they do by default.
        let signals = larder_signal_descriptor([SIGTERM, SIGINT], 2)
        if signals < 0 { Host.unblockSignals() }
        let shared = WaitingRoomState()
        let work = WaitingRoomWork(
            listening: listening, path: path, wake: readEnd, signals: signals, status: status, shared: shared)
        do throws(LoopError) { thread = try SideThread(name: "larder-opening") { work.run() } } catch {
            for descriptor in [readEnd, wakeEnd, signals] where descriptor >= 0 { closeDescriptor(descriptor) }
            Host.unblockSignals()
            throw error
        }
        self.shared = shared
        self.listening = listening
        self.wakeEnd = wakeEnd
    }

    /// So many percent of what is to be read of the log were. From any thread.
    var reading: @Sendable (Int) -> Void { { [shared] in shared.percent.store($0, ordering: .relaxed) } }

    /// Ends the thread, and waits for it if it has begun. Once.
    func end() -> Left {
        let isUnused = shared.claim()
        closeDescriptor(wakeEnd)
        guard isUnused else { return thread.join() }
        thread.letGo()
        return Left(listening: listening)
    }
}

private final class WaitingRoomState: Sendable {
    let percent = Atomic<Int>(0)
    private let isClaimed = Atomic<Bool>(false)

    /// The first to call it has the socket.
    func claim() -> Bool {
        isClaimed.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
    }
}

/// What the thread does.
private struct WaitingRoomWork: Sendable {
    /// Whoever is one more waits in the socket's backlog.
    private static let clientCountMax = 256
    /// Before that nobody asks.
    private static let patienceMilliseconds: Int32 = 200
    private static let pauseMilliseconds: Int32 = 100

    let listening: Int32
    let path: String
    /// At its end when the work is to end.
    let wake: Int32
    let signals: Int32
    let status: StatusIs
    let shared: WaitingRoomState

    func run() -> WaitingRoom.Left {
        defer {
            closeDescriptor(wake)
            if signals >= 0 { closeDescriptor(signals) }
        }
        return isLong() && shared.claim() ? receive() : WaitingRoom.Left(listening: listening)
    }

    /// Whether the opening takes a while.
    private func isLong() -> Bool {
        var polled = [wake, signals].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        let count = poll(&polled, nfds_t(polled.count), WaitingRoomWork.patienceMilliseconds)
        if count == 0 { return true }
        // Behind the end of the opening a signal is the host's.
        if polled[0].revents == 0, polled[1].revents != 0 { endProcess() }
        return false
    }

    private func receive() -> WaitingRoom.Left {
        var left = WaitingRoom.Left(listening: listening)
        var canAccept = true
        while true {
            let accepts = canAccept && left.clients.count < WaitingRoomWork.clientCountMax
            var polled = [wake, signals, accepts ? listening : -1].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            let own = polled.count
            polled += left.clients.map { pollfd(fd: $0.descriptor, events: $0.isHeard ? Int16(POLLIN) : 0, revents: 0) }
            let count = poll(&polled, nfds_t(polled.count), canAccept ? -1 : WaitingRoomWork.pauseMilliseconds)
            // Short of memory or descriptors; the opening goes on, and what comes waits.
            if count < 0 && errno != EINTR { usleep(UInt32(WaitingRoomWork.pauseMilliseconds) * 1_000) }
            canAccept = true
            guard count > 0 else { continue }
            if polled[0].revents != 0 { return left }
            if polled[1].revents != 0 { endProcess() }
            for (at, found) in polled[own...].enumerated() where found.revents != 0 {
                left.clients[at].turn { statusNow }
            }
            for client in left.clients where client.isGone { closeDescriptor(client.descriptor) }
            left.clients.removeAll { $0.isGone }
            if polled[2].revents != 0 { canAccept = accept(into: &left) }
        }
    }

    private var statusNow: StatusIs {
        var status = status
        status.state = "recovering"
        status.reason = "recovering \(shared.percent.load(ordering: .relaxed)) %"
        return status
    }

    /// Takes what connections there is room for. False: that cannot be done for now.
    private func accept(into left: inout WaitingRoom.Left) -> Bool {
        do throws(LoopError) {
            while left.clients.count < WaitingRoomWork.clientCountMax, let descriptor = try acceptNow(listening) {
                if let peer = try? peerCredentials(of: descriptor), HostSocket.admits(peer) {
                    left.clients.append(WaitingClient(descriptor: descriptor, processID: peer.processID))
                } else {
                    closeDescriptor(descriptor)
                    left.refusedCount += 1
                }
            }
            return true
        } catch { return false }
    }

    /// Does what a signal that is pending does to a process by default.
    private func endProcess() {
        let number = larder_signal_next(signals)
        guard number != 0 else { return }
        unlink(path)
        signal(number, SIG_DFL)
        Host.unblockSignals()
        kill(getpid(), number)
        _exit(128 + number)
    }
}

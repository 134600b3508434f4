// What can happen in a step, and how often.

import LarderLoop

@testable import LarderHost
@testable import LarderHost
@testable import LarderStore

enum StepKind {
    case connect, write, read, `import`, clear, follow, tendFollower, compact
    /// The connection is lost at any byte; an orderly end.
    case lose, goodbye
    /// The power goes at one of the next changes of the disk; at once; the process dies; it is started anew.
    case powerFails, powerCut, kill, restart
    /// A call to the disk fails; the disk is full, and has room again.
    case fault, fillDisk, freeDisk
    case wait
    /// All that is known so far is compared.
    case audit

    static let weights: [(StepKind, Int)] = [
        (.connect, 16), (.write, 60), (.read, 24), (.import, 14), (.clear, 1), (.compact, 2), (.follow, 10),
        (.tendFollower, 12),
        (.lose, 3), (.goodbye, 1), (.powerFails, 2), (.powerCut, 1), (.kill, 1), (.restart, 1), (.fault, 1),
        (.fillDisk, 1), (.freeDisk, 2), (.wait, 4), (.audit, 1),
    ]
}

extension Simulation {
    func take(_ kind: StepKind) throws {
        let peer = dice.pick(peers)
        // Nobody leaves a host alone for long that can write no more.
        if host?.store.failure != nil, dice.chance(15) { return dice.chance(50) ? try kill() : try restart() }
        switch kind {
        case .connect: for peer in peers where !peer.isConnected && dice.chance(70) { connect(peer) }
        case .powerFails:
            trace.note("the power will fail")
            files.cutPower(afterMutations: dice.below(8))
        case .powerCut: try crash(nil)
        case .kill: try kill()
        case .restart: try restart()
        case .fault: fault()
        case .fillDisk:
            trace.note("the disk is full")
            files.setRoom(byteCountMax: files.usedByteCount + dice.pick([0, 4_096, 20_000, 100_000]))
        case .freeDisk: files.setRoom(byteCountMax: nil)
        case .wait: loop.advance(nanoseconds: UInt64(dice.pick([1, 200, 1_500, 12_000])) * 1_000_000)
        case .audit: try auditBetween()
        case .compact: try compact()
        case .lose: peer.disconnect()
        case .goodbye: peer.goodbye()
        default:
            if !peer.isConnected { connect(peer) }
            guard peer.isOpen, !peer.isLeaving, peer.pending.count < 40 else { return }
            ask(kind, peer)
        }
    }

    private func connect(_ peer: Peer) { peer.connect(loop, path: Simulation.socket) }

    private func ask(_ kind: StepKind, _ peer: Peer) {
        switch kind {
        case .write: for _ in 0...dice.below(3) { peer.write() }
        case .read: for _ in 0...dice.below(3) { peer.read() }
        case .import: for _ in 0...dice.below(3) { peer.import() }
        case .clear: for _ in 0...dice.below(2) { peer.clear() }
        case .follow: peer.follow()
        case .tendFollower: peer.tendFollower()
        default: break
        }
    }

    /// After it the host may only read, until it is started again.
    func fault() {
        let call = dice.pick([nil, "pwrite", "fdatasync", "fsync", "ftruncate", "fallocate", "open"])
        let code: Int32 = dice.pick([5, 28])
        truth.tally.count(.faultInLife)
        trace.note("\(call ?? "a call") will fail with \(code)")
        files.inject(
            SimulatedFault(
                call: call, callsBefore: dice.below(6), code: code, isSticky: dice.chance(20), isShort: dice.chance(30))
        )
    }
}

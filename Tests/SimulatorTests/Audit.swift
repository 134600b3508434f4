// The reckoning: somebody reads the whole library, and it must be what everybody was told.

import LarderFormat
import LarderWire

@testable import LarderHost
@testable import LarderLoop

extension Simulation {
    private static let everything = SpanFilter(
        types: [.downloaded, .deleted, .kind, .origin, .imports, .recovered], kinds: [], exceptOrigin: 0)

    /// The same in the midst of a life, where the host comes to rest by itself.
    func auditBetween() throws {
        guard isAtRest(turns: 200) else { return }
        trace.note("an audit")
        _ = try audit()
    }

    /// Asks for a compaction, which goes on beside whatever comes next. What it may drop was told before: an audit comes
    /// first, and from where that ended a subscription that takes nothing holds the floor.
    func compact() throws {
        guard isAtRest(turns: 200), try audit() else { return }
        let seq = truth.knownSeq
        let anchor = Peer(name: "anchor", truth: truth, dice: dice, trace: trace)
        anchor.connect(loop, path: Simulation.socket, mayHurry: false)
        try finish(anchor)
        let follower = Follower(
            filter: Simulation.everything, isMirror: false, isStingy: true,
            cursor: Cursor(epoch: anchor.epoch, seq: seq))
        anchor.followers = [follower]
        follower.id = anchor.request(follower.subscribe(credit: 0), .subscribe(follower, knownSeq: seq))
        try finish(anchor)
        guard follower.isActive else { throw Difference("the anchor may not subscribe after \(seq)") }
        truth.floorMax = max(truth.floorMax, seq + 1)
        let since = dice.chance(60) ? Int64.max : (host?.wallClock() ?? 0) - Int64(dice.below(100_000))
        let form = dice.pick([Compact.Compression.kept, .kept, .zstd, .zstd, .none])
        trace.note("a compaction, the floor at most \(seq + 1)")
        anchor.request(
            Compact(
                historySince: since, deadPercent: dice.pick([0, 0, 20, 50]), includesLast: dice.chance(60),
                compression: Zstandard.isInstalled ? form : .kept, bytesPerSecond: .max), .compact)
        self.anchor?.disconnect()
        self.anchor = anchor
    }

    /// Whether the host has nothing to do; takes so many turns for it.
    func isAtRest(turns: Int) -> Bool {
        files.cutPower(afterMutations: Int.max)
        guard let host else { return false }
        for _ in 0..<turns {
            host.loop.run(.noWait)
            if !host.store.hasStaged, !host.store.isCommitting, host.clearTask == nil, host.compactionTask == nil,
                host.coldReadCount == 0,
                host.roomWaiters.isEmpty
            {
                return true
            }
        }
        return false
    }

    /// Reads the whole log, every record and the counts, and compares them with all that is known.
    /// - Returns: false if the library or its floor changed meanwhile, so that nothing was compared.
    func audit() throws -> Bool {
        let lastSeq = host?.store.lastSeq
        let auditor = Peer(name: "auditor", truth: truth, dice: dice, trace: trace)
        auditor.connect(loop, path: Simulation.socket, mayHurry: false)
        try finish(auditor)
        let filter = Simulation.everything
        let epoch = auditor.epoch
        // No cursor lies in what a recovery has jumped over; then the floor's own entry was told before, too.
        let start = truth.isJumpedOver(auditor.floor - 1) ? auditor.floor : auditor.floor - 1
        let follower = Follower(
            filter: filter, isMirror: false, isStingy: false, cursor: Cursor(epoch: epoch, seq: start))
        let mirror = Follower(
            filter: SpanFilter(types: [.downloaded, .deleted], kinds: [], exceptOrigin: 0), isMirror: true,
            isStingy: false, cursor: nil)
        auditor.followers = [follower, mirror]
        for follower in auditor.followers {
            follower.id = auditor.request(
                follower.subscribe(credit: 1_000_000), .subscribe(follower, knownSeq: truth.knownSeq))
        }
        try finish(auditor)
        // A compaction that began between WELCOME and SUBSCRIBE has raised the floor: that this may be was judged.
        guard auditor.followers.contains(where: { $0 === follower }) else {
            auditor.disconnect()
            return false
        }
        for follower in auditor.followers {
            guard let id = follower.id else { throw Difference("the auditor may not subscribe") }
            auditor.request(Sync(subscription: id), .sync(follower, knownSeq: truth.knownSeq))
        }
        auditor.request(Count(kind: 0), .count(kind: 0, knownSeq: truth.knownSeq))
        for isReverse in [false, true] {
            auditor.list(Paging(kind: 0, isReverse: isReverse, knownSeq: truth.knownSeq), token: [])
        }
        try finish(auditor)
        mirror.keepCopy(truth)
        guard lastSeq == host?.store.lastSeq else {
            auditor.disconnect()
            return false
        }
        guard mirror.isExact else { throw Difference("the auditor's snapshot does not end") }
        guard let span = follower.span, span.through == host?.store.lastSeq else {
            throw Difference("the auditor was told through \(follower.span?.through ?? 0)")
        }
        // What lay below the floor was told before.
        let old = truth.entries.values.filter { $0.seq <= start }.sorted { $0.seq < $1.seq }
        let log = old + span.received.compactMap { truth.entries[$0] }
        var verifier = Verifier(truth, log: log)
        try verifier.verify()
        let list = verifier.state.list(kind: 0).map(\.stored.firstSeq)
        guard truth.listings.suffix(2).allSatisfy({ $0.firstSeqs == Set(list) }) else {
            throw Difference("the auditor's list is not what the log comes to")
        }
        auditor.disconnect()
        return true
    }

    /// Takes turns until a peer has all its answers.
    private func finish(_ peer: Peer) throws {
        for _ in 0..<100_000 {
            peer.send(Int.max)
            host?.loop.run(.noWait)
            try peer.receive(Int.max)
            if peer.pending.isEmpty && peer.followUps.isEmpty && !peer.hasOutgoing { return }
        }
        throw Difference("\(peer.name) gets no answer to \(peer.pending)")
    }
}

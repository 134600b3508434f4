// Any file call can fail, in any way: nothing answered is lost, nothing is half, and the store says where it stands.

import Glibc
import Testing

@testable import LarderStore

@Suite struct FaultTests {
    static let mutationCount = 2_200

    /// Each way in which a call fails, once and for good.
    static let faults: [SimulatedFault] = [false, true].flatMap { isSticky in
        [
            SimulatedFault(call: nil, code: EIO, isSticky: isSticky),
            SimulatedFault(call: nil, code: ENOSPC, isSticky: isSticky),
            SimulatedFault(call: nil, code: EIO, isSticky: isSticky, isShort: true),
            SimulatedFault(call: nil, code: EINTR, isSticky: isSticky),
        ]
    }

    /// Every call in turn with LARDER_FAULTS=1, each in every way; else every 101st in one of them. LARDER_CALL and
    /// LARDER_SEED repeat what one call came to.
    @Test("whichever file call fails, nothing answered is lost and nothing is half")
    func everyCall() throws {
        let totals = live(Self.faults, callCount: Self.mutationCount, step: 101)
        // Otherwise the faults fall where nothing is at stake.
        #expect(totals.ended + totals.openings > totals.lives / 3, "\(totals)")
        #expect(totals.compactions > totals.lives / 4, "\(totals)")
    }

    @Test("whichever write, sync, rename or removal of a compaction fails, it ends and the library goes on")
    func everyCallOfACompaction() throws {
        let totals = live(Self.faults, callCount: 160, step: 13, isOfJobs: true)
        // A sidecar that cannot be written is no failure.
        #expect(totals.compactionFailures > totals.lives / 6, "\(totals)")
        #expect(totals.ended == 0, "\(totals)")
    }

    /// Reading, looking and waiting for others, in the jobs of compactions and at opening.
    @Test("whichever call that only reads fails, a compaction or an opening ends and nothing else does")
    func everyRead() throws {
        let faults = [false, true].flatMap { isSticky in
            [EIO, EINTR].map { SimulatedFault(call: nil, code: $0, isSticky: isSticky, isOfReads: true) }
        }
        let totals = live(faults, callCount: 1_500, step: 151, isOfJobs: true)
        #expect(totals.compactionFailures + totals.openings > totals.lives / 3, "\(totals)")
        #expect(totals.ended == 0, "\(totals)")
    }

    private struct Totals {
        var lives = 0
        var refused = 0
        var ended = 0
        var openings = 0
        var compactions = 0
        var compactionFailures = 0
    }

    private func live(
        _ faults: [SimulatedFault], callCount: Int, step usualStep: Int, isOfJobs: Bool = false
    ) -> Totals {
        let only = Setting.number("LARDER_CALL").map { Int($0) }
        let isLong = getenv("LARDER_FAULTS") != nil || only != nil
        let seed = Setting.seed
        var totals = Totals()
        let step = isLong ? 1 : usualStep
        let calls = Array(stride(from: Int(seed % UInt64(step)), to: callCount, by: step))
        for call in only.map({ [$0] }) ?? calls {
            for (at, fault) in faults.enumerated() where isLong || at == call / step % faults.count {
                var fault = fault
                fault.callsBefore = call
                var life = FaultLife(seed: seed, fault: fault, isOfJobs: isOfJobs)
                do { try life.live(mutationCount: Self.mutationCount) } catch {
                    Issue.record("call \(call), \(fault): \(error) (LARDER_CALL=\(call) LARDER_SEED=\(seed))")
                }
                totals.lives += 1
                totals.refused += life.refusalCount
                totals.ended += life.endCount
                totals.openings += life.openingCount
                totals.compactions += life.compactionCount
                totals.compactionFailures += life.compactionFailureCount
            }
        }
        print("faults: \(totals)")
        return totals
    }
}

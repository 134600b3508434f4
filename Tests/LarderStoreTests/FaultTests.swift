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

    /// Every call in turn with LARDER_FAULTS=1, each in every way; else every 101st in one of them.
    @Test("whichever file call fails, nothing answered is lost and nothing is half")
    func everyCall() throws {
        let isLong = getenv("LARDER_FAULTS") != nil
        let seed = Setting.seed
        var totals = (lives: 0, refused: 0, ended: 0, openings: 0)
        let step = isLong ? 1 : 101
        for call in stride(from: Int(seed % UInt64(step)), to: Self.mutationCount, by: step) {
            for (at, fault) in Self.faults.enumerated() where isLong || at == call / step % Self.faults.count {
                var fault = fault
                fault.callsBefore = call
                var life = FaultLife(seed: seed, fault: fault)
                do { try life.live(mutationCount: Self.mutationCount) } catch {
                    Issue.record("call \(call), \(fault): \(error) (LARDER_SEED=\(seed))")
                }
                totals.lives += 1
                totals.refused += life.refusalCount
                totals.ended += life.endCount
                totals.openings += life.openingCount
            }
        }
        // Otherwise the faults fall where nothing is at stake.
        #expect(totals.ended + totals.openings > totals.lives / 3, "\(totals)")
        print("faults: \(totals)")
    }
}

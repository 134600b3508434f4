// What is answered survives a power cut, what is not is whole or absent.

import Testing

@testable import LarderStore

@Suite struct PowerCutTests {
    static func options(seed: UInt64) -> StoreOptions {
        var options = StoreDriver.options(segment: [8192, 16_384, 65_536][Int(seed % 3)])
        // Small enough for clears to be runs of several blocks.
        options.commitByteCountTarget = seed % 2 == 0 ? 400 : 8192
        return options
    }

    /// Lives one after the other until so many cuts were made.
    static func run(seed: UInt64, cuts: Int, skipsSyncs: Bool = false) throws -> PowerCutLife {
        var options = options(seed: seed)
        options.skipsSyncs = skipsSyncs
        var life = PowerCutLife(seed: seed, options: options)
        life.source.largeByteCountMax = 12_000
        while life.cutCount < cuts { try life.live(steps: 60, mutationsMax: [6, 12, 40][life.cutCount % 3]) }
        return life
    }

    @Test("an answered batch survives a power cut, and no other is found in part")
    func powerCuts() {
        let first = Setting.seed
        var totals = (cuts: 0, torn: 0, kept: 0, lost: 0, failed: 0, operations: 0, compactions: 0)
        for round in 0..<UInt64(Setting.number("LARDER_SEED") == nil ? Setting.steps(40) : 1) {
            let seed = first &+ round
            do {
                let life = try Self.run(seed: seed, cuts: 15)
                totals.cuts += life.cutCount
                totals.torn += life.tornCount
                totals.kept += life.keptCount
                totals.lost += life.lostCount
                totals.failed += life.failureCount
                totals.operations += life.operationCount
                totals.compactions += life.compactionCount
            } catch { Issue.record("\(error) (LARDER_SEED=\(seed))") }
        }
        // Otherwise the cuts fall where nothing is at stake.
        if totals.cuts > 500 {
            #expect(
                totals.torn > 0 && totals.kept > totals.cuts / 100 && totals.lost > totals.cuts / 100, "\(totals)")
        }
        print("power cuts: \(totals)")
    }

    @Test("a store that does not sync is found out")
    func canary() {
        var isFoundOut = false
        for round in 0..<UInt64(40) where !isFoundOut {
            do { _ = try Self.run(seed: 1000 + round, cuts: 40, skipsSyncs: true) } catch is Mismatch {
                isFoundOut = true
            } catch { Issue.record("\(error)") }
        }
        #expect(isFoundOut)
    }
}

// The simulator's runs: some in every test run, many in .ci/long, and the bugs that it must find.

import Foundation
import LarderStore
import Testing

@testable import LarderHost

@Suite struct SimulatorTests {
    private static func number(_ name: String) -> Int? { ProcessInfo.processInfo.environment[name].flatMap { Int($0) } }

    /// Runs a seed; where it fails, once more with a trace.
    private static func run(_ scenario: Scenario) throws -> Course {
        do { return try Simulation(scenario).run() } catch let first as Difference {
            var traced = scenario
            traced.isTraced = true
            let again = Simulation(traced)
            do {
                _ = try again.run()
                throw Difference("seed \(scenario.seed): \(first); a second run of the seed does not show it")
            } catch let second as Difference {
                throw Difference(
                    "LARDER_SEED=\(scenario.seed) LARDER_STEPS=\(scenario.steps), step \(again.step): \(second)\n"
                        + again.trace.lines.suffix(Self.number("LARDER_TRACE") ?? 40).joined(separator: "\n"))
            }
        }
    }

    @Test("Store and host keep what they promise, whatever happens")
    func seeds() throws {
        let steps = Self.number("LARDER_STEPS") ?? 120
        let first = Self.number("LARDER_SEED")
        let count = first == nil ? Self.number("LARDER_SEEDS") ?? 60 : 1
        let start = ContinuousClock.now
        var total = Course(digest: 0)
        for seed in 0..<count {
            let course = try Self.run(Scenario(seed: UInt64(first ?? seed + 1), steps: steps))
            total.stepCount += course.stepCount
            total.answerCount += course.answerCount
            total.entryCount += course.entryCount
            total.cutCount += course.cutCount
            total.restartCount += course.restartCount
        }
        print(
            "simulator: \(total.stepCount) steps over \(count) seeds, \(total.answerCount) answers, \(total.entryCount) entries, "
                + "\(total.cutCount) cuts, \(total.restartCount) restarts, no difference, in \(ContinuousClock.now - start)"
        )
    }
}

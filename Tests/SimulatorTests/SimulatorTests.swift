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
        let count = Self.number("LARDER_SEEDS") ?? (first == nil ? 30 : 1)
        let start = ContinuousClock.now
        var total = Course(digest: 0)
        var tally = Tally()
        for seed in 0..<count {
            let course = try Self.run(Scenario(seed: UInt64(max(first ?? 1, 0) + seed), steps: steps))
            tally.add(course.tally)
            total.digest = total.digest &* 31 &+ course.digest
            total.stepCount += course.stepCount
            total.answerCount += course.answerCount
            total.entryCount += course.entryCount
            total.cutCount += course.cutCount
            total.restartCount += course.restartCount
        }
        let time = ContinuousClock.now - start
        print(
            "simulator: \(total.stepCount) steps over \(count) seeds, \(total.answerCount) answers, "
                + "\(total.entryCount) entries, \(total.cutCount) cuts, \(total.restartCount) restarts, no difference, in \(time)"
        )
        print("simulator: digest \(String(total.digest, radix: 16)); \(tally.description)")
        let missing = tally.missing.filter { count >= 1_000 || !Happening.rare.contains($0) }
        if count >= 30, steps >= 120 { #expect(missing.isEmpty, "these no longer come up") }
    }

    @Test("A seed always gives the same course")
    func repeats() throws {
        for seed: UInt64 in 1...10 {
            let first = try Self.run(Scenario(seed: seed))
            let second = try Self.run(Scenario(seed: seed))
            #expect(first == second, "seed \(seed)")
            #expect(first.answerCount > 0)
        }
    }

    // MARK: Bugs to be found

    enum Canary: String, CaseIterable {
        case answersEarly, publishesEarly, resumesLate, forgetsBatch, skipsSyncs, skipsDirectorySyncs, savesTwice
        case dropsDeletesEarly
    }

    @Test("A bug that is switched on is found", .timeLimit(.minutes(1)), arguments: Canary.allCases)
    func canary(_ canary: Canary) {
        let start = ContinuousClock.now
        var seed: UInt64 = 0
        while ContinuousClock.now - start < .seconds(50) {
            seed += 1
            var scenario = Scenario(seed: seed)
            switch canary {
            case .answersEarly: scenario.hostCanary = .answersEarly
            case .publishesEarly: scenario.hostCanary = .publishesEarly
            case .resumesLate: scenario.hostCanary = .resumesLate
            case .forgetsBatch: scenario.hostCanary = .forgetsBatch
            case .skipsSyncs: scenario.configureStore = { $0.skipsSyncs = true }
            case .skipsDirectorySyncs: scenario.configureStore = { $0.skipsDirectorySyncs = true }
            case .savesTwice: scenario.configureStore = { $0.savesTwice = true }
            case .dropsDeletesEarly: scenario.configureStore = { $0.dropsDeletesEarly = true }
            }
            do { _ = try Simulation(scenario).run() } catch {
                print(
                    "simulator: \(canary.rawValue) is found by seed \(seed) in \(ContinuousClock.now - start): \("\(error)".prefix(200))"
                )
                return
            }
        }
        Issue.record("\(canary.rawValue) was not found by \(seed) seeds")
    }
}

// The one source of chance of a simulation, and what it remembers of its course.

import LarderStore

/// Random choices that follow from a seed, shared by all that make some.
final class Dice {
    private var generator: SplitMix64

    init(seed: UInt64) { generator = SplitMix64(seed: seed) }

    func below(_ count: Int) -> Int { Int.random(in: 0..<max(count, 1), using: &generator) }
    func chance(_ percent: Int) -> Bool { below(100) < percent }
    func pick<T>(_ values: [T]) -> T { values[below(values.count)] }
    func next() -> UInt64 { generator.next() }

    /// A source of its own for others.
    func another() -> SplitMix64 { SplitMix64(seed: next()) }

    /// One of the values, as often as their weights say.
    func weighted<T>(_ values: [(T, Int)]) -> T {
        var left = below(values.reduce(0) { $0 + $1.1 })
        for (value, weight) in values {
            if left < weight { return value }
            left -= weight
        }
        return values[values.count - 1].0
    }

    func cut(_ files: SimulatedFiles, _ mode: PowerCutMode?) -> SimulatedFiles {
        guard let mode else { return files.powerCut(using: &generator) }
        return files.powerCut(mode, using: &generator)
    }
}

/// The last lines of a course. Lines are made up only where somebody will read them.
final class Trace {
    let isOn: Bool
    private(set) var lines: [String] = []
    /// Over everything that peers received: the same for the same seed.
    private(set) var digest: UInt64 = 0xCBF2_9CE4_8422_2325

    init(isOn: Bool) { self.isOn = isOn }

    func note(_ line: @autoclosure () -> String) {
        guard isOn else { return }
        lines.append(line())
        if lines.count > 4_000 { lines.removeFirst(2_000) }
    }

    func received(_ type: UInt8, _ body: [UInt8]) {
        digest = (digest ^ UInt64(type)) &* 0x100_0000_01B3
        for byte in body { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01B3 }
    }
}

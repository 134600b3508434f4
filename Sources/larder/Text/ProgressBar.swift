// How far it is, on a terminal; a line now and then where there is none.

import LarderFormat

/// Shows progress on standard error. One thread.
final class ProgressBar {
    private static let drawMilliseconds: Int64 = 100
    private static let lineMilliseconds: Int64 = 5_000
    private static let barWidth = 24

    private let output: Output
    private let begun = Clock.monotonic
    private var lastShown: Int64
    private var isShown = false

    init(_ output: Output) {
        self.output = output
        lastShown = begun
    }

    /// Shows `done` of `total` of some unit.
    ///
    /// - Parameters:
    ///   - count: what the rate counts; nil: `done`.
    ///   - total: nil or 0: unknown.
    func show(done: Int, total: Int?, count: Int? = nil, what: String) {
        let now = Clock.monotonic
        guard now - lastShown >= (output.isTerminal ? ProgressBar.drawMilliseconds : ProgressBar.lineMilliseconds)
        else {
            return
        }
        lastShown = now
        let text = ProgressBar.text(
            done: done, total: total, count: count ?? done, what: what, milliseconds: now - begun,
            hasBar: output.isTerminal)
        if output.isTerminal {
            let width = output.width ?? 80
            output.raw("\r\u{1B}[K" + DisplayText.truncated(text, to: max(1, width - 1)))
            isShown = true
        } else {
            output.line("larder: " + text)
        }
        output.flush()
    }

    /// Takes the bar away, before anything else is printed.
    func remove() {
        guard isShown else { return }
        output.raw("\r\u{1B}[K")
        output.flush()
        isShown = false
    }

    static func text(
        done: Int, total: Int?, count: Int, what: String, milliseconds: Int64, hasBar: Bool
    ) -> String {
        let rate = Formats.rate(count, milliseconds: milliseconds)
        guard let total, total > 0 else { return "\(Formats.count(count)) \(what), \(rate)" }
        let share = min(max(Double(done) / Double(total), 0), 1)
        var text = ""
        if hasBar {
            let full = Int(share * Double(barWidth))
            text = "[" + String(repeating: "#", count: full) + String(repeating: "-", count: barWidth - full) + "] "
        }
        text += "\(Int(share * 100))%  \(Formats.count(count)) \(what), \(rate)"
        // The first second says nothing about the last.
        if done > 0, done < total, milliseconds > 1_000 {
            let left = Int64(Double(milliseconds) * (1 - share) / share)
            text += ", \(Formats.duration(milliseconds: max(left, 1_000))) left"
        }
        return text
    }
}

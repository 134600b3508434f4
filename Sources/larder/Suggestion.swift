// "Did you mean …?"

/// Finds what a mistyped word was meant to be.
enum Suggestion {
    /// The nearest of `words`, if one is near enough: a third of the word's letters may differ, at least one.
    static func nearest(to word: String, in words: [String]) -> String? {
        let limit = max(1, word.count / 3)
        let ranked = words.map { ($0, distance(word, $0)) }.filter { $0.1 <= limit }
        if let best = ranked.min(by: { $0.1 < $1.1 }) { return best.0 }
        // A beginning that only one of them has.
        let begun = word.count >= 2 ? words.filter { $0.hasPrefix(word) } : []
        return begun.count == 1 ? begun[0] : nil
    }

    /// Characters to insert, remove, replace, or swap with their neighbour.
    static func distance(_ a: String, _ b: String) -> Int {
        let a = Array(a)
        let b = Array(b)
        var before: [Int] = []
        var last = Array(0...b.count)
        for i in 0..<a.count {
            var row = [i + 1]
            for j in 0..<b.count {
                var best = min(row[j] + 1, last[j + 1] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, before[j - 1] + 1) }
                row.append(best)
            }
            before = last
            last = row
        }
        return last[b.count]
    }
}

// Text made of words, in the manner of a film catalogue.

/// Writes texts of one language. Frequent words are frequent: the word of rank i has the weight 1 / (i + 4).
struct TextMaker {
    private let words: [[UInt8]]
    private let syllables: [[UInt8]]
    /// A word for each of 4,096 equally likely draws.
    private let draws: [UInt16]
    private static let drawBits = 12

    init(words: [[UInt8]], syllables: [[UInt8]]) {
        self.words = words
        self.syllables = syllables
        let total = words.indices.reduce(0.0) { $0 + 1 / Double($1 + 4) }
        var draws: [UInt16] = []
        var sum = 0.0
        let count = 1 << TextMaker.drawBits
        for index in words.indices {
            sum += 1 / Double(index + 4)
            while Double(draws.count) < sum / total * Double(count) && draws.count < count {
                draws.append(UInt16(index))
            }
        }
        self.draws = draws
    }

    /// Appends a text of at most `limit` bytes that ends with a whole character and without a space.
    func append(to bytes: inout [UInt8], limit: Int, _ random: inout SplitMix) {
        let start = bytes.count
        var position = 0
        while bytes.count - start <= limit {
            if position > 0 { bytes.append(0x20) }
            if position % 11 == 3 {
                let nameStart = bytes.count
                for _ in 0..<3 { bytes.append(contentsOf: syllables[random.below(syllables.count)]) }
                if bytes[nameStart] < 0x80 { bytes[nameStart] &-= 0x20 }
            } else {
                let draw = Int(random.next() >> UInt64(64 - TextMaker.drawBits))
                bytes.append(contentsOf: words[Int(draws[draw])])
            }
            if position % 13 == 8 { bytes.append(0x2E) }
            position += 1
        }
        var end = start + limit
        while end > start && bytes[end] & 0xC0 == 0x80 { end -= 1 }
        while end > start && bytes[end - 1] == 0x20 { end -= 1 }
        bytes.removeLast(bytes.count - end)
    }
}

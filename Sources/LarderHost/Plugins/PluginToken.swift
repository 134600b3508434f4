// One-time tokens: how a plugin that connects by itself shows who it is.

/// The tokens that were given out and not used. Loop thread.
///
/// A token is 32 random bytes in hexadecimal; the text is what LARDER_TOKEN holds and what HELLO brings.
struct PluginTokens {
    static let byteCount = 64

    private var tokens: [(plugin: String, text: [UInt8])] = []

    init() {}

    /// Makes the plugin's token, in place of one that it did not use.
    mutating func issue(to plugin: String) -> String {
        revoke(plugin)
        var generator = SystemRandomNumberGenerator()  // getrandom(2)
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for _ in 0..<4 {
            let word: UInt64 = generator.next()
            for shift in stride(from: 60, through: 0, by: -4) { text.append(digits[Int(word >> UInt64(shift) & 15)]) }
        }
        tokens.append((plugin, text))
        return String(decoding: text, as: UTF8.self)
    }

    /// The plugin that the token was made for; it is good for this once. The time taken says nothing about the tokens.
    mutating func redeem(_ bytes: some Collection<UInt8>) -> String? {
        guard bytes.count == Self.byteCount else { return nil }
        var found: Int?
        for (index, token) in tokens.enumerated() {
            var difference: UInt8 = 0
            for (a, b) in zip(token.text, bytes) { difference |= a ^ b }
            if difference == 0 { found = index }
        }
        return found.map { tokens.remove(at: $0).plugin }
    }

    mutating func revoke(_ plugin: String) { tokens.removeAll { $0.plugin == plugin } }
}

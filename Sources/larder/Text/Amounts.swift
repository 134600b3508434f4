// Bytes and durations as people write them.

enum Amounts {
    private static let byteUnits: [(name: String, factor: Int)] = [
        ("", 1), ("b", 1), ("bytes", 1), ("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30), ("tib", 1 << 40),
        ("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30), ("t", 1 << 40), ("kb", 1_000), ("mb", 1_000_000),
        ("gb", 1_000_000_000), ("tb", 1_000_000_000_000),
    ]
    private static let timeUnits: [(name: String, factor: Int)] = [
        ("ms", 1), ("", 1_000), ("s", 1_000), ("min", 60_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
    ]

    /// `4 GiB`, `512MiB`, `1000`: a whole number of a unit, or of bytes. Nil for what is none, or beyond 2^63.
    static func bytes(_ text: String) -> Int? { amount(text, byteUnits) }

    /// `90`, `90 s`, `5 min`, `2h`: a whole number of a unit, or of seconds; in milliseconds. Nil for what is none.
    static func milliseconds(_ text: String) -> Int? { amount(text, timeUnits) }

    private static func amount(_ text: String, _ units: [(name: String, factor: Int)]) -> Int? {
        let digits = text.utf8.prefix { $0 >= 0x30 && $0 <= 0x39 }.count
        let number = text.prefix(digits)
        let name = text.dropFirst(digits).drop { $0 == " " }.lowercased()
        guard let value = Int(number), let unit = units.first(where: { $0.name == name }) else { return nil }
        let (product, isOver) = value.multipliedReportingOverflow(by: unit.factor)
        return isOver ? nil : product
    }
}

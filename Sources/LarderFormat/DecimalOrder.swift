// Decimals in their order by exact value, m × 10^e, without doubles.

extension Number {
    /// The exact value of a number as JSON writes it. Nil for other text, and where it has more digits than 64 bits hold
    /// or an exponent that leaves `exponentRange`.
    init?(exactly text: String) {
        let bytes = Array(text.utf8)
        guard bytes.withUnsafeBytes({ JSONNumber(parsing: $0) != nil }) else { return nil }
        var magnitude: UInt64 = 0
        var exponent = 0
        // Zeros that count only if another digit follows.
        var zeros = 0
        var isFraction = false
        var at = bytes.first == UInt8(ascii: "-") ? 1 : 0
        while at < bytes.count, bytes[at] | 0x20 != UInt8(ascii: "e") {
            defer { at += 1 }
            if bytes[at] == UInt8(ascii: ".") {
                isFraction = true
                continue
            }
            if isFraction { exponent -= 1 }
            zeros += 1
            guard bytes[at] != UInt8(ascii: "0") else { continue }
            for _ in 0..<(magnitude == 0 ? 1 : zeros) {
                let (tenfold, overflow) = magnitude.multipliedReportingOverflow(by: 10)
                guard !overflow else { return nil }
                magnitude = tenfold
            }
            let (sum, overflow) = magnitude.addingReportingOverflow(UInt64(bytes[at] - UInt8(ascii: "0")))
            guard !overflow else { return nil }
            magnitude = sum
            zeros = 0
        }
        if magnitude == 0 {
            self.init(0)
            return
        }
        if at < bytes.count {
            guard let written = Int(String(decoding: bytes[(at + 1)...], as: UTF8.self)),
                written.magnitude <= 1_000_000
            else { return nil }
            exponent += written
        }
        let isNegative = bytes.first == UInt8(ascii: "-")
        guard magnitude <= UInt64(Int64.max) + (isNegative ? 1 : 0) else { return nil }
        let mantissa = Int64(truncatingIfNeeded: isNegative ? 0 &- magnitude : magnitude)
        self.init(mantissa: mantissa, exponent: exponent + zeros)
    }

    /// The value where it is whole and fits 64 bits.
    var whole: Int64? {
        guard exponent >= 0 else { return nil }
        return Number.scaled(mantissa, exponent)
    }

    /// m × 10^places, or nil where it does not fit.
    @inline(__always)
    private static func scaled(_ m: Int64, _ places: Int) -> Int64? {
        if m == 0 { return 0 }
        guard places <= 18 else { return nil }
        var result = m
        for _ in 0..<places {
            let (tenfold, overflow) = result.multipliedReportingOverflow(by: 10)
            if overflow { return nil }
            result = tenfold
        }
        return result
    }

    /// Below 0 where m × 10^e is less than n × 10^f, 0 where they are equal, above 0 where it is greater.
    @inline(__always)
    static func order(_ m: Int64, _ e: Int, _ n: Int64, _ f: Int) -> Int {
        if e == f { return m < n ? -1 : m == n ? 0 : 1 }
        // Both at the lower exponent; what does not fit there is further from zero than all that fits.
        if e > f {
            guard let scaled = scaled(m, e &- f) else { return m < 0 ? -1 : 1 }
            return scaled < n ? -1 : scaled == n ? 0 : 1
        }
        guard let scaled = scaled(n, f &- e) else { return n < 0 ? 1 : -1 }
        return m < scaled ? -1 : m == scaled ? 0 : 1
    }
}

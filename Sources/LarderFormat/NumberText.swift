// Decimals as text and as doubles.

extension Number {
    /// Why text gives no number.
    public enum TextError: Error, Equatable, Sendable {
        /// Not as JSON writes numbers.
        case notANumber
        /// Beyond the range of a double.
        case overflow
    }

    /// The shortest decimal that reads back as `double`; −0 is 0. Nil for infinities and NaN.
    public init?(double: Double) {
        guard double.isFinite else { return nil }
        // Swift's description of a double is its shortest.
        var mantissa: Int64 = 0
        var exponent = 0
        var isNegative = false
        var isFraction = false
        var written = 0
        var writtenIsNegative = false
        var isExponent = false
        for byte in double.description.utf8 {
            switch byte {
            case 0x2D: if isExponent { writtenIsNegative = true } else { isNegative = true }
            case 0x2E: isFraction = true
            case 0x65, 0x45: isExponent = true
            case 0x30...0x39 where isExponent: written = written * 10 + Int(byte - 0x30)
            case 0x30...0x39:
                // At most 17 digits that count, and the 0 of the ".0" behind whole numbers below 2^54.
                mantissa = mantissa &* 10 &+ Int64(byte - 0x30)
                if isFraction { exponent -= 1 }
            default: break
            }
        }
        self.init(
            mantissa: isNegative ? -mantissa : mantissa,
            exponent: exponent + (writtenIsNegative ? -written : written))
    }

    /// An integer that fits 64 bits is taken exactly; everything else is the shortest decimal of the nearest double.
    public init(json: JSONNumber) throws(TextError) {
        if let whole = json.int64 {
            self.init(whole)
            return
        }
        // Up to 15 digits, a decimal is the shortest of its double: going there and back changes nothing.
        if json.isExact && json.mantissa < 1_000_000_000_000_000 && json.exponent > -290 && json.exponent < 290 {
            let magnitude = Int64(json.mantissa)
            if let number = Number(mantissa: json.isNegative ? -magnitude : magnitude, exponent: json.exponent) {
                self = number
                return
            }
        }
        guard let number = Number(double: json.double) else { throw .overflow }
        self = number
    }

    /// Reads a number as JSON writes it, without white space around it.
    public init(jsonText text: String) throws(TextError) {
        self = try Array(text.utf8).withUnsafeBufferPointer { bytes throws(TextError) in
            guard let number = JSONNumber(parsing: UnsafeRawBufferPointer(bytes)) else { throw .notANumber }
            return try Number(json: number)
        }
    }

    /// The nearest double.
    public var doubleValue: Double {
        if exponent == 0 { return Double(mantissa) }
        // Exact below 2^53 and 10^22: one rounding, so the nearest.
        if mantissa.magnitude < 1 << 53 && abs(exponent) <= 22 {
            var power = 1.0
            for _ in 0..<abs(exponent) { power *= 10 }
            return exponent < 0 ? Double(mantissa) / power : Double(mantissa) * power
        }
        return Double("\(mantissa)e\(exponent)") ?? .nan
    }

    /// The exact value as ECMAScript places its digits: plain from 1e-6 up to 21 digits before the point, else with an
    /// exponent (`1e-7`, `1.5e+21`).
    public var text: String {
        let digits = String(mantissa.magnitude)
        let sign = mantissa < 0 ? "-" : ""
        let count = digits.utf8.count
        // Digits before the point.
        let point = count + exponent
        if exponent >= 0 && point <= 21 { return sign + digits + String(repeating: "0", count: exponent) }
        if point > 0 && point <= 21 { return sign + digits.prefix(point) + "." + digits.dropFirst(point) }
        if point > -6 && point <= 0 { return sign + "0." + String(repeating: "0", count: -point) + digits }
        let fraction = count == 1 ? "" : "." + digits.dropFirst()
        return sign + digits.prefix(1) + fraction + (point > 0 ? "e+" : "e-") + String(abs(point - 1))
    }
}

extension Number: CustomStringConvertible {
    public var description: String { text }
}

extension JSONNumber {
    /// Text that is a JSON number and nothing else; nil for any other.
    public init?(parsing text: UnsafeRawBufferPointer) {
        guard let first = text.first, first == 0x2D || first &- 0x30 < 10 else { return nil }
        var reader = JSONReader(text)
        guard let token = try? reader.next(), token == .number, reader.offset == text.count else { return nil }
        self = reader.number
    }
}

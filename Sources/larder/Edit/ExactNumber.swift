// Decimals from text without a double in between.

import LarderFormat

extension Number {
    /// Reads a number as JSON writes it, with all of its digits where they fit 64 bits; else the shortest decimal of the
    /// nearest double. Nil for what is none, and for what a double can't hold either.
    init?(exactText text: String) {
        var digits = text.utf8[...]
        let isNegative = digits.first == 0x2D
        if isNegative { digits = digits.dropFirst() }
        // The grammar is the JSON reader's to judge.
        guard let rounded = try? Number(jsonText: text) else { return nil }
        guard let (mantissa, exponent) = Number.parts(digits) else {
            self = rounded
            return
        }
        let signed = isNegative ? 0 &- Int64(bitPattern: mantissa) : Int64(bitPattern: mantissa)
        guard isNegative ? mantissa <= 1 << 63 : mantissa < 1 << 63,
            let exact = Number(mantissa: signed, exponent: exponent)
        else {
            self = rounded
            return
        }
        self = exact
    }

    /// Mantissa without trailing zeros and exponent of digits that are known to be a number; nil where they don't fit.
    private static func parts(_ text: Substring.UTF8View) -> (mantissa: UInt64, exponent: Int)? {
        var digits: [UInt8] = []
        var exponent = 0
        var written = ""
        var isFraction = false
        var isExponent = false
        for byte in text {
            switch byte {
            case 0x2E: isFraction = true
            case 0x65, 0x45: isExponent = true
            case _ where isExponent: written.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                digits.append(byte)
                if isFraction { exponent -= 1 }
            }
        }
        if isExponent {
            guard let number = Int(written) else { return nil }
            let (sum, overflow) = exponent.addingReportingOverflow(number)
            guard !overflow else { return nil }
            exponent = sum
        }
        while digits.count > 1, digits.last == 0x30 {
            digits.removeLast()
            exponent += 1
        }
        guard let mantissa = UInt64(String(decoding: digits, as: UTF8.self)) else { return nil }
        return (mantissa, exponent)
    }
}

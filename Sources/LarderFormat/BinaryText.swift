// UUIDs and bytes as text.

extension UUIDBytes {
    /// Reads 32 hexadecimal digits with hyphens after the 8th, 12th, 16th and 20th, in either case.
    public init?(text: String) {
        let bytes = Array(text.utf8.prefix(37))
        guard bytes.count == 36 else { return nil }
        var halves: (UInt64, UInt64) = (0, 0)
        var digits = 0
        for (index, byte) in bytes.enumerated() {
            if index == 8 || index == 13 || index == 18 || index == 23 {
                guard byte == 0x2D else { return nil }
                continue
            }
            guard let digit = hexDigit(byte) else { return nil }
            if digits < 16 { halves.0 = halves.0 << 4 | digit } else { halves.1 = halves.1 << 4 | digit }
            digits += 1
        }
        self.init(high: halves.0, low: halves.1)
    }

    /// Lowercase, with hyphens.
    public var text: String {
        let digits = hex(high) + hex(low)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index == 8 || index == 12 || index == 16 || index == 20 { text += "-" }
            text.append(digit)
        }
        return text
    }

    private func hex(_ half: UInt64) -> String {
        let text = String(half, radix: 16)
        return String(repeating: "0", count: 16 - text.utf8.count) + text
    }
}

extension UUIDBytes: CustomStringConvertible {
    public var description: String { text }
}

func hexDigit(_ byte: UInt8) -> UInt64? {
    switch byte {
    case 0x30...0x39: UInt64(byte - 0x30)
    case 0x41...0x46: UInt64(byte - 0x37)
    case 0x61...0x66: UInt64(byte - 0x57)
    default: nil
    }
}

/// Base64 as RFC 4648 section 4 has it: the standard alphabet, padded.
public enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    public static func text(_ bytes: [UInt8]) -> String {
        var out: [UInt8] = []
        out.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits: UInt32 = 0
            for byte in group { bits = bits << 8 | UInt32(byte) }
            bits <<= UInt32(8 * (3 - group.count))
            for digit in 0..<4 {
                out.append(digit <= group.count ? alphabet[Int(bits >> UInt32(18 - 6 * digit)) & 63] : 0x3D)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// Nil for anything that `text(_:)` would not have written.
    public static func bytes(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count % 4 == 0 else { return nil }
        var out: [UInt8] = []
        out.reserveCapacity(digits.count / 4 * 3)
        for start in stride(from: 0, to: digits.count, by: 4) {
            var bits: UInt32 = 0
            var padding = 0
            for digit in digits[start..<start + 4] {
                if digit == 0x3D {
                    padding += 1
                    bits <<= 6
                } else {
                    guard padding == 0, let value = Base64.value(digit) else { return nil }
                    bits = bits << 6 | value
                }
            }
            guard padding <= 2, padding == 0 || start + 4 == digits.count else { return nil }
            guard bits & ((1 << UInt32(8 * padding)) - 1) == 0 else { return nil }
            for index in 0..<3 - padding { out.append(UInt8(truncatingIfNeeded: bits >> UInt32(16 - 8 * index))) }
        }
        return out
    }

    private static func value(_ digit: UInt8) -> UInt32? {
        switch digit {
        case 0x41...0x5A: UInt32(digit - 0x41)
        case 0x61...0x7A: UInt32(digit - 0x61 + 26)
        case 0x30...0x39: UInt32(digit - 0x30 + 52)
        case 0x2B: 62
        case 0x2F: 63
        default: nil
        }
    }
}

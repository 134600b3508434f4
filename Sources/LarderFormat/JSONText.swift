// Strings and numbers as they lie in JSON text, borrowed.

/// A string of JSON text, between its quotes. Borrowed from the text, and checked: decoding it can't fail.
public struct JSONText {
    /// UTF-8 without NUL, escapes as they were written.
    public let bytes: UnsafeRawBufferPointer
    /// Some backslash is in `bytes`; else they are the string itself.
    public let hasEscapes: Bool
    /// U+0000 is in it, as an escape.
    public let hasNUL: Bool

    init(bytes: UnsafeRawBufferPointer, hasEscapes: Bool = false, hasNUL: Bool = false) {
        self.bytes = bytes
        self.hasEscapes = hasEscapes
        self.hasNUL = hasNUL
    }

    /// Decodes to the end of `out`.
    public func append(to out: inout [UInt8], removingNUL: Bool = false) {
        guard hasEscapes, let base = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
            out.append(contentsOf: bytes)
            return
        }
        var at = 0
        while at < bytes.count {
            var plain = at
            while plain < bytes.count && base[plain] != 0x5C { plain += 1 }
            out.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[at..<plain]))
            at = plain
            guard at < bytes.count, let escape = try? JSONEscape(base, at: at, end: bytes.count) else { return }
            at += escape.byteCount
            if escape.scalar == 0 && removingNUL { continue }
            guard let scalar = Unicode.Scalar(escape.scalar) else { continue }
            out.append(contentsOf: UTF8.encode(scalar).unsafelyUnwrapped)
        }
    }

    public var decoded: [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count)
        append(to: &out)
        return out
    }

    public var string: String {
        hasEscapes ? String(decoding: decoded, as: UTF8.self) : String(decoding: bytes, as: UTF8.self)
    }

    /// Whether it is exactly this ASCII text.
    public func equals(_ word: StaticString) -> Bool {
        let wanted = UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        return hasEscapes ? decoded.elementsEqual(wanted) : bytes.elementsEqual(wanted)
    }
}

/// One escape of a JSON string, surrogate pairs counting as one.
struct JSONEscape {
    let scalar: UInt32
    let byteCount: Int

    /// Reads the escape whose backslash is at `at`.
    init(
        _ base: UnsafePointer<UInt8>, at: Int, end: Int, fault: (JSONError.Code, Int) -> JSONError = JSONEscape.anyFault
    ) throws(JSONError) {
        guard at + 1 < end else { throw fault(.unexpectedEnd, end) }
        switch base[at + 1] {
        case 0x22: scalar = 0x22
        case 0x5C: scalar = 0x5C
        case 0x2F: scalar = 0x2F
        case 0x62: scalar = 0x08
        case 0x66: scalar = 0x0C
        case 0x6E: scalar = 0x0A
        case 0x72: scalar = 0x0D
        case 0x74: scalar = 0x09
        case 0x75:
            let unit = try JSONEscape.hex(base, at + 2, end, escapeAt: at, fault)
            guard unit & 0xF800 == 0xD800 else {
                scalar = unit
                byteCount = 6
                return
            }
            guard unit < 0xDC00, at + 7 < end, base[at + 6] == 0x5C, base[at + 7] == 0x75 else {
                throw fault(.badUnicode, at)
            }
            let low = try JSONEscape.hex(base, at + 8, end, escapeAt: at + 6, fault)
            guard low & 0xFC00 == 0xDC00 else { throw fault(.badUnicode, at) }
            scalar = 0x10000 + (unit & 0x3FF) << 10 + (low & 0x3FF)
            byteCount = 12
            return
        default: throw fault(.badEscape, at)
        }
        byteCount = 2
    }

    private static func hex(
        _ base: UnsafePointer<UInt8>, _ from: Int, _ end: Int, escapeAt: Int,
        _ fault: (JSONError.Code, Int) -> JSONError
    ) throws(JSONError) -> UInt32 {
        var value: UInt32 = 0
        for at in from..<from + 4 {
            guard at < end else { throw fault(.unexpectedEnd, end) }
            let digit: UInt8 =
                switch base[at] {
                case 0x30...0x39: base[at] - 0x30
                case 0x41...0x46: base[at] - 0x37
                case 0x61...0x66: base[at] - 0x57
                default: throw fault(.badEscape, escapeAt)
                }
            value = value << 4 | UInt32(digit)
        }
        return value
    }

    /// For text that was checked before.
    static func anyFault(_ code: JSONError.Code, _ at: Int) -> JSONError {
        JSONError(code, offset: at, line: 0, column: 0)
    }
}

/// A number of JSON text: its digits, exactly, and its source text. Borrowed.
public struct JSONNumber {
    public internal(set) var text: UnsafeRawBufferPointer
    public internal(set) var isNegative = false
    /// Written without point and exponent.
    public internal(set) var isInteger = true
    /// With `exponent`: the value is ±mantissa × 10^exponent, when `isExact`.
    public internal(set) var mantissa: UInt64 = 0
    public internal(set) var exponent = 0
    /// The digits fit 64 bits; else only the text says what the number is.
    public internal(set) var isExact = true

    init(text: UnsafeRawBufferPointer) { self.text = text }

    /// Takes the next digit, 0 … 9.
    @inline(__always)
    mutating func take(_ digit: UInt8, isFraction: Bool) {
        if mantissa < 1_000_000_000_000_000_000 {
            mantissa = mantissa &* 10 &+ UInt64(digit)
        } else {
            let (tenfold, overflow) = mantissa.multipliedReportingOverflow(by: 10)
            let (sum, carry) = tenfold.addingReportingOverflow(UInt64(digit))
            if overflow || carry { isExact = false }
            mantissa = sum
        }
        if isFraction { exponent &-= 1 }
    }

    /// The value of an integer as it is written (no point, no exponent) when it fits.
    public var int64: Int64? { isInteger ? wholeInt64 : nil }

    public var uint64: UInt64? { isInteger && isExact && (!isNegative || mantissa == 0) ? mantissa : nil }

    /// The value when it is whole, however it is written (90.0, 1e3), and fits.
    public var wholeInt64: Int64? {
        guard isExact else { return nil }
        var magnitude = mantissa
        if magnitude != 0 {
            guard exponent > -20 && exponent < 20 else { return nil }
            for _ in 0..<max(0, -exponent) {
                guard magnitude % 10 == 0 else { return nil }
                magnitude /= 10
            }
            for _ in 0..<max(0, exponent) {
                let (tenfold, overflow) = magnitude.multipliedReportingOverflow(by: 10)
                if overflow { return nil }
                magnitude = tenfold
            }
        }
        if isNegative { return magnitude <= 1 << 63 ? Int64(truncatingIfNeeded: 0 &- magnitude) : nil }
        return Int64(exactly: magnitude)
    }

    /// The nearest double; infinite above its range.
    public var double: Double { Double(string) ?? .nan }
    public var string: String { String(decoding: text, as: UTF8.self) }
}

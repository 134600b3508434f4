// International standard book numbers, in whichever way they are written.

/// The 13 digits of a book's number. An ISBN-10 is the same number as the ISBN-13 that begins with 978.
public struct ISBN: Hashable, Sendable {
    /// 9780000000000 … 9799999999999, its check digit right.
    public let number: Int64

    /// Reads ten or thirteen digits, the last of ten perhaps an X, with hyphens or spaces between and "ISBN" before.
    ///
    /// - Returns: nil for everything else, a wrong check digit among it.
    public init?(_ text: UnsafeRawBufferPointer) {
        var digits: (Int64, count: Int) = (0, 0)
        var sumOf10 = 0
        var sumOf13 = 0
        var hasX = false
        for byte in ISBN.withoutName(text) {
            if byte == 0x2D || byte == 0x20 { continue }
            // An X is ten, and stands last.
            guard !hasX, digits.count < 13 else { return nil }
            let isX = byte | 0x20 == 0x78
            guard byte &- 0x30 < 10 || isX && digits.count == 9 else { return nil }
            let digit = isX ? 10 : Int(byte &- 0x30)
            hasX = isX
            if digits.count < 10 { sumOf10 += digit * (10 - digits.count) }
            sumOf13 += digit * (digits.count % 2 == 0 ? 1 : 3)
            digits = (digits.0 * 10 + Int64(isX ? 0 : digit), digits.count + 1)
        }
        switch digits.count {
        case 10:
            guard sumOf10 % 11 == 0 else { return nil }
            number = ISBN.checked(978_000_000_000 + digits.0 / 10)
        case 13:
            let prefix = digits.0 / 10_000_000_000
            guard !hasX, sumOf13 % 10 == 0, prefix == 978 || prefix == 979 else { return nil }
            number = digits.0
        default: return nil
        }
    }

    public init?(_ text: String) {
        guard let isbn = Array(text.utf8).withUnsafeBytes({ ISBN($0) }) else { return nil }
        self = isbn
    }

    private static func withoutName(_ text: UnsafeRawBufferPointer) -> Slice<UnsafeRawBufferPointer> {
        let name: [UInt8] = [0x69, 0x73, 0x62, 0x6E]
        let isNamed = text.count > 4 && zip(text, name).allSatisfy { $0 | 0x20 == $1 }
        let rest = isNamed ? text.dropFirst(4) : text[...]
        return rest.first == 0x3A ? rest.dropFirst() : rest
    }

    /// Twelve digits with the thirteenth.
    private static func checked(_ twelve: Int64) -> Int64 {
        var sum = 0
        var rest = twelve
        for place in 0..<12 {
            // From behind: the last of twelve counts threefold.
            sum += Int(rest % 10) * (place % 2 == 0 ? 3 : 1)
            rest /= 10
        }
        return twelve * 10 + Int64((10 - sum % 10) % 10)
    }
}

extension ISBN: CustomStringConvertible {
    public var description: String { "\(number)" }
}

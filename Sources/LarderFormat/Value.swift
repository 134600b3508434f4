// The values of fields as Swift sees them, for everything that is not on the hot path.

/// Type of a field; raw values are those of the declaration's bytes.
public enum FieldType: UInt8, CaseIterable, Sendable {
    case bool = 1
    case int = 2
    case number = 3
    case text = 4
    case identifier = 5
    case bytes = 6
    case date = 7
    case time = 8
    case uuid = 9
    case choice = 10
    case list = 11

    /// As declarations in JSON and people spell it.
    public var name: String { "\(self)" }
    public init?(name: String) {
        guard let type = FieldType.allCases.first(where: { $0.name == name }) else { return nil }
        self = type
    }
}

/// A value of a field. Two values are the same exactly when they are equal here, text being compared by code units.
public enum Value: Sendable {
    case bool(Bool)
    case int(Int64)
    case number(Number)
    case text(String)
    case identifier(Identifier)
    case bytes([UInt8])
    case date(PartialDate)
    /// Milliseconds since 1970-01-01T00:00:00Z.
    case time(Int64)
    case uuid(UUIDBytes)
    /// The number of one of the kind's named values.
    case choice(Int)
    case list([String])

    public var type: FieldType {
        switch self {
        case .bool: .bool
        case .int: .int
        case .number: .number
        case .text: .text
        case .identifier: .identifier
        case .bytes: .bytes
        case .date: .date
        case .time: .time
        case .uuid: .uuid
        case .choice: .choice
        case .list: .list
        }
    }
}

/// A decimal, m × 10^e, in its only form: m is no multiple of 10, and zero is 0 × 10^0.
public struct Number: Hashable, Sendable {
    public static let exponentRange = -400...400

    public let mantissa: Int64
    public let exponent: Int

    /// Nil when the exponent leaves −400 … 400 once trailing zeros are taken from the mantissa.
    public init?(mantissa: Int64, exponent: Int) {
        var m = mantissa
        var e = exponent
        if m == 0 { e = 0 }
        while m != 0 && m % 10 == 0 {
            m /= 10
            e += 1
        }
        guard Number.exponentRange.contains(e) else { return nil }
        self.mantissa = m
        self.exponent = e
    }

    public init(_ integer: Int64) {
        var m = integer
        var e = 0
        while m != 0 && m % 10 == 0 {
            m /= 10
            e += 1
        }
        mantissa = m
        exponent = e
    }
}

/// A source's id: a number, or a text that is no plain decimal.
public enum Identifier: Hashable, Sendable {
    /// 0 … 2^63 − 1.
    case number(Int64)
    case text(String)

    /// Nil for the empty text and for negative numbers. A text that is a plain decimal becomes the number.
    public init?(_ text: String) {
        guard !text.isEmpty else { return nil }
        if let n = Identifier.plainDecimal(text.utf8) { self = .number(n) } else { self = .text(text) }
    }
    public init?(_ number: Int64) {
        guard number >= 0 else { return nil }
        self = .number(number)
    }

    /// The value of digits without sign or leading zero that fit 63 bits, else nil.
    @inlinable
    public static func plainDecimal<C: Collection>(_ digits: C) -> Int64? where C.Element == UInt8 {
        guard let first = digits.first, digits.count <= 19 else { return nil }
        if first == 0x30 { return digits.count == 1 ? 0 : nil }
        var value: UInt64 = 0
        for digit in digits {
            guard digit >= 0x30 && digit <= 0x39 else { return nil }
            value = value &* 10 &+ UInt64(digit &- 0x30)
        }
        return value <= UInt64(Int64.max) ? Int64(value) : nil
    }
}

/// A date known to the year, the month or the day; proleptic Gregorian, astronomical years.
public struct PartialDate: Hashable, Sendable {
    public static let yearRange = -9999...9999

    public let year: Int
    /// 1 … 12, or 0 when only the year is known.
    public let month: Int
    /// 1 … 31, or 0 when the day is not known.
    public let day: Int

    /// Nil for a date that does not exist.
    public init?(year: Int, month: Int = 0, day: Int = 0) {
        guard PartialDate.yearRange.contains(year), (0...12).contains(month), day >= 0 else { return nil }
        guard month == 0 ? day == 0 : day <= PartialDate.days(inMonth: month, year: year) else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    /// The form that is stored: (year × 13 + month) × 32 + day.
    @inlinable public var packed: Int64 { Int64((year * 13 + month) * 32 + day) }

    @inlinable
    public init?(packed: Int64) {
        guard packed >= -9999 * 13 * 32, packed < 10_000 * 13 * 32 else { return nil }
        let day = Int(packed & 31)
        let rest = Int(packed >> 5)
        let year = rest >= 0 ? rest / 13 : -((12 - rest) / 13)
        self.init(year: year, month: rest - year * 13, day: day)
    }

    public static func days(inMonth month: Int, year: Int) -> Int {
        switch month {
        case 2: (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}

/// The 16 bytes of a UUID, in the order in which its text prints them.
public struct UUIDBytes: Hashable, Sendable {
    public let high: UInt64
    public let low: UInt64

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// A random one, version 4.
    public static func random() -> UUIDBytes {
        var generator = SystemRandomNumberGenerator()
        let high = (generator.next() & 0xFFFF_FFFF_FFFF_0FFF) | 0x4000
        let low = (generator.next() & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000
        return UUIDBytes(high: high, low: low)
    }
}

/// Range of the type time, in milliseconds: the years −9999 to 9999.
public let timeRange: ClosedRange<Int64> = -377_705_116_800_000...253_402_300_799_999

extension Value: Equatable {
    public static func == (a: Value, b: Value) -> Bool {
        switch (a, b) {
        case (.bool(let x), .bool(let y)): x == y
        case (.int(let x), .int(let y)), (.time(let x), .time(let y)): x == y
        case (.number(let x), .number(let y)): x == y
        case (.text(let x), .text(let y)): x.utf8.elementsEqual(y.utf8)
        case (.identifier(.text(let x)), .identifier(.text(let y))): x.utf8.elementsEqual(y.utf8)
        case (.identifier(let x), .identifier(let y)): x == y
        case (.bytes(let x), .bytes(let y)): x == y
        case (.date(let x), .date(let y)): x == y
        case (.uuid(let x), .uuid(let y)): x == y
        case (.choice(let x), .choice(let y)): x == y
        case (.list(let x), .list(let y)): x.count == y.count && zip(x, y).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
        default: false
        }
    }
}

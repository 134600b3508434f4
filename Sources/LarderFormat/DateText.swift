// Dates and times as text.

extension PartialDate {
    /// Reads `1999`, `1999-03`, `1999-03-31`; before the year 0 with `-` in front. Always four digits, two, two.
    public init?(text: String) {
        var cursor = DigitCursor(text)
        let isNegative = cursor.skip(0x2D)
        guard let year = cursor.number(digits: 4...4), !(isNegative && year == 0) else { return nil }
        var month = 0
        var day = 0
        if cursor.skip(0x2D) {
            guard let found = cursor.number(digits: 2...2), found > 0 else { return nil }
            month = found
            if cursor.skip(0x2D) {
                guard let found = cursor.number(digits: 2...2), found > 0 else { return nil }
                day = found
            }
        }
        guard cursor.isAtEnd else { return nil }
        self.init(year: isNegative ? -year : year, month: month, day: day)
    }

    /// Reads what sources send for a date: besides the strict form `2023/05/01`, `2023-5-1`, and a time behind the day
    /// (`2016-07-20T00:00:00Z`, `2018-02-22 00:00:00.000+09:00`), which is passed over: the day is the one written.
    public init?(lenient text: String) {
        if let date = PartialDate(text: text) {
            self = date
            return
        }
        var cursor = DigitCursor(text)
        cursor.skipSpaces()
        guard let year = cursor.number(digits: 4...4) else { return nil }
        var month = 0
        var day = 0
        let separator: UInt8 = cursor.byte == 0x2F ? 0x2F : 0x2D
        if cursor.skip(separator) {
            guard let found = cursor.number(digits: 1...2), found > 0 else { return nil }
            month = found
            if cursor.skip(separator) {
                guard let found = cursor.number(digits: 1...2), found > 0 else { return nil }
                day = found
                if let byte = cursor.byte, byte == 0x20 || byte | 0x20 == 0x74, cursor.byte(ahead: 1) ?? 0x20 != 0x20 {
                    _ = cursor.skip(byte)
                    guard cursor.timeOfDay(secondsRequired: false) != nil else { return nil }
                    _ = cursor.offsetMinutes()
                }
            }
        }
        cursor.skipSpaces()
        guard cursor.isAtEnd else { return nil }
        self.init(year: year, month: month, day: day)
    }

    /// As much as is known: `1999`, `1999-03`, `1999-03-31`.
    public var text: String {
        var text = (year < 0 ? "-" : "") + padded(abs(year), 4)
        if month > 0 { text += "-" + padded(month, 2) }
        if day > 0 { text += "-" + padded(day, 2) }
        return text
    }

    /// Days from 1970-01-01 to a day of the proleptic Gregorian calendar.
    static func days(year: Int, month: Int, day: Int) -> Int {
        // Years that begin in March, so that the leap day is the last.
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// Year, month and day of a number of days from 1970-01-01.
    static func civil(days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth + (shiftedMonth < 10 ? 3 : -9)
        return (
            yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        )
    }
}

extension PartialDate: CustomStringConvertible {
    public var description: String { text }
}

/// Times as RFC 3339 text, years −9999 … 9999.
public enum TimeText {
    /// `1999-03-31T08:00:00.000Z`, from milliseconds since 1970-01-01T00:00:00Z within `timeRange`.
    public static func text(milliseconds: Int64) -> String {
        let clamped = min(max(milliseconds, timeRange.lowerBound), timeRange.upperBound)
        let days = Int((clamped >= 0 ? clamped : clamped - 86_399_999) / 86_400_000)
        let rest = Int(clamped) - days * 86_400_000
        let (year, month, day) = PartialDate.civil(days: days)
        let seconds = rest / 1000
        return (year < 0 ? "-" : "") + padded(abs(year), 4) + "-" + padded(month, 2) + "-" + padded(day, 2) + "T"
            + padded(seconds / 3600, 2) + ":" + padded(seconds / 60 % 60, 2) + ":" + padded(seconds % 60, 2) + "."
            + padded(rest % 1000, 3) + "Z"
    }

    /// Milliseconds since 1970-01-01T00:00:00Z of a date, a time and an offset (`Z`, `+09:00`); nil for anything else.
    ///
    /// Digits beyond the millisecond are cut off. Second 60 is the next minute's first.
    ///
    /// - Parameter secondsRequired: false takes `1999-03-31T08:00Z` as well.
    public static func milliseconds(_ text: String, secondsRequired: Bool = true) -> Int64? {
        var cursor = DigitCursor(text)
        let isNegative = cursor.skip(0x2D)
        guard let year = cursor.number(digits: 4...4), !(isNegative && year == 0), cursor.skip(0x2D),
            let month = cursor.number(digits: 2...2), cursor.skip(0x2D), let day = cursor.number(digits: 2...2),
            month > 0, day > 0, let date = PartialDate(year: isNegative ? -year : year, month: month, day: day),
            let separator = cursor.byte, separator | 0x20 == 0x74 || separator == 0x20, cursor.skip(separator),
            let time = cursor.timeOfDay(secondsRequired: secondsRequired), let offset = cursor.offsetMinutes(),
            cursor.isAtEnd
        else { return nil }
        let days = PartialDate.days(year: date.year, month: date.month, day: date.day)
        let value = Int64(days * 86_400_000 + time - offset * 60_000)
        return timeRange.contains(value) ? value : nil
    }
}

func padded(_ value: Int, _ digits: Int) -> String {
    let text = String(value)
    return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
}

/// Reads digits and separators of short text.
struct DigitCursor {
    private let bytes: [UInt8]
    private var at = 0

    init(_ text: String) { bytes = Array(text.utf8.prefix(64)) }

    var isAtEnd: Bool { at == bytes.count }
    var byte: UInt8? { byte(ahead: 0) }
    func byte(ahead: Int) -> UInt8? { at + ahead < bytes.count ? bytes[at + ahead] : nil }

    mutating func skip(_ wanted: UInt8) -> Bool {
        guard byte == wanted else { return false }
        at += 1
        return true
    }

    mutating func skipSpaces() {
        while byte == 0x20 { at += 1 }
    }

    /// The digits that stand here, when their count is in `digits` (of at most 9).
    mutating func number(digits: ClosedRange<Int>) -> Int? {
        var value = 0
        var count = 0
        while count < digits.upperBound, let byte, byte &- 0x30 < 10 {
            value = value * 10 + Int(byte - 0x30)
            count += 1
            at += 1
        }
        return digits.contains(count) ? value : nil
    }

    /// `08:00`, `08:00:00`, `08:00:00.123`, in milliseconds from midnight.
    mutating func timeOfDay(secondsRequired: Bool) -> Int? {
        guard let hour = number(digits: 2...2), hour < 24, skip(0x3A), let minute = number(digits: 2...2), minute < 60
        else { return nil }
        var milliseconds = (hour * 60 + minute) * 60_000
        guard skip(0x3A) else { return secondsRequired ? nil : milliseconds }
        guard let second = number(digits: 2...2), second <= 60 else { return nil }
        milliseconds += second * 1000
        guard skip(0x2E) else { return milliseconds }
        var scale = 100
        var count = 0
        while let byte, byte &- 0x30 < 10 {
            milliseconds += Int(byte - 0x30) * scale
            scale /= 10
            count += 1
            at += 1
        }
        return count > 0 ? milliseconds : nil
    }

    /// `Z`, `+09:00`, `-0330`, in minutes east; nil when none stands here.
    mutating func offsetMinutes() -> Int? {
        if skip(0x5A) || skip(0x7A) { return 0 }
        let isWest = byte == 0x2D
        guard skip(0x2B) || skip(0x2D), let hours = number(digits: 2...2), hours < 24 else { return nil }
        _ = skip(0x3A)
        guard let minutes = number(digits: 2...2), minutes < 60 else { return nil }
        return (isWest ? -1 : 1) * (hours * 60 + minutes)
    }
}

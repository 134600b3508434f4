// The days and the moments that a date names, which may be known to the month or the year only.

/// First and last of something that is in order. Days of `PartialDate` are numbered (year × 16 + month) × 32 + day:
/// in order, but not without gaps.
struct Span: Equatable {
    var first: Int64
    var last: Int64

    init(_ first: Int64, _ last: Int64) {
        self.first = first
        self.last = last
    }

    init(_ point: Int64) { self.init(point, point) }

    /// The days of a date in its stored form; nil for a date that can't be.
    @inline(__always)
    init?(packedDate packed: Int64) {
        guard packed >= -9999 * 13 * 32, packed < 10_000 * 13 * 32 else { return nil }
        let day = Int(truncatingIfNeeded: packed & 31)
        // Made positive, so that division rounds down.
        let rest = Int(truncatingIfNeeded: packed &>> 5) &+ 10_000 &* 13
        let year = rest / 13 &- 10_000
        let month = rest % 13
        let lastMonth = month == 0 ? 12 : month
        let lastDay = day == 0 ? PartialDate.days(inMonth: lastMonth, year: year) : day
        first = Int64((year &* 16 &+ max(month, 1)) &* 32 &+ max(day, 1))
        last = Int64((year &* 16 &+ lastMonth) &* 32 &+ lastDay)
    }

    init?(_ date: PartialDate) { self.init(packedDate: date.packed) }

    /// The milliseconds of a date in UTC.
    init(millisecondsOf date: PartialDate) {
        let lastMonth = date.month == 0 ? 12 : date.month
        let lastDay = date.day == 0 ? PartialDate.days(inMonth: lastMonth, year: date.year) : date.day
        let first = PartialDate.days(year: date.year, month: max(date.month, 1), day: max(date.day, 1))
        let last = PartialDate.days(year: date.year, month: lastMonth, day: lastDay)
        self.init(Int64(first) * 86_400_000, Int64(last) * 86_400_000 + 86_399_999)
    }

    /// How two spans stand to each other, by section 17 of SPEC.md. Both for points and for dates.
    @inline(__always)
    func stands(_ relation: ConditionRelation, to other: Span) -> Bool {
        switch relation {
        case .equal: first >= other.first && last <= other.last
        case .less: last < other.first
        case .lessOrEqual: last <= other.last
        case .greater: first > other.last
        case .greaterOrEqual: first >= other.first
        case .contains, .starts: false
        }
    }
}

// A packed title as a record of the kind title, and what Protobuf would take for it.

import LarderFormat

extension PackedTitle {
    /// The most bytes that `encode` writes beside the strings.
    static let encodedByteCountMax = 128
    static let source: StaticString = "tmdb"

    /// Bytes of `encode` at most.
    var encodedByteCountMax: Int {
        PackedTitle.encodedByteCountMax + originalTitle.count + (originalName?.count ?? 0) + overview.count
            + posterPath.count
    }

    var partialDate: PartialDate {
        let date = Int(self.date)
        return PartialDate(year: date / 10_000, month: date / 100 % 100, day: date % 100) ?? PartialDate(packed: 0)!
    }

    /// Writes the record (FORMAT.md section 4); room was made.
    ///
    /// - Parameter votes: added to the vote count, to make a changed record.
    /// - Returns: bytes of the key, which lies behind the bitmap's three bytes.
    func encode(into writer: inout RawWriter, votes: Int) -> Int {
        // Fields 1 2 3 5 (7) 8, then 9 11 12 13.
        writer.u8(2)
        writer.u8(originalName == nil ? 0x97 : 0xD7)
        writer.u8(0x1D)
        let keyStart = writer.at
        text(
            UnsafeRawBufferPointer(start: PackedTitle.source.utf8Start, count: PackedTitle.source.utf8CodeUnitCount),
            &writer)
        writer.varint(isSeries ? 2 : 1)
        writer.varint(UInt64(id) << 1)
        let keyByteCount = writer.at - keyStart
        text(originalTitle, &writer)
        if let originalName { text(originalName, &writer) }
        text(overview, &writer)
        text(posterPath, &writer)
        writer.varint(zigzag(partialDate.packed))
        writer.varint(zigzag(Int64(voteCount) + Int64(votes)))
        let average = decimalAverage
        writer.varint(zigzag(average.mantissa))
        writer.varint(zigzag(Int64(average.exponent)))
        return keyByteCount
    }

    /// The vote average as a decimal: thousandths where that is exact, else the shortest.
    private var decimalAverage: Number {
        let thousandths = (voteAverage * 1_000).rounded()
        if thousandths / 1_000 == voteAverage, let number = Number(mantissa: Int64(thousandths), exponent: -3) {
            return number
        }
        return Number(double: voteAverage) ?? Number(0)
    }

    private func text(_ bytes: UnsafeRawBufferPointer, _ writer: inout RawWriter) {
        writer.varint(UInt64(bytes.count))
        writer.raw(bytes)
    }

    /// The same by way of values, to hold `encode` against.
    func record(votes: Int) -> Record {
        func string(_ bytes: UnsafeRawBufferPointer) -> Value { .text(String(decoding: bytes, as: UTF8.self)) }
        var record = Record([
            (1, .text("\(PackedTitle.source)")), (2, .choice(isSeries ? 2 : 1)), (3, .identifier(.number(id))),
            (5, string(originalTitle)), (8, string(overview)), (9, string(posterPath)), (11, .date(partialDate)),
            (12, .int(Int64(voteCount) + Int64(votes))), (13, .number(Number(double: voteAverage) ?? Number(0))),
        ])
        if let originalName { record[7] = string(originalName) }
        return record
    }

    /// Bytes of the same data in Protobuf (proto3: int64 1, enum 2, string 3 to 7, int32 8, double 9, string 10; zeros
    /// and what is absent are left out; the date is text of ten characters).
    var protobufByteCount: Int {
        func string(_ count: Int) -> Int { count == 0 ? 0 : 1 + varintByteCount(UInt64(count)) + count }
        var count = 1 + varintByteCount(UInt64(id)) + (isSeries ? 2 : 0)
        count += string(originalTitle.count) + string(originalName?.count ?? 0) + string(overview.count)
        count += string(posterPath.count) + string(10) + string(PackedTitle.source.utf8CodeUnitCount)
        if voteCount != 0 { count += 1 + varintByteCount(UInt64(voteCount)) }
        return count + (voteAverage == 0 ? 0 : 9)
    }
}

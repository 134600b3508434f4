import Testing

@testable import LarderFormat

@Suite("Numbers as text")
struct NumberTextTests {
    @Test(
        "a number of JSON becomes the shortest decimal",
        arguments: [
            ("8.5999999999999996", 86, -1, "8.6"), ("8.6", 86, -1, "8.6"), ("0", 0, 0, "0"), ("-0", 0, 0, "0"),
            ("-0.0", 0, 0, "0"), ("0e5", 0, 0, "0"), ("100", 1, 2, "100"), ("1.50", 15, -1, "1.5"),
            ("9007199254740993", 9_007_199_254_740_993, 0, "9007199254740993"),
            ("9007199254740993.0", 9_007_199_254_740_992, 0, "9007199254740992"),
            ("9223372036854775807", Int64.max, 0, "9223372036854775807"),
            ("-9223372036854775808", Int64.min, 0, "-9223372036854775808"),
            ("99999999999999999999", 1, 20, "100000000000000000000"), ("1e21", 1, 21, "1e+21"),
            ("123e-20", 123, -20, "1.23e-18"), ("0.000001", 1, -6, "0.000001"), ("0.0000001", 1, -7, "1e-7"),
            ("93.4917224393659", 934_917_224_393_659, -13, "93.4917224393659"),
            ("0.1000000000000000055511151231257827", 1, -1, "0.1"), ("5e-324", 5, -324, "5e-324"),
            ("1.7976931348623157e308", 17_976_931_348_623_157, 292, "1.7976931348623157e+308"),
            ("1e-400", 0, 0, "0"), ("-12.5", -125, -1, "-12.5"), ("120000e-3", 12, 1, "120"),
            ("1.02e17", 102, 15, "102000000000000000"),
        ] as [(String, Int64, Int, String)])
    func fromJSON(_ json: String, _ mantissa: Int64, _ exponent: Int, _ text: String) throws {
        let number = try Number(jsonText: json)
        #expect(number.mantissa == mantissa)
        #expect(number.exponent == exponent)
        #expect(number.text == text)
    }

    @Test("beyond the doubles, and text that is no number, there is none")
    func refused() {
        #expect(throws: Number.TextError.overflow) { try Number(jsonText: "1e309") }
        #expect(throws: Number.TextError.overflow) { try Number(jsonText: "-1e999999999999") }
        for text in ["", "-", "1.", ".5", "01", "1 ", " 1", "+1", "NaN", "0x1", "1,5", "--1"] {
            #expect(throws: Number.TextError.notANumber) { try Number(jsonText: text) }
        }
        #expect(Number(double: .infinity) == nil)
        #expect(Number(double: .nan) == nil)
    }

    @Test("random doubles come back through number and text")
    func roundTrip() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = Seeded(state: seed)
        for _ in 0..<50_000 {
            let double = Double(bitPattern: generator.next())
            guard double.isFinite else { continue }
            let number = try #require(Number(double: double), "seed \(seed)")
            let isSame = number.doubleValue == double && Double(number.text) == double
            #expect(isSame, "\(double), seed \(seed)")
            let again = try Number(jsonText: number.text)
            if again != number && number.exponent < 0 { Issue.record("\(number) became \(again), seed \(seed)") }
        }
    }

    @Test("short decimals are the same by way of a double and without")
    func shortDecimals() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = Seeded(state: seed)
        for _ in 0..<50_000 {
            let digits = Int64(generator.next() % 1_000_000_000_000_000)
            let exponent = Int(generator.next() % 560) - 285
            let text = "\(digits)e\(exponent)"
            let direct = try Number(jsonText: text)
            #expect(direct == Number(double: try #require(Double(text))), "\(text), seed \(seed)")
            #expect(direct.doubleValue == Double(text), "\(text), seed \(seed)")
        }
    }
}

@Suite("Dates and times as text")
struct DateTextTests {
    @Test(
        "dates are written as far as they are known, and read back",
        arguments: [
            "1999", "1999-03", "1999-03-31", "0000", "-0720", "-0720-01", "9999-12-31", "2024-02-29",
        ])
    func roundTrip(_ text: String) {
        #expect(PartialDate(text: text)?.text == text)
        #expect(PartialDate(lenient: text)?.text == text)
    }

    @Test(
        "text that is no date in the strict form is refused",
        arguments: [
            "", "199", "19990", "1999-3", "1999-00", "1999-13", "1999-03-00", "1999-03-32", "2023-02-29", "1999/03",
            "1999-03-31T00:00:00Z", " 1999", "-0000", "1999-", "+1999", "1999-03-31-",
        ])
    func strict(_ text: String) {
        #expect(PartialDate(text: text) == nil)
    }

    @Test(
        "what sources send for a date is understood",
        arguments: [
            ("2016-07-20T00:00:00Z", "2016-07-20"), ("2018-02-22T00:00:00.000+09:00", "2018-02-22"),
            ("2023/05/01", "2023-05-01"), ("2023/5/1", "2023-05-01"), ("2023-05-01 10:11:12", "2023-05-01"),
            ("2023-05-01 10:11", "2023-05-01"), (" 1999-03 ", "1999-03"),
            ("2019-10-18T00:00:00.1234567Z", "2019-10-18"),
            ("0001-01-01", "0001-01-01"),
        ])
    func lenient(_ text: String, _ date: String) {
        #expect(PartialDate(lenient: text)?.text == date)
    }

    @Test(
        "what is no date to anybody is refused",
        arguments: [
            "", " ", "N/A", "31/03/1999", "1999-03-31x", "1999-03-31T", "1999-03-31T25:00:00Z", "1999-02-30",
            "2023/05-01", "2023-05/01", "Wed Feb 22 00:00:00 2017", "20230501",
        ])
    func notEvenLenient(_ text: String) {
        #expect(PartialDate(lenient: text) == nil)
    }

    @Test(
        "times are read with their offset and written in UTC",
        arguments: [
            ("1999-03-31T08:00:00.000Z", "1999-03-31T08:00:00.000Z"),
            ("1999-03-31T08:00:00Z", "1999-03-31T08:00:00.000Z"),
            ("1999-03-31t08:00:00.5z", "1999-03-31T08:00:00.500Z"),
            ("2018-02-22T00:00:00.000+09:00", "2018-02-21T15:00:00.000Z"),
            ("1970-01-01T00:00:00.1239999-00:30", "1970-01-01T00:30:00.123Z"),
            ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"),
            ("-9999-01-01T00:00:00Z", "-9999-01-01T00:00:00.000Z"),
            ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
            ("0000-02-29T12:00:00Z", "0000-02-29T12:00:00.000Z"),
        ])
    func times(_ text: String, _ written: String) throws {
        let time = try #require(TimeText.milliseconds(text))
        #expect(TimeText.text(milliseconds: time) == written)
    }

    @Test("known instants have their milliseconds")
    func instants() {
        #expect(TimeText.milliseconds("1970-01-01T00:00:00Z") == 0)
        #expect(TimeText.milliseconds("2000-03-01T00:00:00Z") == 951_868_800_000)
        #expect(TimeText.milliseconds("-9999-01-01T00:00:00Z") == timeRange.lowerBound)
        #expect(TimeText.milliseconds("9999-12-31T23:59:59.999Z") == timeRange.upperBound)
    }

    @Test(
        "text that is no time is refused",
        arguments: [
            "", "1999-03-31", "1999-03-31T08:00:00", "1999-03-31T08:00Z", "1999-03-31T24:00:00Z",
            "1999-03-31T08:60:00Z",
            "1999-02-30T08:00:00Z", "1999-03-31T08:00:00.Z", "1999-03-31T08:00:00+9", "1999-03-31T08:00:00Zx",
            "9999-12-31T23:59:59.999-00:01", "1999-00-01T00:00:00Z",
        ])
    func noTimes(_ text: String) {
        #expect(TimeText.milliseconds(text) == nil)
    }

    @Test("days and calendar dates correspond over four centuries and more")
    func calendar() {
        var days = PartialDate.days(year: -401, month: 1, day: 1)
        for year in -401...2401 {
            for month in 1...12 {
                for day in 1...PartialDate.days(inMonth: month, year: year) where day < 3 || day > 27 {
                    #expect(PartialDate.civil(days: days + day - 1) == (year, month, day))
                }
                days += PartialDate.days(inMonth: month, year: year)
                #expect(days == PartialDate.days(year: month == 12 ? year + 1 : year, month: month % 12 + 1, day: 1))
            }
        }
    }
}

@Suite("UUIDs and bytes as text")
struct BinaryTextTests {
    @Test("a uuid is read in either case and written in lowercase")
    func uuid() {
        let text = "123e4567-e89b-42d3-a456-42661417400f"
        #expect(UUIDBytes(text: text)?.text == text)
        #expect(UUIDBytes(text: text.uppercased())?.text == text)
        #expect(UUIDBytes(text: "00000000-0000-0000-0000-000000000001")?.low == 1)
        for bad in ["", "123e4567e89b42d3a45642661417400f", text + "0", "g" + text.dropFirst(), "{" + text + "}"] {
            #expect(UUIDBytes(text: bad) == nil)
        }
    }

    @Test("base64 has one form for any bytes")
    func base64() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            #expect(Base64.text(Array(bytes.utf8)) == text)
            #expect(Base64.bytes(text) == Array(bytes.utf8))
        }
        let all = [UInt8](0...255)
        #expect(Base64.bytes(Base64.text(all)) == all)
        for bad in ["Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "Zg==Zg==", "Zm 8=", "Zm8-", "Zm8=\n"] {
            #expect(Base64.bytes(bad) == nil, "\(bad)")
        }
    }
}

/// SplitMix64: the same bytes for the same seed.
struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

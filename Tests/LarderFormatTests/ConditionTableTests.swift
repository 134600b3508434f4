// Conditions and records with the right answers, worked out by hand from SPEC.md section 17.

import Testing

@testable import LarderFormat

@Suite("Conditions by hand")
struct ConditionTableTests {
    private func check(_ record: Record, _ rows: [(String, Bool)]) {
        let stored = Samples.Stored(bytes: Samples.encode(record))
        for (text, expected) in rows {
            do throws(ConditionError) {
                let condition = try Condition(text, schemas: [Samples.schema])
                #expect(stored.matches(condition) == expected, "\(text)")
            } catch { Issue.record("\(text): \(error)") }
        }
    }

    @Test("text compares folded, by code points")
    func text() {
        check(
            Samples.record(["name": .text("Straße Ｎr. 7")]),
            [
                ("name = \"straße nr. 7\"", true), ("name = \"STRAẞE NR. 7\"", true),
                ("name = \"STRASSE NR. 7\"", false), ("name != \"straße nr. 7\"", false), ("name != x", true),
                ("name contains NR", true), ("name contains \"nr. 7\"", true), ("name contains 8", false),
                ("name contains \"\"", true), ("name starts STRA", true), ("name starts traß", false),
                ("name starts \"\"", true), ("name starts \"straße nr. 7!\"", false), ("name < t", true),
                ("name < straße", false), ("name > straße", true), ("name >= straße", true), ("name <= straße", false),
                ("name > s", true), ("name < s", false), ("name <= \"straße nr. 7\"", true),
                ("name >= \"straße nr. 7\"", true), ("name < \"straße nr. 7\"", false),
                ("name in (a, b, \"straße nr. 7\")", true), ("name in (a, b)", false), ("name exists", true),
                ("name is absent", false), ("name is blank", false),
            ])
        check(
            Samples.record(["name": .text("I say \"no\" \\ yes")]),
            [
                (#"name contains "\"no\"""#, true), (#"name contains "\\ yes""#, true),
                (#"name contains "\\\\""#, false),
                ("name contains \\", true),
            ])
    }

    @Test("absent fields are below and above nothing")
    func absent() {
        check(
            Samples.record([:]),
            [
                ("name = x", false), ("name != x", true), ("not name = x", true), ("not name != x", false),
                ("name < x", false), ("name >= x", false), ("not name < x", true), ("name contains \"\"", false),
                ("name starts \"\"", false), ("name = \"\"", false), ("name in (x, \"\")", false),
                ("name exists", false), ("name is absent", true), ("name is blank", true), ("flag = true", false),
                ("flag != true", true), ("count = 0", false), ("count != 0", true), ("count < 5", false),
                ("score <= 0", false), ("day = 1999", false), ("day != 1999", true), ("moment > 0", false),
                ("token is absent", true), ("token != 00000000000000000000000000000000", true), ("form = film", false),
                ("form != film", true), ("form is blank", true), ("genres is blank", true), ("genres != x", true),
                ("genres contains \"\"", false), ("data = \"\"", false), ("data != \"\"", true),
                ("note is absent", true),
            ])
    }

    @Test("blank is the empty text, white space only and the empty list")
    func blank() {
        check(
            Samples.record(["name": .text(""), "note": .text(" \u{3000}\u{2009}\t"), "genres": .list([])]),
            [
                ("name is blank", true), ("name exists", true), ("name is absent", false), ("name = \"\"", true),
                ("name != \"\"", false), ("name contains \"\"", true), ("name < a", true), ("note is blank", true),
                ("note exists", true), ("genres is blank", true), ("genres exists", true), ("genres = x", false),
                ("genres != x", true), ("genres contains \"\"", false),
            ])
        check(
            Samples.record(["note": .text(" x"), "genres": .list([""]), "form": .choice(900), "count": .int(0)]),
            [
                ("note is blank", false), ("genres is blank", false), ("genres = \"\"", true), ("form is blank", true),
                ("form is absent", false), ("count is blank", false), ("code is blank", false),
                ("kind is blank", false), ("@seq is blank", false), ("@saved is absent", false), ("kind exists", true),
            ])
        var record = Samples.record(["form": .choice(1)])
        record[1] = .identifier(.text("\u{A0}"))
        check(record, [("code is blank", true), ("form is blank", false)])
    }

    @Test("an identifier is compared as text, its number as digits")
    func identifier() {
        var record = Samples.record([:])
        record[1] = .identifier(.number(603))
        check(
            record,
            [
                ("code = 603", true), ("code = ６０３", true), ("code = \"603\"", true), ("code = 0603", false),
                ("code != 603", false), ("code starts 60", true), ("code contains 03", true), ("code > 6", true),
                ("code > 7", false), ("code < 1000", false), ("code in (1, 2, 603)", true), ("code = x", false),
            ])
        record[1] = .identifier(.text("TT0133093"))
        check(record, [("code = tt0133093", true), ("code starts tt", true), ("code < tu", true)])
        record[1] = .identifier(.number(0))
        check(record, [("code = 0", true), ("code contains \"\"", true), ("code = 00", false)])
        record[1] = .identifier(.number(.max))
        check(record, [("code = 9223372036854775807", true), ("code starts 9223372036854775807", true)])
    }

    @Test("numbers compare by their exact value")
    func numbers() {
        check(
            Samples.record(["score": Samples.number("7.5"), "count": .int(-3)]),
            [
                ("score = 7.5", true), ("score = 7.50", true), ("score = 75e-1", true), ("score = 0.75e1", true),
                ("score > 7.5", false), ("score >= 7.5", true), ("score > 7.49999999999999999", true),
                ("score < 7.50000000000000001", true), ("score < 8", true), ("score > -8", true), ("score > 7", true),
                ("score < 1e300", true), ("score > 1e-300", true), ("score > -1e300", true), ("score != 7.5", false),
                ("score in (7, 7.5)", true), ("score = 0", false), ("score > 0", true), ("count = -3", true),
                ("count = -3.0", true), ("count = -0.3e1", true), ("count < 0", true), ("count > -4", true),
                ("count < 1e3", true), ("count >= -3", true), ("count <= -3", true), ("count < -3", false),
                ("count > -9223372036854775808", true), ("count < 9223372036854775807", true),
            ])
        check(
            Samples.record(["score": Samples.number("0.1"), "count": .int(.min)]),
            [
                ("score = 0.1", true), ("score > 0.0999999999999999999", true), ("score = 0.10000000000000001", false),
                ("count = -9223372036854775808", true), ("count < 0", true),
            ])
        check(
            Samples.record(["score": Samples.number("-9.223372036854775808e300")]),
            [
                ("score < -9.223372036854775807e300", true), ("score = -9.223372036854775808e300", true),
                ("score < 0", true), ("score < -1", true), ("score > -1e301", true), ("score > -9.3e300", true),
                ("score < 9e-400", true),
            ])
        check(
            Samples.record(["score": Samples.number("0")]),
            [("score = 0", true), ("score = -0", true), ("score = 0e99999", true), ("score < 1e-400", true)])
    }

    @Test("a date is the span of days that it names")
    func dates() {
        check(
            Samples.record(["day": Samples.date("1999-03-31")]),
            [
                ("day = 1999", true), ("day = 1999-03", true), ("day = 1999-03-31", true), ("day = 1999-04", false),
                ("day != 1999", false), ("day > 1999", false), ("day < 1999", false), ("day >= 1999", true),
                ("day <= 1999", true), ("day > 1998", true), ("day < 2000", true), ("day < 1999-04", true),
                ("day > 1999-03", false), ("day <= 1999-03", true), ("day >= 1999-03", true),
                ("day > 1999-03-30", true), ("day < 1999-03-31", false), ("day in (1998, 1999)", true),
                ("day > -0044-03-15", true),
            ])
        check(
            Samples.record(["day": Samples.date("1999")]),
            [
                ("day = 1999", true), ("day = 1999-03", false), ("day != 1999-03", true), ("day >= 1999-01-01", true),
                ("day >= 1999-01-02", false), ("day <= 1999-12-31", true), ("day <= 1999-12-30", false),
                ("day < 2000-01-01", true), ("day > 1998-12-31", true), ("day > 1999-01-01", false),
                ("day < 1999-12-31", false),
            ])
        check(
            Samples.record(["day": Samples.date("2024-02")]),
            [
                ("day <= 2024-02-29", true), ("day <= 2024-02-28", false), ("day = 2024", true),
                ("day = 2024-02", true), ("day < 2024-03", true), ("day >= 2024-02-01", true),
            ])
        check(
            Samples.record(["day": Samples.date("-0001-12-31")]),
            [("day < 0000", true), ("day = -0001", true), ("day > -0002", true), ("day < 1999", true)])
    }

    @Test("times compare with dates in UTC, times and milliseconds")
    func times() {
        check(
            Samples.record(["moment": Samples.time("1999-03-31T08:00:00.000Z")]),
            [
                ("moment = 1999-03-31T08:00Z", true), ("moment = 1999-03-31T17:00+09:00", true),
                ("moment = 1999-03-31T08:00:00.000Z", true), ("moment < 1999-03-31T08:00:00.001Z", true),
                ("moment = 1999-03-31", true), ("moment = 1999-03", true), ("moment = 1999", true),
                ("moment = 1999-04", false), ("moment > 1999", false), ("moment > 1998", true),
                ("moment <= 1999", true), ("moment < 1999-04", true), ("moment = 922867200000", true),
                ("moment > 922867199999", true), ("moment < 922867200001", true),
            ])
        check(
            Samples.record(["moment": .time(-1)]),
            [("moment = 1969-12-31", true), ("moment < 1970", true), ("moment = -1", true), ("moment = 1969", true)])
    }

    @Test("what the log knows of a record is asked for with @")
    func properties() {
        // Saved 2026-11-01T00:00Z, changed 2026-11-02T00:00Z.
        check(
            Samples.record([:]),
            [
                ("@seq = 44", true), ("@seq > 44", false), ("@seq >= 44", true), ("@seq in (1, 44)", true),
                ("@origin = 3", true), ("@origin != 3", false), ("@saved = 2026-11-01", true), ("@saved = 2026", true),
                ("@saved >= 2026-11", true), ("@saved < 2026-11", false), ("@saved < 2026-11-01T00:01Z", true),
                ("@saved = 1793491200000", true), ("@changed > 2026-11-01", true), ("@changed = 2026-11-02", true),
                ("@changed = 2026-11-01", false), ("@seq exists", true), ("kind = sample", true),
                ("kind = SAMPLE", true), ("kind != sample", false), ("kind = other", false), ("kind starts sam", true),
                ("kind contains amp", true), ("kind in (a, sample)", true), ("kind > r", true), ("kind > t", false),
                ("kind >= sample", true), ("kind <= sample", true), ("kind contains x", false),
            ])
    }

    @Test("flags, uuids, bytes, choices and lists")
    func otherTypes() {
        check(
            Samples.record([
                "flag": .bool(true), "token": .uuid(UUIDBytes(high: 0x123E_4567_E89B_42D3, low: 0xA456_4266_1417_4000)),
                "data": .bytes([0, 0xAB]), "form": .choice(64), "genres": .list(["Drama", "Science Fiction", "ＳＦ"]),
            ]),
            [
                ("flag = true", true), ("flag = false", false), ("flag != false", true),
                ("token = 123e4567-e89b-42d3-a456-426614174000", true),
                ("token = 123E4567E89B42D3A456426614174000", true),
                ("token = 123e4567-e89b-42d3-a456-426614174001", false),
                ("token != 123e4567-e89b-42d3-a456-426614174000", false),
                ("token in (123e4567e89b42d3a456426614174000)", true), ("data = 00ab", true), ("data = 00AB", true),
                ("data = 00", false), ("data = 00abcd", false), ("data != 00", true), ("data = \"\"", false),
                ("form = wide", true), ("form != wide", false), ("form = film", false), ("form > s", true),
                ("form < t", false), ("form contains id", true), ("form starts ＷＩ", true), ("form starts fi", false),
                ("form in (film, WIDE)", true), ("genres = drama", true), ("genres = \"science fiction\"", true),
                ("genres = science", false), ("genres = sf", true), ("genres != drama", false),
                ("genres != comedy", true), ("genres contains fic", true), ("genres contains \"a s\"", false),
                ("genres starts sci", true), ("genres starts fic", false), ("genres < e", true), ("genres < d", false),
                ("genres > sf", false), ("genres >= sf", true), ("genres in (comedy, SF)", true),
                ("not genres contains x", true),
            ])
        check(
            Samples.record(["form": .choice(63), "flag": .bool(false)]),
            [("form = kurz", true), ("form = wide", false), ("flag = false", true)])
    }

    @Test("and binds before or, not before both, and white space parts tokens only where it must")
    func structure() {
        check(
            Samples.record(["count": .int(1), "name": .text("a")]),
            [
                ("count = 1 or count = 2 and count = 3", true), ("(count = 1 or count = 2) and count = 3", false),
                ("not count = 2 and count = 1", true), ("not (count = 1 and name = a)", false),
                ("not not count = 1", true), ("not count = 1 or name = a", true),
                ("((count=1))and(name=a)", true), ("count=1\tand\u{3000}name=\"a\"and not(name=b)", true),
                ("count = 2 or count = 3 or count = 1", true), ("count = 1 and name = b or name = a", true),
                ("count in(1,2)and name in(b,c)", false), ("count in (2, 3) or name in (b, a)", true),
                ("not count in (2, 3)", true), ("name = not or name = a", true), ("name in (and, or, a)", true),
            ])
    }
}

// What is no condition: where it is wrong, and why.

import Testing

@testable import LarderFormat

@Suite("Texts that are no conditions")
struct ConditionErrorTests {
    private func fault(_ text: String, _ schemas: [RecordSchema] = [Samples.schema]) -> ConditionError? {
        do throws(ConditionError) {
            _ = try Condition(text, schemas: schemas)
            return nil
        } catch { return error }
    }

    @Test("each is refused at its place, with its reason")
    func places() {
        let rows: [(text: String, offset: Int, reason: String)] = [
            ("", 0, "the condition is empty"),
            (" \t ", 0, "the condition is empty"),
            ("name", 4, "expected =, !=, <, <=, >, >=, contains, starts, in, exists or is, behind 'name', not the end"),
            ("name like x", 5, "not 'like'"),
            ("name = ", 7, "expected a value, not the end"),
            ("name == x", 6, "expected a value, not '='"),
            ("name = x y", 9, "expected 'and', 'or' or the end, not 'y'"),
            ("name ! x", 5, "'!' stands only in '!='"),
            ("name = \"x", 7, "the quotes that begin here do not end"),
            ("name = \"x\\\"", 7, "the quotes that begin here do not end"),
            ("name = \"x\\", 7, "the quotes that begin here do not end"),
            ("name = \"x\\n\"", 9, "a backslash in quotes"),
            ("name = x)", 8, "no parenthesis is open"),
            ("(name = x", 0, "the parenthesis that opens here is not closed"),
            ("(name = x name", 10, "expected 'and', 'or' or ')'"),
            ("name = x and", 12, "expected a field's name, not the end"),
            ("name = x and (", 14, "expected a field's name, not the end"),
            ("\"name\" = x", 0, "expected a field's name, not a text in quotes"),
            ("not", 3, "expected a field's name, not the end"),
            ("name in x", 8, "expected '(' and the values"),
            ("name in ()", 9, "expected a value, not ')'"),
            ("name in (a,)", 11, "expected a value, not ')'"),
            ("name in (a b)", 11, "expected ',' or ')', not 'b'"),
            ("name in (a", 10, "expected ',' or ')', not the end"),
            ("name is", 7, "expected 'absent' or 'blank', not the end"),
            ("name is not blank", 8, "expected 'absent' or 'blank', not 'not'"),
            ("name = a\0", 8, "U+0000"),
            ("Name = x", 0, "the kind sample has no field 'Name'"),
            ("name = a and nothing = 3", 13, "the kind sample has no field 'nothing'"),
            ("한글 = 3", 0, "the kind sample has no field '한글'"),
            ("name = 한 and 글 = 3", 15, "the kind sample has no field '글'"),
            ("@when = 3", 0, "no field '@when'"),
            ("flag < true", 5, "flag is of the type bool, which has no '<'; it has =, !=, exists, is absent, is blank"),
            ("flag in (true)", 5, "which has no 'in'"),
            ("flag contains t", 5, "which has no 'contains'"),
            ("token > 00", 6, "token is of the type uuid, which has no '>'; it has =, !=, in, exists"),
            ("data >= 00", 5, "which has no '>='"),
            ("score contains 7", 6, "which has no 'contains'; it has =, !=, <, <=, >, >=, in, exists"),
            ("count starts 7", 6, "which has no 'starts'"),
            ("day contains 1999", 4, "which has no 'contains'"),
            ("@saved starts 1999", 7, "@saved is of the type time"),
            ("@seq contains 1", 5, "@seq is of the type int"),
            ("flag = yes", 7, "flag holds true or false, not 'yes'"),
            ("flag = True", 7, "not 'True'"),
            ("count = 1.5", 8, "count holds whole numbers of at most 64 bits, not '1.5'"),
            ("count = 9223372036854775808", 8, "whole numbers"),
            ("count = -9223372036854775809", 8, "whole numbers"),
            ("count = x", 8, "whole numbers"),
            ("count = \"\"", 8, "whole numbers"),
            ("count = 1e400", 8, "whole numbers"),
            ("score = 7,5", 9, "expected 'and', 'or' or the end, not ','"),
            ("score = 7.", 8, "score holds numbers"),
            ("score = .5", 8, "score holds numbers"),
            ("score = +5", 8, "score holds numbers"),
            ("score = 007", 8, "score holds numbers"),
            ("score = 1e401", 8, "score holds numbers"),
            ("score = 1e99999999999999999999", 8, "score holds numbers"),
            ("score = 0.12345678901234567891234", 8, "score holds numbers"),
            ("score = NaN", 8, "score holds numbers"),
            ("day = 1999-13", 6, "day holds dates such as 1999, 1999-03 or 1999-03-31, not '1999-13'"),
            ("day = 1999-02-29", 6, "day holds dates"),
            ("day = 99", 6, "day holds dates"),
            ("day = 1999-03-31T08:00Z", 6, "day holds dates"),
            ("moment = soon", 9, "moment holds dates such as 1999-03, times such as 1999-03-31T08:00Z"),
            ("moment = 1999-03-31T08:00", 9, "moment holds dates"),
            ("@changed > tomorrow", 11, "@changed holds dates"),
            ("@origin = bell", 10, "@origin holds whole numbers"),
            ("token = 123e4567", 8, "token holds uuids"),
            ("token = 123e4567-e89b-42d3-a456-42661417400g", 8, "token holds uuids"),
            ("token = 123e4567e89b-42d3-a456-4266141740000", 8, "token holds uuids"),
            ("data = 0", 7, "data holds bytes, as pairs of hex digits, not '0'"),
            ("data = 0g", 7, "data holds bytes"),
            ("form = book", 7, "form holds one of Film, Serie, Kurz, Ｗide,  , not 'book'"),
            ("form in (film, book)", 15, "form holds one of"),
            ("score in (1, x)", 13, "score holds numbers"),
        ]
        for row in rows {
            guard let fault = fault(row.text) else {
                Issue.record("taken: \(row.text)")
                continue
            }
            #expect(fault.offset == row.offset, "\(row.text): \(fault)")
            #expect(fault.reason.contains(row.reason), "\(row.text): \(fault)")
        }
    }

    @Test("4,096 bytes and 64 levels are allowed, one more is not")
    func limits() {
        let padded = "name = x" + String(repeating: " ", count: 4088)
        #expect(fault(padded) == nil)
        #expect(fault(padded + " ")?.offset == 4096)
        func nested(_ count: Int, _ open: String, _ close: String) -> String {
            String(repeating: open, count: count) + "name = x" + String(repeating: close, count: count)
        }
        #expect(fault(nested(64, "(", ")")) == nil)
        #expect(
            fault(nested(65, "(", ")"))
                == ConditionError(offset: 64, reason: "more than 64 levels of parentheses and 'not'"))
        #expect(fault(nested(64, "not ", "")) == nil)
        #expect(fault(nested(65, "not ", ""))?.offset == 256)
        #expect(fault(nested(32, "not (", ")")) == nil)
        #expect(fault(nested(33, "not (", ")"))?.offset == 160)
        #expect(fault(nested(4080, "(", ""))?.offset == 64)
        #expect(fault(Array(repeating: "(name = x)", count: 250).joined(separator: " and ")) == nil)
    }

    @Test("where all kinds are asked for, a test needs one kind that can make it")
    func severalKinds() throws {
        let both = [Samples.schema, Samples.otherSchema]
        #expect(fault("only = 3", both) == nil)
        #expect(fault("day = 1999", both) == nil)
        #expect(fault("day = true", both) == nil)
        #expect(fault("day = 1999 and day = true", both) == nil)
        #expect(fault("none = 3", both) == ConditionError(offset: 0, reason: "no kind has a field 'none'"))
        #expect(fault("day = soon", both)?.reason.contains("dates") == true)
        #expect(fault("kind = 3", both) == nil)
        let sample = Samples.Stored(
            bytes: Samples.encode(Samples.record(["day": Samples.date("1999"), "name": .text("a")])))
        let values: [String: Value] = ["day": .bool(true), "only": .int(3), "name": .text("a"), "kind": .int(5)]
        let other = Samples.Stored(
            kind: Samples.other.number, bytes: Samples.encode(Samples.record(values, Samples.other), Samples.other))
        let rows: [(String, Bool, Bool)] = [
            ("name = a", true, true), ("only = 3", false, true), ("not only = 4", false, true),
            ("only = 3 or name = a", false, true), ("day = 1999", true, false), ("day = true", false, true),
            ("day != 1998", true, false), ("kind = other", false, true), ("kind = sample or only = 4", false, false),
            ("kind = 5", false, false), ("kind in (sample, other)", true, true),
        ]
        for (text, isSample, isOther) in rows {
            let condition = try Condition(text, schemas: both)
            #expect(sample.matches(condition) == isSample, "\(text)")
            #expect(other.matches(condition) == isOther, "\(text)")
        }
        #expect(!other.matches(try Condition("name = a", schemas: [Samples.schema])))
    }

    @Test("random bytes and random tokens never trap")
    func randomTexts() {
        var random = SplitMix(1)
        let pieces = [
            "name", "score", "day", "@saved", "kind", "form", "=", "!=", "<", ">=", "!", "(", ")", ",", "and", "or",
            "not", "in", "is", "blank", "exists", "contains", "\"", "\\", "x", "7.5", "1999-03", "\u{3000}", "é", "-",
            "1e9", " ", " ",
        ]
        var taken = 0
        for _ in 0..<20_000 {
            let text: String
            if random.chance(30) {
                text = String(decoding: (0..<random.below(60)).map { _ in UInt8(random.below(256)) }, as: UTF8.self)
            } else {
                text = (0..<random.below(14)).map { _ in random.pick(pieces) + (random.chance(60) ? " " : "") }.joined()
            }
            if let fault = fault(text, [Samples.schema, Samples.otherSchema]) {
                #expect(fault.offset <= text.utf8.count && !fault.reason.isEmpty)
            } else {
                taken += 1
            }
        }
        #expect(taken > 0)
    }
}

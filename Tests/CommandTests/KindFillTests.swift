import LarderFormat
import LarderWire
import Testing

@testable import larder

@Suite("Declarations that say only what is new")
struct KindFillTests {
    private func fill(_ text: String, _ existing: Kind? = nil, renumbers: Bool = false) throws -> Kind {
        try KindFill(existing: existing, renumbers: renumbers).kind(try JSONValue(parsing: text))
    }

    @Test("a new kind's key gets the first numbers, in the order of the key")
    func newKind() throws {
        let kind = try fill(
            """
            {"kind":"game","key":["b","a"],"label":["c"],"fields":[{"name":"c","type":"text"},
            {"name":"a","type":"int","required":true},{"name":"b","type":"text","required":true}]}
            """)
        #expect(kind.fields.map(\.name) == ["b", "a", "c"])
        #expect(kind.fields.map(\.number) == [1, 2, 3])
        #expect(kind.keyFieldCount == 2)
    }

    @Test("new fields of a shipped kind begin at 129, and what is there stays whole")
    func shippedKind() throws {
        let kind = try fill(#"{"kind":"joke","fields":[{"name":"heard","type":"date"}]}"#, .joke)
        #expect(kind.field(named: "heard")?.number == 129)
        #expect(kind.conflict(with: .joke, ownFieldNumberMin: 129) == nil)
        #expect(Array(kind.fields.dropLast()) == Kind.joke.fields)
        let more = try fill(#"{"kind":"joke","fields":[{"name":"where","type":"text"}]}"#, kind)
        #expect(more.field(named: "where")?.number == 130)
    }

    @Test("a value is added to a choice without those that are there")
    func choice() throws {
        let kind = try fill(#"{"kind":"joke","fields":[{"name":"category","values":{"9":"pun"}}]}"#, .joke)
        let before = Kind.joke.field(named: "category")?.choices.count ?? 0
        #expect(kind.field(named: "category")?.choices.count == before + 1)
        #expect(kind.conflict(with: .joke, ownFieldNumberMin: 129) == nil)
    }

    @Test("a field whose type differs is a conflict that says both")
    func conflict() throws {
        let kind = try fill(#"{"kind":"joke","fields":[{"name":"body","type":"int","not_blank":false}]}"#, .joke)
        #expect(kind.conflict(with: .joke, ownFieldNumberMin: 129)?.contains("its type is text, not int") == true)
    }

    @Test("from another library a field whose number is taken here gets the next one")
    func renumbered() throws {
        let here = try fill(#"{"kind":"joke","fields":[{"name":"mood","type":"text"}]}"#, .joke)
        let text = #"{"kind":"joke","fields":[{"number":129,"name":"shelf","type":"text"}]}"#
        let kind = try fill(text, here, renumbers: true)
        #expect(kind.field(named: "mood")?.number == 129)
        #expect(kind.field(named: "shelf")?.number == 130)
    }

    @Test("what is no declaration is refused with its place", arguments: ["[]", "{}", #"{"kind":"a","fields":[1]}"#])
    func bad(text: String) {
        #expect(throws: KindFileError.self) { try fill(text) }
    }
}

@Suite("Texts of reading commands")
struct ReadingTextTests {
    @Test("a cell is in quotes only where it has to be")
    func cells() {
        #expect(CSVWriter.row(["a", "b c", ""]) == "a,b c,\r\n")
        #expect(CSVWriter.cell("a,b") == "\"a,b\"")
        #expect(CSVWriter.cell("say \"no\"") == "\"say \"\"no\"\"\"")
        #expect(CSVWriter.cell("a\r\nb") == "\"a\r\nb\"")
        #expect(CSVWriter.cell(" a") == "\" a\"")
        #expect(CSVWriter.cell("=1+1") == "=1+1")
    }

    @Test("the caret stands below the place, wide characters counted")
    func carets() {
        #expect(ConditionText.pointer("a = b", place: 5) == "\n  a = b\n      ^")
        #expect(ConditionText.pointer("한 = b", place: 5) == "\n  한 = b\n     ^")
        #expect(ConditionText.pointer("a", place: 2) == "\n  a\n   ^")
        #expect(ConditionText.pointer("a", place: 0) == "\n  a")
        #expect(ConditionText.pointer("a", place: 99) == "\n  a")
    }

    @Test("the worst finding is the exit code")
    func findings() {
        #expect(Finding.exitCode([]) == 0)
        #expect(Finding.exitCode([Finding("a", .ok, ""), Finding("b", .warn, "")]) == 1)
        #expect(Finding.exitCode([Finding("a", .bad, ""), Finding("b", .warn, "")]) == 2)
    }
}

@Suite("Lines of a dump")
struct DumpLineTests {
    /// What a line comes to: "" for a record, else the fault's code.
    private func code(_ line: String) -> String {
        let reader = DumpReader()
        for kind in Kind.shipped { reader.set(kind, isAlike: true) }
        return Array(line.utf8).withUnsafeBytes { bytes in
            do throws(DumpFault) {
                _ = try reader.read(bytes)
                return ""
            } catch { return error.code }
        }
    }

    @Test("a record is read whatever the order of the members")
    func order() {
        let record = #"{"id":"123e4567-e89b-42d3-a456-426614174000","body":"b"}"#
        #expect(code(#"{"record":\#(record),"saved":"2026-01-31T08:00:00.000Z","kind":"joke"}"#) == "")
        #expect(code(#"{"kind":"joke","origin":"a","first_seq":1,"record":\#(record)}"#) == "")
    }

    @Test(
        "a bad line has a code",
        arguments: [
            ("", "bad-json"), ("[]", "not-an-object"), (#"{"kind":"joke"}"#, "missing-record"),
            (#"{"record":{}}"#, "missing-kind"), (#"{"kind":"joke","record":{"id":5}}"#, "bad-id"),
            (#"{"kind":"joke","record":{},"bytes":""}"#, "bad-record"),
            (#"{"kind":"joke","size":1}"#, "unknown-member"),
            (#"{"kind":"joke","first_seq":0}"#, "bad-first_seq"), (#"{"kind":"joke","origin":""}"#, "bad-origin"),
            (#"{"kind":"joke","bytes":"////"}"#, "bad-bytes"), (#"{"larder_dump":2}"#, "bad-version"),
            (#"{"kind":"joke","saved":9e99}"#, "bad-saved"),
        ])
    func bad(line: String, expected: String) { #expect(code(line) == expected) }
}

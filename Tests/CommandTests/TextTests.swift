import LarderFormat
import LarderWire
import Testing

@testable import larder

@Suite("Numbers, bytes and times for people")
struct FormatsTests {
    @Test("thousands are set apart")
    func counts() {
        #expect(Formats.count(0) == "0")
        #expect(Formats.count(999) == "999")
        #expect(Formats.count(1_000) == "1,000")
        #expect(Formats.count(17_472) == "17,472")
        #expect(Formats.count(-1_234_567) == "-1,234,567")
        #expect(Formats.count(Int.min) == "-9,223,372,036,854,775,808")
        #expect(Formats.count(1, "record") == "1 record")
        #expect(Formats.count(2, "batch", "batches") == "2 batches")
    }

    @Test("bytes change their unit before they have four digits")
    func bytes() {
        #expect(Formats.bytes(1) == "1 byte")
        #expect(Formats.bytes(1_023) == "1023 bytes")
        #expect(Formats.bytes(1_024) == "1 KiB")
        #expect(Formats.bytes(1_536) == "1.5 KiB")
        #expect(Formats.bytes(1_048_575) == "1 MiB")
        #expect(Formats.bytes(64 << 20) == "64 MiB")
        #expect(Formats.bytes(123 << 20) == "123 MiB")
        #expect(Formats.bytes(3 << 40) == "3 TiB")
    }

    @Test("durations have one or two units")
    func durations() {
        #expect(Formats.duration(milliseconds: 0) == "0 s")
        #expect(Formats.duration(milliseconds: 440) == "0.4 s")
        #expect(Formats.duration(milliseconds: 9_949) == "9.9 s")
        #expect(Formats.duration(milliseconds: 59_499) == "59 s")
        #expect(Formats.duration(milliseconds: 59_500) == "1 min")
        #expect(Formats.duration(milliseconds: 185_000) == "3 min 5 s")
        #expect(Formats.duration(milliseconds: 7_440_000) == "2 h 4 min")
        #expect(Formats.duration(milliseconds: 93_600_000) == "1 d 2 h")
        #expect(Formats.duration(milliseconds: -5) == "0 s")
    }

    @Test("rates have two digits that count")
    func rates() {
        #expect(Formats.rate(311_987, milliseconds: 1_000) == "310,000/s")
        #expect(Formats.rate(5, milliseconds: 2_000) == "2.5/s")
        #expect(Formats.rate(99, milliseconds: 1_000) == "99/s")
        #expect(Formats.rate(0, milliseconds: 0) == "0/s")
    }

    @Test("hexadecimal digits are read as they are written")
    func hex() {
        #expect(Hex.text([0, 255, 16]) == "00ff10")
        #expect(Hex.bytes("00ff10") == [0, 255, 16])
        #expect(Hex.bytes("00FF") == [0, 255])
        #expect(Hex.bytes("0") == nil)
        #expect(Hex.bytes("0g") == nil)
    }

    @Test("progress has a bar, a share, a rate and what is left")
    func progress() {
        let text = ProgressBar.text(
            done: 50, total: 100, count: 4_000, what: "rows", milliseconds: 2_000, hasBar: true)
        #expect(text == "[############------------] 50%  4,000 rows, 2,000/s, 2 s left")
        let line = ProgressBar.text(
            done: 4_000, total: nil, count: 4_000, what: "rows", milliseconds: 2_000, hasBar: false)
        #expect(line == "4,000 rows, 2,000/s")
    }
}

@Suite("Tables")
struct TableTests {
    private func lines(_ rows: [[String]], width: Int?, _ columns: [Table.Column]) -> [String] {
        var table = Table(columns, width: width)
        for row in rows { table.add(row) }
        let heading = table.heading()
        return [heading] + table.takeLines()
    }

    private static let columns: [Table.Column] = [.init("LABEL", flexible: true), .init("KIND"), .init("N", .trailing)]

    @Test("columns line up by cells, whatever the script")
    func widths() {
        let lines = lines(
            [
                ["각자의 계절", "book", "1"], ["🛶 Canoe", "movie", "12"], ["Family 👩‍👩‍👧", "tv", "7"],
                ["Amélie", "movie", "345"],
            ],
            width: nil, TableTests.columns)
        #expect(lines[0] == "LABEL        KIND     N")
        #expect(lines[1] == "각자의 계절  book     1")
        #expect(lines[2] == "🛶 Canoe     movie   12")
        #expect(lines[3] == "Family 👩‍👩‍👧    tv       7")
        #expect(lines[4] == "Amélie       movie  345")
        #expect(Set(lines.map(DisplayText.width)).count == 1)
    }

    @Test("a flexible column gives way to the terminal's width, the others stay whole")
    func fitted() {
        let lines = lines([["A very long title that goes on", "movie", "12"]], width: 24, TableTests.columns)
        #expect(lines[1] == "A very long …  movie  12")
        #expect(lines.allSatisfy { DisplayText.width($0) <= 24 })
        let narrow = self.lines([["A very long title", "movie", "12"]], width: 10, TableTests.columns)
        #expect(narrow[1] == "A very …  movie  12")
    }

    @Test("a wide character is not cut in two")
    func wide() {
        let lines = lines([["각자의 계절과 계절", "book", "1"]], width: 22, TableTests.columns)
        #expect(lines[1] == "각자의 계절…   book  1")
    }

    @Test("cells that are empty at the end leave no spaces, and control characters show themselves")
    func cells() {
        let lines = lines([["a\u{1B}[31mb\nc", "", ""]], width: nil, TableTests.columns)
        #expect(lines[1] == "a␛[31mb␊c")
    }

    @Test("later pages keep the columns, and widen them only where they must")
    func pages() {
        var table = Table(TableTests.columns, width: nil)
        table.add(["long enough", "movie", "1"])
        _ = table.takeLines()
        table.add(["short", "tv", "2"])
        #expect(table.takeLines() == ["short        tv     2"])
    }
}

@Suite("Accounting")
struct AccountingTests {
    @Test("every row read is in one of the seven sums")
    func text() {
        var sum = Accounting()
        var counts = ImportCounts()
        counts.read = 1_007
        counts.created = 1_000
        counts.duplicate = 2
        counts.refused = 5
        sum.add(counts)
        #expect(sum.isEven)
        #expect(
            sum.text == "read 1,007 = 1,000 created + 0 updated + 0 unchanged + 2 duplicate + 0 already saved"
                + " + 0 skipped + 5 refused")
        counts.read = 1
        sum.add(counts)
        #expect(!sum.isEven)
    }

    @Test("an importer's account is read, with what it leaves out as 0")
    func importer() throws {
        let counts = ImportCounts(json: try JSONValue(parsing: #"{"read":3,"created":2,"already_saved":1}"#))
        #expect(counts.read == 3 && counts.created == 2 && counts.alreadySaved == 1 && counts.sum == 3)
        #expect(ImportCounts(json: try JSONValue(parsing: #"{"created":2}"#)).read == 2)
    }

    @Test("a refusal says file, line, reason and field, the field once")
    func refusal() {
        let refusal = Refusal(
            file: "films.jsonl", at: "5", line: 5, field: "id", reason: "bad-id", message: "id: expected a number")
        #expect(refusal.text == "films.jsonl:5: bad-id: id: expected a number")
        #expect(Refusal(field: "id", reason: "r", message: "too long").text == "-: r: id: too long")
    }
}

@Suite("Looking at inputs")
struct SampleTests {
    private func sample(_ text: String) -> ImportSample { ImportSample(Array(text.utf8)) }

    @Test("lines, objects, arrays and nothing are told apart")
    func shapes() {
        #expect(sample("{\"id\":1}\n{\"id\":2}\n").isJSONLines)
        #expect(sample("{\"id\":1}").isJSONLines)
        #expect(sample("\u{FEFF}\r\n{\"id\":1}\r\n\r\n{\"id\":2}").isJSONLines)
        #expect(!sample("{\n \"page\": 1,\n \"results\": []\n}").isJSONLines)
        #expect(!sample("[1,2]").isJSONLines)
        #expect(!sample("id,title\n1,x\n").isJSONLines)
        #expect(sample("").shape == .empty)
        #expect(sample("\u{FEFF}").shape == .empty)
    }

    @Test("the names in an object and in a first line are found")
    func names() {
        #expect(sample("{\n \"page\": 1,\n \"results\": []\n}").objectKeys == ["page", "results"])
        #expect(sample("{\"kind\":\"joke\",\"body\":\"x\"}\n{}\n").lineKeys == ["kind", "body"])
    }
}

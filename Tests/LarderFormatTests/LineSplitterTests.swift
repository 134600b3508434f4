import Testing

@testable import LarderFormat

@Suite("Splitting lines")
struct LineSplitterTests {
    private func lines(_ text: [UInt8], chunk: Int, limit: Int = 100) -> [String] {
        var splitter = LineSplitter(limit: limit)
        var found: [String] = []
        func take(_ number: Int, _ line: LineSplitter.Line) {
            switch line {
            case .text(let bytes): found.append("\(number):\(String(decoding: bytes, as: UTF8.self))")
            case .tooLong: found.append("\(number) too long")
            }
        }
        text.withUnsafeBytes { bytes in
            for start in stride(from: 0, to: bytes.count, by: chunk) {
                splitter.feed(UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + chunk, bytes.count)]), take)
            }
            splitter.finish(take)
        }
        return found
    }

    @Test(
        "lines and their numbers do not depend on how the bytes are chopped",
        arguments: [
            ("", []), ("\n", []), ("a", ["1:a"]), ("a\n", ["1:a"]), ("a\r\n\r\nb\r\n", ["1:a", "3:b"]),
            ("\u{FEFF}a\nb", ["1:a", "2:b"]), ("\u{FEFF}", []), ("\u{FEFF}\n\u{FEFF}a", ["2:\u{FEFF}a"]),
            ("a\rb\nc", ["1:a\rb", "2:c"]), (" \t\n\n  x\n", ["3:  x"]), ("a\r", ["1:a"]),
            ("12345678\nx", ["1:12345678", "2:x"]),
            ("\u{FEFF}12345678\nx", ["1:12345678", "2:x"]), ("123456789\nx", ["1 too long", "2:x"]),
            ("\u{FEFF}123456789\nx", ["1 too long", "2:x"]), ("x\n1234567890123456789", ["1:x", "2 too long"]),
            ("1234567890\n1234567890\ny", ["1 too long", "2 too long", "3:y"]),
        ] as [(String, [String])])
    func chopped(_ text: String, _ expected: [String]) {
        for chunk in 1...25 {
            #expect(lines(Array(text.utf8), chunk: chunk, limit: 8) == expected, "chunks of \(chunk)")
        }
    }

    @Test("a body that throws ends the call with its own error")
    func throwing() {
        struct Stop: Error, Equatable {}
        var splitter = LineSplitter()
        #expect(throws: Stop()) {
            try Array("a\nb\n".utf8).withUnsafeBytes { try splitter.feed($0) { _, _ in throw Stop() } }
        }
        #expect(splitter.lineNumber == 1)
    }
}

@Suite("Form of an input")
struct InputShapeTests {
    private func sniff(_ text: String) -> InputShape { Array(text.utf8).withUnsafeBytes { InputShape.sniff($0) } }

    @Test("nothing and white space are empty")
    func empty() {
        #expect(sniff("") == .empty)
        #expect(sniff("\u{FEFF} \r\n\t") == .empty)
    }

    @Test("objects on lines of their own are lines, also when the first is wrong")
    func lines() {
        #expect(sniff("{\"a\":1}\n{\"a\":2}\n") == .jsonLines)
        #expect(sniff("\u{FEFF}\n{\"a\":1}\r\n\r\n{\"a\":2") == .jsonLines)
        #expect(sniff("{\"a\":\"cut o\n{\"a\":2}\n") == .jsonLines)
        #expect(sniff("{\"a\":1}\nrubbish") == .jsonLines)
        #expect(sniff("[1]\n[2]\n") == .jsonLines)
    }

    @Test("one object has its top-level names, as far as the sample goes")
    func object() {
        #expect(
            sniff("{\n \"page\": 1,\n \"results\": [{\"id\":1}],\n \"x\":{}}\n")
                == .jsonObject(topLevelKeys: ["page", "results", "x"]))
        #expect(sniff("{\"page\":1,\"results\":[{\"id\"") == .jsonObject(topLevelKeys: ["page", "results"]))
        #expect(sniff("{\n\"page\":1,\n\"resul") == .jsonObject(topLevelKeys: ["page"]))
        #expect(sniff("{\"id\":1,\"title\":\"x\"}\n") == .jsonObject(topLevelKeys: ["id", "title"]))
        let cut = Array("{\"a\":1,\"t\":\"한".utf8).dropLast()
        #expect(Array(cut).withUnsafeBytes { InputShape.sniff($0) } == .jsonObject(topLevelKeys: ["a", "t"]))
    }

    @Test("one array is an array, and anything else is other")
    func others() {
        #expect(sniff("[\n{\"id\":1},\n{\"id\"") == .jsonArray)
        #expect(sniff("[]") == .jsonArray)
        #expect(sniff("Date,Name,Year\n2020-01-01,x,2019\n") == .other)
        #expect(sniff("<movie>") == .other)
        #expect(sniff("{\n \"a\": 1,\n nope\n}") == .other)
        #expect(sniff("{\n\"a\":1\n}\n{\n\"a\":2\n}") == .other)
        #expect(sniff("{not json}") == .other)
    }
}

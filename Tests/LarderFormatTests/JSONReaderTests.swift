import Testing

@testable import LarderFormat

/// Reads text to its end, token by token, without making a tree.
private func tokens(_ text: [UInt8]) throws(JSONError) -> [JSONToken] {
    try text.withUnsafeBufferPointer { bytes throws(JSONError) in
        var reader = JSONReader(UnsafeRawBufferPointer(bytes))
        var found: [JSONToken] = []
        while true {
            let token = try reader.next()
            if token == .end { return found }
            found.append(token)
        }
    }
}

private func fault(_ text: [UInt8]) -> JSONError? {
    do throws(JSONError) {
        _ = try tokens(text)
        return nil
    } catch {
        return error
    }
}

private func fault(_ text: String) -> JSONError? { fault(Array(text.utf8)) }

@Suite("JSON reader")
struct JSONReaderTests {
    @Test(
        "text that RFC 8259 allows is read",
        arguments: [
            "{}", "[]", " [ ] ", "\t\r\n{ }\n", "null", "true", "false", "0", "-0", "-0.0e-0", "1e5", "1E+5", "1.5e-10",
            "123456789012345678901234567890", "\"\"", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"", "\"\u{7F}\"",
            "\"\\u0000\"", "[1,2,[3,{\"a\":[]}]]", "{\"\":0}", "{\"a\":1,\"A\":2}", "\"\u{2028}\u{FFFE}\u{10FFFF}\"",
            "\"\\uD834\\uDD1E\"", "[null,true,false]", "{\"a\":{\"a\":{\"a\":1}}}", "\"12345678\"", "\"1234567\\n\"",
            "[0.1,-1]", "1e400",
        ])
    func allowed(_ text: String) {
        #expect(fault(text) == nil)
    }

    @Test(
        "text that breaks RFC 8259 is refused with its reason and place",
        arguments: [
            ("", .unexpectedEnd, 0), (" ", .unexpectedEnd, 1), ("[", .unexpectedEnd, 1), ("[1", .unexpectedEnd, 2),
            ("[1,", .unexpectedEnd, 3), ("{\"a\"", .unexpectedEnd, 4), ("{\"a\":", .unexpectedEnd, 5),
            ("{\"a\":1", .unexpectedEnd, 6), ("\"abc", .unexpectedEnd, 4), ("\"\\", .unexpectedEnd, 2),
            ("\"\\u12", .unexpectedEnd, 5), ("tru", .unexpectedEnd, 3), ("-", .unexpectedEnd, 1),
            ("1.", .unexpectedEnd, 2), ("1e", .unexpectedEnd, 2), ("1e+", .unexpectedEnd, 3),
            ("[1,]", .unexpectedByte, 3), ("[,1]", .unexpectedByte, 1), ("[1,,2]", .unexpectedByte, 3),
            ("{\"a\":1,}", .unexpectedByte, 7), ("{,}", .unexpectedByte, 1), ("{a:1}", .unexpectedByte, 1),
            ("{'a':1}", .unexpectedByte, 1), ("{\"a\" 1}", .unexpectedByte, 5), ("{\"a\":}", .unexpectedByte, 5),
            ("{1:2}", .unexpectedByte, 1), ("[1 2]", .unexpectedByte, 3), ("[1}", .unexpectedByte, 2),
            ("{\"a\":1]", .unexpectedByte, 6), ("]", .unexpectedByte, 0), ("nul!", .unexpectedByte, 0),
            ("True", .unexpectedByte, 0), ("NaN", .unexpectedByte, 0), ("+1", .unexpectedByte, 0),
            (".5", .unexpectedByte, 0), ("-Infinity", .badNumber, 0), ("// no", .unexpectedByte, 0),
            ("[1/**/]", .unexpectedByte, 2), ("\u{FEFF}{}", .unexpectedByte, 0), ("{}{}", .trailing, 2),
            ("1 2", .trailing, 2), ("1x", .trailing, 1), ("truex", .trailing, 4), ("01", .badNumber, 0),
            ("[-01]", .badNumber, 1), ("[1.]", .badNumber, 1), ("[1e]", .badNumber, 1), ("[1.e5]", .badNumber, 1),
            ("[-]", .badNumber, 1), ("[0x10]", .unexpectedByte, 2), ("\"a\u{1}\"", .controlCharacter, 2),
            ("\"a\nb\"", .controlCharacter, 2), ("\"12345678\t\"", .controlCharacter, 9), ("\"\\x\"", .badEscape, 1),
            ("\"\\u00G0\"", .badEscape, 1), ("\"\\U0041\"", .badEscape, 1), ("\"\\ud83d\"", .badUnicode, 1),
            ("\"\\ud83d x\"", .badUnicode, 1), ("\"\\ud83d\\n\"", .badUnicode, 1), ("\"\\ude00\"", .badUnicode, 1),
            ("\"\\ud83d\\ud83d\"", .badUnicode, 1), ("{\"a\":1,\"a\":2}", .repeatedName, 7),
            ("{\"a\":1,\"\\u0061\":2}", .repeatedName, 7), ("[{\"b\":{\"a\":1},\"c\":0,\"b\":1}]", .repeatedName, 20),
        ] as [(String, JSONError.Code, Int)])
    func refused(_ text: String, _ code: JSONError.Code, _ offset: Int) {
        let error = fault(text)
        #expect(error?.code == code)
        #expect(error?.offset == offset)
    }

    @Test("bytes that are not UTF-8 are refused where they begin, also behind the value")
    func notUTF8() {
        #expect(fault([0x22, 0x61, 0xFF, 0x22])?.code == .badUnicode)
        #expect(fault([0x22, 0x61, 0xFF, 0x22])?.offset == 2)
        #expect(fault([0x22, 0xED, 0xA0, 0x80, 0x22])?.code == .badUnicode)
        #expect(fault([0x22, 0xC0, 0x80, 0x22])?.code == .badUnicode)
        #expect(fault([0x5B, 0x31, 0x5D, 0xC3])?.code == .badUnicode)
        #expect(fault([0x22, 0xE3, 0x81])?.code == .badUnicode)
    }

    @Test("a raw NUL is a control character in a string and no character at all elsewhere")
    func rawNUL() {
        #expect(fault([0x22, 0x61, 0x00, 0x22])?.code == .controlCharacter)
        #expect(fault([0x5B, 0x00, 0x5D])?.code == .unexpectedByte)
    }

    @Test("containers may be 64 deep and no deeper")
    func depth() {
        #expect(fault(String(repeating: "[", count: 64) + String(repeating: "]", count: 64)) == nil)
        let deep = fault(String(repeating: "[", count: 65) + String(repeating: "]", count: 65))
        #expect(deep?.code == .tooDeep)
        #expect(deep?.offset == 64)
        #expect(fault(String(repeating: "{\"a\":", count: 65))?.code == .tooDeep)
    }

    @Test("line and column count from 1, columns in characters")
    func place() {
        let error = fault("{\n  \"한\": x}")
        #expect(error?.line == 2)
        #expect(error?.column == 8)
        #expect(
            error?.description
                == "a character that can't stand here; expected a value, at line 2, column 8 (offset 11)")
    }

    @Test("every truncation of a text is an error at its end or a value of its own")
    func truncations() {
        let text = Array("{\"a\":[1,-2.5e3,\"x\\u00e9\\ud83d\\ude00é한\"],\"b\":{\"c\":null,\"d\":true}}".utf8)
        for count in 0..<text.count {
            let error = fault(Array(text.prefix(count)))
            #expect(error?.code == .unexpectedEnd || error?.code == .badUnicode, "\(count)")
        }
        #expect(fault(text) == nil)
    }

    @Test("any change of one byte is read or refused, never more")
    func mutations() {
        let text = Array("{\"a\":[1,-2.5e3,\"x\\u00e9é한\"],\"bb\":{\"c\":null,\"d\":true}} ".utf8)
        var refused = 0
        for index in text.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = text
                changed[index] = byte
                if fault(changed) != nil { refused += 1 }
            }
        }
        #expect(refused > text.count * 100)
    }

    @Test("a name repeated among thousands is found, and thousands of different ones are quick")
    func manyNames() {
        // Same length, same first and last eight bytes: all share one hash.
        let names = (0..<20_000).map { "prefix--\(100_000 + $0)--suffix" }
        let members = names.map { "\"\($0)\":0" }.joined(separator: ",")
        #expect(fault("{\(members)}") == nil)
        let error = fault("{\(members),\"\(names[7])\":1}")
        #expect(error?.code == .repeatedName)
        #expect(error?.offset == members.utf8.count + 2)
    }

    @Test("the same name in sibling and nested objects is no repetition")
    func namesPerObject() {
        #expect(fault("[{\"a\":1},{\"a\":{\"a\":2,\"b\":{\"a\":3}}}]") == nil)
    }

    @Test("strings give their bytes as they lie, and decode their escapes")
    func strings() throws {
        let source = Array("[\"plain 한\",\"a\\u0000b\\n\\ud83d\\udef6\\/\"]".utf8)
        try source.withUnsafeBytes { bytes throws in
            var reader = JSONReader(bytes)
            #expect(try reader.next() == .beginArray)
            #expect(try reader.next() == .string)
            #expect(!reader.text.hasEscapes)
            #expect(reader.text.bytes.elementsEqual("plain 한".utf8))
            #expect(reader.text.bytes.baseAddress == bytes.baseAddress.map { $0 + 2 })
            #expect(try reader.next() == .string)
            #expect(reader.text.hasEscapes && reader.text.hasNUL)
            #expect(reader.text.string == "a\0b\n🛶/")
            var out: [UInt8] = []
            reader.text.append(to: &out, removingNUL: true)
            #expect(out == Array("ab\n🛶/".utf8))
        }
    }

    @Test("integers are exact to the ends of 64 bits")
    func integers() throws {
        func value(_ text: String) throws -> JSONValue { try JSONValue(parsing: text) }
        #expect(try value("9223372036854775807") == .integer(.max))
        #expect(try value("-9223372036854775808") == .integer(.min))
        #expect(try value("9007199254740993") == .integer(9_007_199_254_740_993))
        #expect(try value("9223372036854775808") == .unsigned(1 << 63))
        #expect(try value("18446744073709551615") == .unsigned(.max))
        #expect(try value("18446744073709551616") == .decimal("18446744073709551616"))
        #expect(try value("-9223372036854775809") == .decimal("-9223372036854775809"))
        #expect(try value("99999999999999999999") == .decimal("99999999999999999999"))
        #expect(try value("-0") == .integer(0))
        #expect(try value("1.0") == .decimal("1.0"))
        #expect(try value("1e2") == .decimal("1e2"))
    }

    @Test("whole numbers are known however they are written")
    func whole() {
        func whole(_ text: String) -> Int64? {
            Array(text.utf8).withUnsafeBytes { JSONNumber(parsing: $0)?.wholeInt64 }
        }
        #expect(whole("90.0") == 90)
        #expect(whole("-90.00") == -90)
        #expect(whole("1e3") == 1000)
        #expect(whole("12.5e1") == 125)
        #expect(whole("0.0") == 0)
        #expect(whole("0e999999999999") == 0)
        #expect(whole("1.5") == nil)
        #expect(whole("1e19") == nil)
        #expect(whole("-9.223372036854775808e18") == Int64.min)
        #expect(whole("9.223372036854775808e18") == nil)
        #expect(whole("1e-999999999999") == nil)
    }

    @Test("an object keeps the order of its members, and a byte order mark is passed over")
    func tree() throws {
        let json = try JSONValue(parsing: "\u{FEFF}{\"b\":1,\"a\":[true,null,\"x\"]}")
        #expect(json.object?.names == ["b", "a"])
        #expect(json["a"] == .array([.bool(true), .null, .string("x")]))
        #expect(json["c"] == nil)
    }

    @Test("a value can be passed over with all that is in it")
    func skipping() throws {
        try Array("{\"a\":[1,{\"b\":[2]}],\"c\":3}".utf8).withUnsafeBytes { bytes throws in
            var reader = JSONReader(bytes)
            _ = try reader.next()
            _ = try reader.next()
            try reader.skipValue()
            #expect(try reader.next() == .name)
            #expect(reader.text.equals("c"))
            try reader.skipValue()
            #expect(try reader.next() == .endObject)
            try reader.finish()
        }
    }
}

@Suite("JSON writer")
struct JSONWriterTests {
    @Test("quotes, backslashes and control characters are escaped, nothing else")
    func escapes() {
        var writer = JSONWriter()
        writer.string("\"\\/\u{0}\u{1F}\u{8}\t\n\u{C}\r\u{7F}é한🛶")
        #expect(writer.text == "\"\\\"\\\\/\\u0000\\u001f\\b\\t\\n\\f\\r\u{7F}é한🛶\"")
    }

    @Test("commas stand between members and elements")
    func commas() {
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("a")
        writer.beginArray()
        writer.integer(1)
        writer.integer(-2)
        writer.beginObject()
        writer.endObject()
        writer.endArray()
        writer.name("b")
        writer.double(8.6)
        writer.name("c")
        writer.null()
        writer.endObject()
        writer.newline()
        writer.bool(true)
        #expect(writer.text == "{\"a\":[1,-2,{}],\"b\":8.6,\"c\":null}\ntrue")
    }

    @Test("what is written reads back as the same tree")
    func roundTrip() throws {
        let text = "{\"a\":[1,18446744073709551615,1.50e3,\"x\\n\\u0000\"],\"b\":{},\"c\":[],\"d\":[null,true,false]}"
        let json = try JSONValue(parsing: text)
        var writer = JSONWriter()
        writer.value(json)
        #expect(writer.text == text)
    }
}

import Testing

@testable import LarderFormat

@Suite("Records as values and text")
struct RecordTextTests {
    private func matrix() throws -> Record {
        Record([
            (1, .text("tmdb")), (2, .choice(1)), (3, .identifier(.number(603))), (4, .text("The Matrix")),
            (11, .date(try #require(PartialDate(year: 1999, month: 3, day: 31)))),
        ])
    }

    /// A kind with every type.
    private func everything() throws -> Kind {
        let fields = FieldType.allCases.map { type in
            Field(
                Int(type.rawValue) + 1, "f_\(type.name)", type, [],
                choices: type == .choice ? [Field.Choice(number: 3, name: "three")] : [])
        }
        return try Kind(
            number: 64, name: "all", version: 1, keyFieldCount: 1,
            fields: [Field(1, "key", .text, [.required, .notBlank])] + fields, labelFields: [5, 1])
    }

    @Test("the example of FORMAT.md section 4 has its bytes")
    func example() throws {
        let bytes: [UInt8] = [
            0x02, 0x0F, 0x04, 0x04, 0x74, 0x6D, 0x64, 0x62, 0x01, 0xB6, 0x09, 0x0A, 0x54, 0x68, 0x65, 0x20, 0x4D, 0x61,
            0x74, 0x72, 0x69, 0x78, 0xBE, 0xC3, 0x65,
        ]
        #expect(try matrix().encode(.title) == bytes)
        #expect(try Record(decoding: bytes, .title) == matrix())
        #expect(try matrix().label(.title) == "The Matrix")
        #expect(try matrix().key(.title) == Array(bytes[3..<11]))
        #expect(
            try matrix().json(.title)
                == #"{"source":"tmdb","media_type":"movie","id":603,"title":"The Matrix","release_date":"1999-03-31"}"#)
    }

    @Test("every type goes to bytes and to JSON and back")
    func everyType() throws {
        let kind = try everything()
        let record = Record([
            (1, .text("k/%")), (2, .bool(true)), (3, .int(-7)), (4, .number(try Number(jsonText: "8.6"))),
            (5, .text("")), (6, .identifier(.text("0140449132"))), (7, .bytes([0, 255, 16])),
            (8, .date(try #require(PartialDate(year: -720)))), (9, .time(-1)),
            (10, .uuid(UUIDBytes(high: 0x0102_0304_0506_0708, low: 0x090A_0B0C_0D0E_0F10))), (11, .choice(3)),
            (12, .list(["", "a\n"])),
        ])
        let bytes = try record.encode(kind)
        #expect(try Record(decoding: bytes, kind) == record)
        let json = record.json(kind)
        #expect(
            json == #"{"key":"k/%","f_bool":true,"f_int":-7,"f_number":8.6,"f_text":"","f_identifier":"0140449132","#
                + #""f_bytes":"AP8Q","f_date":"-0720","f_time":"1969-12-31T23:59:59.999Z","#
                + #""f_uuid":"01020304-0506-0708-090a-0b0c0d0e0f10","f_choice":"three","f_list":["","a\n"]}"#)
        #expect(try Record(json: JSONValue(parsing: json), kind) == record)
        #expect(record.label(kind) == "k/%")
        for count in 0..<bytes.count {
            #expect(throws: FormatError.self) { try Record(decoding: Array(bytes.prefix(count)), kind) }
        }
    }

    @Test("decoding and the fast check agree on every changed byte of a record")
    func twins() throws {
        let kind = try everything()
        let schema = RecordSchema(kind)
        let record = Record([
            (1, .text("é")), (2, .bool(false)), (3, .int(300)), (4, .number(try Number(jsonText: "-12.5"))),
            (5, .text("한")), (6, .identifier(.text("tt01"))), (7, .bytes([1])),
            (8, .date(try #require(PartialDate(year: 2024, month: 2, day: 29)))), (9, .time(1)),
            (10, .uuid(UUIDBytes(high: 1, low: 2))), (11, .choice(3)), (12, .list(["x", "yz"])),
        ])
        let bytes = try record.encode(kind)
        for index in bytes.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = bytes
                changed[index] = byte
                #expect(scanFault(changed, schema) == decodeFault(changed, kind), "byte \(index) as \(byte)")
            }
        }
    }

    private func scanFault(_ bytes: [UInt8], _ schema: RecordSchema) -> FormatError? {
        bytes.withUnsafeBytes { bytes in
            do throws(FormatError) {
                _ = try schema.scan(bytes)
                return nil
            } catch { return error }
        }
    }

    private func decodeFault(_ bytes: [UInt8], _ kind: Kind) -> FormatError? {
        do throws(FormatError) {
            #expect(try Record(decoding: bytes, kind).encode(kind) == bytes)
            _ = try Record(decoding: bytes, kind)
            return nil
        } catch { return error }
    }

    @Test("what a kind asks for is checked when a record is encoded")
    func constraints() throws {
        func code(_ change: (inout Record) -> Void, exempt: FieldSet = FieldSet()) throws -> FormatError.Code? {
            var record = try matrix()
            change(&record)
            do throws(FormatError) {
                _ = try record.encode(.title, exempt: exempt)
                return nil
            } catch { return error.code }
        }
        #expect(try code { $0[1] = nil } == .missingField)
        #expect(try code({ $0[1] = nil }, exempt: FieldSet([1])) == nil)
        #expect(try code { $0[1] = .text("\u{3000} ") } == .blankField)
        #expect(try code { $0[1] = .text("e\u{301}") } == .keyNotNormalised)
        #expect(try code { $0[4] = .text("e\u{301}") } == nil)
        #expect(try code { $0[3] = .identifier(.number(0)) } == .zeroField)
        #expect(try code { $0[2] = .choice(9) } == .unknownChoice)
        #expect(try code { $0[2] = .int(1) } == .badStructure)
        #expect(try code { $0[200] = .int(1) } == .unknownField)
        #expect(try code { $0[4] = .text("a\0b") } == .badText)
        #expect(try code { $0[4] = .text(String(repeating: "x", count: 1 << 20)) } == .tooLarge)
    }

    @Test("the label is the first of its fields that is there and not blank")
    func label() {
        #expect(Record([(4, .text("  ")), (6, .text("Slow Tram"))]).label(.title) == "Slow Tram")
        #expect(Record([(4, .text(""))]).label(.title) == nil)
        #expect(Record().label(.title) == nil)
    }

    @Test("a value in another form than its own is refused by name")
    func refusedJSON() throws {
        func reason(_ json: String) -> String? {
            do throws(RecordTextError) {
                guard let value = try? JSONValue(parsing: json) else { return "no JSON" }
                _ = try Record(json: value, .title)
                return nil
            } catch { return error.description }
        }
        #expect(reason(#"{"id":"603"}"#) == nil)
        #expect(
            reason(#"{"id":-1}"#) == "id: expected a whole number from 0 or a string that is not empty, not a number")
        #expect(
            reason(#"{"vote_count":"46"}"#)
                == "vote_count: expected a whole number of at most 64 bits, not another text")
        #expect(reason(#"{"title":null}"#) == "title: expected a string, not null")
        #expect(reason(#"{"vote_count":1.0}"#) != nil)
        #expect(reason(#"{"vote_average":1e400}"#) == "vote_average: the number is too large")
        #expect(reason(#"{"release_date":""}"#) != nil)
        #expect(reason(#"{"release_date":"1999-02-30"}"#) != nil)
        #expect(reason(#"{"media_type":"film"}"#)?.contains("\"movie\"") == true)
        #expect(reason(#"{"genres":["a",1]}"#) != nil)
        #expect(reason(#"{"adult":"true"}"#) != nil)
        #expect(reason(#"{"title":"a\u0000b"}"#) == "title: text with U+0000 in it")
        #expect(reason(#"{"nope":1}"#) == "nope: the kind title has no such field")
        #expect(reason("[]") == "expected an object, not an array")
    }

    @Test("values are compared by code units: composed and decomposed text differ")
    func codeUnits() {
        #expect(Record([(4, .text("é"))]) != Record([(4, .text("e\u{301}"))]))
    }
}

@Suite("Keys as text")
struct KeyTextTests {
    private func parse(_ text: String) throws(RecordTextError) -> RecordKey {
        try RecordKey(text: text) { name in Kind.shipped.first { $0.name == name } }
    }

    @Test(
        "keys go to text and back",
        arguments: [
            "title:tmdb/movie/603", "title:tmdb/tv/900201", "book:goodreads/0140449132", "book:a%2Fb%25/x:y",
            "joke:123e4567-e89b-42d3-a456-426614174000", "title:kakao/movie/한", "book:\u{301}/1",
        ])
    func roundTrip(_ text: String) throws {
        let key = try parse(text)
        #expect(key.text.utf8.elementsEqual(text.utf8))
        let again = try key.bytes.withUnsafeBytes { try RecordKey(decoding: $0, key.kind) }
        #expect(again.bytes == key.bytes)
        #expect(again.text.utf8.elementsEqual(text.utf8))
    }

    @Test("an identifier of digits is the number however it came")
    func digits() throws {
        #expect(try parse("title:tmdb/movie/603").bytes == [4, 0x74, 0x6D, 0x64, 0x62, 1, 0xB6, 0x09])
        #expect(try parse("book:isbn/9791158883591").values[1] == .identifier(.number(9_791_158_883_591)))
    }

    @Test(
        "text that is no key says why",
        arguments: [
            ("title", "a key is written kind:value/value"), ("film:1", "no kind is named film"),
            ("title:tmdb/603", "title:source/media_type/id"), ("title:tmdb/movie/603/4", "title:source/media_type/id"),
            ("title:tmdb/film/603", "media_type: expected one of"), ("title:tmdb/movie/", "id: expected"),
            ("title:/movie/603", "blank"), ("title:tmdb/movie/0", "zero"), ("title:tm%db/movie/1", "% is written %25"),
            ("title:e\u{301}/movie/1", "normalisation form C"), ("joke:12", "joke:id"),
            ("joke:x", "id: expected a uuid"),
        ])
    func refused(_ text: String, _ reason: String) {
        do throws(RecordTextError) {
            _ = try parse(text)
            Issue.record("\(text) was read")
        } catch {
            if text != "joke:12" { #expect(error.description.contains(reason), "\(error)") }
        }
    }
}

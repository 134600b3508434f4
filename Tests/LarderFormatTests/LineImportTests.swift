import Testing

@testable import LarderFormat

/// What an import made of a file: line number with the record's JSON, or the refusal's code.
private struct Imported {
    var records: [(line: Int, record: Record, kind: Kind)] = []
    var refused: [(line: Int, code: String)] = []
    var warnings: [String] = []
    var unknown: [String] = []

    var codes: [String] { refused.map { "\($0.line) \($0.code)" } }
    func texts(_ field: Int) -> [String] {
        records.map { entry in
            guard let value = entry.record[field], let field = entry.kind.field(field) else { return "-" }
            return value.plainText(field)
        }
    }
}

private let tmdbMovies = [("source", "tmdb"), ("media_type", "movie")]

private func run(
    _ text: [UInt8], kinds: [Kind] = Kind.shipped, kind: String? = "title", presets: [(String, String)] = tmdbMovies,
    chunk: Int = Int.max
) throws -> Imported {
    var encoder = try LineEncoder(
        kinds: kinds, defaultKind: kind, presets: presets.map { (field: $0.0, text: $0.1) })
    var splitter = LineSplitter()
    var imported = Imported()
    func take(_ number: Int, _ line: LineSplitter.Line) throws {
        guard case .text(let bytes) = line else {
            imported.refused.append((number, "too-large"))
            return
        }
        switch encoder.encode(bytes) {
        case .blank: break
        case .refused(let refusal): imported.refused.append((number, refusal.code))
        case .record(let kindNumber):
            let kind = try #require(kinds.first { $0.number == kindNumber })
            // The fast check accepts what was made, and the record has one encoding.
            _ = try encoder.withRecord { try RecordSchema(kind).scan($0) }
            let record = try Record(decoding: encoder.record, kind)
            #expect(try record.encode(kind) == encoder.record)
            imported.records.append((number, record, kind))
            imported.warnings += encoder.warnings.map { "\(number) \($0)" }
        }
    }
    try text.withUnsafeBytes { bytes in
        var at = 0
        while at < bytes.count {
            let end = chunk < bytes.count - at ? at + chunk : bytes.count
            try splitter.feed(UnsafeRawBufferPointer(rebasing: bytes[at..<end]), take)
            at = end
        }
        try splitter.finish(take)
    }
    imported.unknown = encoder.unknownMembers.map { "\($0.name) \($0.count)" }
    return imported
}

private func run(
    _ text: String, kinds: [Kind] = Kind.shipped, kind: String? = "title", presets: [(String, String)] = tmdbMovies
) throws -> Imported {
    try run(Array(text.utf8), kinds: kinds, kind: kind, presets: presets)
}

@Suite("Lines into records")
struct LineImportTests {
    @Test("a movie row of TMDB becomes its record, and what no field takes is named")
    func movieRow() throws {
        let imported = try run(
            #"{"adult": false, "backdrop_path": null, "genre_ids": [18], "id": 900101, "original_language": "en", "#
                + #""original_title": "Paper Lighthouse", "overview": "", "popularity": 3.2, "poster_path": "/x.jpg", "#
                + #""release_date": "2021-05-04", "title": "Paper Lighthouse", "video": false, "vote_average": 6.1, "#
                + #""vote_count": 12, "media_type": "tv"}"#)
        #expect(
            imported.records.first?.record.json(.title)
                == #"{"source":"tmdb","media_type":"tv","id":900101,"title":"Paper Lighthouse","#
                + #""original_title":"Paper Lighthouse","poster_path":"/x.jpg","release_date":"2021-05-04","#
                + #""vote_count":12,"vote_average":6.1,"popularity":3.2,"adult":false}"#)
        #expect(imported.warnings.isEmpty)
        #expect(imported.unknown == ["genre_ids 1", "original_language 1", "video 1"])
    }

    @Test("a film and a series of one number have two keys")
    func sameNumber() throws {
        let imported = try run(
            """
            {"id":900201,"title":"Glass Ferry","media_type":"movie"}
            {"id":900201,"name":"Winter Clerk","media_type":"tv"}
            """)
        let keys = try imported.records.map { try RecordKey(of: $0.record, $0.kind).text }
        #expect(keys == ["title:tmdb/movie/900201", "title:tmdb/tv/900201"])
    }

    @Test("a person is no title: its media type is refused")
    func person() throws {
        let imported = try run(#"{"id":900103,"name":"Ida Example","media_type":"person","known_for":[{"id":900199}]}"#)
        #expect(imported.codes == ["1 bad-media_type"])
    }

    @Test("an empty, null or missing date is absent")
    func dates() throws {
        let imported = try run(
            """
            {"id":900301,"title":"Undated One","release_date":""}
            {"id":900302,"title":"Undated Two","release_date":null}
            {"id":900303,"title":"Undated Three"}
            {"id":900304,"title":"Dated Four","release_date":"2021-05-04"}
            {"id":900305,"title":"Dated Five","release_date":"2018-02-22T00:00:00.000+09:00"}
            {"id":900306,"title":"Dated Six","release_date":1999}
            {"id":900307,"title":"Undated Seven","release_date":"soon"}
            """)
        #expect(imported.texts(11) == ["-", "-", "-", "2021-05-04", "2018-02-22", "1999", "-"])
        #expect(imported.refused.isEmpty)
        #expect(imported.warnings == ["7 release_date: left out: expected a date"])
    }

    @Test("numbers as strings are numbers, and a bad one drops its field alone")
    func numbersAsStrings() throws {
        let imported = try run(
            """
            {"id":900601,"title":"a","popularity":"93.4917224393659","vote_average":8.5999999999999996,"vote_count":12}
            {"id":"900602","title":"b","popularity":3.2,"vote_count":"46"}
            {"id":900602,"title":"b","vote_count":90.0}
            {"id":900603,"title":"c","vote_count":"N/A","vote_average":"","runtime":1.5}
            """)
        #expect(imported.texts(20) == ["93.4917224393659", "3.2", "-", "-"])
        #expect(imported.texts(13) == ["8.6", "-", "-", "-"])
        #expect(imported.texts(12) == ["12", "46", "90", "-"])
        #expect(try imported.records[1].record.key(.title) == imported.records[2].record.key(.title))
        #expect(
            imported.warnings == [
                "4 vote_count: left out: expected a whole number",
                "4 runtime: left out: expected a whole number of at most 64 bits",
            ])
    }

    @Test("ids are exact to 63 bits, and what is none refuses the row")
    func ids() throws {
        let imported = try run(
            """
            {"id":3000000000,"title":"Over Int32"}
            {"id":12669814169816,"title":"Long Id"}
            {"id":9007199254740993,"title":"Over Double"}
            {"id":900705,"title":"Big Money","revenue":2781505847}
            {"id":0,"title":"Zero"}
            {"id":-5,"title":"Negative"}
            {"id":1.5,"title":"Fraction"}
            {"id":99999999999999999999,"title":"Over Int64"}
            {"id":true,"title":"Boolean"}
            {"id":null,"title":"Null Id"}
            {"title":"No Id"}
            {"id":"","title":"Empty Id"}
            {"id":"0","title":"Zero as text"}
            {"id":"-1","title":"Negative as text"}
            {"id":"603.0","title":"Fraction as text"}
            {"id":[1],"title":"Array"}
            {"id":" 7 ","title":"Spaces"}
            {"id":"tt0133093","title":"Text"}
            {"id":"0140449132","title":"Leading zero"}
            """)
        #expect(
            imported.texts(3) == [
                "3000000000", "12669814169816", "9007199254740993", "900705", "7", "tt0133093", "0140449132",
            ])
        #expect(imported.records[3].record[29] == .int(2_781_505_847))
        #expect(imported.codes == (5...16).map { "\($0) bad-id" })
    }

    @Test("byte order mark, mixed line ends, blank lines and no last line feed lose nothing, however the bytes come")
    func lineEnds() throws {
        let text = Array(
            "\u{FEFF}{\"id\":1,\"title\":\"Mark\"}\r\n\r\n{\"id\":2,\"title\":\"Unix\"}\n   \t\n{\"id\":3,\"title\":\"Last\"}"
                .utf8)
        for chunk in [1, 2, 3, 5, 7, 64, Int.max] {
            let imported = try run(text, chunk: chunk)
            #expect(imported.records.map(\.line) == [1, 3, 5])
            #expect(imported.texts(4) == ["Mark", "Unix", "Last"])
            #expect(imported.refused.isEmpty)
        }
    }

    @Test("bad lines are refused alone, with their numbers")
    func badLines() throws {
        let imported = try run(
            """
            {"id":901201,"title":"Before"}
            {"id":901202,"title":"Cut o
            {"id":901203,"title":"Between"}
            [901204,"Array"]
            "just text"
            {"id":901206,"title":"Trailing",}
            # comment
            {"id":901208,"title":"After"}
            {"id":901209,"title":"One","title":"Two"}
            {"id":901210,"title":"Two values"} {}
            """)
        #expect(imported.records.map(\.line) == [1, 3, 8])
        #expect(
            imported.codes == [
                "2 bad-json", "4 not-an-object", "5 not-an-object", "6 bad-json", "7 bad-json", "9 bad-json",
                "10 bad-json",
            ])
    }

    @Test("an escaped NUL is taken out with a warning, a raw one refuses the line")
    func nul() throws {
        let imported = try run(
            "{\"id\":901401,\"title\":\"Bro\\u0000ken Lamp\",\"genres\":[\"a\\u0000\"]}\n{\"id\":901402,\"title\":\"Raw\0\"}\n"
                + "{\"id\":901403,\"title\":\"Clean Lamp\"}")
        #expect(imported.texts(4) == ["Broken Lamp", "Clean Lamp"])
        #expect(imported.codes == ["2 bad-json"])
        #expect(
            imported.warnings == [
                "1 title: U+0000 was taken out of the text", "1 genres: U+0000 was taken out of the text",
            ])
    }

    @Test("emoji are exact however they are escaped, half a pair refuses its line alone")
    func emoji() throws {
        let imported = try run(
            #"""
            {"id":901501,"title":"🛶 Canoe Winter"}
            {"id":901502,"title":"\ud83d\udef6 Canoe Winter"}
            {"id":901503,"title":"Family 👩‍👩‍👧 Album"}
            {"id":901504,"title":"Letter 🇰🇷 Home"}
            {"id":901505,"title":"Half \ud83d Pair"}
            {"id":901506,"title":"After"}
            """#)
        #expect(
            imported.texts(4) == [
                "🛶 Canoe Winter", "🛶 Canoe Winter", "Family 👩‍👩‍👧 Album", "Letter 🇰🇷 Home", "After",
            ])
        #expect(imported.codes == ["5 bad-unicode"])
        #expect(try run(Array("{\"id\":1,\"title\":\"".utf8) + [0xFF] + Array("\"}".utf8)).codes == ["1 bad-unicode"])
    }

    @Test("text keeps its form of normalisation, but a key is composed")
    func normalisation() throws {
        let imported = try run(
            "{\"id\":901602,\"title\":\"Ame\u{301}lie\"}\n{\"id\":\"cafe\u{301}\",\"title\":\"x\",\"source\":\"e\u{301}\"}"
        )
        #expect(imported.texts(4).first.map { Array($0.utf8) } == Array("Ame\u{301}lie".utf8))
        #expect(Array(imported.texts(3)[1].utf8) == Array("caf\u{E9}".utf8))
        #expect(Array(imported.texts(1)[1].utf8) == Array("\u{E9}".utf8))
    }

    @Test("right-to-left text, direction marks and control characters are kept in their order")
    func directions() throws {
        let titles = [
            "كتاب الميناء 28", "\u{200F}עדות 1 (2021)", "ا", "Mixed \u{202B}עברית\u{202C} end", "Bell\u{8} Tower",
        ]
        let lines = titles.enumerated().map { index, title in
            var writer = JSONWriter()
            writer.beginObject()
            writer.name("id")
            writer.integer(index + 1)
            writer.name("title")
            writer.string(title)
            writer.endObject()
            return writer.text
        }
        let imported = try run(lines.joined(separator: "\n"))
        #expect(imported.texts(4) == titles)
    }

    @Test("a numeric title is its digits; no title, a blank one or none at all refuses the row")
    func titles() throws {
        let imported = try run(
            """
            {"id":901901,"title":1776}
            {"id":901902,"title":9}
            {"id":901903,"title":null}
            {"id":901904,"title":""}
            {"id":901905,"title":"   "}
            {"id":901906,"title":true}
            {"id":901907,"release_date":"2020-01-01"}
            {"id":901908,"title":" ","name":"Slow Tram"}
            {"id":901909,"title":"x","overview":true,"tagline":[1]}
            """)
        #expect(imported.texts(4) == ["1776", "9", "-", "x"])
        #expect(imported.texts(6) == ["-", "-", "Slow Tram", "-"])
        #expect(
            imported.codes == [
                "3 missing-title", "4 missing-title", "5 missing-title", "6 bad-title", "7 missing-title",
            ])
        #expect(
            imported.warnings == [
                "8 title: left out: only white space", "9 overview: left out: expected a text",
                "9 tagline: left out: expected a text",
            ])
    }

    @Test("a list comes as texts, as one text, or as objects with a name")
    func lists() throws {
        let imported = try run(
            """
            {"id":1,"title":"a","genres":["Drama","",null,"Crime"]}
            {"id":2,"title":"a","genres":"Drama"}
            {"id":3,"title":"a","genres":[{"id":18,"name":"Drama"},{"name":"Cr\\u0069me","x":{"name":"no"}}]}
            {"id":4,"title":"a","genres":[]}
            {"id":5,"title":"a","genres":""}
            {"id":6,"title":"a","genres":[{"id":18}],"overview":"kept"}
            {"id":7,"title":"a","genres":[["x"]],"overview":"kept"}
            {"id":8,"title":"a","genres":[1,2.50]}
            {"id":9,"title":"a","genres":{"name":"Drama"}}
            """)
        #expect(
            imported.texts(16) == ["Drama, Crime", "Drama", "Drama, Crime", "-", "-", "-", "-", "1, 2.50", "-"])
        #expect(imported.texts(8).filter { $0 == "kept" }.count == 2)
        #expect(imported.warnings.map { $0.prefix(8) } == ["6 genres", "7 genres", "9 genres"])
    }

    @Test("a preset fills what a line leaves absent and nothing else")
    func presets() throws {
        let imported = try run(
            """
            {"id":1,"title":"a"}
            {"id":1,"title":"a","source":"wikidata","media_type":"","language":"en"}
            {"id":1,"title":"a","source":null,"media_type":"film"}
            """, presets: [("source", "tmdb"), ("media_type", "movie"), ("language", "ko")])
        #expect(imported.texts(1) == ["tmdb", "wikidata"])
        #expect(imported.texts(2) == ["movie", "movie"])
        #expect(imported.texts(17) == ["ko", "en"])
        #expect(imported.codes == ["3 bad-media_type"])
        #expect(try run(#"{"id":1,"title":"a"}"#, presets: []).codes == ["1 missing-source"])
        #expect(try run(#"{"id":1,"title":"a","source":" "}"#, presets: []).codes == ["1 missing-source"])
        #expect(try run(#"{"id":1,"title":"a","source":"x"}"#, presets: []).codes == ["1 missing-media_type"])
    }

    @Test("a preset that fits no field is an error before the first line")
    func badPresets() {
        func reason(_ presets: [(String, String)], _ kind: String? = "title") -> String? {
            do throws(RecordTextError) {
                _ = try LineEncoder(kinds: Kind.shipped, defaultKind: kind, presets: presets.map { ($0.0, $0.1) })
                return nil
            } catch { return error.description }
        }
        #expect(reason([("media_type", "film")]) == "media_type: expected one of the field's values, not \"film\"")
        #expect(reason([("authors", "x")]) == "authors: the kind title has no such field")
        #expect(reason([("authors", "x")], nil) == nil)
        #expect(reason([("nope", "x")], nil) == "nope: no kind has such a field")
        #expect(reason([("source", " ")]) == "source: the text given for every line is blank")
        #expect(reason([], "film") == "no kind is named film")
    }

    @Test("a line may name its kind, wherever the member stands")
    func kinds() throws {
        let imported = try run(
            """
            {"id":1,"title":"a"}
            {"kind":"book","id":2,"title":"b","authors":["c","d"],"media_type":"movie"}
            {"id":3,"title":"c","pages":"300","kind":"book"}
            {"kind":"title","id":4,"title":"d"}
            {"kind":null,"id":5,"title":"e"}
            {"kind":"film","id":6,"title":"f"}
            {"kind":7,"id":6,"title":"f"}
            {"kind":"joke","id":"123e4567-e89b-42d3-a456-426614174000","body":"ha","category":"아재개그"}
            {"kind":"joke","body":"no id"}
            {"kind":"joke","body":"  "}
            """)
        #expect(imported.records.map(\.kind.name) == ["title", "book", "book", "title", "title", "joke", "joke"])
        #expect(imported.records[1].record[4] == .list(["c", "d"]))
        #expect(imported.records[2].record[17] == .int(300))
        #expect(imported.codes == ["6 unknown-kind", "7 bad-kind", "10 missing-body"])
        #expect(imported.unknown == ["media_type 1"])
        #expect(try run(#"{"id":1}"#, kind: nil, presets: []).codes == ["1 missing-kind"])
    }

    @Test("a kind with a field named kind keeps that member to itself")
    func fieldNamedKind() throws {
        let tea = try Kind(
            number: 64, name: "tea", version: 1, keyFieldCount: 1,
            fields: [Field(1, "id", .identifier, [.required]), Field(2, "kind", .text)], labelFields: [])
        let imported = try run(#"{"id":0,"kind":"title"}"#, kinds: [tea, .title], kind: "tea", presets: [])
        #expect(imported.texts(2) == ["title"])
    }

    @Test("every type takes its text forms")
    func everyType() throws {
        let fields = FieldType.allCases.map { type in
            Field(
                Int(type.rawValue) + 1, "f_\(type.name)", type,
                choices: type == .choice ? [Field.Choice(number: 3, name: "three")] : [])
        }
        let kind = try Kind(
            number: 64, name: "all", version: 1, keyFieldCount: 1,
            fields: [Field(1, "id", .identifier, [.required])] + fields, labelFields: [])
        let good = try run(
            #"{"id":1,"f_bool":"true","f_int":" 46 ","f_number":"-0.50","f_text":"","f_identifier":"x","f_bytes":"AP8Q","#
                + #""f_date":"2023/05/01","f_time":"1970-01-01T01:00:00+01:00","#
                + #""f_uuid":"00000000-0000-0000-0000-00000000000F","f_choice":"three","f_list":"x"}"#,
            kinds: [kind], kind: "all", presets: [])
        #expect(
            good.records.first?.record.json(kind)
                == #"{"id":1,"f_bool":true,"f_int":46,"f_number":-0.5,"f_identifier":"x","f_bytes":"AP8Q","#
                + #""f_date":"2023-05-01","f_time":"1970-01-01T00:00:00.000Z","#
                + #""f_uuid":"00000000-0000-0000-0000-00000000000f","f_choice":"three","f_list":["x"]}"#)
        let bad = try run(
            #"{"id":1,"f_bool":1,"f_int":"x","f_number":1e400,"f_text":{},"f_identifier":false,"f_bytes":"?","#
                + #""f_date":"x","f_time":"1970-01-01","f_uuid":"x","f_choice":"x","f_list":true}"#,
            kinds: [kind], kind: "all", presets: [])
        #expect(bad.records.first?.record.json(kind) == #"{"id":1}"#)
        #expect(bad.warnings.count == 11)
    }

    @Test("a record above 1 MiB refuses its line")
    func tooLarge() throws {
        let text = String(repeating: "x", count: 1 << 20)
        #expect(try run("{\"id\":1,\"title\":\"\(text)\"}\n{\"id\":2,\"title\":\"x\"}").codes == ["1 too-large"])
    }

    @Test("names that no kind has are counted apart up to a bound")
    func manyUnknown() throws {
        var encoder = try LineEncoder(
            kinds: [.title], defaultKind: "title", presets: [("source", "x"), ("media_type", "tv")])
        let members = (0..<1100).map { "\"n\($0)\":0" }.joined(separator: ",")
        let outcome = Array("{\"id\":1,\"title\":\"x\",\(members)}".utf8).withUnsafeBytes { encoder.encode($0) }
        #expect(outcome == .record(kind: 1))
        #expect(encoder.unknownMembers.count == LineEncoder.unknownNamesMax)
        #expect(encoder.otherUnknownCount == 1100 - LineEncoder.unknownNamesMax)
    }

    @Test("changing any byte of a line gives a sound record or a refusal")
    func mutations() throws {
        let line = Array(
            #"{"id":12,"title":"T\u00e9","genres":[{"name":"D"},"x"],"vote_average":6.1,"kind":"title","z":{"a":[]}}"#
                .utf8)
        let schema = RecordSchema(.title)
        var encoder = try LineEncoder(
            kinds: Kind.shipped, defaultKind: "title", presets: [("source", "tmdb"), ("media_type", "movie")])
        for index in line.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = line
                changed[index] = byte
                if case .record(kind: 1) = changed.withUnsafeBytes({ encoder.encode($0) }) {
                    _ = try encoder.withRecord { try schema.scan($0) }
                }
            }
        }
    }
}

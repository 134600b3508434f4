// Kinds of one's own: declared, grown, refused with both sides; records of every version stay readable.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct DefineTests {
    private static func kind(_ version: Int, _ fields: [Field], labels: [Int] = [2], name: String = "film") throws
        -> Kind
    {
        try Kind(
            number: 64, name: name, version: max(version, 1), keyFieldCount: 1, fields: fields, labelFields: labels)
    }

    /// As a client sends it: number and version are the library's to give.
    private static func draft(_ fields: [Field], labels: [Int] = [2], name: String = "film", version: Int = 0) throws
        -> KindDraft
    {
        KindDraft(try kind(1, fields, labels: labels, name: name), number: 0, version: version)
    }

    private static func choice(_ names: [String]) -> Field {
        Field(3, "mood", .choice, choices: names.enumerated().map { Field.Choice(number: $0 + 1, name: $1) })
    }

    private static let id = Field(1, "id", .identifier, [.required, .notZero])
    /// Each adds something to the one before.
    private static let growth: [[Field]] = [
        [id, Field(2, "name", .text), choice(["calm"])],
        [id, Field(2, "name", .text, .indexed), choice(["calm"])],
        [id, Field(2, "name", .text, .indexed), choice(["calm", "wild"])],
        [id, Field(2, "name", .text, .indexed), choice(["calm", "wild"]), Field(7, "tags", .list, .indexed)],
        [
            id, Field(2, "name", .text, .indexed), choice(["calm", "wild", "sad"]), Field(5, "year", .int),
            Field(7, "tags", .list, .indexed), Field(256, "end", .text),
        ],
    ]

    private func define(_ driver: StoreDriver, _ draft: KindDraft) throws -> Kind {
        for _ in 0..<10 {
            switch try driver.store.define(draft, now: driver.now) {
            case .staged(let kind, _):
                try driver.commitAll()
                return kind
            case .unchanged(let kind): return kind
            case .conflict(let why): throw Mismatch(why)
            case .full: try driver.commitAll()
            }
        }
        throw Mismatch("never declared")
    }

    private func conflict(_ driver: StoreDriver, _ draft: KindDraft) throws -> String {
        guard case .conflict(let why) = try driver.store.define(draft, now: driver.now) else { return "no conflict" }
        return why
    }

    /// Saves one record; the store's answer.
    private func save(
        _ driver: StoreDriver, _ kind: Int, _ fields: Fields, known: Int = 256, mode: SaveMode = .replace
    ) throws -> Outcome {
        let batch = WriteBatch()
        let record = Encode.record(fields)
        return try record.withUnsafeBytes { bytes in
            batch.begin(origin: 0, programName: "test")
            driver.store.add(WriteOperation(mode: mode, kind: kind, known: known, payload: bytes), to: batch)
            for _ in 0..<100 {
                if case .cold(let cold) = try driver.store.resolve(batch) {
                    try driver.read(cold)
                    try driver.store.keep(for: batch)
                    continue
                }
                if case .staged = try driver.store.stage(batch, now: driver.now) { return batch.outcomes[0] }
                try driver.commitAll()
            }
            throw Mismatch("never staged")
        }
    }

    private func record(_ driver: StoreDriver, _ kind: Int, _ id: Int) throws -> Fields? {
        guard let schema = driver.store.schema(kind) else { return nil }
        return try Encode.identifier(id).withUnsafeBytes { key in
            for _ in 0..<100 {
                switch try driver.store.get(kind: kind, key: key) {
                case .missing: return nil
                case .cold(let cold): try driver.read(cold)
                case .found(let found):
                    var ranges: [Range<Int>] = []
                    var rest = try schema.fieldRanges(ofChecked: found.record, into: &ranges)
                    var fields: Fields = [:]
                    while let field = rest.popFirst() { fields[field] = Array(found.record[ranges[field]]) }
                    return fields
                }
            }
            return nil
        }
    }

    @Test("a kind grows through five versions, with records of each, opened again between", arguments: [false, true])
    func fiveVersions(restarts: Bool) throws {
        let driver = try Books.library([])
        var number = 0
        for (at, fields) in Self.growth.enumerated() {
            let kind = try define(driver, Self.draft(fields))
            number = kind.number
            #expect(kind.version == at + 1 && kind.number == 64 && kind.fields == fields)
            // The same again changes nothing.
            #expect(try define(driver, Self.draft(fields)).version == at + 1)
            if restarts { try driver.reopen() }
            #expect(driver.store.kind(64) == kind)
            // Everything that this version has: the last value of the choice, the last field.
            var record: Fields = [1: Encode.identifier(at + 1), 2: Encode.text("v\(at)"), 3: Encode.choice(1)]
            if at >= 2 { record[3] = Encode.choice(fields[2].choices.count) }
            if at >= 3 { record[7] = Encode.list(["t", "v\(at)"]) }
            if at >= 4 { record[256] = Encode.text("far") }
            #expect(try save(driver, number, record) == .created)
            try driver.commitAll()
            // What the version does not have is refused.
            if at < 4 {
                #expect(try save(driver, number, record.merging([256: Encode.text("far")]) { $1 }) == .refused)
            }
            for older in 0...at { #expect(try self.record(driver, number, older + 1)?[2] == Encode.text("v\(older)")) }
        }
        // Indexes made before a field was indexed, and after.
        for at in 0..<5 {
            #expect(try driver.find(number, 2, Encode.text("V\(at)")).map(\.bytes) == [Encode.identifier(at + 1)])
        }
        #expect(try driver.find(number, 7, Encode.text("T")).count == 2)
        try driver.reopen()
        #expect(try driver.find(number, 7, Encode.text("v4")).map(\.bytes) == [Encode.identifier(5)])
        #expect(driver.store.kind(number)?.version == 5)
    }

    @Test("a writer that knows an older version keeps what it does not know")
    func olderWriter() throws {
        let driver = try Books.library([])
        for fields in Self.growth { _ = try define(driver, Self.draft(fields)) }
        let full: Fields = [
            1: Encode.identifier(1), 2: Encode.text("n"), 5: Encode.int(3), 7: Encode.list(["t"]),
            256: Encode.text("far"),
        ]
        #expect(try save(driver, 64, full) == .created)
        #expect(try save(driver, 64, [1: Encode.identifier(1), 2: Encode.text("new")], known: 3) == .updated)
        try driver.commitAll()
        #expect(try record(driver, 64, 1) == full.merging([2: Encode.text("new")]) { $1 })
        #expect(try save(driver, 64, [1: Encode.identifier(1), 5: Encode.int(4)], known: 7) == .updated)
        try driver.commitAll()
        #expect(try record(driver, 64, 1) == [1: Encode.identifier(1), 5: Encode.int(4), 256: Encode.text("far")])
    }

    @Test("a field that becomes indexed is found by value in records that were saved before, and pending ones")
    func indexedLater() throws {
        let driver = try Books.library([])
        let tags = Field(7, "tags", .list, .indexed)
        _ = try define(driver, Self.draft([Self.id, Field(2, "name", .text), tags]))
        #expect(
            try save(driver, 64, [1: Encode.identifier(1), 2: Encode.text("a"), 7: Encode.list(["t"])]) == .created)
        try driver.commitAll()
        // The kind's index is there, without the name.
        #expect(try driver.find(64, 7, Encode.text("t")).count == 1)
        _ = try define(driver, Self.draft([Self.id, Field(2, "name", .text, .indexed), tags]))
        #expect(try driver.find(64, 2, Encode.text("A")).count == 1)
        #expect(try driver.find(64, 7, Encode.text("T")).count == 1)
    }

    @Test("what contradicts the kind is refused, with both sides, and changes nothing")
    func conflicts() throws {
        let driver = try Books.library([])
        let base = [Self.id, Field(2, "name", .text, .indexed), Self.choice(["calm", "wild"]), Field(5, "year", .int)]
        let kind = try define(driver, Self.draft(base))
        func with(_ at: Int, _ field: Field?) -> [Field] {
            var fields = base
            if let field { fields[at] = field } else { fields.remove(at: at) }
            return fields
        }
        let cases: [([Field], [String])] = [
            (with(1, Field(2, "title", .text, .indexed)), ["name", "title"]),
            (with(1, Field(2, "name", .list, .indexed)), ["text", "list"]),
            (with(1, Field(2, "name", .text)), ["indexed"]),
            (with(1, Field(2, "name", .text, [.indexed, .personal])), ["name"]),
            (with(3, nil), ["year", "missing"]),
            (with(2, Self.choice(["calm"])), ["wild", "missing"]),
            (with(2, Self.choice(["calm", "mad"])), ["wild", "mad"]),
            (base + [Field(9, "must", .text, .required)], ["must", "required"]),
        ]
        let seq = driver.store.core.nextSeq
        for (fields, words) in cases {
            let why = try conflict(driver, Self.draft(fields))
            #expect(words.allSatisfy { why.contains($0) }, "\(why)")
        }
        #expect(try conflict(driver, Self.draft(base, labels: [5])).contains("label"))
        let wider = try Kind(
            number: 64, name: "film", version: 1, keyFieldCount: 2,
            fields: [base[0], Field(2, "name", .text, [.indexed, .required])], labelFields: [2])
        #expect(try conflict(driver, KindDraft(wider, number: 0, version: 0)).contains("2"))
        #expect(try conflict(driver, Self.draft(base, version: 7)) == "version 7 is declared; the kind has version 1")
        // Another number with this name, this number with another name, a number of the shipped kinds.
        #expect(try conflict(driver, KindDraft(try Self.kind(1, base), number: 99, version: 0)).contains("64"))
        #expect(
            try conflict(driver, KindDraft(try Self.kind(1, base, name: "book"), number: 64, version: 0)).contains(
                "book"))
        #expect(
            try conflict(driver, KindDraft(try Self.kind(1, base, name: "movie"), number: 63, version: 0)).contains(
                "64"))
        #expect(
            try conflict(driver, KindDraft(try Self.kind(1, base, name: "movie"), number: 64, version: 0)).contains(
                "movie"))
        #expect(driver.store.core.nextSeq == seq && driver.store.kind(64) == kind)
    }

    @Test("a shipped kind takes fields from number 129 on, and no others")
    func shipped() throws {
        let driver = try Books.library([(1, "a")])
        func grown(_ number: Int) -> KindDraft {
            KindDraft(
                try! Kind(
                    number: 2, name: "book", version: 1, keyFieldCount: 2,
                    fields: TestKinds.book.fields + [Field(number, "shelf", .text)], labelFields: [3]), number: 0,
                version: 0)
        }
        #expect(try conflict(driver, grown(128)).contains("129"))
        #expect(try define(driver, grown(129)).version == 2)
        #expect(try save(driver, 2, Books.fields(2, "b", [129: Encode.text("top")])) == .created)
        try driver.commitAll()
        try driver.reopen()
        #expect(driver.store.kind(2)?.field(129)?.name == "shelf")
    }

    @Test("a later version of a shipped kind is learnt beside what the library added, once")
    func learning() throws {
        let files = SimulatedFiles(seed: 1)
        var options = StoreDriver.options()
        let driver = try StoreDriver(files, options: options)
        let own = Field(129, "shelf", .text, .indexed)
        let taken = Field(130, "pages", .text)
        _ = try define(
            driver,
            KindDraft(
                try Kind(
                    number: 2, name: "book", version: 1, keyFieldCount: 2,
                    fields: TestKinds.book.fields + [own, taken], labelFields: [3, 129]), number: 2, version: 0))
        _ = try define(
            driver,
            KindDraft(
                try Kind(
                    number: 2, name: "book", version: 1, keyFieldCount: 2,
                    fields: TestKinds.book.fields + [own, taken, Field(131, "more", .int)], labelFields: [3, 129]),
                number: 2, version: 0))
        #expect(try save(driver, 2, Books.fields(1, "a", [129: Encode.text("top")])) == .created)
        try driver.commitAll()
        driver.store.close()
        // The program ships a version 2, with a field, an index and a label more, and a name that is taken here.
        var fields = TestKinds.book.fields
        fields[3] = Field(4, "note", .text, [.personal, .indexed])
        fields += [Field(6, "isbn", .text), Field(7, "pages", .int)]
        options.kinds[1] = try Kind(
            number: 2, name: "book", version: 2, keyFieldCount: 2, fields: fields, labelFields: [3, 6])
        for round in 0..<2 {
            let again = try Store(path: "library", options: options, files: files, now: 3)
            let kind = try #require(again.kind(2))
            #expect(kind.version == 4 && kind.labelFields == [3, 129, 6], "\(round)")
            #expect(kind.fields.map(\.number) == [1, 2, 3, 4, 5, 6, 129, 130, 131])
            #expect(kind.field(4)?.constraints == [.personal, .indexed] && kind.field(130) == taken)
            again.close()
        }
        // A program that ships less takes nothing away.
        let older = try Store(path: "library", options: StoreDriver.options(), files: files, now: 4)
        #expect(older.kind(2)?.version == 4)
        older.close()
    }

    @Test("a new kind gets the lowest free number, also beside one that took the last")
    func numbers() throws {
        let driver = try Books.library([])
        let fields = [Self.id, Field(2, "name", .text)]
        let last = KindDraft(try Self.kind(1, fields, name: "last"), number: Int(Int32.max), version: 0)
        #expect(try define(driver, last).number == Int(Int32.max))
        #expect(try define(driver, Self.draft(fields, name: "one")).number == 64)
        #expect(try define(driver, Self.draft(fields, name: "two")).number == 65)
    }

    @Test("declarations one behind the other wait for their commits; one whose commit fails is not there")
    func pending() throws {
        let files = SimulatedFiles(seed: 1)
        let driver = try StoreDriver(files)
        let draft = try Self.draft(Self.growth[0])
        guard case .staged = try driver.store.define(draft, now: driver.now),
            case .full = try driver.store.define(draft, now: driver.now)
        else { throw Mismatch("not staged, or not waiting") }
        #expect(driver.store.kind(64) == nil)
        driver.take()
        guard case .full = try driver.store.define(draft, now: driver.now) else { throw Mismatch("not waiting") }
        files.inject(SimulatedFault(call: "pwrite"))
        driver.finish()
        #expect(driver.store.kind(64) == nil)
        #expect(throws: StoreError.self) { try driver.store.define(draft, now: driver.now) }
    }
}

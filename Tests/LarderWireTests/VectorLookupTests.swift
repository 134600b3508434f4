// The shared messages that look something up, or declare a kind.

import Foundation
import LarderFormat
import LarderWire
import Testing

@Suite("vectors of lookups")
struct VectorLookupTests {
    private func each<M: WireMessage>(_: M.Type, _ check: (M, [String: Any]) throws -> Void) throws {
        try SharedFiles.eachMessage(M.type) { body, value in
            try check(try body.withUnsafeBytes { try M(body: $0) }, value)
        }
    }

    private func stored(_ row: [String: Any]) -> StoredRecord {
        StoredRecord(
            StoredRecordHeader(
                kind: row.int("kind"), seq: row.u64("seq"), firstSeq: row.u64("first_seq"),
                savedAt: Int64(row.int("saved_at")), changedAt: Int64(row.int("changed_at")),
                origin: row.u64("origin")),
            record: row.hex("record"))
    }

    private func run(_ row: [String: Any]) -> EntryRun {
        EntryRun(firstSeq: row.u64("first_seq"), time: Int64(row.int("time")), entry: row.hex("entries"))
    }

    @Test("records with a value")
    func find() throws {
        try each(Find.self) { find, value in
            let expected = Find(
                kind: value.int("kind"), field: value.int("field"), value: value.hex("value"), limit: value.int("limit")
            )
            #expect((find.kind, find.field, find.limit) == (expected.kind, expected.field, expected.limit))
            #expect(find.value == expected.value)
        }
        try each(Found.self) { found, value in
            #expect(found.isEnd == (value.int("is_end") == 1))
            #expect(found.records == value.objects("records").map(stored))
        }
    }

    @Test("records with a text")
    func search() throws {
        try each(Search.self) { search, value in
            #expect(search.kind == value.int("kind") && search.query == value.text("query"))
            #expect(search.limit == value.int("limit") && search.token == value.hex("token"))
        }
        try each(Matches.self) { matches, value in
            #expect(matches.isEnd == (value.int("is_end") == 1) && matches.token == value.hex("token"))
            let rows = value.objects("matches")
            #expect(matches.matches == rows.map { Matches.Match(rank: $0.int("rank"), stored($0.object("record"))) })
        }
    }

    @Test("entries of a key, and by their seqs")
    func entries() throws {
        try each(History.self) { history, value in
            #expect(history.kind == value.int("kind") && history.key == value.hex("key"))
            #expect(history.limit == value.int("limit"))
        }
        try each(HistoryIs.self) { #expect($0.runs == $1.objects("runs").map(run)) }
        try each(Entries.self) { entries, value in
            let seqs = try #require(value["seqs"] as? [NSNumber])
            #expect(entries.seqs == seqs.map(\.uint64Value))
        }
        try each(EntriesAre.self) { #expect($0.runs == $1.objects("runs").map(run)) }
    }

    @Test("declarations")
    func define() throws {
        try each(Define.self) { define, value in
            var form = value.object("declaration")
            let number = form.int("number")
            let version = form.int("version")
            if number == 0 { form["number"] = 1 }
            if version == 0 { form["version"] = 1 }
            let kind = try Kind(file: Array(JSONSerialization.data(withJSONObject: form)))
            #expect(define.declaration == KindDraft(kind, number: number, version: version))
        }
        try each(Defined.self) { defined, value in
            #expect(defined.number == value.int("number") && defined.version == value.int("version"))
            #expect(defined.isChanged == (value.int("is_changed") == 1))
        }
    }
}

// What an undo makes of a part of the log.

import LarderFormat
import Testing

@testable import larder

@Suite("What takes a part of the log back")
struct UndoPlanTests {
    private enum Entry {
        case created(UInt64)
        case updated(UInt64, first: UInt64, previous: UInt64)
        case broughtBack(UInt64, first: UInt64, previous: UInt64 = 0)
        case deleted(UInt64, first: UInt64, previous: UInt64)
    }

    private func plan(_ entries: [Entry]) -> UndoPlan {
        var plan = UndoPlan()
        for entry in entries {
            switch entry {
            case .created(let seq): plan.take(isDelete: false, isNew: true, seq: seq, firstSeq: seq, previousSeq: 0)
            case .updated(let seq, let first, let previous):
                plan.take(isDelete: false, isNew: false, seq: seq, firstSeq: first, previousSeq: previous)
            case .broughtBack(let seq, let first, let previous):
                plan.take(isDelete: false, isNew: true, seq: seq, firstSeq: first, previousSeq: previous)
            case .deleted(let seq, let first, let previous):
                plan.take(isDelete: true, isNew: false, seq: seq, firstSeq: first, previousSeq: previous)
            }
        }
        return plan
    }

    private func passage(_ before: UInt64, _ last: UInt64, gone: Bool = false, mixed: Bool = false) -> RecordPassage {
        RecordPassage(beforeSeq: before, lastSeq: last, isGone: gone, isMixed: mixed)
    }

    @Test("what was created and changed goes, what was only changed goes back to the version before the first change")
    func changes() {
        let plan = plan([
            .created(10), .updated(11, first: 3, previous: 7), .updated(12, first: 10, previous: 10),
            .updated(13, first: 3, previous: 11),
        ])
        #expect(plan.steps(bringingBack: false) == [passage(7, 13), passage(0, 12)])
        #expect(plan.steps(bringingBack: true).isEmpty)
    }

    @Test("what was deleted comes back in the order of saving, whatever the order of deletes")
    func deletes() {
        let plan = plan([.deleted(20, first: 9, previous: 15), .deleted(21, first: 2, previous: 2)])
        #expect(plan.steps(bringingBack: true) == [passage(2, 21, gone: true), passage(15, 20, gone: true)])
        #expect(plan.steps(bringingBack: false).isEmpty)
    }

    @Test("what came and went within the part needs nothing")
    func cameAndWent() {
        let plan = plan([.created(10), .deleted(11, first: 10, previous: 10)])
        #expect(plan.passages.count == 1)
        #expect(plan.steps(bringingBack: false).isEmpty && plan.steps(bringingBack: true).isEmpty)
    }

    @Test("a record under a key that another had before is another one, and goes first")
    func sameKey() {
        let plan = plan([.deleted(10, first: 2, previous: 5), .created(11)])
        #expect(plan.steps(bringingBack: false) == [passage(0, 11)])
        #expect(plan.steps(bringingBack: true) == [passage(5, 10, gone: true)])
    }

    @Test("a move is one passage: from the version under the old key to that under the new one")
    func moved() {
        let plan = plan([.deleted(10, first: 2, previous: 5), .broughtBack(11, first: 2, previous: 5)])
        #expect(plan.steps(bringingBack: false) == [passage(5, 11)])
        #expect(plan.steps(bringingBack: true).isEmpty)
    }

    @Test("what an undo brought back goes when that undo is undone")
    func undoOfAnUndo() {
        #expect(plan([.broughtBack(30, first: 4)]).steps(bringingBack: false) == [passage(0, 30)])
    }

    @Test("changes of others in between are noticed")
    func mixed() {
        let update = plan([.updated(10, first: 2, previous: 5), .updated(14, first: 2, previous: 12)])
        #expect(update.steps(bringingBack: false) == [passage(5, 14, mixed: true)])
        let again = plan([.created(10), .broughtBack(15, first: 10)])
        #expect(again.steps(bringingBack: false) == [passage(0, 15, mixed: true)])
        let deletedAlready = plan([.deleted(10, first: 2, previous: 5), .updated(14, first: 2, previous: 12)])
        #expect(deletedAlready.steps(bringingBack: false) == [passage(5, 14, mixed: true)])
    }

    @Test("targets are read as they are printed")
    func words() {
        #expect(UndoWord("42") == .seqs(42, 42))
        #expect(UndoWord("120..135") == .seqs(120, 135))
        #expect(UndoWord("import:5") == .origin(5))
        #expect(UndoWord("5..4") == nil)
        for text in [
            "trending.json", "0", "1..", "..2", "1..x", "import:", "import:x", "-1", "+1", "99999999999999999999",
        ] {
            #expect(UndoWord(text) == .text(text))
        }
    }
}

@Suite("The log in rows and windows")
struct LogTests {
    private func row(_ seq: UInt64, type: UInt8 = EntryType.deleted, origin: UInt64 = 1) throws -> LogRow {
        var entry = EntryView()
        entry.type = type
        entry.seq = seq
        entry.kind = 1
        entry.origin = origin
        return try #require(LogRow(entry, time: 0, Kinds([])))
    }

    private func grouped(_ rows: [LogRow]) -> [String] {
        var grouping = LogGrouping()
        var out: [LogRow] = []
        for row in rows { out += grouping.take(row) }
        out += grouping.finish()
        return out.map { "\($0.words) \($0.seqs)" }
    }

    @Test("twenty deletes in a row are one row, in both directions; fewer stay apart")
    func grouping() throws {
        let rows = try (1...25).map { try row($0) }
        #expect(grouped(rows) == ["deleted 25 records 1..25"])
        #expect(grouped(rows.reversed()) == ["deleted 25 records 1..25"])
        #expect(grouped(Array(rows.prefix(19))).count == 19)
    }

    @Test("another program's delete, a gap and a save end the row")
    func groupsEnd() throws {
        var rows = try (1...20).map { try row($0) }
        rows += try (21...40).map { try row($0, origin: 2) }
        rows.append(try row(41, type: EntryType.created))
        rows += try (42...60).map { try row($0) }
        rows.append(try row(70))
        #expect(
            grouped(rows) == ["deleted 20 records 1..20", "deleted 20 records 21..40", "created 41"]
                + (42...60).map { "deleted \($0)" } + ["deleted 70"])
    }

    @Test("windows cover the log once, from either end", arguments: [(0, 0), (0, 1), (7, 700), (0, 100_000)])
    func windows(_ floor: UInt64, _ last: UInt64) {
        for isNewestFirst in [true, false] {
            let windows = Array(LogWindows(floor: floor, last: last, isNewestFirst: isNewestFirst))
            let ordered = isNewestFirst ? windows.reversed() : windows
            var at = floor
            for window in ordered {
                #expect(window.after == at && window.through > at && window.through - at <= 16_384)
                at = window.through
            }
            #expect(at == last)
        }
    }

    @Test("seqs that lie close together are one cluster, each once and ascending")
    func clusters() {
        #expect(SeqClusters.of([]) == [] && SeqClusters.of([0]) == [])
        #expect(SeqClusters.of([40, 7, 8, 7, 0]) == [[7, 8, 40]])
        #expect(SeqClusters.of([1, 34, 66, 99]) == [[1], [34, 66], [99]])
    }

    @Test("the counts of an import's end are read from the log, and broken ones are no row")
    func importEnd() throws {
        var writer = ByteWriter()
        for number in [7, 1, 10, 4, 3, 2, 1, 0, 0, 0] { writer.varint(number) }
        func ended(_ bytes: [UInt8]) -> LogRow? {
            bytes.withUnsafeBytes { bytes in
                var entry = EntryView()
                entry.type = EntryType.importEnded
                entry.seq = 9
                entry.payload = bytes
                return LogRow(entry, time: 0, Kinds([]))
            }
        }
        let row = try #require(ended(writer.bytes))
        #expect(row.origin == 7)
        #expect(row.words == "import ended: 10 read, 4 created, 3 updated, 2 unchanged, 1 duplicate")
        #expect(ended(Array(writer.bytes.dropLast())) == nil)
    }
}

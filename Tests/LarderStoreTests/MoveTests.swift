// A record gets another key and stays the record that it was.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct MoveTests {
    @Test("a moved record keeps its first seq, its saved time and its place in saved order, also after a restart")
    func place() throws {
        let driver = try Books.library([(1, "a"), (2, "b"), (3, "c")])
        let before = try #require(try driver.get(Books.key(2)))
        #expect(try driver.write([Books.move(2, 9, "b")]).outcomes == [.updated])
        try driver.settle()
        let after = try #require(try driver.get(Books.key(9)))
        #expect(try driver.get(Books.key(2)) == nil)
        #expect(after.firstSeq == before.firstSeq && after.savedAt == before.savedAt && after.seq > before.seq)
        #expect(try driver.bookOrder() == [1, 9, 3])
    }

    @Test("a move is a deleted and an updated entry, which carry what subscribers need")
    func entries() throws {
        let driver = try Books.library([(1, "a")])
        let old = try #require(try driver.get(Books.key(1)))
        let start = driver.store.lastSeq
        let answer = try driver.write([Books.move(1, 2, "b")])
        try driver.commitAll()
        var reader = Subscriber(driver.store, after: start)
        try reader.readToEnd(driver)
        #expect(reader.received.map(\.type) == [EntryType.deleted, EntryType.updated])
        #expect(reader.received.map(\.key) == [Books.key(1), Books.key(2)])
        #expect(reader.received.map(\.previousSeq) == [old.seq, old.seq])
        #expect(reader.received.map(\.firstSeq) == [old.firstSeq, old.firstSeq])
        #expect(reader.received.last?.seq == answer.seqs[0])
        // The id and the title changed; the source did not.
        #expect(reader.received.last?.changed == [2, 3])
    }

    @Test("a move keeps fields above known, and personal ones without that option")
    func keptFields() throws {
        let driver = try Books.library([])
        var saved = TestOp.save(
            TestKinds.book, Books.fields(1, "a", [4: Encode.text("mine"), 5: Encode.int(7)]), .replace)
        saved.isPersonal = true
        try driver.write([saved])
        var move = Books.move(1, 2, "b", [4: Encode.text("theirs")])
        move.known = 4
        #expect(try driver.write([move]).outcomes == [.updated])
        try driver.commitAll()
        #expect(
            try driver.get(Books.key(2))?.fields
                == Books.fields(2, "b", [4: Encode.text("mine"), 5: Encode.int(7)]))
        // With the option, and knowing all, it is the record that was sent.
        move = Books.move(2, 3, "c", [4: Encode.text("new")])
        move.isPersonal = true
        #expect(try driver.write([move]).outcomes == [.updated])
        try driver.settle()
        #expect(try driver.get(Books.key(3))?.fields == Books.fields(3, "c", [4: Encode.text("new")]))
    }

    @Test("a move that knows nothing of the kind still changes the key")
    func knownBelowKey() throws {
        let driver = try Books.library([(1, "a")])
        var move = Books.move(1, 2, "ignored")
        move.known = 0
        #expect(try driver.write([move]).outcomes == [.updated])
        try driver.settle()
        #expect(try driver.get(Books.key(2))?.fields == Books.fields(2, "a"))
    }

    @Test("a move onto its own key is a replace, and one that changes nothing is unchanged")
    func ontoItself() throws {
        let driver = try Books.library([(1, "a"), (2, "b")])
        let seq = try #require(try driver.get(Books.key(1))?.seq)
        let same = try driver.write([Books.move(1, 1, "a")])
        #expect(same.outcomes == [.unchanged] && same.seqs == [seq] && same.commit == 0)
        #expect(try driver.write([Books.move(1, 1, "new")]).outcomes == [.updated])
        try driver.settle()
        #expect(try driver.get(Books.key(1))?.fields == Books.fields(1, "new"))
        #expect(try driver.bookOrder() == [1, 2])
    }

    @Test("a move from a key that is not there is not_found, to one that is already_saved; neither writes")
    func refused() throws {
        let driver = try Books.library([(1, "a"), (2, "b")])
        let seq = try #require(try driver.get(Books.key(2))?.seq)
        let answer = try driver.write([Books.move(7, 8, "x"), Books.move(1, 2, "x"), Books.move(7, 1, "x")])
        #expect(answer.outcomes == [.notFound, .alreadySaved, .notFound])
        #expect(answer.seqs[1] == seq)
        try driver.settle()
    }

    @Test("if_seq of a move is about the record that is moved")
    func ifSeq() throws {
        let driver = try Books.library([(1, "a")])
        let seq = try #require(try driver.get(Books.key(1))?.seq)
        let answer = try driver.write([Books.move(1, 2, "b").ifSeq(seq + 1), Books.move(1, 2, "b").ifSeq(0)])
        #expect(answer.refusals.map(\.reason) == [.conflict(current: seq), .conflict(current: seq)])
        #expect(try driver.write([Books.move(1, 2, "b").ifSeq(seq)]).outcomes == [.updated])
        try driver.settle()
    }

    @Test("moves follow one another within a batch, in what is staged and in what is being written")
    func chain() throws {
        let driver = try Books.library([(1, "a"), (5, "e")])
        // 1 → 2 → 3, and another takes the key 1.
        let answer = try driver.write([
            Books.move(1, 2, "a"), Books.move(2, 3, "a"), Books.move(1, 4, "a"), .book(1, "new"), .deleteBook(2),
        ])
        #expect(answer.outcomes == [.updated, .updated, .notFound, .created, .notFound])
        #expect(try driver.write([Books.move(3, 4, "staged")]).outcomes == [.updated])
        driver.take()
        #expect(
            try driver.write([Books.move(4, 6, "flying"), Books.move(5, 4, "e")]).outcomes == [.updated, .updated])
        driver.finish()
        try driver.settle()
        #expect(try driver.bookOrder() == [6, 4, 1])
    }

    @Test("two records change keys by way of a third")
    func swap() throws {
        let driver = try Books.library([(1, "a"), (2, "b")])
        #expect(
            try driver.write([Books.move(1, 9, "a"), Books.move(2, 1, "b"), Books.move(9, 2, "a")]).outcomes == [
                .updated, .updated, .updated,
            ])
        try driver.settle()
        #expect(try driver.bookOrder() == [2, 1])
    }

    @Test("a move must send all that a record must have, and a key that is one")
    func badRecords() throws {
        let driver = try Books.library([])
        let joke: (UInt64) -> Fields = { [1: Encode.uuid($0)] }
        let body = [2: Encode.text("ha")] as Fields
        try driver.write([.save(TestKinds.joke, joke(1).merging(body) { $1 })])
        #expect(try driver.write([.move(TestKinds.joke, from: joke(1), joke(2))]).outcomes == [.refused])
        var spoilt = TestOp.move(TestKinds.joke, from: joke(1), joke(2).merging(body) { $1 })
        spoilt.oldFields = [1: [1, 2, 3]]
        let batch = driver.prepare([spoilt])
        #expect(batch.batch.refusals.map(\.position) == [0])
        guard case .badKey = batch.batch.refusals.first?.reason else {
            Issue.record("\(batch.batch.refusals)")
            return
        }
    }

    @Test("a batch of many moves of pending records is counted, not refused as too large")
    func manyMoves() throws {
        let driver = try Books.library([])
        let text = String(repeating: "t", count: 1500)
        let count = 2000
        try driver.write((1...count).map { .book($0, text) })
        let answer = try driver.write((1...count).map { Books.move($0, $0 + 10_000, text) })
        #expect(answer.outcomes.allSatisfy { $0 == .updated } && answer.outcomes.count == count)
        try driver.commitAll()
        #expect(driver.store.counts(kind: 2).map(\.count) == [count])
    }
}

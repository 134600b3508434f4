// A deleted record comes back to its place.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct RestoreTests {
    /// Books 1 to 4, of which the second is gone; its first seq and saved time.
    private func withGap() throws -> (StoreDriver, firstSeq: UInt64, savedAt: Int64) {
        let driver = try Books.library([(1, "a"), (2, "b"), (3, "c"), (4, "d")])
        let old = try #require(try driver.get(Books.key(2)))
        try driver.write([.deleteBook(2)])
        try driver.commitAll()
        return (driver, old.firstSeq, old.savedAt)
    }

    @Test("a restored record is where it was in saved order, with its saved time", arguments: [false, true])
    func place(restarts: Bool) throws {
        let (driver, firstSeq, savedAt) = try withGap()
        if restarts { try driver.reopen() }
        let answer = try driver.write([Books.restore(2, "back", firstSeq: firstSeq, savedAt: savedAt)])
        #expect(answer.outcomes == [.created])
        try driver.settle()
        let found = try #require(try driver.get(Books.key(2)))
        #expect(found.firstSeq == firstSeq && found.savedAt == savedAt && found.seq == answer.seqs[0])
        #expect(try driver.bookOrder() == [1, 2, 3, 4])
    }

    @Test("after the hole was closed a restored record still comes between its neighbours")
    func closedHole() throws {
        let driver = try Books.library([(1, "a")])
        let count = 70_000
        for start in stride(from: 100, to: 100 + count, by: 7000) {
            try driver.write((start..<start + 7000).map { .book($0, "x") })
        }
        try driver.write([.book(2, "b")])
        try driver.commitAll()
        let old = try #require(try driver.get(RecordKey(kind: 2, bytes: Books.key(50_000).bytes)))
        for start in stride(from: 100, to: 100 + count, by: 7000) {
            try driver.write((start..<start + 7000).map { .deleteBook($0) })
            try driver.commitAll()
        }
        #expect(driver.store.core.table.ordinal(firstSeq: old.firstSeq) == nil)
        #expect(try driver.find(2, 3, Encode.text("b")) == [Books.key(2)])
        #expect(try driver.write([Books.restore(3, "c", firstSeq: old.firstSeq)]).outcomes == [.created])
        try driver.commitAll()
        #expect(try driver.bookOrder() == [1, 3, 2])
        #expect(try driver.find(2, 3, Encode.text("C")) == [Books.key(3)])
        // What was renumbered is found, changed and removed as before.
        #expect(
            try driver.write([.book(2, "new"), .deleteBook(3), .book(1, "new")]).outcomes == [
                .updated, .deleted, .updated,
            ])
        try driver.settle()
        #expect(try driver.bookOrder() == [1, 2])
    }

    @Test("a first seq of a record that is there, of none yet or 0 is refused, with the seq")
    func refusedPlaces() throws {
        let (driver, firstSeq, _) = try withGap()
        let taken = try #require(try driver.get(Books.key(1))?.firstSeq)
        let next = driver.store.core.nextSeq
        let answer = try driver.write([
            Books.restore(7, "x", firstSeq: taken), Books.restore(7, "x", firstSeq: next),
            Books.restore(7, "x", firstSeq: 0), Books.restore(7, "x", firstSeq: .max),
            Books.restore(7, "x", firstSeq: firstSeq, savedAt: .max), Books.restore(1, "x", firstSeq: firstSeq),
            Books.restore(7, "x", firstSeq: next - 1),
        ])
        #expect(
            answer.outcomes == [.refused, .refused, .refused, .refused, .refused, .alreadySaved, .created])
        let places = answer.refusals.sorted { $0.position < $1.position }.map(\.reason)
        #expect(
            places == [
                .badPlace(taken), .badPlace(next), .badPlace(0), .badPlace(.max), .badPlace(firstSeq),
            ])
        try driver.settle()
    }

    @Test("a first seq is taken by a pending record too, and free again once that is gone")
    func pendingPlaces() throws {
        let (driver, firstSeq, _) = try withGap()
        // In the batch, in what is staged, in what is being written.
        let restores = [Books.restore(2, "b", firstSeq: firstSeq), Books.restore(7, "x", firstSeq: firstSeq)]
        #expect(try driver.write(restores).outcomes == [.created, .refused])
        let staged = try driver.write([restores[1]])
        #expect(staged.outcomes == [.refused] && staged.commit != 0)
        driver.take()
        let flying = try driver.write([restores[1]])
        #expect(flying.outcomes == [.refused] && flying.commit == staged.commit)
        #expect(try driver.write([.deleteBook(2), restores[1]]).outcomes == [.deleted, .created])
        driver.finish()
        try driver.settle()
        #expect(try driver.bookOrder() == [1, 7, 3, 4])
    }

    @Test("the first seq of a deleted record of another kind will do")
    func otherKind() throws {
        let (driver, firstSeq, _) = try withGap()
        let fields = [1: Encode.uuid(1), 2: Encode.text("ha")] as Fields
        _ = try driver.find(2, 3, Encode.text("a"))
        #expect(
            try driver.write([.restore(TestKinds.joke, fields, firstSeq: firstSeq, savedAt: 5)]).outcomes == [
                .created
            ])
        try driver.settle()
        #expect(try driver.list(kind: 0, isReverse: false, pageLimit: 2).map(\.firstSeq).firstIndex(of: firstSeq) == 1)
    }

    @Test("a restored record must have what a record must have; its personal fields come back")
    func contents() throws {
        let (driver, firstSeq, _) = try withGap()
        let lacking = TestOp.restore(TestKinds.joke, [1: Encode.uuid(1)], firstSeq: firstSeq, savedAt: 1)
        // As the host sends it: a mode is not said.
        var asMerge = lacking
        asMerge.mode = .merge
        #expect(try driver.write([lacking, asMerge]).outcomes == [.refused, .refused])
        let fields = Books.fields(2, "b", [4: Encode.text("mine")])
        #expect(
            try driver.write([.restore(TestKinds.book, fields, firstSeq: firstSeq, savedAt: 1)]).outcomes == [.created])
        try driver.settle()
        #expect(try driver.get(Books.key(2))?.fields == fields)
    }

    @Test("restored, deleted and restored again in one commit, with others between")
    func again() throws {
        let (driver, firstSeq, savedAt) = try withGap()
        let restore = Books.restore(2, "b", firstSeq: firstSeq, savedAt: savedAt)
        #expect(
            try driver.write([restore, .deleteBook(2), .book(2, "new"), restore, .deleteBook(2), restore]).outcomes == [
                .created, .deleted, .created, .alreadySaved, .deleted, .created,
            ])
        try driver.settle()
        #expect(try driver.bookOrder() == [1, 2, 3, 4])
    }

    @Test("after a clear of everything each record comes back to its place")
    func afterClear() throws {
        let driver = try Books.library((1...40).map { ($0, "t\($0)") })
        let records = driver.model.visible(kind: 2).map(\.1)
        _ = try driver.find(2, 3, Encode.text("t1"))
        try driver.clear(kind: 0)
        let restores = records.map { record in
            TestOp.restore(TestKinds.book, record.fields, firstSeq: record.firstSeq, savedAt: record.savedAt)
        }
        for part in [restores[20...].reversed(), restores[..<20].reversed()] {
            let answer = try driver.write(Array(part))
            #expect(answer.outcomes.allSatisfy { $0 == .created })
            try driver.commitAll()
        }
        #expect(try driver.bookOrder() == Array(1...40))
        try driver.settle()
    }
}

// Insert, replace, merge and fill, with what is personal, unset, known and expected.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct ModeTests {
    private static let stored = Books.fields(1, "stored", [4: Encode.text("mine"), 5: Encode.int(1)])

    private func library() throws -> StoreDriver {
        let driver = try Books.library([])
        var op = TestOp.save(TestKinds.book, Self.stored)
        op.isPersonal = true
        try driver.write([op])
        try driver.commitAll()
        return driver
    }

    /// The record after one operation on it, on one stored and on one pending.
    private func after(_ op: TestOp) throws -> (Outcome, Fields?) {
        let driver = try library()
        let answer = try driver.write([op])
        try driver.settle()
        let pending = try library()
        try pending.write([.book(2, "other"), .deleteBook(1)])
        var again = TestOp.save(TestKinds.book, Self.stored)
        again.isPersonal = true
        try pending.write([again])
        #expect(try pending.write([op]).outcomes == answer.outcomes)
        try pending.settle()
        #expect(try pending.get(Books.key(1))?.fields == driver.get(Books.key(1))?.fields)
        return (answer.outcomes[0], try driver.get(Books.key(1))?.fields)
    }

    private func op(_ mode: SaveMode, _ more: Fields, personal: Bool = false, known: Int = 256, unset: Set<Int> = [])
        -> TestOp
    {
        var op = TestOp.save(TestKinds.book, Books.keyFields(1).merging(more) { $1 }, mode)
        (op.isPersonal, op.known, op.unset) = (personal, known, unset)
        return op
    }

    @Test("insert leaves what is there")
    func insert() throws {
        let (outcome, fields) = try after(op(.insert, [3: Encode.text("new")]))
        #expect(outcome == .alreadySaved && fields == Self.stored)
    }

    @Test("replace takes away what was not sent, but for what is personal or not known")
    func replace() throws {
        var (outcome, fields) = try after(op(.replace, [3: Encode.text("new")]))
        #expect(outcome == .updated && fields == Books.fields(1, "new", [4: Encode.text("mine")]))
        (outcome, fields) = try after(op(.replace, [3: Encode.text("new")], personal: true))
        #expect(outcome == .updated && fields == Books.fields(1, "new"))
        (outcome, fields) = try after(
            op(.replace, [3: Encode.text("new"), 5: Encode.int(9)], personal: true, known: 3))
        #expect(fields == Books.fields(1, "new", [4: Encode.text("mine"), 5: Encode.int(1)]))
    }

    @Test("merge leaves what was not sent, and takes away what is unset, but for keys and what is personal")
    func merge() throws {
        var (outcome, fields) = try after(op(.merge, [5: Encode.int(2)]))
        #expect(outcome == .updated && fields == Self.stored.merging([5: Encode.int(2)]) { $1 })
        (outcome, fields) = try after(op(.merge, [:], unset: [1, 2, 3, 4, 5]))
        #expect(outcome == .updated && fields == Books.keyFields(1).merging([4: Encode.text("mine")]) { $1 })
        (outcome, fields) = try after(op(.merge, [:], personal: true, unset: [4]))
        #expect(outcome == .updated && fields == Books.fields(1, "stored", [5: Encode.int(1)]))
        (outcome, fields) = try after(op(.merge, [:], unset: [4, 6]))
        #expect(outcome == .unchanged && fields == Self.stored)
        (outcome, fields) = try after(op(.merge, [3: Encode.text("sent")], unset: [3]))
        #expect(fields?[3] == Encode.text("sent"))
    }

    @Test("what must be there cannot be unset")
    func unsetRequired() throws {
        let driver = try Books.library([])
        let joke: Fields = [1: Encode.uuid(1), 2: Encode.text("ha"), 3: Encode.choice(1)]
        try driver.write([.save(TestKinds.joke, joke)])
        var op = TestOp.save(TestKinds.joke, [1: Encode.uuid(1)])
        op.unset = [2]
        let answer = try driver.write([op])
        #expect(answer.outcomes == [.refused])
        op.unset = [3]
        #expect(try driver.write([op]).outcomes == [.updated])
        try driver.settle()
    }

    @Test("fill sets only what is absent, and a personal field only with that option")
    func fill() throws {
        var (outcome, fields) = try after(op(.fill, [3: Encode.text("new"), 5: Encode.int(2)]))
        #expect(outcome == .unchanged && fields == Self.stored)
        let driver = try Books.library([(1, "a")])
        let offered = op(.fill, [3: Encode.text("x"), 4: Encode.text("note"), 5: Encode.int(2)])
        #expect(try driver.write([offered]).outcomes == [.updated])
        try driver.commitAll()
        fields = try driver.get(Books.key(1))?.fields
        #expect(fields == Books.fields(1, "a", [5: Encode.int(2)]))
        var personal = offered
        personal.isPersonal = true
        outcome = try driver.write([personal]).outcomes[0]
        try driver.settle()
        #expect(outcome == .updated)
        #expect(
            try driver.get(Books.key(1))?.fields == Books.fields(1, "a", [4: Encode.text("note"), 5: Encode.int(2)]))
    }

    @Test("if_seq holds against what is stored, staged, being written and gone")
    func ifSeq() throws {
        let driver = try Books.library([(1, "a")])
        let stored = try #require(try driver.get(Books.key(1))?.seq)
        #expect(
            try driver.write([
                TestOp.book(1, "x").ifSeq(0), TestOp.book(2, "x").ifSeq(5), TestOp.book(1, "b").ifSeq(stored),
            ]).outcomes == [.refused, .refused, .updated])
        let staged = try driver.write([TestOp.book(1, "c").ifSeq(stored)])
        guard case .conflict(let seq) = staged.refusals.first?.reason else { throw Mismatch("\(staged)") }
        driver.take()
        #expect(
            try driver.write([TestOp.book(1, "c").ifSeq(seq), TestOp.deleteBook(1).ifSeq(seq)]).outcomes == [
                .updated, .refused,
            ])
        driver.finish()
        #expect(
            try driver.write([.deleteBook(1), TestOp.book(1, "d").ifSeq(seq), TestOp.book(1, "d").ifSeq(0)]).outcomes
                == [.deleted, .refused, .created])
        try driver.settle()
    }

    @Test("a walk goes on behind the record it stopped at, though records come and go around it")
    func walk() throws {
        let driver = try Books.library((1...9).map { ($0, "t\($0)") })
        var walk = RecordWalk(kind: 2)
        var seen: [UInt64] = []
        let stop = driver.model.visible(kind: 2)[4].1.firstSeq
        guard
            case .stopped = try driver.store.walk(
                &walk, slice: 100,
                { record in
                    if record.firstSeq == stop { return false }
                    seen.append(record.firstSeq)
                    return true
                })
        else { throw Mismatch("not stopped") }
        #expect(seen.count == 4)
        // The record itself, one behind it and one before go; one moves, one comes.
        try driver.write([.deleteBook(5), .deleteBook(7), .deleteBook(1), Books.move(8, 80, "m"), .book(10, "new")])
        try driver.commitAll()
        var rest: [UInt64] = []
        while case .more = try driver.store.walk(
            &walk, slice: 2,
            { record in
                rest.append(record.firstSeq)
                return true
            })
        {}
        let expected = driver.model.visible(kind: 2).map(\.1.firstSeq).filter { $0 > stop }
        #expect(rest == expected && rest.count == 4)
        #expect(try driver.walk(kind: 77, isReverse: false, slice: 5).isEmpty)
    }
}

// A record is not saved where another has its value.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct UnlessExistsTests {
    private func seq(_ driver: StoreDriver, _ id: Int) throws -> UInt64 {
        try #require(try driver.get(Books.key(id))?.seq)
    }

    @Test("a value that a stored record has holds a save off, and the answer names that record")
    func stored() throws {
        let driver = try Books.library([(1, "a"), (2, "b")])
        let answer = try driver.write([
            TestOp.book(3, "b").unlessExists(3), TestOp.book(3, "c").unlessExists(3), TestOp.book(4, "c"),
        ])
        #expect(answer.outcomes == [.alreadySaved, .created, .created])
        #expect(answer.seqs[0] == (try seq(driver, 2)))
        try driver.settle()
    }

    @Test("a value repeated in the batch, in what is staged and in what is being written holds a save off")
    func pending() throws {
        let driver = try Books.library([])
        let op: (Int) -> TestOp = { TestOp.book($0, "same").unlessExists(3) }
        let first = try driver.write([op(1), op(2)])
        #expect(first.outcomes == [.created, .alreadySaved] && first.seqs[0] == first.seqs[1])
        let staged = try driver.write([op(3)])
        #expect(staged.outcomes == [.alreadySaved] && staged.commit == first.commit)
        driver.take()
        let flying = try driver.write([op(4)])
        #expect(flying.outcomes == [.alreadySaved] && flying.commit == first.commit)
        driver.finish()
        let stored = try driver.write([op(5)])
        #expect(stored.outcomes == [.alreadySaved] && stored.commit == 0 && stored.seqs == [first.seqs[0]])
        try driver.settle()
        #expect(try driver.write([op(6)]).outcomes == [.alreadySaved])
    }

    @Test("the record's own key does not count, nor the key that a move takes it from")
    func ownKey() throws {
        let driver = try Books.library([(1, "a"), (2, "b")])
        let moved = Books.fields(1, "a", [5: Encode.int(3)])
        #expect(
            try driver.write([TestOp.save(TestKinds.book, moved, .replace).unlessExists(3)]).outcomes == [.updated])
        #expect(try driver.write([Books.move(1, 8, "a").unlessExists(3)]).outcomes == [.updated])
        // Again, while the record is pending under the new key.
        #expect(try driver.write([Books.move(8, 9, "a").unlessExists(3)]).outcomes == [.updated])
        #expect(try driver.write([Books.move(9, 1, "b").unlessExists(3)]).outcomes == [.alreadySaved])
        try driver.settle()
        #expect(try driver.bookOrder() == [9, 2])
    }

    @Test(
        "values are compared folded",
        arguments: [
            ("café", "CAFE\u{301}"), ("한국어", "\u{1112}\u{1161}\u{11AB}국어"), ("\u{FF21}BC", "abc"),
            ("Straße", "straße"),
        ])
    func folded(_ pair: (String, String)) throws {
        for (first, second) in [pair, (pair.1, pair.0)] {
            let driver = try Books.library([(1, first)])
            #expect(try driver.write([TestOp.book(2, second).unlessExists(3)]).outcomes == [.alreadySaved])
            #expect(try driver.find(2, 3, Encode.text(second)) == [Books.key(1)])
            // And among pending ones.
            let pending = [TestOp.book(3, first + "!"), TestOp.book(4, second + "!").unlessExists(3)]
            #expect(try driver.write(pending).outcomes == [.created, .alreadySaved])
            try driver.settle()
        }
    }

    @Test("one text in common is enough for lists, and an identifier is compared as it is")
    func otherTypes() throws {
        let driver = try Books.library([])
        func title(_ id: Int, _ genres: [String], imdb: [UInt8]? = nil) -> TestOp {
            var fields: Fields = [1: Encode.text("tmdb"), 2: Encode.choice(1), 3: Encode.identifier(id)]
            fields[7] = Encode.list(genres)
            fields[9] = imdb
            return .save(TestKinds.title, fields)
        }
        try driver.write([title(1, ["Drama", "War"], imdb: Encode.identifier(603))])
        for isPending in [true, false] {
            if !isPending { try driver.commitAll() }
            let answer = try driver.write([
                title(2, ["comedy", "WAR"]).unlessExists(7),
                title(2, ["comedy"], imdb: Encode.identifier(603)).unlessExists(9),
                title(2, [], imdb: Encode.identifier("tt603")).unlessExists(7),
                title(3, [], imdb: Encode.identifier("TT603")).unlessExists(9), title(2, ["Dramas"]).unlessExists(9),
            ])
            #expect(answer.outcomes.prefix(2) == [.alreadySaved, .alreadySaved])
            #expect(answer.outcomes[3] == .alreadySaved)
            if isPending { #expect(answer.outcomes[2] == .created) }
        }
        try driver.settle()
    }

    @Test("a record without a value in the field, or with an empty list, is held against none")
    func withoutValue() throws {
        let driver = try Books.library([])
        let bare: (Int) -> TestOp = { TestOp.save(TestKinds.book, Books.keyFields($0)).unlessExists(3) }
        #expect(try driver.write([bare(1), bare(2)]).outcomes == [.created, .created])
        #expect(
            try driver.write([TestOp.book(3, "").unlessExists(3), TestOp.book(4, "").unlessExists(3)]).outcomes == [
                .created, .alreadySaved,
            ])
        try driver.settle()
    }

    @Test("a field that is not indexed is refused, and names itself")
    func notIndexed() throws {
        let driver = try Books.library([])
        for field in [1, 4, 6, 256, 1 << 40] {
            let answer = try driver.write([TestOp.book(1, "a").unlessExists(field)])
            #expect(answer.refusals.map(\.reason) == [.notIndexed(field)])
        }
    }

    @Test("values of records that were changed or deleted hold nothing off, wherever the change is")
    func gone() throws {
        let driver = try Books.library([(1, "a"), (2, "b"), (3, "c")])
        #expect(try driver.write([TestOp.book(9, "a").unlessExists(3)]).outcomes == [.alreadySaved])
        let changes = [TestOp.book(1, "new"), .deleteBook(2), Books.move(3, 4, "moved")]
        let saves = [TestOp.book(5, "a"), TestOp.book(6, "b"), TestOp.book(7, "c")].map { $0.unlessExists(3) }
        // In the batch, then in a dry run against what is staged, being written and durable.
        #expect(try driver.write(changes + saves, isDryRun: true).outcomes.suffix(3) == [.created, .created, .created])
        try driver.write(changes)
        #expect(try driver.write(saves, isDryRun: true).outcomes == [.created, .created, .created])
        driver.take()
        #expect(try driver.write(saves, isDryRun: true).outcomes == [.created, .created, .created])
        driver.finish()
        #expect(try driver.write(saves).outcomes == [.created, .created, .created])
        try driver.settle()
    }

    @Test("of two importers that race for one value the second is held off, however they were resolved")
    func race() throws {
        let driver = try Books.library([])
        for round in 0..<4 {
            let first = driver.prepare([TestOp.book(10 + round, "t\(round)").unlessExists(3)], Sending(program: "p"))
            let second = driver.prepare([TestOp.book(20 + round, "t\(round)").unlessExists(3)], Sending(program: "q"))
            if round & 1 == 0 { try driver.resolve(first) }
            if round & 2 == 0 { try driver.resolve(second) }
            #expect(try driver.stage(second).outcomes == [.created])
            #expect(try driver.stage(first).outcomes == [.alreadySaved])
        }
        try driver.settle()
    }

    @Test("a record that was found while resolving and is pending when staged is looked up again")
    func foundThenChanged() throws {
        let driver = try Books.library([(1, "a"), (2, "a")])
        let late = driver.prepare([TestOp.book(5, "a").unlessExists(3)])
        try driver.resolve(late)
        try driver.write([.book(1, "b")])
        #expect(try driver.stage(late).seqs == [try seq(driver, 2)])
        let later = driver.prepare([TestOp.book(5, "a").unlessExists(3)])
        try driver.resolve(later)
        try driver.write([.deleteBook(2)])
        #expect(try driver.stage(later).outcomes == [.created])
        try driver.settle()
    }

    @Test("a crowd of records with one value is found, kept up and held against one that comes")
    func crowd() throws {
        let driver = try Books.library((1...300).map { ($0, "crowd") })
        let save = TestOp.book(999, "CROWD").unlessExists(3)
        #expect(try driver.write([save]).outcomes == [.alreadySaved])
        #expect(try driver.find(2, 3, Encode.text("Crowd"), limit: 1000).count == 300)
        #expect(try driver.find(2, 3, Encode.text("Crowd"), limit: 7) == (1...7).map { Books.key($0) })
        // One in the middle leaves and comes back.
        try driver.write([.book(150, "left"), .deleteBook(151)])
        try driver.commitAll()
        #expect(try driver.find(2, 3, Encode.text("crowd")).count == 298)
        try driver.write([.book(150, "crowd"), .book(301, "crowd")])
        try driver.commitAll()
        #expect(
            try driver.find(2, 3, Encode.text("crowd")).map(\.bytes)
                == ((1...150).map { $0 } + (152...301).map { $0 }).map { Books.key($0).bytes })
        // All but the last leave, in one batch with the save.
        let leaving = (1...300).filter { $0 != 151 }.map { TestOp.book($0, "left") }
        #expect(try driver.write(leaving + [save]).outcomes.last == .alreadySaved)
        #expect(try driver.write([.deleteBook(301), save]).outcomes == [.deleted, .created])
        try driver.settle()
        #expect(try driver.find(2, 3, Encode.text("crowd")) == [Books.key(999)])
    }

    @Test("reads that must wait for the disk change nothing of it")
    func coldReads() throws {
        let files = SimulatedFiles(seed: 4)
        let driver = try StoreDriver(files)
        try driver.write((1...200).map { .book($0, "t\($0 % 50)") })
        try driver.reopen()
        files.setBlockingReads(percent: 70)
        let answer = try driver.write((1000..<1060).map { TestOp.book($0, "T\($0 - 1000)").unlessExists(3) })
        #expect(answer.outcomes == (0..<60).map { $0 < 50 ? .alreadySaved : .created })
        #expect(try driver.find(2, 3, Encode.text("T7")).count == 4)
        try driver.settle()
    }
}

// Answers that depend on a commit wait for it, and fail with it.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct PendingAnswerTests {
    /// Operations that write nothing, each because of a change that is pending.
    private static let idle: [TestOp] = [
        .book(1, "new"), .book(7, "x", .insert), .deleteBook(2), Books.move(2, 9, "x"), Books.move(3, 7, "x"),
        TestOp.book(9, "Seven").unlessExists(3), TestOp.book(1, "z").ifSeq(1), Books.move(1, 1, "new"),
    ]

    private func changed() throws -> StoreDriver {
        let driver = try Books.library([(1, "a"), (2, "b"), (3, "c")])
        try driver.write([.book(1, "new"), .deleteBook(2), .book(7, "seven")])
        return driver
    }

    @Test("what changes nothing because of a pending change waits for that commit", arguments: idle.indices)
    func waits(at: Int) throws {
        let driver = try changed()
        let commit = driver.store.stagedCommit
        for sending in [Sending(), Sending(isDryRun: true), Sending(isAtomic: true)] {
            let answer = try driver.stage(driver.prepare([Self.idle[at]], sending))
            #expect(answer.commit == commit, "\(answer)")
            #expect(!answer.outcomes.contains { [.created, .updated, .deleted].contains($0) })
        }
        driver.take()
        #expect(try driver.write([Self.idle[at]]).commit == commit)
        driver.finish()
        #expect(try driver.write([Self.idle[at]]).commit == 0)
    }

    @Test("unchanged because a pending change took the value away waits too")
    func absence() throws {
        let driver = try Books.library([(1, "a"), (2, "b")])
        try driver.write([.book(2, "other")])
        // Book 3 was there before with this value would be held off by book 2.
        let free = try driver.write([TestOp.book(1, "a").unlessExists(3)])
        #expect(free.outcomes == [.unchanged] && free.commit == driver.store.stagedCommit)
    }

    @Test("what has nothing to do with it is answered at once")
    func independent() throws {
        let driver = try changed()
        let answer = try driver.write([.book(3, "c"), .deleteBook(50), .book(3, "x", .insert)])
        #expect(answer.commit == 0 && answer.outcomes == [.unchanged, .notFound, .alreadySaved])
        #expect(try driver.write([.book(50, "x")], isDryRun: true).commit == 0)
    }

    @Test("the commit fails: no answer that depends on it may go, and nothing of it is seen")
    func failedCommit() throws {
        let files = SimulatedFiles(seed: 3)
        let driver = try StoreDriver(files)
        try driver.write([.book(1, "a"), .book(2, "b")])
        try driver.commitAll()
        try driver.write([.book(1, "new"), Books.move(2, 4, "b"), .book(7, "seven")])
        let failing = driver.store.stagedCommit
        driver.take()
        let behind = try driver.write([.book(1, "new"), TestOp.book(8, "SEVEN").unlessExists(3), .book(4, "more")])
        #expect(behind.outcomes == [.unchanged, .alreadySaved, .updated] && behind.commit > failing)
        files.inject(SimulatedFault(call: "fdatasync"))
        driver.finish()
        #expect(driver.failure != nil && driver.store.lastFinishedCommit >= failing)
        try driver.compareAll([])
        #expect(try driver.bookOrder() == [1, 2])
        #expect(throws: StoreError.self) { try driver.write([.book(1, "z")]) }
    }
}

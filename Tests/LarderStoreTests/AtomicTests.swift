// All or nothing, and nothing at all: atomic batches and dry runs.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct AtomicTests {
    /// What a batch that leaves nothing must leave as it was.
    private struct State: Equatable {
        let nextSeq: UInt64
        let lastSeq: UInt64
        let origins: [Origin]
        let kinds: [Kind]
        let stagedByteCount: Int
        let hasStaged: Int
        let counts: [Int]

        init(_ store: Store) {
            nextSeq = store.core.nextSeq
            lastSeq = store.lastSeq
            origins = store.origins
            kinds = store.kinds
            stagedByteCount = store.core.open.entryCount == 0 ? 0 : store.stagedByteCount
            hasStaged = store.core.stagedOps.count
            counts = store.counts(kind: 0).map(\.count)
        }
    }

    private func failing() -> [(TestOp, Outcome)] {
        [
            (.deleteBook(50), .notFound), (.book(1, "x", .insert), .alreadySaved), (Books.move(50, 51, "x"), .notFound),
            (Books.move(2, 1, "x"), .alreadySaved), (TestOp.book(50, "a").unlessExists(3), .alreadySaved),
            (TestOp.book(1, "x").ifSeq(1), .refused), (Books.restore(50, "x", firstSeq: .max), .refused),
            (.save(TestKinds.joke, [1: Encode.uuid(1)]), .refused),
        ]
    }

    @Test("an atomic batch with one operation that may not be leaves nothing, wherever it stands")
    func leavesNothing() throws {
        let driver = try Books.library([(1, "a"), (2, "b"), (3, "c")])
        let good: [TestOp] = [.book(7, "g"), .deleteBook(3), Books.move(2, 8, "b"), .book(1, "changed")]
        for (op, outcome) in failing() {
            for at in 0...1 {
                // After the good ones it would meet their changes.
                let ops = at == 0 ? [op] + good : [.book(7, "g"), op]
                let before = State(driver.store)
                let answer = try driver.write(ops, program: "new", isAtomic: true)
                #expect(answer.isFailed && answer.outcomes[at] == outcome, "\(op)")
                #expect(State(driver.store) == before)
                #expect(answer.commit == 0)
            }
        }
        try driver.settle()
        #expect(driver.store.originNumber(name: "new") == nil)
    }

    @Test("an atomic batch that may be is done, and unchanged is no failure")
    func isDone() throws {
        let driver = try Books.library([(1, "a"), (2, "b")])
        let answer = try driver.write([.book(1, "a"), .book(3, "c"), .deleteBook(2)], isAtomic: true)
        #expect(!answer.isFailed && answer.outcomes == [.unchanged, .created, .deleted])
        try driver.settle()
        #expect(try driver.bookOrder() == [1, 3])
    }

    @Test("an import's repeat fails an atomic batch as a duplicate")
    func duplicate() throws {
        let driver = try Books.library([])
        let begun = try driver.store.beginImport(programName: "i", source: "f", token: "", now: driver.now)
        let origin = try #require(begun).origin
        let answer = try driver.write([.book(1, "a"), .book(1, "b")], origin: origin, batchNumber: 1, isAtomic: true)
        #expect(answer.isFailed && answer.outcomes == [.created, .duplicate])
        // Nothing says that the batch was done.
        try driver.commitAll()
        #expect(driver.store.core.origins.lastBatch[origin] == nil)
        try driver.settle()
        #expect(driver.store.core.origins.lastBatch[origin] == nil && driver.store.counts(kind: 2).map(\.count) == [0])
    }

    @Test("what failed or was dry leaves the batches before and behind it whole")
    func amongOthers() throws {
        let driver = try Books.library([(1, "a")])
        for round in 0..<6 {
            try driver.write([.book(10 + round, "t\(round)")])
            let fails = [TestOp.book(30, "t\(round)").unlessExists(3), .book(40, "x")]
            #expect(try driver.write([.book(31, "x")] + fails, isAtomic: true).isFailed)
            try driver.write([.book(32, "y"), .deleteBook(1)], isDryRun: true)
            if round % 2 == 0 { driver.take() }
            try driver.write([.book(20 + round, "u\(round)")])
            if round % 3 == 0 { driver.finish() }
        }
        try driver.settle()
        #expect(driver.store.counts(kind: 2).map(\.count) == [13])
    }

    @Test("batches over several blocks and segments are taken back, with every file closed that they opened")
    func runs() throws {
        for isDry in [true, false] {
            let files = SimulatedFiles(seed: 1)
            let driver = try StoreDriver(files, options: StoreDriver.options(segment: 1_048_576))
            try driver.write([.book(1, "a")])
            try driver.commitAll()
            let large = String(repeating: "l", count: 900_000)
            let many = (2...9).map { TestOp.book($0, large) }
            for round in 0..<3 {
                let answer = try driver.write(many + [.deleteBook(70)], isDryRun: isDry, isAtomic: !isDry)
                #expect(answer.isFailed != isDry && answer.outcomes.first == .created)
                try driver.write([.book(1, "b\(round)")])
                try driver.commitAll()
                #expect(files.openForWriting(suffix: ".seg") == 1)
            }
            try driver.write(many)
            try driver.settle()
            #expect(driver.store.counts(kind: 2).map(\.count) == [9])
        }
    }

    @Test("a batch that wrote nothing leaves no block in the way of a large one", arguments: 0..<3)
    func emptyBlock(how: Int) throws {
        let driver = try Books.library([(1, "a")])
        try driver.write([how == 0 ? .book(1, "a") : .book(2, "b")], isDryRun: how == 1)
        if how == 2 { try driver.commitAll() }
        try driver.write([how == 2 ? .deleteBook(77) : .book(1, "a")], isAtomic: how == 2)
        let large = String(repeating: "l", count: 900_000)
        let batch = driver.prepare((3...9).map { TestOp.book($0, large) })
        try driver.resolve(batch)
        guard case .staged = try driver.store.stage(batch.batch, now: driver.now) else {
            Issue.record("there is no room, and no commit that would make any")
            return
        }
    }

    @Test("a dry run decides as if the operations before had been done, and leaves nothing")
    func dryRun() throws {
        let driver = try Books.library([(1, "a"), (2, "b")])
        let before = State(driver.store)
        let ops: [TestOp] = [
            .book(3, "c"), .book(3, "c", .insert), .deleteBook(1), .deleteBook(1), Books.move(3, 1, "c"), .book(2, "b"),
            TestOp.book(4, "C").unlessExists(3), TestOp.book(2, "z").ifSeq(0),
        ]
        let answer = try driver.write(ops, program: "new", isDryRun: true)
        #expect(
            answer.outcomes == [
                .created, .alreadySaved, .deleted, .notFound, .updated, .unchanged, .alreadySaved, .refused,
            ])
        #expect(answer.commit == 0 && State(driver.store) == before)
        #expect(try driver.write(ops, program: "new").outcomes == answer.outcomes)
        try driver.settle()
    }

    @Test("a dry run that meets damage does not end all writing")
    func dryDamage() throws {
        let driver = try Books.library([(1, "a")])
        let batch = driver.prepare([.book(5, "x"), .book(1, "y")], Sending(isDryRun: true))
        try driver.resolve(batch)
        // The stored record as a rotten disk would give it: a bitmap that promises more than there is.
        let rotten: [UInt8] = [1, 255]
        rotten.withUnsafeBytes { bytes in
            batch.batch.ops.pointer(1).pointee.stored = bytes
            #expect(throws: StoreError.self) { try driver.store.stage(batch.batch, now: driver.now) }
        }
        #expect(driver.store.failure == nil)
        try driver.write([.book(5, "x")])
        try driver.settle()
    }
}

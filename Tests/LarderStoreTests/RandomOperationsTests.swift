// Random operations, everything compared with the model after every commit.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct RandomOperationsTests {
    /// One life of a library. Throws what does not fit the model.
    ///
    /// - Returns: how many operations were decided.
    @discardableResult
    static func run(
        seed: UInt64, steps: Int, segment: Int, compareEvery: Int = 16,
        configure: (inout OperationSource) -> Void = { _ in }
    ) throws -> Int {
        var source = OperationSource(seed: seed)
        configure(&source)
        let files = SimulatedFiles(seed: seed)
        files.setBlockingReads(percent: source.below(3) * 30)
        var options = StoreDriver.options(segment: segment)
        if source.chance(50) { options.commitByteCountTarget = 20_000 }
        let driver = try StoreDriver(files, options: options)
        var subscribers: [Subscriber] = []
        var pages: [PageToken] = []
        var imports: [UInt64] = []
        var life = Life()
        func live(_ step: Int) throws {
            if driver.store.isCompacting, source.chance(50) {
                for _ in 0..<(1 + source.below(4)) { try driver.stepCompaction() }
                if let failure = driver.failure { throw failure }
            }
            switch source.below(100) {
            case 0..<60: try write(driver, &source, imports, &life)
            case 60..<62: try begin(&imports, driver, &source)
            case 62: try driver.clear(kind: TestKinds.all[source.below(4)].number, program: "p\(source.below(3))")
            case 63 where source.chance(40): try driver.clear(kind: 0)
            case 63: driver.beginCompaction(&source, subscribers)
            case 64..<66:
                try driver.reopen()
                for at in subscribers.indices {
                    #expect(driver.store.check(epoch: driver.store.epoch, seq: subscribers[at].boundSeq) == .good)
                    subscribers[at].reconnect(driver.store)
                }
            case 66..<70: subscribe(&subscribers, driver, &source)
            case 70..<85: driver.take()
            default:
                driver.finish()
                if let failure = driver.failure { throw failure }
            }
            for at in subscribers.indices where source.chance(40) {
                let budget = [1, 100, 3000, 50_000][source.below(4)]
                let isAtEnd = try subscribers[at].step(driver, budget: budget)
                try subscribers[at].compare(driver.model, isAtEnd: isAtEnd)
            }
            if step % compareEvery == 0 {
                try driver.compareAll(OperationSource.keys, pageLimit: 1 + source.below(9))
                try driver.compareFinds(TestKinds.all[source.below(4)])
                try driver.compareWalks(slice: 1 + source.below(9))
            }
            if source.chance(20) { try turn(&pages, driver, &source) }
        }
        for step in 0..<steps {
            do { try live(step) } catch { throw Mismatch("step \(step): \(error)") }
        }
        try driver.commitAll()
        for at in subscribers.indices {
            try subscribers[at].readToEnd(driver)
            try subscribers[at].compare(driver.model, isAtEnd: true)
        }
        try driver.reopen()
        try driver.compareAll(OperationSource.keys)
        try driver.checkWholeLog()
        let verified = try LogSource(library: driver.path, files: files).verify()
        #expect(verified.damages == [] && verified.tail == nil)
        #expect(verified.recordCount == driver.model.visible(kind: 0).count)
        return driver.operationCount
    }

    /// What is carried from one batch to the next.
    private struct Life {
        /// The last numbered batch of an import, which may be sent again.
        var numbered: ([TestOp], Sending)?
        var batchNumber: UInt64 = 0
    }

    /// One batch, or several that are put together one after the other and staged in another order.
    private static func write(
        _ driver: StoreDriver, _ source: inout OperationSource, _ imports: [UInt64], _ life: inout Life
    ) throws {
        if let (ops, sending) = life.numbered, source.chance(5) {
            _ = try driver.stage(driver.prepare(ops, sending))
            return
        }
        var prepared: [PreparedBatch] = []
        for _ in 0..<(source.chance(15) ? 2 + source.below(2) : 1) {
            let count = source.chance(80) ? 1 + source.below(8) : 1 + source.below(60)
            let ops = (0..<count).map { _ in source.op(model: driver.model) }
            var sending = Sending(program: "p\(source.below(3))")
            sending.isDryRun = source.chance(6)
            sending.isAtomic = source.chance(count < 4 ? 20 : 4)
            if source.chance(30), let origin = imports.randomElement(using: &source.random) {
                life.batchNumber += 1
                sending.origin = origin
                sending.batchNumber = life.batchNumber
                life.numbered = (ops, sending)
            }
            prepared.append(driver.prepare(ops, sending))
            if source.chance(70), let last = prepared.last { try driver.resolve(last) }
        }
        for batch in prepared.shuffled(using: &source.random) { try driver.stage(batch) }
    }

    private static func begin(_ imports: inout [UInt64], _ driver: StoreDriver, _ source: inout OperationSource) throws
    {
        let token = source.chance(50) ? "" : "t\(source.below(3))"
        let begun = try driver.store.beginImport(programName: "importer", source: "file", token: token, now: driver.now)
        guard let begun else { return }
        if !imports.contains(begun.origin) { imports.append(begun.origin) }
        if imports.count > 4 {
            let ended = imports.removeFirst()
            _ = try driver.store.endImport(
                origin: ended, outcome: 1, counts: [0, 0, 0, 0, 0, 0, 0, 0], now: driver.now)
        }
    }

    private static func subscribe(
        _ subscribers: inout [Subscriber], _ driver: StoreDriver, _ source: inout OperationSource
    ) {
        var filter = EntryFilter(types: source.chance(60) ? 3 : 1 + source.below(63))
        if source.chance(30) { filter.kinds = [1, TestKinds.all[source.below(4)].number] }
        if source.chance(20) { filter.exceptOrigin = UInt64(1 + source.below(5)) }
        let last = driver.store.lastSeq
        if source.chance(40) {
            subscribers.append(Subscriber(driver.store, after: 0, snapshotSeq: last, filter))
        } else {
            let any = UInt64(source.below(Int(last) + 1))
            let seq = driver.store.check(epoch: driver.store.epoch, seq: any) == .good ? any : last
            subscribers.append(Subscriber(driver.store, after: source.chance(40) ? last : seq, filter))
        }
        if subscribers.count > 6 { subscribers.removeFirst() }
    }

    /// Goes on with a page that was begun long ago: it shows what lies behind its token now.
    private static func turn(_ pages: inout [PageToken], _ driver: StoreDriver, _ source: inout OperationSource) throws
    {
        let token = pages.isEmpty || source.chance(20) ? nil : pages.removeFirst()
        let kind = token?.kind ?? [0, 1, 2, 3, 200][source.below(5)]
        let isReverse = token?.isReverse ?? source.chance(50)
        let (page, next) = try driver.page(kind: kind, isReverse: isReverse, limit: 5, after: token)
        var expected = driver.model.visible(kind: kind).map(\.1)
        if isReverse { expected.reverse() }
        if let token {
            expected.removeAll { isReverse ? $0.firstSeq >= token.firstSeq : $0.firstSeq <= token.firstSeq }
        }
        guard page == Array(expected.prefix(page.count)), next != nil || page.count == expected.count else {
            throw Mismatch(
                "a page from \(String(describing: token)) shows \(page.map(\.firstSeq)), not \(expected.map(\.firstSeq))"
            )
        }
        if let next { pages.append(next) }
    }

    @Test("random operations leave the store equal to a plain model")
    func randomOperations() throws {
        let first = Setting.seed
        for round in 0..<UInt64(Setting.number("LARDER_SEED") == nil ? 4 : 1) {
            let seed = first &+ round
            do {
                try Self.run(
                    seed: seed, steps: Setting.steps(400), segment: [65_536, 262_144, 1_048_576][Int(seed % 3)])
            } catch { Issue.record("\(error) (LARDER_SEED=\(seed))") }
        }
    }

    @Test(
        "a long run of random operations, crashes and failed commits leaves the store equal to a plain model",
        .enabled(if: Setting.number("LARDER_OPERATIONS") != nil, "LARDER_OPERATIONS says how many"))
    func manyOperations() {
        let wanted = Int(Setting.number("LARDER_OPERATIONS") ?? 0)
        let first = Setting.seed
        print("many operations: LARDER_SEED=\(first)")
        var count = 0
        var round: UInt64 = 0
        while count < wanted {
            let seed = first &+ round
            do { count += try Self.manyLives(seed: seed) } catch {
                Issue.record("\(error) (LARDER_OPERATIONS=1 LARDER_SEED=\(seed))")
                return
            }
            round += 1
        }
        print("many operations: \(count) in \(round) libraries, LARDER_SEED=\(first)")
    }

    /// A library that lives long, or one whose power goes again and again.
    private static func manyLives(seed: UInt64) throws -> Int {
        if seed % 3 == 0 { return try PowerCutTests.run(seed: seed, cuts: 60).operationCount }
        let segment = [65_536, 262_144, 1_048_576][Int(seed / 3 % 3)]
        return try run(seed: seed, steps: 1500, segment: segment, compareEvery: 40)
    }

    @Test("large records and runs over several blocks leave the store equal to a plain model")
    func largeRecords() throws {
        let first = Setting.seed
        for round in 0..<UInt64(Setting.number("LARDER_SEED") == nil ? 3 : 1) {
            let seed = first &+ round
            do {
                try Self.run(seed: seed, steps: Setting.steps(60), segment: 1_048_576 << (seed % 4)) { source in
                    source.largePercent = 12
                    source.largeByteCountMax = 1_000_000
                }
            } catch { Issue.record("\(error) (LARDER_SEED=\(seed))") }
        }
    }
}

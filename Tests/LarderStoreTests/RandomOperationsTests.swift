// Random operations, everything compared with the model after every commit.

import LarderFormat
import Testing

@testable import LarderStore

@Suite struct RandomOperationsTests {
    /// One life of a library. Throws what does not fit the model.
    static func run(seed: UInt64, steps: Int, segment: Int, configure: (inout OperationSource) -> Void = { _ in })
        throws
    {
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
        for step in 0..<steps {
            switch source.below(100) {
            case 0..<60:
                let count = source.chance(80) ? 1 + source.below(8) : 1 + source.below(60)
                let ops = (0..<count).map { _ in source.op(model: driver.model) }
                let origin = source.chance(30) ? imports.randomElement(using: &source.random) ?? 0 : 0
                try driver.write(
                    ops, origin: origin, program: "p\(source.below(3))", batchNumber: origin == 0 ? 0 : UInt64(step + 1)
                )
            case 60..<62: try begin(&imports, driver, &source)
            case 62: try driver.clear(kind: TestKinds.all[source.below(4)].number, program: "p\(source.below(3))")
            case 63 where source.chance(40): try driver.clear(kind: 0)
            case 64..<66:
                try driver.reopen()
                for at in subscribers.indices {
                    #expect(driver.store.check(epoch: driver.store.epoch, seq: subscribers[at].cursor.seq) == .good)
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
            if step % 8 == 0 { try driver.compareAll(OperationSource.keys, pageLimit: 1 + source.below(9)) }
            if source.chance(20) { try turn(&pages, driver, &source) }
        }
        try driver.commitAll()
        for at in subscribers.indices {
            try subscribers[at].readToEnd(driver)
            try subscribers[at].compare(driver.model, isAtEnd: true)
        }
        try driver.reopen()
        try driver.compareAll(OperationSource.keys)
        var fresh = Subscriber(driver.store, after: 0)
        try fresh.readToEnd(driver)
        try fresh.compare(driver.model, isAtEnd: true)
        #expect(fresh.received.count == driver.model.events.count)
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
            let seq = UInt64(source.below(Int(last) + 1))
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
        for round in 0..<UInt64(Setting.number("LARDER_SEED") == nil ? 8 : 1) {
            let seed = first &+ round
            do {
                try Self.run(
                    seed: seed, steps: Setting.steps(400), segment: [65_536, 262_144, 1_048_576][Int(seed % 3)])
            } catch { Issue.record("\(error) (LARDER_SEED=\(seed))") }
        }
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

// The life of a library on a disk that loses power again and again.

import LarderFormat

@testable import LarderStore

struct PowerCutLife {
    var source: OperationSource
    let options: StoreOptions
    var disk: SimulatedFiles
    var model = Model()
    var now: Int64 = 1_000_000
    var subscribers:
        [(seq: UInt64, snapshotSeq: UInt64, filter: EntryFilter, received: [ModelEvent], startSeq: UInt64)] = []
    /// The highest seq that anybody could see.
    var highestSeen: UInt64 = 0
    private(set) var cutCount = 0
    /// Cuts after which part of the log had to be cut off, and batches that were kept unanswered or lost.
    private(set) var tornCount = 0
    private(set) var keptCount = 0
    private(set) var lostCount = 0
    /// Commits that failed with the power on, and operations that were decided.
    private(set) var failureCount = 0
    private(set) var operationCount = 0
    private(set) var compactionCount = 0
    private var clearing: (events: [ModelEvent], now: Int64)?

    init(seed: UInt64, options: StoreOptions) {
        source = OperationSource(seed: seed)
        self.options = options
        disk = SimulatedFiles(seed: seed)
    }

    /// Lives until the power goes, restarts, and compares.
    mutating func live(steps: Int, mutationsMax: Int) throws {
        do { try liveOnce(steps: steps, mutationsMax: mutationsMax) } catch let error as Mismatch {
            throw Mismatch("operation \(operationCount), cut \(cutCount): \(error)")
        }
    }

    private mutating func liveOnce(steps: Int, mutationsMax: Int) throws {
        let driver = try restart()
        var readers = try reconnect(driver)
        highestSeen = max(highestSeen, driver.store.lastSeq)
        disk.cutPower(afterMutations: source.below(mutationsMax))
        do {
            for _ in 0..<steps where disk.hasPower && driver.failure == nil {
                if source.chance(1), driver.inFlight != nil {
                    // A commit fails: nothing of it is seen, and it may have survived.
                    disk.inject(
                        SimulatedFault(call: ["pwrite", "fdatasync"][source.below(2)], isShort: source.chance(50)))
                    driver.finish()
                    failureCount += driver.failure == nil ? 0 : 1
                    try driver.compareVisible()
                    continue
                }
                try step(driver, &readers)
                highestSeen = max(highestSeen, driver.store.lastSeq)
            }
        } catch is StoreError where !disk.hasPower {
            // The power went.
        }
        note(driver, readers)
        compactionCount += driver.compactionCount
        driver.store.close()
        operationCount += driver.operationCount
        if disk.hasPower && driver.failure != nil && source.chance(50) { return }
        disk = disk.powerCut(using: &source.random)
        cutCount += 1
    }

    private mutating func step(_ driver: StoreDriver, _ readers: inout [Subscriber]) throws {
        if driver.store.isCompacting, source.chance(60) {
            for _ in 0..<(1 + source.below(6)) { try driver.stepCompaction() }
            if driver.failure != nil { return }
        }
        switch source.below(20) {
        case 0..<9:
            let count = 1 + source.below(6)
            try driver.write(
                (0..<count).map { _ in source.op(model: driver.model) }, program: "p\(source.below(2))",
                isDryRun: source.chance(5), isAtomic: source.chance(15))
        case 9: try driver.write((0..<30).map { _ in source.op(model: driver.model) }, program: "p0")
        case 10 where source.chance(40): try driver.clear(kind: [0, 1, 2, 3, 200][source.below(5)], program: "p1")
        case 10 where source.chance(60): driver.beginCompaction(&source, readers)
        case 11..<15: driver.take()
        case 15..<18: driver.finish()
        default:
            if readers.count < 3 { readers.append(newReader(driver)) }
            for at in readers.indices {
                _ = try readers[at].step(driver, budget: 1 + source.below(4000))
                try readers[at].compare(driver.model, isAtEnd: false)
            }
        }
    }

    private mutating func newReader(_ driver: StoreDriver) -> Subscriber {
        if source.chance(50) { return Subscriber(driver.store, after: 0, snapshotSeq: driver.store.lastSeq) }
        let seq = driver.model.visibleEvents.randomElement(using: &source.random)?.seq ?? 0
        let isGood = driver.store.check(epoch: driver.store.epoch, seq: seq) == .good
        return Subscriber(driver.store, after: isGood ? seq : driver.store.lastSeq)
    }

    /// Remembers what outlives the power: the model with the batches that were not answered, and the subscribers.
    private mutating func note(_ driver: StoreDriver, _ readers: [Subscriber]) {
        model = driver.model
        now = driver.now + 10
        subscribers = readers.map { ($0.cursor.seq, $0.snapshotSeq, $0.filter, $0.received, $0.startSeq) }
        clearing = nil
        if let clear = driver.clearing {
            let events = model.clearEvents(
                kind: clear.kind, origin: driver.store.originNumber(name: clear.program) ?? 0)
            clearing = (events, driver.now)
        }
    }

    /// Opens what the disk holds now; the power may go during that as well.
    private mutating func restart() throws -> StoreDriver {
        while true {
            if source.chance(25) { disk.cutPower(afterMutations: source.below(12)) }
            disk.setBlockingReads(percent: source.below(2) * 40)
            now += 10
            do {
                let driver = try StoreDriver(disk, options: options, model: model, now: now)
                driver.forgetsUnanswered = false
                if !disk.hasPower { throw StoreError.readOnly(reason: "the power went") }
                disk.cutPower(afterMutations: Int.max)
                if !driver.store.report.asidePath.isEmpty { tornCount += 1 }
                try compare(driver)
                return driver
            } catch is StoreError where !disk.hasPower {
                disk = disk.powerCut(using: &source.random)
                cutCount += 1
            }
        }
    }

    /// Every answered batch is there, every other is whole or absent.
    private mutating func compare(_ driver: StoreDriver) throws {
        var all = Subscriber(driver.store, after: 0)
        try all.readToEnd(driver)
        var found = all.received
        try driver.model.prune(to: found, floor: driver.store.floor)
        try model.prune(to: found, floor: driver.store.floor)
        if let clearing, found.count > model.events.count, found.count == model.events.count + clearing.events.count {
            for (at, event) in clearing.events.enumerated() {
                let seq = found[model.events.count + at].seq
                driver.model.append(event, seq: seq, time: clearing.now, commit: 0)
            }
            driver.model.endBatch()
            keptCount += 1
        }
        let count = found.count
        guard count >= model.visibleEventCount else {
            throw Mismatch("only \(count) of \(model.visibleEventCount) answered changes are there")
        }
        guard driver.model.batchEnds.contains(count) else {
            throw Mismatch(
                "\(count) changes are there, which is within a batch; batches end at \(model.batchEnds.suffix(8))")
        }
        if count > model.visibleEventCount { keptCount += 1 }
        if count < model.events.count { lostCount += 1 }
        driver.model.keep(eventCount: count)
        for at in found.indices { found[at].commit = driver.model.events[at].commit }
        guard found == driver.model.events else { throw Mismatch("the changes are not those that were made") }
        guard driver.store.lastSeq >= highestSeen else {
            throw Mismatch("the last seq is \(driver.store.lastSeq), though \(highestSeen) was seen")
        }
        try driver.compareAll(OperationSource.keys)
        try driver.compareFinds(TestKinds.all[source.below(4)])
        model = driver.model
        clearing = nil
    }

    private mutating func reconnect(_ driver: StoreDriver) throws -> [Subscriber] {
        var readers: [Subscriber] = []
        for old in subscribers {
            let seq = max(old.seq, old.snapshotSeq)
            guard driver.store.check(epoch: driver.store.epoch, seq: seq) == .good else {
                throw Mismatch("a cursor at \(old.seq), which was received, has expired")
            }
            var reader = Subscriber(
                driver.store, resuming: old.seq, after: old.startSeq, snapshotSeq: old.snapshotSeq, old.filter)
            reader.received = old.received
            try reader.readToEnd(driver, budget: 1 + source.below(20_000))
            try reader.compare(driver.model, isAtEnd: true)
            readers.append(reader)
        }
        if readers.count == 3 { readers.removeFirst() }
        return readers
    }
}

// The life of a library in which one file call fails: batches, imports, deletes, clears, declarations, compactions,
// restarts.

import LarderFormat

@testable import LarderStore

struct FaultLife {
    let disk: SimulatedFiles
    private let options: StoreOptions
    private let fault: SimulatedFault
    /// Only what compactions do on their thread can fail, and what opening does.
    private let isOfJobs: Bool
    private var source: OperationSource
    private var driver: StoreDriver?
    private var model = Model()
    private var now: Int64 = 1_000_000
    private var clearing: [ModelEvent] = []
    private var clearTime: Int64 = 0
    private var highestSeen: UInt64 = 0
    /// The import under way, its batches that were sent, and the last that was answered.
    private var origin: UInt64 = 0
    private var sentBatches: [(number: UInt64, commit: UInt64)] = []
    private var answeredBatch: UInt64 = 0
    private var nextBatch: UInt64 = 0
    private var stepCount = 0
    /// Something failed, or it is the end: from here on everything is compared at each opening.
    private var isStruck = false
    private var definedCount = 0
    /// Kinds whose declaration was answered.
    private var definedNames: [String] = []
    /// Refused without an end of writing; writing ended; opening failed.
    private(set) var refusalCount = 0
    private(set) var endCount = 0
    private(set) var openingCount = 0
    /// Compactions that were done, and that a fault ended.
    private(set) var compactionCount = 0
    private(set) var compactionFailureCount = 0

    init(seed: UInt64, fault: SimulatedFault, isOfJobs: Bool) {
        self.isOfJobs = isOfJobs
        disk = SimulatedFiles(seed: seed)
        source = OperationSource(seed: seed)
        source.largeByteCountMax = 12_000
        var options = StoreDriver.options(segment: 16_384)
        options.commitByteCountTarget = 2048
        self.options = options
        self.fault = fault
        disk.setFaults(!isOfJobs)
        disk.inject(fault)
    }

    private func setFaults(_ isOn: Bool) {
        if isOfJobs { disk.setFaults(isOn) }
    }

    /// Lives until so many changes of the disk were made, or a while past the fault.
    mutating func live(mutationCount: Int) throws {
        try open()
        var stepsLeft = Int.max
        while disk.mutationCount < mutationCount && stepsLeft > 0 {
            stepsLeft -= 1
            do { try step() } catch is StoreError {
                isStruck = true
                if driver?.failure == nil && driver?.store.failure == nil { try refused() } else { try restart() }
                stepsLeft = min(stepsLeft, 20)
                continue
            }
            if driver?.failure != nil || driver?.store.failure != nil {
                isStruck = true
                try restart()
                stepsLeft = min(stepsLeft, 20)
            }
        }
        disk.clearFaults()
        isStruck = true
        if let driver, driver.failure == nil, driver.store.failure == nil { try driver.commitAll() }
        try restart()
    }

    private mutating func step() throws {
        guard let driver else { throw Mismatch("nothing is open") }
        stepCount += 1
        for _ in 0..<(driver.store.isCompacting ? 3 : 0) where driver.failure == nil { try stepCompaction(driver) }
        guard driver.failure == nil, driver.store.failure == nil else { return }
        switch stepCount % 40 {
        case 5: try begin(driver)
        case 6..<12 where origin != 0:
            nextBatch += 1
            let answer = try driver.write(
                (0..<4).map { _ in source.op(model: driver.model) }, origin: origin, batchNumber: nextBatch)
            // One that changes nothing leaves no token.
            let changes: Set<Outcome> = [.created, .updated, .deleted]
            if answer.outcomes.contains(where: changes.contains) { sentBatches.append((nextBatch, answer.commit)) }
        case 12 where origin != 0:
            try driver.commitAll()
            noteAnswers(driver)
            let counts = [UInt64](repeating: 0, count: 8)
            if try driver.store.endImport(origin: origin, outcome: 1, counts: counts, now: driver.now) == nil {
                throw Mismatch("there is no room though nothing is staged")
            }
            origin = 0
        case 14, 22: driver.beginCompaction(&source, [])
        case 20: try clear(driver)
        case 25 where definedCount < 12: try define(driver)
        case 30:
            // Half of the compactions come to their end; a close comes into the midst of the others.
            let isFinished = source.chance(50)
            while isFinished, driver.store.isCompacting, driver.failure == nil { try stepCompaction(driver) }
            try driver.commitAll()
            noteAnswers(driver)
            try reopen()
        case let step where step % 3 == 0:
            driver.finish()
            driver.take()
        default:
            try driver.write(
                (0..<1 + source.below(5)).map { _ in source.op(model: driver.model) }, program: "p\(source.below(2))",
                isAtomic: source.chance(15))
        }
        noteAnswers(driver)
    }

    private mutating func noteAnswers(_ driver: StoreDriver) {
        guard driver.failure == nil else { return }
        while let sent = sentBatches.first, sent.commit <= driver.store.lastFinishedCommit {
            answeredBatch = sent.number
            sentBatches.removeFirst()
        }
        highestSeen = max(highestSeen, driver.store.lastSeq)
    }

    private mutating func begin(_ driver: StoreDriver) throws {
        try driver.commitAll()
        guard let begun = try driver.store.beginImport(programName: "i", source: "s", token: "", now: driver.now) else {
            throw Mismatch("there is no room though nothing is staged")
        }
        (origin, sentBatches, answeredBatch, nextBatch) = (begun.origin, [], 0, 0)
        try driver.commitAll()
    }

    private mutating func clear(_ driver: StoreDriver) throws {
        if driver.store.originNumber(name: "c") == nil { try driver.write([.book(1, "by c")], program: "c") }
        try driver.commitAll()
        let kind = [0, 2, 3][source.below(3)]
        clearing = driver.model.clearEvents(kind: kind, origin: driver.store.originNumber(name: "c") ?? 0)
        clearTime = driver.now
        do { try driver.clear(kind: kind, program: "c") } catch {
            if driver.store.failure == nil { clearing = [] }
            throw error
        }
        clearing = []
    }

    /// A step, or its job.
    private mutating func stepCompaction(_ driver: StoreDriver) throws {
        let failureCount = driver.compactionFailureCount
        setFaults(driver.compactionJob != nil)
        defer { setFaults(false) }
        try driver.stepCompaction()
        guard driver.compactionFailureCount > failureCount, driver.failure == nil else { return }
        // A clear ends one too.
        guard !driver.compactionFailure.hasSuffix("cancelled") else { return }
        isStruck = true
        compactionFailureCount += 1
        guard !driver.compactionFailure.isEmpty else { throw Mismatch("a compaction ended and does not say why") }
        guard driver.store.failure == nil else {
            throw Mismatch("a compaction ended all writing: \(driver.compactionFailure)")
        }
        if fault.isSticky { disk.clearFaults() }
        try driver.commitAll()
        noteAnswers(driver)
        try driver.checkWholeLog()
        try driver.compareVisible()
    }

    private mutating func define(_ driver: StoreDriver) throws {
        try driver.commitAll()
        definedCount += 1
        let name = "own\(definedCount)"
        let kind = try Kind(
            number: 64, name: name, version: 1, keyFieldCount: 1,
            fields: [Field(1, "id", .identifier, [.required, .notZero])], labelFields: [1])
        guard case .staged = try driver.store.define(KindDraft(kind, number: 0, version: 0), now: driver.now) else {
            throw Mismatch("a kind is not declared")
        }
        try driver.commitAll()
        definedNames.append(name)
    }

    /// The store said no and goes on: what is seen is as it was, and once the disk is well, so is the store.
    private mutating func refused() throws {
        guard let driver else { throw Mismatch("nothing is open") }
        refusalCount += 1
        try driver.compareVisible()
        if fault.isSticky {
            for _ in 0..<3 where driver.store.failure == nil && driver.failure == nil {
                do {
                    try driver.write([.book(1, "refused \(stepCount)")])
                    driver.finish()
                    driver.take()
                } catch is StoreError {}
            }
            disk.clearFaults()
        }
        guard driver.failure == nil, driver.store.failure == nil else { return try restart() }
        try driver.commitAll()
        noteAnswers(driver)
        try driver.write([.book(2, "taken \(stepCount)")])
        try driver.commitAll()
        guard driver.store.fullReason(now: 3_000_000) == nil else { throw Mismatch("it is full though there is room") }
    }

    /// Writing has ended: nothing is seen of what failed, reads go on, and everything else is refused.
    private mutating func restart() throws {
        if let driver {
            if driver.failure != nil || driver.store.failure != nil {
                endCount += 1
                guard let reason = driver.store.failure else { throw Mismatch("a write failed and the store goes on") }
                try driver.compareVisible()
                do {
                    try driver.write([.book(9, "nine")])
                    throw Mismatch("a write is taken after one that failed")
                } catch let error as StoreError where error == .readOnly(reason: reason) {}
                guard driver.store.takeCommit() == nil else { throw Mismatch("a commit after one that failed") }
            }
            noteAnswers(driver)
        }
        try reopen()
    }

    private mutating func reopen() throws {
        if let driver {
            model = driver.model
            now = driver.now + 10
            compactionCount += driver.compactionCount
            driver.store.close()
        }
        driver = nil
        try open()
    }

    /// Opens, on a disk that may fail: then nothing has changed for the next time.
    private mutating func open() throws {
        setFaults(true)
        defer { setFaults(false) }
        while driver == nil {
            do throws(StoreError) {
                driver = try StoreDriver(disk, options: options, model: model, now: now)
            } catch {
                openingCount += 1
                isStruck = true
                guard openingCount < 3 else { throw Mismatch("it cannot be opened on a disk that is well") }
                if openingCount > 1 || fault.isSticky { disk.clearFaults() }
            }
        }
        setFaults(false)
        guard let driver else { return }
        if driver.store.failure != nil {
            // Its torn end could not be put aside: it is read, and opened again when there is room.
            disk.clearFaults()
            driver.store.close()
            self.driver = nil
            return try open()
        }
        driver.forgetsUnanswered = false
        if isStruck { try driver.takeInSurvivors(clearing: clearing, now: clearTime) }
        (model, clearing) = (driver.model, [])
        guard driver.store.lastSeq >= highestSeen else {
            throw Mismatch("the last seq is \(driver.store.lastSeq), though \(highestSeen) was seen")
        }
        for name in definedNames where !driver.store.kinds.contains(where: { $0.name == name }) {
            throw Mismatch("kind \(name) was answered and is not there")
        }
        guard origin != 0, driver.store.isOpenImport(origin) else {
            guard answeredBatch == 0 || origin == 0 else { throw Mismatch("an import with answered batches is gone") }
            origin = 0
            return
        }
        let lastBatch = driver.store.core.origins.lastBatch[origin] ?? 0
        guard lastBatch >= answeredBatch, lastBatch <= sentBatches.last?.number ?? answeredBatch else {
            throw Mismatch("batch \(answeredBatch) was answered, and the last is \(lastBatch)")
        }
        (answeredBatch, sentBatches) = (lastBatch, [])
    }
}

// What peers ask for: drawn by lot, so that few keys are fought over and every kind of request comes up.

import LarderFormat
import LarderWire

extension Peer {
    static let sharedKeyCount = 12

    // MARK: Operations

    private func key() -> Key { Key(kind: dice.chance(70) ? 1 : 2, id: 1 + dice.below(Peer.sharedKeyCount)) }

    private func content() -> Content {
        var title: String?
        if dice.chance(70) {
            let length =
                truth.isHeavy
                ? dice.pick([6, 9_000, 30_000]) : dice.weighted([(6, 80), (300, 12), (3_000, 7), (60_000, 1)])
            title = String(repeating: "abcdefgh"[dice.below(8)], count: 1 + dice.below(length))
        }
        return Content(title: title, mark: truth.newMark(), price: dice.chance(50) ? dice.below(6) : nil)
    }

    /// A seq for if_seq: of the key's last known entry, none, or a wrong one.
    private func seqGuess(_ key: Key) -> UInt64 {
        if dice.chance(20) { return 0 }
        let known = truth.latest[key] ?? 0
        return dice.chance(80) ? known : known &+ 1
    }

    func operation() -> Operation {
        let key = key()
        var operation: Operation
        switch dice.below(100) {
        case 0..<55:
            let mode = dice.pick([SaveMode.merge, .merge, .insert, .replace, .fill])
            operation = Operation(action: .save(mode), key: key, content: content())
        case 55..<80: operation = Operation(action: .delete, key: key)
        case 80..<92:
            var from = self.key()
            from.kind = key.kind
            operation = Operation(action: .move(from: from), key: key, content: content())
        default:
            guard let old = truth.deleted.randomElementBy(dice) else {
                return Operation(action: .save(.merge), key: key, content: content())
            }
            operation = Operation(
                action: .restore(firstSeq: old.firstSeq, savedAt: old.savedAt), key: old.key, content: content())
        }
        if dice.chance(12) {
            var about = operation.key
            if case .move(let from) = operation.action { about = from }
            operation.ifSeq = seqGuess(about)
        }
        if !operation.isDelete, operation.content.price != nil, dice.chance(12) { operation.unlessExists = true }
        return operation
    }

    func write() {
        let count = dice.weighted([(1, 50), (3, 30), (8, 18), (40, 2)])
        let operations = (0...dice.below(count)).map { _ in operation() }
        var flags: WriteFlags = dice.chance(85) ? [.results] : []
        if dice.chance(20) { flags.insert(.atomic) }
        if dice.chance(5) { flags.insert(.dryRun) }
        send(
            Batch(
                number: truth.batches.count + 1, operations, flags: flags, origin: 0, batchNumber: 0,
                knownSeq: truth.knownSeq))
    }

    func clear() {
        let clear = ClearRequest(
            kind: dice.below(3), knownSeq: truth.knownSeq, sender: name, batchCount: truth.batches.count)
        truth.clears.append(clear)
        trace.note("\(name) clears kind \(clear.kind)")
        request(Clear(kind: clear.kind), .clear(clear))
    }

    /// Takes back the last change of a key, as `larder undo` does: from its history, and only if nothing came since.
    func undo(_ key: Key, _ entries: [LogEntry]) {
        guard let newest = entries.first, dice.chance(80) else { return }
        var operation: Operation
        if newest.type == EntryType.deleted {
            guard let old = entries.dropFirst().first, old.isSave else { return }
            operation = Operation(
                action: .restore(firstSeq: old.firstSeq, savedAt: old.savedAt), key: key, content: old.content, ifSeq: 0
            )
        } else if newest.previousSeq != 0, let old = entries.first(where: { $0.seq == newest.previousSeq }), old.isSave
        {
            operation = Operation(action: .save(.replace), key: key, content: old.content, ifSeq: newest.seq)
        } else {
            operation = Operation(action: .delete, key: key, ifSeq: newest.seq)
        }
        operation.content.mark = truth.newMark()
        let batch = Batch(
            number: truth.batches.count + 1, [operation], flags: [.results, .atomic], origin: 0, batchNumber: 0,
            knownSeq: truth.knownSeq)
        batch.isUndo = true
        send(batch)
    }

    // MARK: Reading

    func read() {
        let knownSeq = truth.knownSeq
        switch dice.below(14) {
        case 0..<4:
            let key = key()
            request(Get(kind: key.kind, key: key.bytes), .get(key, knownSeq: knownSeq))
        case 4..<6:
            let kind = dice.below(3)
            request(Count(kind: kind), .count(kind: kind, knownSeq: knownSeq))
        case 6..<8: list(Paging(kind: dice.below(3), isReverse: dice.chance(40), knownSeq: knownSeq), token: [])
        case 8:
            let key = key()
            request(History(kind: key.kind, key: key.bytes, limit: 1_000), .history(key, knownSeq: knownSeq))
        case 9:
            let seqs = (0...dice.below(5)).map { _ in UInt64(1 + dice.below(Int(clamping: truth.knownSeq) + 1)) }
            request(Entries(seqs), .entries(seqs, knownSeq: knownSeq))
        case 10: request(Status(), .status)
        case 11:
            let (kind, price) = (1 + dice.below(2), dice.below(6))
            request(
                List(kind: kind, limit: 1_000, condition: "price >= \(price)"),
                .listed(kind: kind, price: price, knownSeq: knownSeq))
        case 12:
            guard let id = pending.keys.sorted().randomElementBy(dice) else { return }
            notify(Cancel(), id: id)
        default:
            let price = dice.below(6)
            var writer = ByteWriter()
            writer.svarint(Int64(price))
            request(
                Find(kind: 1, field: Films.priceField, value: writer.bytes, limit: 1_000),
                .find(kind: 1, price: price, knownSeq: knownSeq))
        }
    }

    func list(_ paging: Paging, token: [UInt8]) {
        request(
            List(
                kind: paging.kind, isReverse: paging.isReverse, limit: dice.pick([1, 3, 10, 1_000]),
                byteCountMax: dice.pick([0, 1, 5_000]), token: token), .page(paging, knownSeq: truth.knownSeq))
    }

    // MARK: Imports

    func `import`() {
        guard let task = importTask else {
            importCount += 1
            importTask = ImportTask(token: "t\(importCount)")
            return self.import()
        }
        if task.isEnding { return end(task) }
        guard task.isAsked else {
            task.isAsked = true
            trace.note("\(name) begins import \(task.token)")
            request(BeginImport(source: "s", token: task.token), .beginImport(task))
            return
        }
        guard task.isBegun, task.origin != 0, !pending.values.contains(where: { isBegin($0) }) else { return }
        if dice.chance(10), task.unanswered.isEmpty {
            task.isEnding = true
            return end(task)
        }
        task.lastNumber += 1
        // Mostly keys of its own, as importers have.
        let operations = (0...dice.below(6)).map { _ in
            var operation = operation()
            if case .save = operation.action, dice.chance(60) {
                operation.key.id = 1_000 + importCount * 100 + dice.below(100)
            }
            return operation
        }
        task.unanswered.append((task.lastNumber, operations))
        sendBatch(task, number: task.lastNumber, operations)
    }

    private func end(_ task: ImportTask) {
        let isAsked = pending.values.contains { if case .endImport = $0 { true } else { false } }
        if isAsked { return }
        request(EndImport(origin: task.origin, outcome: .complete, counts: ImportCounts()), .endImport(task))
    }

    private func isBegin(_ pending: Pending) -> Bool {
        if case .beginImport = pending { return true }
        return false
    }

    func sendBatch(_ task: ImportTask, number: UInt64, _ operations: [Operation]) {
        send(
            Batch(
                number: truth.batches.count + 1, operations, flags: [.results], origin: task.origin,
                batchNumber: number, knownSeq: truth.knownSeq), task)
    }

    // MARK: Following

    func follow() {
        if let follower = followers.first(where: { $0.id == nil }) { return subscribe(follower) }
        guard followers.count < 3 else { return }
        let isMirror = dice.chance(40)
        var cursor: Cursor?
        if !isMirror, dice.chance(60) {
            // Between them may be what a recovery jumped over, where no cursor is good.
            cursor = Cursor(epoch: epoch, seq: truth.seqs.randomElementBy(dice) ?? 0)
        }
        let types: EntryTypes =
            isMirror || dice.chance(60)
            ? [.downloaded, .deleted]
            : dice.pick([[.downloaded], [.deleted], [.kind, .origin, .imports, .recovered, .downloaded, .deleted]])
        let follower = Follower(
            filter: SpanFilter(
                types: types, kinds: dice.chance(70) ? [] : [1 + dice.below(2)],
                exceptOrigin: isMirror || dice.chance(80) ? 0 : UInt64(1 + dice.below(4))), isMirror: isMirror,
            isStingy: dice.chance(isMirror ? 50 : 25), cursor: cursor)
        followers.append(follower)
        subscribe(follower)
    }

    private func subscribe(_ follower: Follower) {
        let credit: UInt64 = follower.isStingy ? UInt64(dice.below(300)) : dice.pick([1, 500, 65_536, 1_000_000])
        let subscribe = follower.subscribe(credit: credit)
        trace.note("\(name) subscribes \(subscribe.start)")
        follower.id = request(subscribe, .subscribe(follower, knownSeq: truth.knownSeq))
    }

    func tendFollower() {
        guard !followers.isEmpty else { return }
        let follower = dice.pick(followers)
        guard let id = follower.id, follower.isActive else { return }
        switch dice.below(10) {
        case 0: request(Unsubscribe(subscription: id), .unsubscribe(follower))
        case 1..<5: request(Sync(subscription: id), .sync(follower, knownSeq: truth.knownSeq))
        case 5: follower.keepCopy(truth)
        default: grant(follower)
        }
    }
}

extension String {
    subscript(_ at: Int) -> Character { self[index(startIndex, offsetBy: at)] }
}

extension Array {
    /// One of the elements; nil where there is none.
    func randomElementBy(_ dice: Dice) -> Element? { isEmpty ? nil : self[dice.below(count)] }
}

// What a peer makes of what the host says.

import LarderFormat
import LarderWire

extension Peer {
    func received(_ header: FrameHeader, _ body: [UInt8]) throws {
        guard let type = header.messageType else { throw Difference("\(name): a message of type \(header.type)") }
        switch type {
        case .events: try follower(header.id).events(body)
        case .snapshotEnd:
            try follower(header.id).follower.snapshotEnded(parse(body), truth: truth)
        case .hostGoodbye:
            trace.note("\(name) is told goodbye")
            isLeaving = true
        case .progress: _ = try parse(body) as Progress
        case .error: try failed(header.id, parse(body))
        default: try answered(type, header.id, body)
        }
    }

    private struct Following {
        let follower: Follower
        let peer: Peer
        let id: UInt32

        func events(_ body: [UInt8]) throws {
            try body.withUnsafeBytes { try follower.events($0, truth: peer.truth) }
            peer.trace.note("\(peer.name) is told through \(follower.cursor?.seq ?? 0)")
            if !follower.isStingy { peer.grant(follower) }
        }
    }

    private func follower(_ id: UInt32) throws -> Following {
        guard let follower = followers.first(where: { $0.id == id }) else {
            throw Difference("\(name): events of id \(id), which is no subscription")
        }
        return Following(follower: follower, peer: self, id: id)
    }

    func grant(_ follower: Follower) {
        guard let id = follower.id, follower.owedCredit > 0 else { return }
        notify(Credit(byteCount: follower.owedCredit), id: id)
        follower.owedCredit = 0
    }

    func parse<M: WireMessage>(_ body: [UInt8], as type: M.Type = M.self) throws -> M {
        var result: Result<M, FormatError>?
        body.withUnsafeBytes { bytes in
            do throws(FormatError) { result = .success(try M(body: bytes)) } catch { result = .failure(error) }
        }
        guard case .success(let message)? = result else { throw Difference("\(name): \(M.type): \(body) is none") }
        return message
    }

    // MARK: Answers

    private func answered(_ type: MessageType, _ id: UInt32, _ body: [UInt8]) throws {
        guard let waits = pending.removeValue(forKey: id) else {
            throw Difference("\(name): \(type) answers \(id), which nobody asked")
        }
        answerCount += 1
        switch (type, waits) {
        case (.welcome, .hello(let knownSeq)): try welcomed(parse(body), knownSeq)
        case (.registered, .register): _ = try parse(body) as Registered
        case (.written, .batch(let batch, let task)): try written(batch, task, parse(body))
        case (.cleared, .clear(let clear)):
            let cleared: Cleared = try parse(body)
            clear.ending = .cleared(deleted: cleared.deleted, seq: cleared.seq)
            if cleared.deleted > 0 {
                truth.knows(cleared.seq)
                truth.tally.count(.cleared)
            }
            trace.note("\(name): cleared \(cleared.deleted)")
        case (.record, .get(let key, let knownSeq)):
            let reply: RecordReply = try parse(body)
            guard try show(reply.stored, knownSeq) == key else { throw Difference("\(name): GET \(key) gave another") }
        case (.counted, .count(let kind, let knownSeq)): try counted(kind, knownSeq, parse(body))
        case (.page, .page(let paging, let knownSeq)): try paged(paging, knownSeq, parse(body))
        case (.found, .find(let kind, let price, let knownSeq)): try found(kind, price, knownSeq, parse(body))
        case (.historyIs, .history(let key, let knownSeq)): try history(key, knownSeq, parse(body))
        case (.importBegun, .beginImport(let task)): try begun(task, parse(body))
        case (.importEnded, .endImport(let task)):
            let ended: ImportEnded = try parse(body)
            truth.knows(ended.seq)
            truth.tally.count(.importEnded)
            if importTask === task { importTask = nil }
        case (.subscribed, .subscribe(let follower, let knownSeq)):
            let subscribed: Subscribed = try parse(body)
            guard subscribed.epoch == epoch else { throw Difference("\(name): SUBSCRIBED names another epoch") }
            try follower.began(subscribed, truth: truth, knownSeq: knownSeq)
        case (.unsubscribed, .unsubscribe(let follower)):
            let ended: Unsubscribed = try parse(body)
            guard ended.through == follower.cursor?.seq else {
                throw Difference(
                    "\(name): UNSUBSCRIBED through \(ended.through), told through \(follower.cursor?.seq ?? 0)")
            }
            truth.tally.count(.unsubscribed)
            follower.keepCopy(truth)
            follower.disconnected()
            followers.removeAll { $0 === follower }
        case (.synced, .sync(let follower, let knownSeq)):
            let synced: Synced = try parse(body)
            guard synced.through >= knownSeq, synced.through <= follower.cursor?.seq ?? 0 else {
                throw Difference("\(name): SYNCED through \(synced.through), asked after \(knownSeq)")
            }
            truth.tally.count(.synced)
        case (.pong, .ping): _ = try parse(body) as Pong
        case (.compacted, .compact):
            let compacted: Compacted = try parse(body)
            try expectFloor(compacted.floor)
            truth.tally.count(.compacted)
            truth.tally.count(.droppedByCompaction, compacted.droppedCount)
            trace.note("\(name): compacted, \(compacted.droppedCount) entries gone, floor \(compacted.floor)")
        case (.statusIs, .status): _ = try parse(body) as StatusIs
        case (.entriesAre, .entries(let seqs, let knownSeq)): try entriesTold(seqs, knownSeq, parse(body))
        case (.page, .listed(let kind, let price, let knownSeq)): try listed(kind, price, knownSeq, parse(body))
        default: throw Difference("\(name): \(type) answers \(waits)")
        }
    }

    private func welcomed(_ welcome: Welcome, _ knownSeq: UInt64) throws {
        trace.note("\(name) is welcome, last seq \(welcome.lastSeq)")
        guard truth.epoch ?? welcome.epoch == welcome.epoch else { throw Difference("the epoch has changed") }
        guard welcome.lastSeq >= knownSeq else {
            throw Difference("last seq is \(welcome.lastSeq), \(knownSeq) was known before")
        }
        truth.epoch = welcome.epoch
        truth.knows(welcome.lastSeq)
        epoch = welcome.epoch
        try expectFloor(welcome.floor)
        floor = welcome.floor
        isOpen = true
    }

    private func expectFloor(_ floor: UInt64) throws {
        guard floor >= 1, floor <= truth.floorMax else {
            throw Difference("\(name): the floor is \(floor), where at most \(truth.floorMax) was to be")
        }
    }

    private func written(_ batch: Batch, _ task: ImportTask?, _ written: Written) throws {
        batch.ending = .written(written)
        trace.note("\(name): batch \(batch.number) is written, seq \(written.seq)")
        note(batch, written)
        let hasChanged = written.counts.created + written.counts.updated + written.counts.deleted > 0
        guard !batch.isDryRun else { return }
        if hasChanged { truth.knows(written.seq) }
        if let task {
            task.unanswered.removeAll { $0.number == batch.batchNumber }
            if hasChanged { task.answered = max(task.answered, batch.batchNumber) }
        }
    }

    private func note(_ batch: Batch, _ written: Written) {
        if batch.isDryRun { return truth.tally.count(.dryRun) }
        let counts = written.counts
        truth.tally.count(.created, counts.created)
        truth.tally.count(.updated, counts.updated)
        truth.tally.count(.unchanged, counts.unchanged)
        truth.tally.count(.duplicate, counts.duplicate)
        truth.tally.count(.alreadySaved, counts.alreadySaved)
        truth.tally.count(.notFound, counts.notFound)
        truth.tally.count(.deleted, counts.deleted)
        truth.tally.count(.refused, counts.refused)
        for (operation, result) in zip(batch.operations, written.results ?? []) {
            switch (operation.action, result.outcome) {
            case (.move, .updated): truth.tally.count(.moved)
            case (.restore, .created): truth.tally.count(.restored)
            default: break
            }
        }
        if batch.isUndo, counts.created + counts.updated + counts.deleted > 0 { truth.tally.count(.undone) }
    }

    private func show(_ stored: StoredRecord, _ knownSeq: UInt64) throws -> Key {
        let head = stored.header
        guard let (key, content) = stored.record.withUnsafeBytes({ Content.read($0, kind: head.kind) }) else {
            throw Difference("\(name): a record of seq \(head.seq) is none of ours")
        }
        truth.shown.append(
            Shown(
                knownSeq: knownSeq, key: key,
                stored: Stored(
                    seq: head.seq, firstSeq: head.firstSeq, savedAt: head.savedAt, origin: head.origin,
                    content: content)))
        truth.knows(head.seq)
        return key
    }

    private func counted(_ kind: Int, _ knownSeq: UInt64, _ counted: Counted) throws {
        truth.tally.count(.counted)
        let counts = Dictionary(counted.counts.map { ($0.kind, $0.count) }, uniquingKeysWith: { first, _ in first })
        guard kind == 0 || counts[kind] != nil else { throw Difference("\(name): COUNT does not name kind \(kind)") }
        truth.questions.append(
            Question(knownSeq: knownSeq, text: "\(name): counts of kind \(kind) are \(counts)") { state in
                (kind == 0 ? [1, 2] : [kind]).allSatisfy { counts[$0] ?? 0 == state.counts[$0] ?? 0 }
            })
    }

    private func paged(_ paging: Paging, _ knownSeq: UInt64, _ page: Page) throws {
        for record in page.records {
            guard paging.kind == 0 || record.header.kind == paging.kind else {
                throw Difference("\(name): LIST of kind \(paging.kind) shows kind \(record.header.kind)")
            }
            _ = try show(record, knownSeq)
            let first = record.header.firstSeq
            if let last = paging.firstSeqs.last, paging.isReverse ? first >= last : first <= last {
                throw Difference("\(name): LIST shows \(first) behind \(last)")
            }
            paging.firstSeqs.append(first)
        }
        if page.isEnd {
            truth.listings.append(
                Listing(knownSeq: paging.knownSeq, kind: paging.kind, firstSeqs: Set(paging.firstSeqs)))
        } else {
            guard !page.records.isEmpty else { throw Difference("\(name): a page is empty and not the last") }
            truth.tally.count(.pagedOn)
            followUps.append { [unowned self] in list(paging, token: page.token) }
        }
    }

    private func found(_ kind: Int, _ price: Int, _ knownSeq: UInt64, _ found: Found) throws {
        if !found.records.isEmpty { truth.tally.count(.found) }
        var keys: [Key] = []
        for record in found.records {
            let key = try show(record, knownSeq)
            guard truth.shown.last?.stored.content.price == price, key.kind == kind, !keys.contains(key) else {
                throw Difference("\(name): FIND of price \(price) in kind \(kind) gave \(key)")
            }
            keys.append(key)
        }
        // Keys are looked up first and records read then: what moved between is not held against it.
        if found.isEnd, keys.isEmpty {
            truth.questions.append(
                Question(knownSeq: knownSeq, text: "\(name): no record of kind \(kind) has price \(price)") { state in
                    !state.records.contains { $0.key.kind == kind && $0.value.content.price == price }
                })
        }
    }

    private func entriesTold(_ seqs: [UInt64], _ knownSeq: UInt64, _ told: EntriesAre) throws {
        var entries: [LogEntry] = []
        for run in told.runs {
            entries += try run.entry.withUnsafeBytes {
                try Truth.entries(of: $0, firstSeq: run.firstSeq, time: run.time)
            }
        }
        for entry in entries { try truth.told(entry) }
        // What became durable after it was asked for may be there or not.
        var rest = entries[...]
        for seq in seqs {
            if rest.first?.seq == seq {
                rest.removeFirst()
            } else if seq <= knownSeq, seq >= truth.floorMax, truth.entries[seq] != nil {
                throw Difference("\(name): ENTRIES of \(seqs) gave \(entries) after \(knownSeq)")
            }
        }
        guard rest.isEmpty else { throw Difference("\(name): ENTRIES of \(seqs) gave \(entries)") }
        truth.tally.count(.entriesTold)
    }

    private func listed(_ kind: Int, _ price: Int, _ knownSeq: UInt64, _ page: Page) throws {
        var last: UInt64 = 0
        for record in page.records {
            let key = try show(record, knownSeq)
            guard key.kind == kind, let shown = truth.shown.last?.stored, shown.content.price ?? -1 >= price,
                shown.firstSeq > last
            else { throw Difference("\(name): LIST by price >= \(price) shows \(key) of seq \(record.header.seq)") }
            last = shown.firstSeq
        }
        truth.tally.count(.conditionListed)
    }

    private func history(_ key: Key, _ knownSeq: UInt64, _ history: HistoryIs) throws {
        var entries: [LogEntry] = []
        for run in history.runs {
            let read = try run.entry.withUnsafeBytes {
                try Truth.entries(of: $0, firstSeq: run.firstSeq, time: run.time)
            }
            for entry in read {
                guard entry.key == key, entry.seq < entries.last?.seq ?? .max else {
                    throw Difference("\(name): the history of \(key) has \(entry)")
                }
                try truth.told(entry)
                entries.append(entry)
            }
        }
        truth.tally.count(.historyTold)
        truth.histories.append(ToldHistory(knownSeq: knownSeq, key: key, seqs: entries.map(\.seq)))
        followUps.append { [unowned self] in undo(key, entries) }
    }

    private func begun(_ task: ImportTask, _ begun: ImportBegun) throws {
        trace.note("\(name): import \(task.token) has origin \(begun.origin), last batch \(begun.lastBatch)")
        if task.isBegun {
            guard begun.isResumed, begun.origin == task.origin else {
                throw Difference("\(name): import \(task.token) of origin \(task.origin) came back as \(begun)")
            }
        }
        guard begun.lastBatch >= task.answered else {
            throw Difference("\(name): last batch is \(begun.lastBatch), \(task.answered) was answered for")
        }
        if begun.isResumed { truth.tally.count(.importResumed) }
        task.origin = begun.origin
        task.isBegun = true
        let again = task.unanswered.filter { $0.number > begun.lastBatch }
        task.unanswered = again
        truth.tally.count(.batchSentAgain, again.count)
        followUps.append { [unowned self] in
            for batch in again { sendBatch(task, number: batch.number, batch.operations) }
        }
    }
}

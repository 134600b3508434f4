// Reads that look at every record: LIST by a condition or in the order of a field, COUNT by a condition or by group.

import LarderFormat
import LarderStore
import LarderWire

/// Records looked at in one step of a scan: some tenths of a millisecond.
let scanStepRecordCount = 512

extension Connection {
    // MARK: What is asked

    /// The condition of a request, bound to its kinds; nil for none. Nil outside: it was refused, and answered.
    private func condition(_ text: String, kind: Int, _ id: UInt32) -> Condition?? {
        guard !text.isEmpty else { return .some(nil) }
        let schemas =
            kind == 0 ? host.store.kinds.compactMap { host.store.schema($0.number) } : [host.store.schema(kind)]
        do throws(ConditionError) {
            return try Condition(text, schemas: schemas.compactMap { $0 })
        } catch {
            send(ErrorReply(.badCondition, place: error.offset + 1, message: error.reason), id: id)
            return nil
        }
    }

    private func noField(_ field: Int, kind: Int, _ id: UInt32) {
        let message =
            kind == 0
            ? "a field is named, \(field), so a kind must be, too" : "kind \(kind) has no field \(field)"
        send(ErrorReply(.unknownField, message: message), id: id)
    }

    // MARK: LIST

    func scan(_ id: UInt32, _ list: List) {
        guard let condition = condition(list.condition, kind: list.kind, id) else { return }
        var order: FieldOrder?
        if list.order != 0 {
            order = host.store.schema(list.kind).flatMap { FieldOrder(field: list.order, schema: $0) }
            if order == nil { return noField(list.order, kind: list.kind, id) }
        }
        var asked = ByteWriter()
        List(kind: list.kind, isReverse: list.isReverse, limit: 1, condition: list.condition, order: list.order)
            .encode(into: &asked)
        let sum = ScanToken.sum([MessageType.list.rawValue], asked.bytes)
        var after: Ranked?
        if !list.token.isEmpty {
            guard let token = ScanToken(list.token), token.asked == sum, token.epoch == host.store.epoch else {
                return send(
                    ErrorReply(
                        .badToken,
                        message: "the page token is none of this library, kind, direction, condition and order"),
                    id: id)
            }
            after = token.place
        }
        let body = PageBody(limit: list.limit, byteCountMax: PageBody.byteCount(wanted: list.byteCountMax))
        guard let order else {
            return scanInSavedOrder(id, list, condition, body, sum, after: after?.firstSeq)
        }
        let ranking = Ranking(isDescending: list.isReverse)
        var key = FoldBuffer()
        let scan = RankedScan(
            kind: list.kind, BestRecords(ranking, limit: list.limit, after: after), body, pageType: .page, sum: sum
        ) { stored, _ in
            if let condition, !condition.matches(ConditionSubject(stored)) { return .none }
            key.removeAll()
            return order.appendKey(of: stored.record, to: &key) ? .key(key.bytes) : .absent
        }
        run(scan, id)
    }

    private func scanInSavedOrder(
        _ id: UInt32, _ list: List, _ condition: Condition?, _ page: PageBody, _ sum: UInt32, after: UInt64?
    ) {
        let scan = SavedOrderScan(
            condition, RecordWalk(kind: list.kind, isReverse: list.isReverse, after: after), page)
        let request = session.begin(id, now: host.now)
        work(on: request) { [unowned self] () throws(StoreError) in
            let step = try scan.look(host.store)
            switch step {
            case .more: return .more
            case .cold(let read): return .cold(read)
            case .end, .stopped: break
            }
            guard session.end(request) else { return .done }
            var token: [UInt8]?
            if case .stopped = step {
                let place = Ranked(key: nil, firstSeq: scan.walk.lastFirstSeq ?? 0)
                token = ScanToken(asked: sum, epoch: host.store.epoch, place: place).encoded
            }
            output.append(scan.body.frame(.page, id: id, token: token))
            return .done
        }
    }

    // MARK: COUNT

    private static let groupCountMax = 10_000

    func scan(_ id: UInt32, _ count: Count) {
        guard let condition = condition(count.condition, kind: count.kind, id) else { return }
        var groups: GroupCounter?
        if count.group != 0 {
            groups = host.store.schema(count.kind).flatMap {
                GroupCounter(
                    field: count.group, schema: $0, limit: Connection.groupCountMax, byteLimit: Host.pageByteCountMax)
            }
            if groups == nil { return noField(count.group, kind: count.kind, id) }
        }
        let scan = CountScan(condition, RecordWalk(kind: count.kind), groups)
        let request = session.begin(id, now: host.now)
        work(on: request) { [unowned self] () throws(StoreError) in
            let step = try scan.look(host.store)
            switch step {
            case .more: return .more
            case .cold(let read): return .cold(read)
            case .end, .stopped: break
            }
            guard session.end(request) else { return .done }
            if scan.isTooMany {
                send(
                    ErrorReply(
                        .tooManyGroups,
                        message: "the field has more than \(Connection.groupCountMax) values, "
                            + "or more than \(Host.pageByteCountMax) bytes of them"),
                    id: id)
            } else {
                send(Counted(scan.counts, groups: scan.groupCounts), id: id)
            }
            return .done
        }
    }
}

/// A page in saved order by a condition, being made. Loop thread only, one step at a time: its values are used without
/// dynamic checks of access, which cost as much as a test of a record.
private final class SavedOrderScan {
    private let condition: Condition?
    @exclusivity(unchecked) private(set) var walk: RecordWalk
    @exclusivity(unchecked) private(set) var body: PageBody

    init(_ condition: Condition?, _ walk: RecordWalk, _ body: PageBody) {
        self.condition = condition
        self.walk = walk
        self.body = body
    }

    /// Looks at the next records; `stopped` when the page is full and there is another.
    func look(_ store: Store) throws(StoreError) -> WalkStep {
        try store.walk(&walk, slice: scanStepRecordCount) { stored in
            if let condition, !condition.matches(ConditionSubject(stored)) { return true }
            guard body.hasRoom(stored.record.count) else { return false }
            body.add(stored)
            return true
        }
    }
}

/// Counts being made, as above.
private final class CountScan {
    private let condition: Condition?
    @exclusivity(unchecked) private var walk: RecordWalk
    @exclusivity(unchecked) private var groups: GroupCounter?
    /// By the kind's number; a few.
    @exclusivity(unchecked) private(set) var counts: [KindCount] = []
    /// Stopped, for the field has more values than are counted.
    private(set) var isTooMany = false

    init(_ condition: Condition?, _ walk: RecordWalk, _ groups: GroupCounter?) {
        self.condition = condition
        self.walk = walk
        self.groups = groups
        // A kind that is asked for is named where it has none.
        if walk.kind != 0 { counts = [KindCount(kind: walk.kind, count: 0)] }
    }

    var groupCounts: [GroupCount] { (groups?.groups ?? []).map { GroupCount($0.value, count: $0.count) } }

    func look(_ store: Store) throws(StoreError) -> WalkStep {
        try store.walk(&walk, slice: scanStepRecordCount) { stored in
            if let condition, !condition.matches(ConditionSubject(stored)) { return true }
            count(stored.kind)
            guard groups?.add(stored.record) != false else {
                isTooMany = true
                return false
            }
            return true
        }
    }

    private func count(_ kind: Int) {
        if let at = counts.firstIndex(where: { $0.kind >= kind }) {
            if counts[at].kind == kind {
                counts[at].count += 1
            } else {
                counts.insert(KindCount(kind: kind, count: 1), at: at)
            }
        } else {
            counts.append(KindCount(kind: kind, count: 1))
        }
    }
}

extension ConditionSubject {
    @inline(__always)
    init(_ stored: LarderStore.StoredRecord) {
        self.init(
            kind: stored.kind, seq: stored.seq, firstSeq: stored.firstSeq, savedAt: stored.savedAt,
            changedAt: stored.changedAt, origin: stored.origin, record: stored.record)
    }
}

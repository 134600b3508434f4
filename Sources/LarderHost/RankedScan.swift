// Pages that are not in saved order: one walk over the records finds which they are, then they are fetched.

import LarderFormat
import LarderStore
import LarderWire

/// What ranks a record.
enum RankingKey {
    /// It is none of those asked for.
    case none
    /// It comes behind all that have a key.
    case absent
    /// Borrowed until the next record.
    case key(UnsafeRawBufferPointer)
    /// A key of one byte.
    case rank(UInt8)
}

/// A page by rank, being made. Loop thread only.
final class RankedScan {
    let kind: Int
    let pageType: MessageType
    let sum: UInt32
    let key: (LarderStore.StoredRecord, [Int: RecordSchema]) -> RankingKey
    /// Of all kinds, by number. The store may not be asked for them while it walks.
    private var schemas: [Int: RecordSchema] = [:]
    private var generation: UInt64 = 0
    @exclusivity(unchecked) var best: BestRecords
    @exclusivity(unchecked) var walk: RecordWalk
    @exclusivity(unchecked) var body: PageBody
    /// The best ones, once the walk is done.
    var chosen: [Ranked]?
    var next = 0

    /// - Parameters:
    ///   - pageType: `page`, or `matches`, whose records have the first byte of their key as rank before them.
    ///   - key: of a record; run on every record, and again when it is fetched.
    init(
        kind: Int, _ best: BestRecords, _ body: PageBody, pageType: MessageType, sum: UInt32,
        key: @escaping (LarderStore.StoredRecord, [Int: RecordSchema]) -> RankingKey
    ) {
        self.kind = kind
        self.best = best
        self.body = body
        self.pageType = pageType
        self.sum = sum
        self.key = key
        walk = RecordWalk(kind: kind)
    }

    /// Looks at the next records of the walk.
    func look(_ store: Store) throws(StoreError) -> SliceStep {
        readSchemas(store)
        let step = try store.walk(&walk, slice: scanStepRecordCount) { stored in
            switch key(stored, schemas) {
            case .none: break
            case .absent: best.offer(nil, firstSeq: stored.firstSeq)
            case .key(let bytes): best.offer(bytes, firstSeq: stored.firstSeq)
            case .rank(let rank): withUnsafeBytes(of: rank) { best.offer($0, firstSeq: stored.firstSeq) }
            }
            return true
        }
        switch step {
        case .cold(let read): return .cold(read)
        case .more, .stopped: return .more
        case .end:
            chosen = best.best()
            return .more
        }
    }

    /// Kinds are declared and added to while the scan waits.
    private func readSchemas(_ store: Store) {
        guard generation != store.generation else { return }
        generation = store.generation
        schemas = Dictionary(store.kinds.compactMap { kind in store.schema(kind.number).map { (kind.number, $0) } }) {
            first, _ in first
        }
    }

    /// Fetches the next of the best. One that is gone or no longer asked for is left out.
    ///
    /// - Returns: `done` when the page is full or all are fetched.
    func fetch(_ store: Store, _ ranked: Ranked) throws(StoreError) -> SliceStep {
        readSchemas(store)
        switch try store.get(firstSeq: ranked.firstSeq) {
        case .cold(let read): return .cold(read)
        case .missing: break
        case .found(let stored):
            if case .none = key(stored, schemas) { break }
            guard kind == 0 || stored.kind == kind else { break }
            guard body.hasRoom(stored.record.count) else { return .done }
            body.add(stored, rank: pageType == .matches ? ranked.key?.first : nil)
        }
        next += 1
        return .more
    }
}

extension Connection {
    /// Makes the page and sends it.
    func run(_ scan: RankedScan, _ id: UInt32) {
        let request = session.begin(id, now: host.now)
        work(on: request) { [unowned self] () throws(StoreError) in
            guard let chosen = scan.chosen else { return try scan.look(host.store) }
            if scan.next < chosen.count {
                switch try scan.fetch(host.store, chosen[scan.next]) {
                case .cold(let read): return .cold(read)
                case .more: return .more
                case .done: break
                }
            } else if scan.body.count == 0, scan.best.isCut, let last = chosen.last {
                // All of them went meanwhile.
                scan.best.restart(after: last)
                scan.walk = RecordWalk(kind: scan.kind)
                scan.chosen = nil
                scan.next = 0
                return .more
            }
            guard session.end(request) else { return .done }
            var token: [UInt8]?
            if scan.next < chosen.count || scan.best.isCut, scan.next > 0 {
                token = ScanToken(asked: scan.sum, epoch: host.store.epoch, place: chosen[scan.next - 1]).encoded
            }
            output.append(scan.body.frame(scan.pageType, id: id, token: token))
            return .done
        }
    }

    // MARK: SEARCH

    func search(_ id: UInt32, _ search: Search) {
        guard search.kind == 0 || host.store.kind(search.kind) != nil else {
            return send(unknownKind(search.kind), id: id)
        }
        let query = SearchQuery(search.query)
        let sum = ScanToken.sum([MessageType.search.rawValue], Array(search.query.utf8), Array("\(search.kind)".utf8))
        var after: Ranked?
        if !search.token.isEmpty {
            guard let token = ScanToken(search.token), token.asked == sum, token.epoch == host.store.epoch else {
                return send(
                    ErrorReply(.badToken, message: "the page token is none of this library and query"), id: id)
            }
            after = token.place
        }
        let scan = RankedScan(
            kind: search.kind, BestRecords(Ranking(isNewestFirst: true), limit: search.limit, after: after),
            PageBody(limit: search.limit, byteCountMax: Host.pageByteCountMax), pageType: .matches, sum: sum
        ) { stored, schemas in
            guard let schema = schemas[stored.kind],
                let rank = query.rank(of: stored.record, schema: schema)
            else { return .none }
            return .rank(UInt8(clamping: rank))
        }
        run(scan, id)
    }
}

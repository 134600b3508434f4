// FIND, HISTORY, ENTRIES and DEFINE.

import LarderFormat
import LarderStore
import LarderWire

extension Connection {
    // MARK: Find

    func find(_ id: UInt32, _ find: Find) {
        guard host.store.kind(find.kind) != nil else { return send(unknownKind(find.kind), id: id) }
        guard host.store.schema(find.kind)?.indexed.contains(find.field) == true else {
            return send(
                ErrorReply(.unknownField, message: "field \(find.field) of kind \(find.kind) is none, or not indexed"),
                id: id)
        }
        let begun = find.value.borrowed { host.store.search(kind: find.kind, field: find.field, value: $0) }
        guard var search = begun else {
            return send(ErrorReply(.badRecord, message: "the value is none of field \(find.field)"), id: id)
        }
        let request = session.begin(id, now: host.now)
        var keys: [[UInt8]]?
        var isEnd = true
        var records: [LarderWire.StoredRecord] = []
        var byteCount = 0
        work(on: request) { [unowned self] () throws(StoreError) in
            guard let found = keys else {
                switch try host.store.keys(&search, limit: find.limit) {
                case .cold(let read): return .cold(read)
                case .more: return .more
                case .keys(let found, let end):
                    keys = found
                    isEnd = end
                    return .more
                }
            }
            while records.count < found.count, byteCount < Host.pageByteCountMax {
                let read = try found[records.count].borrowed { key throws(StoreError) -> ColdRead? in
                    switch try host.store.get(kind: find.kind, key: key) {
                    case .cold(let read): return read
                    case .missing: keys?.remove(at: records.count)
                    case .found(let stored) where !host.store.has(stored.record, search):
                        keys?.remove(at: records.count)
                    case .found(let stored):
                        records.append(
                            LarderWire.StoredRecord(StoredRecordHeader(stored), record: Array(stored.record)))
                        byteCount += stored.record.count
                    }
                    return nil
                }
                if let read { return .cold(read) }
                if keys?.count != found.count { return .more }
            }
            if session.end(request) {
                send(Found(isEnd: isEnd && records.count == found.count, records: records), id: id)
            }
            return .done
        }
    }

    // MARK: Entries

    /// Bytes of entries that one answer has; only its first entry can be more.
    private static let entriesByteCountMax = 1_048_576

    func entries(_ id: UInt32, _ entries: Entries) {
        let request = session.begin(id, now: host.now)
        var at = 0
        var byteCount = 0
        var runs: [EntryRun] = []
        var place: LogCursor?
        work(on: request) { [unowned self] () throws(StoreError) in
            guard at < entries.seqs.count, byteCount < Connection.entriesByteCountMax else {
                if session.end(request) { send(EntriesAre(runs), id: id) }
                return .done
            }
            let seq = entries.seqs[at]
            guard seq > 0, seq <= host.store.lastSeq else {
                at += 1
                return .more
            }
            var cursor = place ?? host.store.cursor(after: seq - 1)
            var found: [EventRun] = []
            let step = try host.store.stream(&cursor, EntryFilter(types: 63), byteBudget: 1, into: &found)
            place = nil
            if found.isEmpty {
                switch step {
                case .cold(let read):
                    place = cursor
                    return .cold(read)
                case .more where cursor.seq < seq:
                    // What lies before it in a large commit takes more than one step.
                    place = cursor
                    return .more
                default: break
                }
            }
            if let run = found.first, let entry = firstEntry(run), entry.seq == seq {
                let bytes = Array(run.bytes[..<entry.byteCount])
                byteCount += bytes.count
                runs.append(EntryRun(firstSeq: run.firstSeq, time: run.time, entry: bytes))
            }
            at += 1
            return .more
        }
    }

    private func firstEntry(_ run: EventRun) -> EntryView? {
        guard let base = run.bytes.baseAddress else { return nil }
        return try? readEntry(
            base: base, offset: 0, end: run.bytes.count, commitFirstSeq: run.firstSeq, commitTime: run.time,
            isVerified: false)
    }

    // MARK: History

    func history(_ id: UInt32, _ history: History) {
        guard let schema = host.store.schema(history.kind) else { return send(unknownKind(history.kind), id: id) }
        do throws(FormatError) {
            try history.key.borrowed { key throws(FormatError) in try schema.checkKey(key) }
        } catch {
            return send(ErrorReply(.badKey, place: error.offset + 1, message: "\(error)"), id: id)
        }
        let request = session.begin(id, now: host.now)
        let filter = EntryFilter(types: EntryFilter.downloaded | EntryFilter.deleted, kinds: [history.kind])
        var cursor = host.store.cursor(after: 0)
        var runs: [EntryRun] = []
        var found: [EventRun] = []
        work(on: request) { [unowned self] () throws(StoreError) in
            found.removeAll(keepingCapacity: true)
            let step = try host.store.stream(&cursor, filter, byteBudget: 262_144, into: &found)
            for run in found { gather(run, history.key, into: &runs) }
            keepNewest(&runs, limit: history.limit)
            switch step {
            case .cold(let read): return .cold(read)
            case .more, .lost: return .more
            case .end:
                if session.end(request) { send(HistoryIs(runs.reversed()), id: id) }
                return .done
            }
        }
    }

    /// Lets the oldest go where there are more than one answer has.
    private func keepNewest(_ runs: inout [EntryRun], limit: Int) {
        var byteCount = 0
        var count = 0
        for run in runs.reversed() {
            byteCount += run.entry.count
            guard count < limit, count == 0 || byteCount <= Connection.entriesByteCountMax else { break }
            count += 1
        }
        runs.removeFirst(runs.count - count)
    }

    /// The entries of a run that are of a key.
    private func gather(_ run: EventRun, _ key: [UInt8], into runs: inout [EntryRun]) {
        guard let base = run.bytes.baseAddress else { return }
        var at = 0
        while at < run.bytes.count {
            guard
                let entry = try? readEntry(
                    base: base, offset: at, end: run.bytes.count, commitFirstSeq: run.firstSeq, commitTime: run.time,
                    isVerified: false)
            else { return }
            let isOfKey = key.withUnsafeBytes { wanted in
                entry.isSave ? Store.hasKey(entry.payload, wanted) : entry.payload.elementsEqual(wanted)
            }
            if isOfKey {
                runs.append(
                    EntryRun(
                        firstSeq: run.firstSeq, time: run.time, entry: Array(run.bytes[at..<at + entry.byteCount])))
            }
            at += entry.byteCount
        }
    }

    // MARK: Define

    func define(_ id: UInt32, _ define: Define) {
        stageOrWait(id) { () throws(StoreError) in
            switch try host.store.define(define.declaration, now: host.wallClock()) {
            case .full: return false
            case .conflict(let why):
                send(ErrorReply(.kindConflict, message: "kind \(define.declaration.name): \(why)"), id: id)
            case .unchanged(let kind):
                send(LarderWire.Defined(number: kind.number, version: kind.version, isChanged: false), id: id)
            case .staged(let kind, let commit):
                reply(
                    LarderWire.Defined(number: kind.number, version: kind.version, isChanged: true), id: id,
                    commit: commit)
            }
            return true
        }
    }
}

extension Array where Element == UInt8 {
    /// `withUnsafeBytes` with the closure's own error type.
    func borrowed<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBufferPointer { elements throws(Failure) in try body(UnsafeRawBufferPointer(elements)) }
    }
}

// Opening a library whose segments are any bytes, with checksums that hold or do not.

import LarderFormat
import LarderStore

/// Three bytes that say how, then pages: the first so many are segment 1, the rest segment 2.
func fuzzSegment(_ bytes: UnsafeRawBufferPointer) {
    let (head, log) = bytes.split(3)
    guard head.count == 3 else { return }
    let (first, second) = log.split(head[1] == 255 ? log.count : Int(head[1] & 15) * BlockHeader.alignment)
    let files = SimulatedFiles(seed: 1)
    var generator = FixedGenerator()
    let identity = Identity(now: 1, using: &generator)
    files.setContent("library/larder", identity.encoded)
    for (at, part) in [first, second].enumerated() where !part.isEmpty {
        var segment = Array(part)
        segment.withUnsafeMutableBytes {
            if head[0] & 1 != 0 { sign(blocksOf: $0, epoch: identity.epoch, segment: UInt32(at + 1), head[0]) }
        }
        files.setContent("library/log/0000000\(at + 1).seg", segment)
    }
    var options = StoreOptions()
    options.kinds = [FuzzKinds.everyType, Kind.book]
    options.isReadOnly = head[0] & 16 != 0
    options.segmentByteCountMax = 65_536
    guard let seen = open(files, options, writes: !options.isReadOnly), !options.isReadOnly else { return }
    guard let again = open(files, options, writes: false) else {
        must(false, "a library that was opened and closed does not open again")
        return
    }
    must(again == seen, "opened again it has \(again) records, not \(seen)")
}

/// Reads all that there is, and writes a record. The count of records at the end; nil when it is refused.
private func open(_ files: SimulatedFiles, _ options: StoreOptions, writes: Bool) -> Int? {
    let store: Store
    do throws(StoreError) {
        store = try Store(path: "library", options: options, files: files, now: 1_700_000_000_000)
    } catch {
        _ = "\(error)"
        return nil
    }
    defer { store.close() }
    readStream(store)
    let listed = readPages(store)
    let counted = store.counts(kind: 0).reduce(0) { $0 + $1.count }
    must(listed == counted, "\(listed) records are listed, \(counted) counted")
    guard writes else { return counted }
    let batch = WriteBatch()
    batch.begin(origin: 0, programName: "fuzz", batchNumber: 0, isDryRun: false, isAtomic: false)
    let record: [UInt8] = [1, 0x03, 0x02, 0x01, 0x61]
    record.withUnsafeBytes { bytes in
        store.add(
            WriteOperation(mode: .replace, isPersonal: true, kind: 64, known: 256, payload: bytes), to: batch)
        for _ in 0..<1000 {
            guard let resolution = try? store.resolve(batch) else { return }
            if case .cold(let read) = resolution {
                store.supply(read.run())
                try? store.keep(for: batch)
                continue
            }
            if case .ready = resolution { break }
        }
        _ = try? store.stage(batch, now: 1_700_000_000_001)
    }
    while let job = store.takeCommit() { store.finish(job.run()) }
    return store.counts(kind: 0).reduce(0) { $0 + $1.count }
}

private func readStream(_ store: Store) {
    var cursor = store.cursor(after: 0)
    var last: UInt64 = 0
    for _ in 0..<100_000 {
        var runs: [EventRun] = []
        let step: StreamStep
        do throws(StoreError) {
            step = try store.stream(&cursor, EntryFilter(types: 63), byteBudget: 50_000, into: &runs)
        } catch { return must(false, "the stream: \(error)") }
        must(cursor.seq >= last, "a cursor goes back, from \(last) to \(cursor.seq)")
        last = cursor.seq
        switch step {
        case .cold(let read): store.supply(read.run())
        case .end: return
        case .more, .lost: continue
        }
    }
    must(false, "the stream does not end")
}

/// The records that are shown; each must be found by its key.
private func readPages(_ store: Store) -> Int {
    var cursor = PageCursor(kind: 0, isReverse: false, limit: Int.max, byteLimit: Int.max, after: nil)
    var records: [(kind: Int, bytes: [UInt8], seq: UInt64)] = []
    for _ in 0..<10_000 {
        let step: PageStep
        do throws(StoreError) {
            step = try store.page(&cursor) { records.append(($0.kind, Array($0.record), $0.seq)) }
        } catch {
            must(false, "a page: \(error)")
            return 0
        }
        if case .cold(let read) = step {
            store.supply(read.run())
            continue
        }
        break
    }
    for record in records {
        guard let schema = store.schema(record.kind),
            let range = record.bytes.withUnsafeBytes({ try? schema.keyRange(ofChecked: $0) })
        else { continue }
        let key = Array(record.bytes[range])
        for _ in 0..<100 {
            guard let found = key.withUnsafeBytes({ try? store.get(kind: record.kind, key: $0) }) else {
                must(false, "a record that is listed is not read by its key")
                break
            }
            if case .cold(let read) = found {
                store.supply(read.run())
                continue
            }
            if case .found(let stored) = found, stored.seq == record.seq { break }
            must(false, "the record of seq \(record.seq) is listed, and not found by its key")
        }
    }
    return records.count
}

private struct FixedGenerator: RandomNumberGenerator {
    private var state: UInt64 = 7
    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state
    }
}

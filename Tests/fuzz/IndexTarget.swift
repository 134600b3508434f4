// Opening a library whose checkpoint or sidecar is any bytes, with checksums that hold.

import LarderFormat
import LarderStore

/// One byte that says which file and how, then changes of it: three bytes of offset, one of a length, that many bytes.
func fuzzIndex(_ bytes: UnsafeRawBufferPointer) {
    let (head, edits) = bytes.split(1)
    guard let how = head.first, let base = how & 8 == 0 ? IndexedLibrary.plain : IndexedLibrary.compressed else {
        return
    }
    let name = how & 1 == 0 ? "library/checkpoint" : "library/log/00000001.idx"
    guard var file = base.content[name], !file.isEmpty else { return }
    apply(edits, to: &file)
    if how & 2 == 0 { file.withUnsafeMutableBytes { sign(indexFile: $0) } }
    let files = SimulatedFiles(seed: 1)
    for (path, content) in base.content where path != name && (how & 1 == 0 || path != "library/checkpoint") {
        files.setContent(path, content)
    }
    files.setContent(name, file)
    var options = IndexedLibrary.options
    options.isReadOnly = how & 4 != 0
    let store: Store
    do throws(StoreError) {
        store = try Store(path: "library", options: options, files: files, now: 1_700_000_000_000)
    } catch { return }
    // What it shows may be refused as damaged, and is never another record.
    read(store)
    store.close()
}

private func apply(_ edits: UnsafeRawBufferPointer, to file: inout [UInt8]) {
    var reader = ByteReader(edits)
    while let low = try? reader.u8(), let middle = try? reader.u8(), let high = try? reader.u8(),
        let count = try? reader.u8()
    {
        let offset = (Int(low) | Int(middle) << 8 | Int(high) << 16) % file.count
        for at in 0..<Int(count) {
            guard let byte = try? reader.u8() else { return }
            if offset + at < file.count { file[offset + at] = byte }
        }
    }
}

/// Gives the parts and the head of a checkpoint or a sidecar their CRCs. FORMAT.md section 11.
private func sign(indexFile bytes: UnsafeMutableRawBufferPointer) {
    guard bytes.count >= 4096 else { return }
    var start = 4096
    for part in 0..<4 {
        let count = bytes.loadUnaligned(fromByteOffset: 48 + part * 8, as: UInt64.self)
        guard count <= UInt64(bytes.count) else { break }
        let end = start + (Int(count) + 4095) / 4096 * 4096
        guard end <= bytes.count else { break }
        let crc = crc32c(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
        bytes.storeBytes(of: crc, toByteOffset: 80 + part * 4, as: UInt32.self)
        start = end
    }
    let crc = crc32c(UnsafeRawBufferPointer(rebasing: bytes[..<4092]))
    bytes.storeBytes(of: crc, toByteOffset: 4092, as: UInt32.self)
}

private func read(_ store: Store) {
    var cursor = PageCursor(kind: 0, isReverse: false, limit: Int.max, byteLimit: Int.max, after: nil)
    var records: [(kind: Int, bytes: [UInt8])] = []
    for _ in 0..<10_000 {
        guard let step = try? store.page(&cursor, { records.append(($0.kind, Array($0.record))) }) else { break }
        guard case .cold(let read) = step else { break }
        store.supply(read.run())
    }
    for number in 0..<40 {
        let key: [UInt8] = [UInt8(2 * number), 1, 0x61]
        for _ in 0..<100 {
            guard let found = try? key.withUnsafeBytes({ try store.get(kind: 64, key: $0) }) else { break }
            if case .cold(let read) = found {
                store.supply(read.run())
                continue
            }
            if case .found(let stored) = found {
                must(key.withUnsafeBytes { Store.hasKey(stored.record, $0) }, "another record")
            }
            break
        }
    }
    var stream = store.cursor(after: 0)
    for _ in 0..<10_000 {
        var runs: [EventRun] = []
        guard let step = try? store.stream(&stream, EntryFilter(types: 63), byteBudget: 50_000, into: &runs) else {
            break
        }
        if case .cold(let read) = step { store.supply(read.run()) }
        if case .end = step { break }
    }
    for (kind, count) in store.counts(kind: 0) { must(count >= 0, "kind \(kind) has \(count) records") }
}

/// A small library with a checkpoint, and one with a sidecar: made once.
private struct IndexedLibrary {
    var content: [String: [UInt8]] = [:]

    static var options: StoreOptions {
        var options = StoreOptions()
        options.kinds = [FuzzKinds.everyType, Kind.book]
        options.segmentByteCountMax = 16_384
        options.replayByteCountMax = 0
        return options
    }

    static let plain: IndexedLibrary? = make(compresses: false)
    /// Its segments were rewritten with compressed blocks: the checkpoint says where their pieces lie.
    static let compressed: IndexedLibrary? = Zstandard.isInstalled ? make(compresses: true) : nil

    private static func make(compresses: Bool) -> IndexedLibrary? {
        let files = SimulatedFiles(seed: 1)
        guard let store = try? Store(path: "library", options: options, files: files, now: 1) else { return nil }
        for number in 1..<30 {
            let batch = WriteBatch()
            batch.begin(origin: 0, programName: "fuzz", batchNumber: 0, isDryRun: false, isAtomic: false)
            let key: [UInt8] = [UInt8(2 * number), 1, 0x61]
            var record: [UInt8] = [1, 0x03] + key
            if compresses {
                // Field 6, a text of 3,000 bytes.
                record[1] = 0x23
                record += [0xB8, 0x17] + [UInt8](repeating: 0x62, count: 3_000)
            }
            // What is added is borrowed until it is staged.
            let isStaged = record.withUnsafeBytes { bytes in
                key.withUnsafeBytes { keyBytes in
                    store.add(
                        WriteOperation(mode: .replace, isPersonal: true, kind: 64, known: 256, payload: bytes),
                        to: batch)
                    if number % 7 == 0 {
                        store.add(WriteOperation(isDelete: true, kind: 64, payload: keyBytes), to: batch)
                    }
                    return (try? store.resolve(batch)) != nil && (try? store.stage(batch, now: Int64(number))) != nil
                }
            }
            guard isStaged else { return nil }
            while let job = store.takeCommit() { store.finish(job.run()) }
        }
        var library = IndexedLibrary()
        if compresses, !compress(store) { return nil }
        // The sidecars are there until the checkpoint is written.
        library.take(files, "library/log")
        store.close()
        library.take(files, "library/log")
        library.take(files, "library")
        return library
    }

    private static func compress(_ store: Store) -> Bool {
        var request = CompactionRequest()
        request.compression = .zstd
        request.includesLast = true
        guard store.beginCompaction(request) == nil else { return false }
        while true {
            switch store.stepCompaction(now: 2) {
            case .commit: if let job = store.takeCommit() { store.finish(job.run()) }
            case .job(let job): store.finish(job.run())
            case .progress: break
            case .finished(let report): return report.byteCountAfter < report.byteCountBefore
            case .failed: return false
            }
        }
    }

    private mutating func take(_ files: SimulatedFiles, _ directory: String) {
        for name in (try? files.list(directory)) ?? [] {
            let path = directory + "/" + name
            if let bytes = files.content(path) { content[path] = bytes }
        }
    }
}

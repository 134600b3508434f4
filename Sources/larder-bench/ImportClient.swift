// `client import`: an importer, in a process of its own.

import LarderClient
import LarderFormat
import LarderWire

/// How records are sent.
struct ImportOptions {
    var shape = EncodedTitles.Shape()
    var mode = SaveMode.merge
    var bulk = BulkWriter.Options()
    /// Where reads cannot be expected to work.
    var skipsReadBack = false
    /// Records of the library when all is there; nil: as many as were sent.
    var totalCount: Int?
}

/// Imports a dataset, then asks for the count and for 100 records. Prints what became of it.
func runImport(socket: String, dataset: String, recordCount: Int, _ options: ImportOptions) throws(BenchError) {
    let records = try EncodedTitles(try PackedTitles(path: dataset, recordCount: recordCount), options.shape)
    let client = try HostProcess.connect(socket)
    let known = Kind.title.fields.last?.number ?? 0
    let started = monotonicNanoseconds()
    let (report, lastSeqBefore) = try told { () throws(ClientError) in
        let writer = try BulkWriter(client, source: "bench", options: options.bulk)
        let before = client.welcome.lastSeq
        for position in 0..<records.count {
            try writer.save(records[position], kind: Kind.title.number, known: known, mode: options.mode)
        }
        return (try writer.finish(), before)
    }
    let ended = monotonicNanoseconds()
    let counts = report.counts
    try expect(report.refusals.isEmpty, "refused: \(report.refusals.first.map { "\($0)" } ?? "")")
    try expect(
        counts.created + counts.updated + counts.unchanged == recordCount,
        "\(recordCount) records were sent; the host counted \(counts)")
    let total = try told { () throws(ClientError) in try client.count(kind: Kind.title.number) }.first?.count ?? 0
    try expect(
        total == options.totalCount ?? recordCount,
        "the library has \(total) records, not \(options.totalCount ?? recordCount)")
    if !options.skipsReadBack { try readBack(records, client) }
    let after = try told { () throws(ClientError) in try client.status() }
    try told { () throws(ClientError) in try client.goodbye() }
    var line = ResultLine()
    line.set("started", Int(started))
    line.set("ended", Int(ended))
    line.set("created", counts.created)
    line.set("updated", counts.updated)
    line.set("unchanged", counts.unchanged)
    line.set("byte_count", records.byteCount)
    line.set("last_seq_before", Int(lastSeqBefore))
    line.set("last_seq_after", Int(after.lastSeq))
    line.print()
}

/// Compares 100 random records of the library with what was sent, byte by byte.
private func readBack(_ records: EncodedTitles, _ client: LarderClient) throws(BenchError) {
    var random = SplitMix(seed: 3)
    for _ in 0..<100 {
        let position = random.below(records.count)
        let stored = try told { () throws(ClientError) in
            try client.get(kind: Kind.title.number, key: Array(records.key(position)))
        }
        guard let stored else { throw .wrong("record \(position) is not found") }
        try expect(stored.record.elementsEqual(records[position]), "record \(position) differs from what was sent")
    }
}

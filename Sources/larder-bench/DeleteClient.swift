// `client delete`: deletes records of the dataset, in a process of its own.

import LarderClient
import LarderFormat

/// Deletes one record in `stride` of a copy of the dataset, the first one first. Prints how many there were.
func runDeletes(socket: String, dataset: String, recordCount: Int, stride: Int, copy: Int) throws(BenchError) {
    let records = try EncodedTitles(
        try PackedTitles(path: dataset, recordCount: recordCount), EncodedTitles.Shape(copy: copy))
    let client = try HostProcess.connect(socket)
    let before = try count(client)
    let started = monotonicNanoseconds()
    let report = try told { () throws(ClientError) in
        let writer = try BulkWriter(client, source: "bench")
        var position = 0
        while position < records.count {
            try writer.delete(records.key(position), kind: Kind.title.number)
            position += stride
        }
        return try writer.finish()
    }
    let ended = monotonicNanoseconds()
    try expect(report.refusals.isEmpty, "refused: \(report.refusals.first.map { "\($0)" } ?? "")")
    let deleted = before - (try count(client))
    try told { () throws(ClientError) in try client.goodbye() }
    var line = ResultLine()
    line.set("started", Int(started))
    line.set("ended", Int(ended))
    line.set("deleted", deleted)
    line.print()
}

private func count(_ client: LarderClient) throws(BenchError) -> Int {
    try told { () throws(ClientError) in try client.count(kind: Kind.title.number) }.first?.count ?? 0
}

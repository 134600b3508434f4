// Reading by condition, in order and by text: what looks at every record.

import Glibc
import LarderClient
import LarderFormat
import LarderWire

extension Bench {
    /// A scan in the words of both.
    private struct Scan {
        let name: String
        let condition: String
        let sql: String
    }

    private static let scans = [
        Scan(name: "number", condition: "vote_average > 9.9", sql: "vote_average > 9.9"),
        Scan(
            name: "date", condition: "release_date = 1999-03 and vote_count > 10",
            sql: "release_date between 19990301 and 19990331 and vote_count > 10"),
        Scan(name: "text", condition: "overview contains \"erhu\"", sql: "overview like '%erhu%'"),
    ]

    /// LIST with a condition, all pages over the socket, against a table scan in process, in turn.
    func measureWhere() throws(BenchError) {
        let host = try libraryHost()
        try warm(host)
        let client = try host.connect()
        let sqlite = try SQLite(path: directory + "/titles.sqlite")
        if let sqlite {
            progress("filling SQLite \(sqlite.version)")
            try sqlite.fill(try PackedTitles(path: dataset, recordCount: recordCount))
            // So that it reads its file as cheaply as can be.
            try sqlite.run("pragma mmap_size = 4294967296")
        } else {
            progress("there is no libsqlite3 on this machine: nothing to compare with")
        }
        for scan in Bench.scans {
            var samples = Samples()
            var others = Samples()
            var ratios = Samples()
            var matches = 0
            for run in 0...options.runCount {
                progress("list where \(scan.condition), run \(run) of \(options.runCount)")
                var started = monotonicNanoseconds()
                let found = try listAll(client, condition: scan.condition)
                let own = seconds(from: started, to: monotonicNanoseconds())
                started = monotonicNanoseconds()
                let rows = try sqlite?.scan("select * from title where \(scan.sql)", columnCount: 10).rows
                let other = seconds(from: started, to: monotonicNanoseconds())
                if let rows {
                    try expect(rows == found, "\(scan.condition): \(found) records here, \(rows) in SQLite")
                }
                matches = found
                // The first has both warm.
                guard run > 0 else { continue }
                samples.add(own)
                if rows != nil {
                    others.add(other)
                    ratios.add(other / own)
                }
            }
            var line = ResultLine("list_where")
            line.set("condition", scan.condition)
            line.set("matches", matches)
            line.set(seconds: samples, records: recordCount, byteCount: recordByteCount)
            if !others.isEmpty { line.set("sqlite_records_per_second", Double(recordCount) / others.median, places: 0) }
            line.setRatio("ratio_to_sqlite", ratios)
            say(line)
        }
        client.close()
        try host.stop()
    }

    /// All pages; how many records they have.
    private func listAll(_ client: LarderClient, condition: String) throws(BenchError) -> Int {
        var list = List(kind: Kind.title.number, limit: 10_000, byteCountMax: 2_097_152, condition: condition)
        var count = 0
        while true {
            let page = try told { () throws(ClientError) in try client.list(list) }
            count += page.records.count
            if page.isEnd { return count }
            list.token = page.token
        }
    }

    /// What a page costs near the beginning and far behind it: in saved order, and in the order of a field.
    func measurePages() throws(BenchError) {
        let host = try libraryHost()
        try warm(host)
        let client = try host.connect()
        // With few records a nearer page is the far one.
        let pageCount = min(10_000, max(2, recordCount / 2))
        let limit = max(1, recordCount / (pageCount + max(1, pageCount / 100)))
        for order in [0, 13] {
            // Pages in the order of a field are scans: to come to the far one by way of all others would take hours. It
            // is reached by larger steps, whose tokens are the same.
            let hop = order == 0 ? limit : min(10_000, recordCount / 20)
            var first = Samples()
            var last = Samples()
            var ratios = Samples()
            for run in 1...max(options.runCount, 5) {
                progress("pages in \(order == 0 ? "saved order" : "the order of a field"), run \(run)")
                var list = List(kind: Kind.title.number, limit: limit, order: order)
                let near = try timePages(client, list)
                var skipped = 0
                list.limit = hop
                list.byteCountMax = 2_097_152
                while skipped < limit * (pageCount - 1) {
                    list.limit = min(hop, limit * (pageCount - 1) - skipped)
                    let page = try told { () throws(ClientError) in try client.list(list) }
                    try expect(!page.isEnd, "the records end before page \(pageCount)")
                    skipped += page.records.count
                    list.token = page.token
                }
                list.limit = limit
                list.byteCountMax = 0
                let far = try timePages(client, list)
                first.add(near)
                last.add(far)
                ratios.add(far / near)
            }
            var line = ResultLine("page")
            line.set("order", order == 0 ? "saved" : "vote_average")
            line.set("records_per_page", limit)
            line.set("first_page_microseconds", first.median * 1e6, places: 1)
            line.set("far_page", pageCount)
            line.set("far_page_microseconds", last.median * 1e6, places: 1)
            line.setRatio("ratio_of_far_page", ratios)
            say(line)
        }
        client.close()
        try host.stop()
    }

    /// The median time of a page, asked for several times.
    private func timePages(_ client: LarderClient, _ list: List) throws(BenchError) -> Double {
        var samples = Samples()
        for _ in 0..<(list.order == 0 ? 201 : 5) {
            let started = monotonicNanoseconds()
            _ = try told { () throws(ClientError) in try client.list(list) }
            samples.add(seconds(from: started, to: monotonicNanoseconds()))
        }
        return samples.median
    }

    /// From the start of the process to the first page of a search, with the log in the page cache and without.
    func measureSearch() throws(BenchError) {
        var host = try libraryHost()
        try warm(host)
        for isCold in [false, true] {
            for query in ["zanzibar", "erhu", "한국"] {
                var samples = Samples()
                var warm = Samples()
                var count = 0
                for run in 1...options.runCount {
                    progress("search \(query), \(isCold ? "cold" : "warm"), run \(run) of \(options.runCount)")
                    try host.stop()
                    if isCold { dropCache(ofLibrary: host.library) }
                    host = try HostProcess(library: host.library, socket: socket)
                    let client = try host.connect()
                    let search = Search(query: query, limit: 50)
                    count = try told { () throws(ClientError) in try client.search(search) }.matches.count
                    samples.add(seconds(from: host.startedAt, to: monotonicNanoseconds()))
                    let started = monotonicNanoseconds()
                    _ = try told { () throws(ClientError) in try client.search(search) }
                    warm.add(seconds(from: started, to: monotonicNanoseconds()))
                    client.close()
                }
                var line = ResultLine("search")
                line.set("query", query)
                line.set("cache", isCold ? "cold" : "warm")
                line.set("first_page_matches", count)
                line.set(seconds: samples, records: recordCount, byteCount: recordByteCount)
                line.set("seconds_once_open", warm.median)
                say(line)
            }
        }
        try host.stop()
    }

    /// GETs one by one while another client has the whole library looked through, again and again.
    func measureLatency() throws(BenchError) {
        let host = try libraryHost()
        try warm(host)
        for scannerCount in [0, 1, 4] {
            var p50 = Samples()
            var p99 = Samples()
            var rates = Samples()
            var scans = 0
            for run in 1...options.runCount {
                progress("gets beside \(scannerCount) scans, run \(run) of \(options.runCount)")
                var scanners: [Child] = []
                for _ in 0..<scannerCount {
                    scanners.append(try host.startClient(["scan", dataset, "\(recordCount)"]))
                }
                let report = try host.client(
                    ["get", dataset, "\(recordCount)", "1", "\(options.getSeconds)", "\(Placement.free.client)"])
                rates.add(Double(report.integer("count")) / report.elapsed)
                p50.add(report.number("p50_microseconds"))
                p99.add(report.number("p99_microseconds"))
                for scanner in scanners {
                    scanner.signal(SIGTERM)
                    scans += try scanner.result().integer("count")
                }
            }
            var line = ResultLine("get_beside_scans")
            line.set("scans_at_once", scannerCount)
            line.set("scans", scans)
            line.set("records_per_second", rates.median, places: 0)
            line.set("p50_microseconds", p50.median, places: 1)
            line.set("p99_microseconds", p99.median, places: 1)
            line.setRange("p99_microseconds", p99, places: 1)
            say(line)
        }
        try host.stop()
    }
}

/// Set by a signal.
private nonisolated(unsafe) var isToEnd: sig_atomic_t = 0

/// `client scan`: counts by a condition on text until SIGTERM, and prints how often.
func runScans(socket: String) throws(BenchError) {
    signal(SIGTERM) { _ in isToEnd = 1 }
    let client = try HostProcess.connect(socket)
    let started = monotonicNanoseconds()
    var count = 0
    while isToEnd == 0 {
        _ = try told { () throws(ClientError) in
            try client.count(kind: Kind.title.number, condition: "overview contains \"erhu\"")
        }
        count += 1
    }
    client.close()
    var line = ResultLine()
    line.set("started", Int(started))
    line.set("ended", Int(monotonicNanoseconds()))
    line.set("count", count)
    line.print()
}

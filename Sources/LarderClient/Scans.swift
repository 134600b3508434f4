// Reads that take as many requests as it needs: all pages of a listing or a search, entries that one frame has no room for.

import LarderFormat
import LarderWire

extension LarderClient {
    /// Every record of a kind in saved order, page by page, as it lies in the page. Return false to stop.
    ///
    /// - Parameters:
    ///   - kind: 0: all.
    ///   - pageLimit: records of a page, 1 … 10,000.
    ///   - handle: may not use this client. The record is borrowed until it returns.
    public func forEachRecord(
        kind: Int = 0, isReverse: Bool = false, pageLimit: Int = 10_000, _ handle: (StoredRecordView) -> Bool
    ) throws(ClientError) {
        try forEachRecord(of: List(kind: kind, isReverse: isReverse, limit: pageLimit), handle)
    }

    /// Every record of a listing, in its order, page by page, as it lies in the page. Return false to stop.
    ///
    /// In the order of a field each page costs the host a scan, so a large limit is best there.
    ///
    /// - Parameters:
    ///   - list: kind, condition and order; its limit is that of a page, its token where to begin.
    ///   - handle: may not use this client. The record is borrowed until it returns.
    public func forEachRecord(of list: List, _ handle: (StoredRecordView) -> Bool) throws(ClientError) {
        var list = list
        while true {
            let next: [UInt8]? = try request(list) { (frame) throws(ClientError) in
                do throws(FormatError) {
                    var page = try PageReader(body: frame.body)
                    while let record = try page.next() {
                        if !handle(record) { return nil }
                    }
                    return page.isEnd ? nil : Array(page.token)
                } catch {
                    throw self.connection.violation("PAGE: \(error)")
                }
            }
            guard let next else { return }
            list.token = next
        }
    }

    /// Every match of a search, the best first, page by page. Return false to stop.
    ///
    /// - Parameters:
    ///   - search: its limit is that of a page, its token where to begin.
    ///   - handle: may use this client.
    public func forEachMatch(of search: Search, _ handle: (Matches.Match) -> Bool) throws(ClientError) {
        var search = search
        while true {
            let page = try self.search(search)
            for match in page.matches where !handle(match) { return }
            if page.isEnd { return }
            search.token = page.token
        }
    }

    /// The log's entries of these seqs, in their order, in as many requests as it needs; those that the log does not hold
    /// are left out. Return false to stop.
    ///
    /// - Parameters:
    ///   - seqs: any number of them, taken 1,000 at a time.
    ///   - handle: may use this client.
    public func forEachEntry(
        _ seqs: some Sequence<UInt64>, _ handle: (EntryRun) -> Bool
    ) throws(ClientError) {
        var source = seqs.makeIterator()
        var asked: [UInt64] = []
        while true {
            while asked.count < Entries.countRange.upperBound, let seq = source.next() { asked.append(seq) }
            guard !asked.isEmpty else { return }
            let runs = try entries(asked)
            var at = 0
            for run in runs {
                guard let seq = run.seq, let found = asked[at...].firstIndex(of: seq) else {
                    throw connection.violation("ENTRIES_ARE with an entry that was not asked for")
                }
                at = found + 1
                if !handle(run) { return }
            }
            // Those behind the last one that came are gone, or the frame was full. If none came, all are gone.
            asked.removeFirst(runs.isEmpty ? asked.count : at)
        }
    }
}

// Reads that take several requests.

import LarderFormat
import LarderWire
import Testing

@testable import LarderClient

@Suite("scans")
struct ScanTests {
    private func run(_ seq: UInt64) -> EntryRun {
        EntryRun(firstSeq: seq - 1, time: 5, entry: [3, 1, 1, 7])
    }

    @Test("a listing keeps its condition, order and direction on every page")
    func listing() throws {
        let first = List(
            kind: 1, isReverse: true, limit: 2, byteCountMax: 9, condition: "watched exists", order: 13)
        try withClient({ peer in
            let (id, list) = try peer.expect(List.self)
            #expect(list == first)
            try peer.write(Page(isEnd: false, token: [7], records: [sampleRecord, sampleRecord]), id: id)
            let (next, rest) = try peer.expect(List.self)
            var expected = first
            expected.token = [7]
            #expect(rest == expected)
            try peer.write(Page(isEnd: true, token: [], records: [sampleRecord]), id: next)
        }) { (client) throws in
            var count = 0
            try client.forEachRecord(of: first) { record in
                #expect(record.header == sampleRecord.header)
                count += 1
                return true
            }
            #expect(count == 3)
        }
    }

    @Test("a condition that is none is the host's error, with its place")
    func badCondition() throws {
        let refusal = ErrorReply(.badCondition, place: 4, message: "no field of that name")
        try withClient({ peer in
            try peer.write(refusal, id: try peer.expect(List.self).id)
        }) { (client) throws in
            #expect(throws: ClientError.larder(refusal)) {
                try client.forEachRecord(of: List(kind: 1, condition: "rat")) { _ in true }
            }
        }
    }

    @Test("matches come page by page, and no more when they are not wanted")
    func matches() throws {
        try withClient({ peer in
            let (id, search) = try peer.expect(Search.self)
            #expect(search.query == "heat" && search.token == [])
            try peer.write(
                Matches(isEnd: false, token: [9], matches: [Matches.Match(rank: 0, sampleRecord)]), id: id)
            let (next, rest) = try peer.expect(Search.self)
            #expect(rest.query == "heat" && rest.token == [9])
            try peer.write(
                Matches(
                    isEnd: false, token: [10],
                    matches: [Matches.Match(rank: 3, sampleRecord), Matches.Match(rank: 5, sampleRecord)]), id: next)
        }) { (client) throws in
            var ranks: [Int] = []
            try client.forEachMatch(of: Search(query: "heat")) { match in
                ranks.append(match.rank)
                return ranks.count < 2
            }
            #expect(ranks == [0, 3])
        }
    }

    @Test("entries that one frame has no room for are asked for again, and those that are gone are not")
    func entries() throws {
        try withClient({ peer in
            let (id, asked) = try peer.expect(Entries.self)
            #expect(asked.seqs == Array(7...1_006))
            try peer.write(EntriesAre([run(7), run(9)]), id: id)
            let (second, rest) = try peer.expect(Entries.self)
            #expect(rest.seqs == Array(10...1_009))
            try peer.write(EntriesAre([run(1_009)]), id: second)
            let (third, last) = try peer.expect(Entries.self)
            #expect(last.seqs == [1_010, 7])
            try peer.write(EntriesAre([run(7)]), id: third)
        }) { (client) throws in
            var seqs: [UInt64] = []
            try client.forEachEntry(Array(7...1_010) + [7]) { entry in
                seqs.append(entry.seq ?? 0)
                return true
            }
            #expect(seqs == [7, 9, 1_009, 7])
            try client.forEachEntry([]) { _ in true }
        }
    }

    @Test("an answer without entries ends what was asked for, false ends everything")
    func noEntries() throws {
        try withClient({ peer in
            try peer.write(EntriesAre([]), id: try peer.expect(Entries.self).id)
            try peer.write(EntriesAre([run(1), run(2)]), id: try peer.expect(Entries.self).id)
        }) { (client) throws in
            try client.forEachEntry([5, 6]) { _ in
                Issue.record("an entry that was not sent")
                return true
            }
            var count = 0
            try client.forEachEntry([1, 2, 3]) { _ in
                count += 1
                return false
            }
            #expect(count == 1)
        }
    }

    @Test("an entry that was not asked for ends the connection")
    func strangeEntries() throws {
        for strange in [run(8), EntryRun(firstSeq: .max, time: 0, entry: [3, 1, 1, 7]), run(5)] {
            try withClient({ peer in
                try peer.write(EntriesAre([run(5), strange]), id: try peer.expect(Entries.self).id)
                peer.drain()
            }) { (client) throws in
                do throws(ClientError) {
                    try client.forEachEntry([5, 6, 7]) { _ in true }
                    Issue.record("a strange entry is taken")
                } catch {
                    guard case .protocolViolation = error else {
                        Issue.record("\(error)")
                        return
                    }
                }
            }
        }
    }
}

import Glibc
import LarderFormat
import Testing

@testable import larder_bench

@Suite("Bench")
struct BenchTests {
    /// The program, which the build puts beside the tests' own.
    private func program() throws -> String {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        let path = String(decoding: buffer[..<max(0, count)], as: UTF8.self)
        return String(path[..<(try #require(path.lastIndex(of: "/")))]) + "/larder-bench"
    }

    @Test("every figure of a small run is a line of JSON and was measured")
    func everyFigure() throws {
        let child = try Child(
            try program(), ["all", "--records", "2000", "--runs", "1", "--get-milliseconds", "20"])
        var figures: [String: Int] = [:]
        while let line = child.line() {
            let value = try JSONValue(parsing: line)
            let figure = try #require(value["figure"]?.string)
            figures[figure, default: 0] += 1
            switch figure {
            case "machine": #expect(value["records"]?.int64 == 2_000)
            case "size": #expect(try #require(value["encoded_bytes_per_record"]?.double) > 300)
            case "memory": #expect(try #require(value["rss_anon_bytes"]?.int64) > 0)
            case "probe", "socket": #expect(try #require(value["bytes_per_second"]?.double) > 0)
            case "page": #expect(try #require(value["far_page_microseconds"]?.double) > 0)
            case "compaction":
                // Beside the records there are a few blocks and what an import says of itself.
                #expect((1..<1.1).contains(try #require(value["ratio_to_live"]?.double)))
            case "compressed": #expect(try #require(value["gets_per_second"]?.double) > 0)
            case "beside_compaction":
                #expect(try #require(value["records_per_second"]?.double) > 0)
                #expect(try #require(value["get_p99_microseconds"]?.double) > 0)
            default: #expect(try #require(value["records_per_second"]?.double) > 0)
            }
        }
        #expect(child.wait() == 0)
        let gets = 2 * Placement.all.count
        figures["compressed"] = (figures["compressed"] ?? 0) + (Zstandard.isInstalled ? 0 : 2)
        #expect(
            figures == [
                "machine": 1, "probe": 1, "socket": 2, "import": 2, "import_null_log": 1, "memory": 1, "size": 1,
                "import_shuffled": 1, "reimport": 2, "replay": 4, "get": gets, "open": 3,
                "list_where": 3, "page": 2, "search": 6, "get_beside_scans": 3, "import_changed": 1,
                "compaction": 1, "beside_compaction": 3, "compressed": 2,
            ])
    }

    @Test(
        "a wrong command line ends with 2",
        arguments: [[], ["all", "--records"], ["all", "--records", "0"], ["speed"], ["all", "--only", "speed"]])
    func usage(arguments: [String]) throws {
        #expect(try Child(try program(), arguments).wait() == 2)
    }

    @Test("the help names every figure")
    func help() throws {
        let child = try Child(try program(), ["--help"])
        var text = ""
        while let line = child.line() { text += line + "\n" }
        #expect(child.wait() == 0)
        for figure in Figure.allCases { #expect(text.contains("\n  \(figure.rawValue) ")) }
    }

    @Test("a made-up title has the sizes of a film catalogue, and two ways to encode it agree")
    func dataset() throws {
        let path = "/tmp/larder-bench-test-\(getpid()).bin"
        defer { unlink(path) }
        try Dataset.write(recordCount: 2_000, to: path)
        let titles = try PackedTitles(path: path, recordCount: 2_000)
        let records = try EncodedTitles(titles)
        #expect((380...430).contains(titles.byteCount / titles.count))
        var koreanCount = 0
        for position in 0..<titles.count {
            let title = titles[position]
            #expect(try title.record(votes: 0).encode(Kind.title).elementsEqual(records[position]))
            if String(decoding: title.originalTitle, as: UTF8.self).unicodeScalars.contains(where: { $0.value > 0x1100 }
            ) {
                koreanCount += 1
            }
        }
        #expect((700...900).contains(koreanCount))
    }
}

import CLarder
import Glibc
import LarderFormat
import Testing

@testable import larder

@Suite("larder import", .timeLimit(.minutes(2)))
struct ImportCommandTests {
    private static let film = #"{"kind":"title","source":"tmdb","media_type":"movie","id":603,"title":"The Matrix"}"#
    private static let joke = #"{"kind":"joke","id":"123e4567-e89b-42d3-a456-426614174000","body":"왜?","year":1}"#

    private func accounting(_ outcome: Outcome) -> String? {
        outcome.output.split(separator: "\n").first { $0.hasPrefix("read ") }.map(String.init)
    }

    @Test("lines of several kinds come from standard input, and the account is told")
    func standardInput() throws {
        let library = try TestLibrary()
        let input = ImportCommandTests.film + "\n" + ImportCommandTests.joke + "\n\n" + ImportCommandTests.film + "\n"
        let outcome = try library.run("import", "-", input: input)
        #expect(outcome.code == 0)
        #expect(
            accounting(outcome) == "read 3 = 2 created + 0 updated + 0 unchanged + 1 duplicate + 0 already saved"
                + " + 0 skipped + 0 refused")
        #expect(outcome.errors.contains("no field for “year”: left out of 1 row"))
        let again = try library.run("import", "-", input: input)
        #expect(accounting(again)?.contains("0 created + 0 updated + 3 unchanged") == true)
    }

    @Test("a dry run decides everything and changes nothing")
    func dryRun() throws {
        let library = try TestLibrary()
        let before = try library.run("status", "--json").objects[0]["cursor"]?.string
        let outcome = try library.run(
            "import", "--dry-run", "-", input: ImportCommandTests.film + "\n" + ImportCommandTests.film + "\n{}\n")
        #expect(outcome.code == 1)
        #expect(outcome.output.hasPrefix("dry run: nothing was changed"))
        #expect(
            accounting(outcome)?.hasPrefix("read 3 = 1 created + 0 updated + 0 unchanged + 1 duplicate") == true)
        #expect(try library.run("count", "title").output == "0\n")
        #expect(try library.run("status", "--json").objects[0]["cursor"]?.string == before)
    }

    @Test("the mode decides how a record meets one that is there")
    func modes() throws {
        let library = try TestLibrary()
        func bring(_ mode: String, _ line: String) throws -> String? {
            accounting(try library.run("import", "--mode", mode, "-", input: line + "\n"))
        }
        let more = #"{"kind":"title","source":"tmdb","media_type":"movie","id":603,"overview":"Green.","name":"M"}"#
        _ = try library.run("import", "-", input: ImportCommandTests.film + "\n")
        #expect(try bring("insert", more)?.contains("1 already saved") == true)
        #expect(try bring("merge", more)?.contains("1 updated") == true)
        #expect(try library.records().first?["record"]?["title"]?.string == "The Matrix")
        #expect(try bring("replace", more)?.contains("1 updated") == true)
        #expect(try library.records().first?["record"]?["title"] == nil)
    }

    @Test("refusals are told with file, line and reason, the first ones unless all are asked for")
    func refusals() throws {
        let library = try TestLibrary()
        let path = try library.write("bad.jsonl", String(repeating: #"{"kind":"joke"}"# + "\n", count: 30))
        let outcome = try library.run("import", path)
        #expect(outcome.code == 1)
        #expect(outcome.errors.contains("refused \(path):1: missing-body"))
        #expect(outcome.errors.split(separator: "\n").filter { $0.hasPrefix("refused ") }.count == 20)
        #expect(outcome.errors.contains("… and 10 more refused"))
        let all = try library.run("import", "--all-refusals", path)
        #expect(all.errors.split(separator: "\n").filter { $0.hasPrefix("refused ") }.count == 30)
        #expect(try library.run("import", "--json", path).objects.filter { $0["refused"] != nil }.count == 30)
    }

    @Test("nothing, a missing file, a directory and an unknown format are errors in plain words")
    func errors() throws {
        let library = try TestLibrary()
        for text in ["", "\u{FEFF}", "\n \n"] {
            let outcome = try library.run("import", "-", input: text)
            #expect(outcome.code == 1)
            #expect(outcome.errors.contains("standard input is empty"))
            #expect(outcome.output.isEmpty)
        }
        let missing = try library.run("import", "/nowhere/x.jsonl")
        #expect(missing.code == 1 && missing.errors.contains("No such file or directory"))
        #expect(try library.run("import", library.directory).errors.contains("it is a directory"))
        let array = try library.run("import", "-", input: "[{\"id\":1}]")
        #expect(array.code == 1)
        #expect(array.errors.contains("one JSON array, and no importer plugin is registered"))
        let kindless = try library.run("import", "-", input: "{\"id\":1}\n{\"id\":2}\n")
        #expect(kindless.code == 2 && kindless.errors.contains("--kind KIND"))
        #expect(try library.run("import", "--kind", "titel", "-", input: "{}\n").errors.contains("did you mean title?"))
        #expect(try library.run("import", "--set", "x", "-", input: "{}\n").code == 2)
        #expect(try library.run("import", "--format", "nope", "-", input: "{}\n").code == 2)
        #expect(try library.run("import").code == 2)
    }

    @Test("an importer plugin gets what its manifest recognises, and its account is told")
    func plugin() throws {
        let library = try TestLibrary()
        let directory = library.directory + "/importer"
        mkdir(directory, 0o700)
        _ = try library.write(
            "importer/larder-plugin.json",
            #"{"name":"pages","version":"1","program":["sh","run.sh"],"roles":["importer"],"on_demand":true,"#
                + #""recognises":[{"keys":["page","results"]}]}"#)
        _ = try library.write(
            "importer/run.sh",
            """
            test "$1 $2" = "import --json" && test -S "$LARDER_SOCKET" && test "$LARDER_PLUGIN_NAME" = pages || exit 3
            echo "$LARDER_IMPORT_OPTIONS" >&2
            echo '{"progress":{"read":1}}'
            echo '{"refused":{"file":"f","at":"results[1]","reason":"bad-id","message":"id is 0"}}'
            echo '{"warning":{"at":"results[2]","message":"odd"}}'
            echo '{"done":{"read":3,"created":2,"refused":1}}'

            """)
        #expect(try library.run("plugin", "add", directory).output.hasPrefix("pages: added"))
        let path = try library.write("page.json", "{\n \"page\": 1,\n \"results\": []\n}\n")
        let outcome = try library.run("import", "--set", "a=b", "--mode", "fill", path)
        #expect(outcome.code == 1)
        #expect(outcome.errors.contains(#"{"mode":"fill","dry_run":false,"personal":false,"set":{"a":"b"}}"#))
        #expect(outcome.errors.contains("refused f:results[1]: bad-id: id is 0"))
        #expect(accounting(outcome)?.hasPrefix("read 3 = 2 created") == true)
        #expect(try library.run("plugin", "disable", "pages").code == 0)
        #expect(try library.run("import", "--format", "pages", path).errors.contains("it is disabled"))
        #expect(try library.run("plugin", "remove", "pages").code == 0)
        #expect(try library.run("plugin", "list", "--json").output.isEmpty)
    }

    @Test("a host that is killed in the middle costs nothing: the import goes on, nothing is doubled")
    func killed() throws {
        let library = try TestLibrary()
        var ends: [Int32] = [-1, -1]
        try #require(larder_pipe(&ends) == 0)
        let running = try library.start(["import", "--json", "-"], input: ends[0])
        close(ends[0])
        func send(_ range: Range<Int>) {
            for id in range {
                let line =
                    #"{"kind":"title","source":"x","media_type":"movie","id":\#(id),"title":"Film \#(id)","#
                    + #""overview":"\#(String(repeating: "long ", count: 40))"}"# + "\n"
                var bytes = Array(line.utf8)[...]
                while !bytes.isEmpty {
                    let count = bytes.withUnsafeBytes { write(ends[1], $0.baseAddress, $0.count) }
                    if count <= 0 { return }
                    bytes = bytes.dropFirst(count)
                }
            }
        }
        send(1..<5_001)
        let pid = try #require(try library.run("status", "--json").objects.first?["pid"]?.int64)
        #expect(kill(pid_t(pid), SIGKILL) == 0)
        send(5_001..<10_001)
        close(ends[1])
        let outcome = running.wait()
        #expect(outcome.code == 0)
        let done = try outcome.objects.last?["done"]
        #expect(done?["read"]?.int64 == 10_000)
        #expect(done?["created"]?.int64 == 10_000)
        #expect(outcome.errors.contains("the connection was lost 1 time"))
        #expect(try library.run("count", "title").output == "10000\n")
        #expect(try library.run("events", "--json").objects.count == 10_001)
    }

    @Test("Ctrl-C ends an import in order, with its account")
    func interrupted() throws {
        let library = try TestLibrary()
        var ends: [Int32] = [-1, -1]
        try #require(larder_pipe(&ends) == 0)
        let running = try library.start(["import", "-"], input: ends[0])
        close(ends[0])
        let lines = ImportCommandTests.film + "\n" + ImportCommandTests.joke + "\n"
        _ = lines.withCString { write(ends[1], $0, strlen($0)) }
        // The import is at work once its host has heard of it.
        while try library.run("events", "--json").output.isEmpty { usleep(10_000) }
        usleep(300_000)
        kill(running.pid, SIGINT)
        let outcome = running.wait()
        close(ends[1])
        #expect(outcome.code == 130)
        #expect(outcome.output.hasPrefix("cancelled"))
    }
}

import Glibc
import LarderFormat
import LarderWire
import Testing

@testable import larder

@Suite("Commands, run as a user does", .timeLimit(.minutes(2)))
struct CommandRunTests {
    private static let lines = """
        {"kind":"book","source":"isbn","id":"9788937460449","title":"각자의 계절","authors":["권여선","Kim"],"price":13500}
        {"kind":"title","source":"tmdb","media_type":"tv","id":1399,"name":"왕좌의 게임","release_date":"2011-04"}
        {"kind":"title","source":"tmdb","media_type":"movie","id":603,"title":"The Matrix","release_date":"1999-03-31"}

        """

    private func filled() throws -> TestLibrary {
        let library = try TestLibrary()
        let outcome = try library.run("import", "-", input: CommandRunTests.lines)
        try #require(outcome.code == 0)
        return library
    }

    @Test("list shows label, kind, date and saved time, of books authors and price")
    func list() throws {
        let library = try filled()
        let lines = try library.run("list").output.split(separator: "\n").map(String.init)
        #expect(lines.count == 4)
        #expect(lines[0].hasPrefix("LABEL        KIND   DATE        SAVED             AUTHORS       PRICE"))
        #expect(lines[1].hasPrefix("각자의 계절  book "))
        #expect(lines[1].hasSuffix("권여선, Kim  13,500"))
        #expect(lines[2].hasPrefix("왕좌의 게임  tv     2011-04     20"))
        #expect(lines[3].hasPrefix("The Matrix   movie  1999-03-31  20"))
        let reverse = try library.run("list", "title", "-r", "--keys").output.split(separator: "\n")
        #expect(reverse[1].hasSuffix("title:tmdb/movie/603"))
    }

    @Test("list --json has the stated form, and pages meet without gap or repeat")
    func listJSON() throws {
        let library = try filled()
        let outcome = try library.run("list", "--json")
        let line = try #require(outcome.output.split(separator: "\n").last)
        let object = try JSONValue(parsing: String(line))
        #expect(
            object.object?.names == ["kind", "key", "seq", "saved_seq", "saved_at", "changed_at", "origin", "record"])
        #expect(
            line.hasSuffix(
                #""record":{"source":"tmdb","media_type":"movie","id":603,"title":"The Matrix","release_date":"1999-03-31"}}"#
            ))
        var keys: [String?] = []
        var page: String?
        repeat {
            let words = ["list", "--json", "--limit", "2"] + (page.map { ["--page", $0] } ?? [])
            let objects = try library.start(words).wait().objects
            keys += objects.dropLast().map { $0["key"]?.string }
            page = objects.last?["page"]?.string
        } while page != nil
        #expect(keys == ["book:isbn/9788937460449", "title:tmdb/tv/1399", "title:tmdb/movie/603"])
    }

    @Test("get takes a key or its values, and fails where there is nothing")
    func get() throws {
        let library = try filled()
        let words = try library.run("get", "title", "tmdb", "movie", "603", "--json")
        #expect(words.code == 0)
        #expect(try words.output == library.run("--json", "get", "title:tmdb/movie/603").output)
        #expect(try library.run("get", "title:tmdb/movie/603").output.hasPrefix("The Matrix\n  key "))
        let missing = try library.run("get", "title:tmdb/movie/1", "title:tmdb/movie/603")
        #expect(missing.code == 1 && missing.errors == "larder: title:tmdb/movie/1: not found\n")
        #expect(missing.output.hasPrefix("\nThe Matrix") || missing.output.hasPrefix("The Matrix"))
        #expect(try library.run("get", "titel:tmdb/movie/1").errors.contains("did you mean title?"))
        #expect(try library.run("get", "title", "tmdb").code == 2)
        #expect(try library.run("get").code == 2)
    }

    @Test("an ISBN that is typed is stored and found as an import writes it")
    func isbn() throws {
        let library = try filled()
        let saved = try library.run("save", "book", "source=own", "id=1", "title=X", "isbn=978-89-374-6044-9")
        #expect(saved.code == 0)
        for isbn in ["9788937460449", "978-89-374-6044-9", "89-374-6044-0"] {
            let found = try library.run("get", "book", "isbn=\(isbn)", "--json").objects
            #expect(found.map { $0["record"]?["isbn"]?.string } == ["9788937460449"])
        }
        _ = try library.run("save", "book", "source=own", "id=2", "title=Y", "isbn=no number")
        #expect(try library.run("get", "book", "isbn=NO NUMBER").output.contains("book:own/2"))
    }

    @Test("count prints a number for one kind, a table for all")
    func count() throws {
        let library = try filled()
        #expect(try library.run("count", "title").output == "2\n")
        #expect(try library.run("count").output.hasSuffix("all          3\n"))
        #expect(
            try library.run("count", "--json").output
                == #"{"kind":"title","count":2}"# + "\n" + #"{"kind":"book","count":1}"# + "\n"
                + #"{"kind":"joke","count":0}"# + "\n")
        #expect(try library.run("count", "film").code == 2)
    }

    @Test("delete says of each key what became of it")
    func delete() throws {
        let library = try filled()
        let outcome = try library.run("delete", "title:tmdb/movie/603", "title:tmdb/movie/604")
        #expect(outcome.code == 1)
        #expect(outcome.output == "title:tmdb/movie/603: deleted\ntitle:tmdb/movie/604: not found\n")
        let again = try library.run("delete", "--json", "title", "tmdb", "movie", "603")
        #expect(again.code == 1)
        #expect(again.output == #"{"key":"title:tmdb/movie/603","outcome":"not_found"}"# + "\n")
        #expect(try library.run("count", "title").output == "1\n")
    }

    @Test("clear wants a yes, and then deletes all of a kind")
    func clear() throws {
        let library = try filled()
        let refused = try library.run("clear")
        #expect(refused.code == 1 && refused.errors.contains("--yes"))
        #expect(try library.run("count", "title").output == "2\n")
        #expect(try library.run("clear", "title", "--yes").output == "2 records deleted\n")
        #expect(try library.run("count", "--json").objects.map { $0["count"]?.int64 } == [0, 1, 0])
        #expect(try library.run("clear", "--yes", "--json").objects.first?["deleted"]?.int64 == 1)
    }

    @Test("compact says what became of the log, and refuses what it can't understand")
    func compact() throws {
        let library = try filled()
        let plain = try library.run("compact")
        #expect(plain.code == 0 && plain.output.contains(" → ") && plain.output.contains("history kept since 2"))
        let object = try #require(try library.run("compact", "--keep-history", "none", "--json").objects.first)
        #expect(object["history_since"]?.string == "none")
        #expect(object["subscriptions_ended"]?.int64 == 0 && object["bytes_after"]?.int64 != nil)
        #expect(try library.run("compact", "--keep-history", "all").output.hasSuffix(", all history kept\n"))
        #expect(try library.run("count", "title").output == "2\n")
        let words = [
            ["--keep-history", "x"], ["--keep-history", "-1"], ["--dead-share", "101"], ["--rate", "-1"], ["title"],
        ]
        for words in words { #expect(try library.run(["compact"] + words).code == 2, "\(words)") }
    }

    @Test("purge wants a yes, deletes the record, and takes a key without one too")
    func purge() throws {
        let library = try filled()
        let refused = try library.run("purge", "title:tmdb/movie/603")
        #expect(refused.code == 1 && refused.errors.contains("--yes") && !refused.errors.contains("--dry-run"))
        #expect(try library.run("purge", "--deleted-before", "2026").code == 1)
        #expect(try library.run("count", "title").output == "2\n")
        let purged = try #require(
            try library.run("purge", "title", "tmdb", "movie", "603", "--yes", "--json").objects.first)
        #expect(purged["purged"]?.int64 == 1 && purged["deleted"]?.int64 == 1)
        #expect(try library.run("get", "title:tmdb/movie/603").code == 1)
        let again = try library.run("purge", "title:tmdb/movie/603", "--yes")
        #expect(again.output.hasPrefix("1 key purged, 0 records deleted for it, in "))
        #expect(try library.run("purge", "--deleted-before", "2026-01-01", "--yes").code == 0)
        for words in [["--deleted-before", "x"], ["--deleted-before", "2026", "title:tmdb/movie/603"], []] {
            #expect(try library.run(["purge", "--yes"] + words).code == 2, "\(words)")
        }
        #expect(try library.run("purge", "--yes", "--wait", "soon", "title:tmdb/movie/603").code == 2)
    }

    @Test("events tells what happened, and goes on behind a cursor")
    func events() throws {
        let library = try filled()
        let all = try library.run("events", "--json").objects
        #expect(all.count == 4)
        let names = ["cursor", "event", "created", "kind", "key", "seq", "time", "origin", "changed", "record"]
        #expect(all[0].object?.names == names)
        let cursor = try #require(all.last?["end"]?.string)
        let parsed = try #require(Cursor(cursor))
        let cheaper = #"{"kind":"book","source":"isbn","id":9788937460449,"title":"각자의 계절","price":1.5}"#
        _ = try library.run("import", "-", input: cheaper + "\n")
        _ = try library.run("delete", "title:tmdb/movie/603")
        let rest = try library.run("events", "--json", "--from", cursor).objects
        #expect(rest.count == 3)
        #expect(rest[0]["created"]?.bool == false)
        #expect(rest[0]["changed"]?.array?.compactMap(\.string) == ["price"])
        #expect(rest[1].object?.names == ["cursor", "event", "kind", "key", "seq", "time"])
        #expect(rest[1]["event"]?.string == "deleted" && rest[1]["key"]?.string == "title:tmdb/movie/603")
        #expect(rest.allSatisfy { $0["seq"]?.int64.map { UInt64($0) > parsed.seq } ?? true })
        #expect(try library.run("events", "--type", "deleted", "--json").objects.count == 2)
        #expect(try library.run("events", "--kind", "book", "--json").objects.count == 3)
        let snapshot = try library.run("events", "--snapshot", "--json").objects
        #expect(snapshot.filter { $0["event"] != nil }.count == 2)
        #expect(snapshot.contains { $0["snapshot_end"]?.string != nil })
        #expect(try library.run("events").output.contains("‘The Matrix’ saved  title:tmdb/movie/603"))
        let expired = try library.run("events", "--from", "0000000000000001-5")
        #expect(expired.code == 1 && expired.errors.contains("--snapshot"))
        #expect(try library.run("events", "--from", "yesterday").code == 2)
    }

    @Test("kinds and status print what there is")
    func kindsAndStatus() throws {
        let library = try filled()
        #expect(try library.run("kinds").output.contains("book:source/id"))
        #expect(try library.run("kinds", "joke").output.contains("유행어 | 아재개그"))
        let status = try #require(try library.run("status", "--json").objects.first)
        #expect(status["library"]?.string == library.library)
        #expect(status["mode"]?.string == "transient")
        #expect(status["records"]?["title"]?.int64 == 2)
        #expect(try library.run("status").output.contains("records  2 title, 1 book\n"))
    }

    @Test("serve takes over from a transient host, says when it is ready, and stops at SIGTERM")
    func serve() throws {
        let library = try filled()
        let host = try library.start(["serve"])
        var mode: String?
        for _ in 0..<200 where mode != "serve" {
            mode = try library.run("status", "--json").objects.first?["mode"]?.string
            usleep(20_000)
        }
        try #require(mode == "serve")
        let second = try library.run("serve")
        #expect(second.code == 1 && second.errors.contains("serves \(library.library) already"))
        #expect(try library.run("count", "title").output == "2\n")
        kill(host.pid, SIGTERM)
        let outcome = host.wait()
        #expect(outcome.code == 0)
        #expect(outcome.errors.hasPrefix("larder: ready, serving \(library.library) on "))
        #expect(outcome.errors.contains("3 records, process \(host.pid)"))
    }

    @Test("wrong command lines exit with 2 and say where to look")
    func usage() throws {
        let library = try TestLibrary()
        let unknown = try library.run("lst")
        #expect(unknown.code == 2)
        #expect(unknown.errors == "larder: unknown command “lst”: did you mean list?; larder help lists the commands\n")
        #expect(try library.run().code == 2)
        #expect(try library.run("list", "--frob").code == 2)
        #expect(try library.run("list", "a", "b").code == 2)
        #expect(try library.run("--version").output == "larder \(larderVersion)\n")
        for command in Commands.all {
            let help = try library.run(command.name, "--help")
            #expect(help.code == 0 && help.output.contains("examples:"))
            #expect(try library.run("help", command.name).output == help.output)
        }
    }

    @Test("no library is made among other files")
    func foreignDirectory() throws {
        let library = try TestLibrary()
        _ = try library.write("something", "")
        let outcome = try library.run("--library", library.directory, "count")
        #expect(outcome.code == 1 && outcome.errors.contains("it is no library"))
    }
}

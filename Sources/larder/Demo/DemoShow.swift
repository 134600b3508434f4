// The course of the demo, and the numbers that it checks.

import Glibc
import LarderClient
import LarderFormat
import LarderWire

/// Runs the demo step by step and keeps what was claimed. One thread.
final class DemoShow {
    private static let batchByteCount = 4_096
    private static let windowByteCount = 32_768
    private static let pageRowCount = 20

    private let stage: DemoStage
    private let context: Context
    private var checks: [(claim: String, holds: Bool)] = []
    private var killCount = 0
    private var unansweredAtKill = 0
    private let begun = Clock.monotonic

    init(_ stage: DemoStage, _ context: Context) {
        self.stage = stage
        self.context = context
    }

    func run() throws {
        say("A host is started in \(stage.directory), and by it three plugins.")
        var client = try stage.start()
        try waitForPlugins(client)

        let films = try readSample()
        say("\(Formats.count(films.count)) films of Wikidata are imported; in the middle the host is killed with -9.")
        let (writer, answeredAtKill) = try importFilms(films, client)
        client = writer.client
        let report = try attempt("importing") { try writer.finish() }
        check(
            "every film is in the library once: \(Formats.count(films.count)) created, none doubled",
            report.counts.created == films.count && report.counts.read == films.count)
        let afterImport = try count(client)
        check("the library counts them: \(Formats.count(afterImport))", afterImport == films.count)
        check(
            "kill -9 met \(Formats.count(unansweredAtKill)) unanswered films and \(Formats.count(answeredAtKill.answered)) answered ones",
            unansweredAtKill > 0)
        check(
            "after the restart no answered film was missing: \(Formats.count(answeredAtKill.found)) were there",
            answeredAtKill.found >= answeredAtKill.answered)

        try waitForPlugins(client)
        try importPage(client, films.count)
        try deleteOne(client, films.count + DemoShow.pageRowCount - 1)
        try compareMirror(client)
        try attempt("saying goodbye") { try client.goodbye() }
        let code = stage.stop()
        check("the host and its plugins stop in order, exit code \(code.map { "\($0)" } ?? "none")", code == 0)
    }

    // MARK: Steps

    private func waitForPlugins(_ client: LarderClient) throws {
        let rows = try stage.wait("the plugins", seconds: 30) { () -> [StatusIs.Plugin]? in
            guard let rows = try? client.status().plugins else { return nil }
            return rows.count == 3 && rows.allSatisfy { $0.state == "ready" && $0.pid != 0 } ? rows : nil
        }
        for row in rows { say("  \(row.name): \(row.state), process \(row.pid)") }
    }

    private func readSample() throws -> [[UInt8]] {
        guard let bytes = DemoStage.bytes(of: stage.sample) else {
            throw Failure("reading the sample", "\(stage.sample): \(errorText(errno))")
        }
        var films: [[UInt8]] = []
        var refused = 0
        var encoder = try LineEncoder(
            kinds: Kind.shipped, defaultKind: "title", presets: [("source", "wikidata"), ("media_type", "movie")])
        var splitter = LineSplitter()
        bytes.withUnsafeBytes { buffer in
            let take = { (number: Int, line: LineSplitter.Line) in
                guard case .text(let text) = line else { return refused += 1 }
                switch encoder.encode(text) {
                case .record: films.append(encoder.record)
                case .blank: break
                case .refused: refused += 1
                }
            }
            splitter.feed(buffer, take)
            splitter.finish(take)
        }
        check(
            "the sample has at least 2,000 films, all good: \(Formats.count(films.count)), \(refused) refused",
            films.count >= 2_000 && refused == 0)
        return films
    }

    /// Imports in small batches, and kills the host while some are unanswered.
    private func importFilms(
        _ films: [[UInt8]], _ client: LarderClient
    ) throws -> (BulkWriter, (answered: Int, found: Int)) {
        let writer = try attempt("beginning the import") {
            try BulkWriter(
                client, source: "the demo's films", token: UUIDBytes.random().text,
                options: BulkWriter.Options(
                    batchByteCount: DemoShow.batchByteCount, windowByteCount: DemoShow.windowByteCount))
        }
        var found = 0
        writer.reconnect = { [stage] (_) throws(ClientError) in
            let next: LarderClient
            do throws(Failure) { next = try stage.start() } catch { throw .protocolViolation(error.text) }
            found = try next.count().reduce(0) { $0 + $1.count }
            return next
        }
        var answered = 0
        let bar = ProgressBar(context.errors)
        for (position, film) in films.enumerated() {
            try attempt("importing") { try writer.save(film, kind: 1, known: Kind.title.highestFieldNumber) }
            bar.show(done: position + 1, total: films.count, what: "films")
            // Half of them are still to come: what was sent and not answered is lost with the host, or is not.
            guard unansweredAtKill == 0, position >= films.count / 2,
                writer.operationCount - writer.unansweredPosition > 100
            else { continue }
            stage.kill()
            killCount += 1
            let before = writer.resentBatchCount + writer.settledBatchCount
            answered = writer.unansweredPosition
            try attempt("going on after the kill") { try writer.flush() }
            let open = writer.resentBatchCount + writer.settledBatchCount - before
            if open > 0 {
                unansweredAtKill = position + 1 - answered
                bar.remove()
                say(
                    "  kill -9 with \(Formats.count(open, "batch", "batches")) unanswered; the host is started again and the import goes on:"
                )
                say("  \(writer.settledBatchCount) of them were durable, \(writer.resentBatchCount) are sent again")
            }
        }
        bar.remove()
        return (writer, (answered, found))
    }

    /// Puts a page into the folder that the importer watches.
    private func importPage(_ client: LarderClient, _ before: Int) throws {
        say("A page of \(DemoShow.pageRowCount) more is put into the folder that tmdb-import watches.")
        var json = JSONWriter()
        json.beginObject()
        json.member("page", 1)
        json.name("results")
        json.beginArray()
        for number in 1...DemoShow.pageRowCount {
            json.beginObject()
            json.member("id", 1_000_000 + number)
            json.member("media_type", "movie")
            json.member("title", "영화 \(number) — an invented film")
            json.member("release_date", number % 2 == 0 ? "2026-01-\(number + 9)" : "")
            json.endObject()
        }
        json.endArray()
        json.endObject()
        let hidden = stage.inbox + "/.page.json"
        guard DemoStage.write(json.text, to: hidden), rename(hidden, stage.inbox + "/page.json") == 0 else {
            throw Failure("writing the page", errorText(errno))
        }
        let log = stage.library + "/plugins/desktop-notify/log"
        let toldBefore = stage.text(of: log).utf8.count
        let wanted = before + DemoShow.pageRowCount
        let reached: Bool? = try? stage.wait("the page", seconds: 30) {
            (try? self.count(client)) == wanted ? true : nil
        }
        // The notifier tells together what comes together; the delete is to have a line of its own.
        let told: Bool? = try? stage.wait("the notifier", seconds: 30) {
            let text = self.stage.text(of: log)
            return String(decoding: text.utf8.dropFirst(toldBefore), as: UTF8.self).contains(" saved") ? true : nil
        }
        check("the notifier told of them", told == true)
        check(
            "the importer plugin brought \(DemoShow.pageRowCount): \(Formats.count(try count(client))) in all",
            reached == true)
    }

    private func deleteOne(_ client: LarderClient, _ left: Int) throws {
        let title = "영화 7 — an invented film"
        say("‘\(title)’ is deleted; mirror and notifier are to see it.")
        let key = try RecordKey(text: "title:tmdb/movie/1000007") { name in Kind.shipped.first { $0.name == name } }
        let written = try attempt("deleting") {
            var builder = WriteBuilder(targetByteCount: 1_024, byteCountMax: 4_096)
            _ = key.bytes.withUnsafeBytes { builder.delete($0, kind: 1) }
            return try client.write(&builder)
        }
        let now = try count(client)
        check("one is deleted, \(Formats.count(now)) are left", written.counts.deleted == 1 && now == left)
        let log = stage.library + "/plugins/desktop-notify/log"
        let told: Bool? = try? stage.wait("the notifier", seconds: 20) {
            self.stage.text(of: log).contains("‘\(title)’ deleted") ? true : nil
        }
        check("the notifier says ‘\(title)’ deleted", told == true)
    }

    /// Holds the mirror's file against the library, byte by byte.
    private func compareMirror(_ client: LarderClient) throws {
        var json = JSONWriter()
        let kinds = Kinds(Kind.shipped)
        var rows = 0
        try attempt("listing") {
            try client.forEachRecord { view in
                json.beginObject()
                RecordJSON.write(view.header, view.record, kinds, into: &json)
                json.endObject()
                json.newline()
                rows += 1
                return true
            }
        }
        let list = stage.directory + "/list.jsonl"
        guard DemoStage.write(json.text, to: list) else { throw Failure("writing \(list)", errorText(errno)) }
        let mirror = stage.library + "/plugins/jsonl-mirror/data/library.jsonl"
        var last = ""
        let isSame: Bool? = try? stage.wait("the mirror", seconds: 30) {
            let (code, text) = self.stage.runPlugin(
                ["\(self.stage.plugins)/jsonl-mirror/mirror.py", "verify", "--against", list, mirror])
            last = text
            return code == 0 ? true : nil
        }
        if isSame != true { say(last) }
        check("the mirror's file equals the library: \(Formats.count(rows, "line"))", isSame == true)
    }

    private func count(_ client: LarderClient) throws -> Int {
        try attempt("counting") { try client.count().reduce(0) { $0 + $1.count } }
    }

    // MARK: Telling

    private func say(_ text: String) {
        context.output.line(text)
        context.output.flush()
    }

    private func check(_ claim: String, _ holds: Bool) { checks.append((claim, holds)) }

    /// Prints what was claimed; whether all of it holds.
    func summary() -> Bool {
        say("")
        for (claim, holds) in checks {
            say(
                "  " + (holds ? context.output.styled("right", .green) : context.output.styled("WRONG", .red)) + "  "
                    + claim)
        }
        let wrong = checks.count { !$0.holds }
        say("")
        say(
            "\(Formats.count(checks.count - wrong)) of \(Formats.count(checks.count, "number is right", "numbers are right")), "
                + Formats.duration(milliseconds: Clock.monotonic - begun))
        return wrong == 0
    }
}

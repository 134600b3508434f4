// An importer plugin at work: a program of its own that reads files and tells line by line what became of them.
//
//     program … import --json FILE…
//       LARDER_SOCKET          where it connects to
//       LARDER_PLUGIN_NAME     its name in the library
//       LARDER_IMPORT_OPTIONS  {"mode":"merge","dry_run":false,"set":{…}}
//     its output, an object a line:
//       {"progress":{"read":N,…}}   {"skipped":{"at":…,"reason":…}}   {"warning":…}
//       {"refused":{"file":…,"at":…,"line":…,"reason":…,"message":…}}
//       {"done":{"read":N,"created":N,"updated":N,"unchanged":N,"duplicate":N,"already_saved":N,"skipped":N,"refused":N}}

import CLarder
import Glibc
import LarderFormat
import LarderHost
import LarderWire

/// One run of one importer over all its files.
final class ImporterRun {
    /// How long an importer has to end in order after Ctrl-C.
    private static let endMilliseconds: Int64 = 10_000

    private let importer: Manifest
    private let sources: [ImportSource]
    private let options: ImportOptions
    private let place: Place
    private let report: ImportReport
    private var done: ImportCounts?
    private var skippedCount = 0
    /// Ctrl-C ended it.
    private(set) var isCancelled = false

    init(
        _ importer: Manifest, _ sources: [ImportSource], _ options: ImportOptions, _ place: Place,
        _ report: ImportReport
    ) {
        self.importer = importer
        self.sources = sources
        self.options = options
        self.place = place
        self.report = report
    }

    /// Runs it to its end.
    ///
    /// - Throws: where it did not say what became of its input.
    func run() throws -> ImportCounts {
        let what = "importing with \(importer.name)"
        var spooled: [String] = []
        defer { for path in spooled { unlink(path) } }
        var files: [String] = []
        for source in sources {
            if source.isStandardInput {
                let path = try ImporterRun.spool(source)
                spooled.append(path)
                files.append(path)
            } else {
                files.append(ImporterRun.absolute(source.name))
            }
        }
        var ends: [Int32] = [-1, -1]
        let made = larder_pipe(&ends)
        guard made == 0 else { throw Failure(what, "making a pipe: \(errorText(-made))") }
        defer { close(ends[0]) }
        let spawn = Spawn(
            program: importer.program,
            arguments: [importer.program] + importer.arguments + ["import", "--json"] + files,
            environment: [
                "LARDER_SOCKET=\(place.socket)", "LARDER_LIBRARY=\(place.library)",
                "LARDER_PLUGIN_NAME=\(importer.name)",
                "LARDER_IMPORT_OPTIONS=\(options.json)",
            ],
            directory: importer.directory, output: ends[1], errors: STDERR_FILENO)
        let started = spawn.run()
        close(ends[1])
        let pid: pid_t
        switch started {
        case .success(let found): pid = found
        case .failure(let error):
            throw Failure(what, "its program \(importer.program) can't be started: \(errorText(error.number))")
        }
        try read(ends[0], pid)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        guard let done else { throw Failure(what, ImporterRun.words(status), "what it had saved stays; run it again") }
        return done
    }

    private static func words(_ status: Int32) -> String {
        let signal = status & 0x7F
        if signal != 0 { return "it was ended by signal \(signal) before it had told what became of its input" }
        let code = status >> 8 & 0xFF
        return code == 0 ? "it ended without telling what became of its input" : "it failed with exit code \(code)"
    }

    // MARK: Files

    private static func absolute(_ path: String) -> String {
        guard let real = realpath(path, nil) else { return path }
        defer { free(real) }
        return String(cString: real)
    }

    /// Standard input as a file that the importer can read as often as it likes.
    private static func spool(_ source: ImportSource) throws -> String {
        let directory = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array((directory + "/larder-import-XXXXXX").utf8CString)
        let descriptor = mkstemp(&template)
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard descriptor >= 0 else { throw Failure("keeping standard input in \(directory)", errorText(errno)) }
        defer { close(descriptor) }
        var room: [UInt8] = []
        while try source.read(
            into: &room,
            { bytes in
                var done = 0
                while done < bytes.count {
                    let count = write(descriptor, bytes.baseAddress! + done, bytes.count - done)
                    if count < 0, errno != EINTR {
                        throw Failure("keeping standard input in \(path)", errorText(errno))
                    }
                    done += max(count, 0)
                }
            })
        {}
        return path
    }

    // MARK: Its output

    private func read(_ descriptor: Int32, _ pid: pid_t) throws {
        var splitter = LineSplitter()
        var room = [UInt8](repeating: 0, count: 65_536)
        var deadline: Int64?
        while true {
            if Interrupt.isPending, !isCancelled {
                isCancelled = true
                kill(pid, SIGINT)
                deadline = Clock.monotonic + ImporterRun.endMilliseconds
            }
            if let limit = deadline, Clock.monotonic >= limit {
                kill(pid, SIGKILL)
                deadline = nil
            }
            var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            if poll(&ready, 1, 200) <= 0 { continue }
            let count = Glibc.read(descriptor, &room, room.count)
            if count < 0, errno == EINTR { continue }
            if count <= 0 { break }
            room.withUnsafeBytes {
                splitter.feed(UnsafeRawBufferPointer(rebasing: $0[..<count])) { (_, line) in take(line) }
            }
        }
        splitter.finish { (_, line) in take(line) }
    }

    private func take(_ line: LineSplitter.Line) {
        guard case .text(let bytes) = line, let json = try? JSONValue(parsing: bytes), let object = json.object else {
            if case .text(let bytes) = line {
                report.note("\(importer.name): " + String(decoding: bytes.prefix(400), as: UTF8.self))
            }
            return
        }
        for (name, value) in object.members {
            switch name {
            case "progress":
                let read = value["read"]?.int64.flatMap { Int(exactly: $0) } ?? 0
                let total = value["total"]?.int64.flatMap { Int(exactly: $0) }
                report.progress(doneByteCount: read, totalByteCount: total, rowCount: read)
            case "refused": report.refused(ImporterRun.refusal(value))
            case "warning":
                report.warned(
                    file: ImporterRun.text(value["file"]), at: ImporterRun.text(value["at"]),
                    field: ImporterRun.text(value["field"]),
                    value.string ?? value["message"]?.string ?? value["reason"]?.string ?? ImporterRun.text(value))
            case "skipped": report.skipped(at: ImporterRun.text(value["at"]), ImporterRun.text(value["reason"]))
            case "unknown_fields":
                for (field, count) in value.object?.members ?? [] {
                    report.unknownField(field, count: count.int64.flatMap { Int(exactly: $0) } ?? 1)
                }
            case "done": done = ImportCounts(json: value)
            default: break
            }
        }
    }

    private static func refusal(_ json: JSONValue) -> Refusal {
        let line = json["line"]?.int64.flatMap { Int(exactly: $0) } ?? 0
        let at = text(json["at"])
        return Refusal(
            file: text(json["file"]), at: at.isEmpty && line > 0 ? "\(line)" : at, line: line,
            field: text(json["field"]), reason: json["reason"]?.string ?? "refused", message: text(json["message"]))
    }

    /// A string as it is, another value as JSON, nothing as "".
    private static func text(_ value: JSONValue?) -> String {
        guard let value, !value.isNull else { return "" }
        if let text = value.string { return text }
        var json = JSONWriter()
        json.value(value)
        return json.text
    }
}

// One load: a dump, line by line, into the library.

import LarderClient
import LarderFormat
import LarderWire

/// Reads a dump and writes its records. One thread, one pass; of the dump it keeps one batch.
final class LoadRun {
    /// Of the records of one batch.
    private static let batchByteCount = 2 << 20
    private static let batchCount = 8_192

    private let session: Session
    private let source: ImportSource
    private let options: LoadOptions
    private let report: ImportReport
    private let reader = DumpReader()
    private let origins: LoadOrigins
    private let batch: LoadBatch
    private var pending: [LoadItem] = []
    private var pendingByteCount = 0
    private let wasEmpty: Bool
    private var isOwnDump = false
    private var hasHead = false
    /// What the last line said; nil: there was none.
    private var endCount: Int?
    private var recordCount = 0
    private var refusedHere = 0
    /// Keys of a dry run so far, where nothing is written that a later line could meet.
    private var seen: Set<[UInt8]> = []
    private var duplicateHere = 0
    /// Kinds that a dry run would declare: nothing of them can be asked of the host.
    private var absentKinds: Set<String> = []
    /// Kinds to which a dry run would add: the host can't be asked about records with fields that it lacks.
    private var grownKinds: Set<String> = []
    /// What a dry run decided by itself.
    private var decidedHere = ImportCounts()

    init(_ session: Session, _ source: ImportSource, _ options: LoadOptions, _ report: ImportReport) throws {
        self.session = session
        self.source = source
        self.options = options
        self.report = report
        wasEmpty = try attempt("counting") { try session.client.count().allSatisfy { $0.count == 0 } }
        origins = LoadOrigins(session.place, source: String(source.shownName.prefix(1_000)))
        let name = source.name
        batch = LoadBatch(session, origins, mode: options.mode, isDryRun: options.isDryRun) { line, refusal in
            report.refused(
                Refusal(
                    file: name, at: "\(line)", line: line,
                    reason: refusal.number?.name ?? "error \(refusal.rawNumber)", message: refusal.reason))
        }
        for kind in try session.kinds().all { reader.set(kind, isAlike: true) }
    }

    enum End {
        case complete, cancelled
        /// At the first bad line, which `--strict` asks for.
        case stopped
    }

    /// Reads everything. What was read until a failure is written and told.
    func run() throws -> (counts: ImportCounts, end: End) {
        var end = End.complete
        do {
            try readAll(&end)
            try flush()
            try attempt("ending the load") { try origins.finish(end == .complete ? .complete : .cancelled) }
        } catch {
            report.note("what was loaded before that:")
            report.finish(Accounting(counts: counts), isDryRun: options.isDryRun, isCancelled: false)
            throw error
        }
        return (counts, end)
    }

    /// Whether the dump was whole: its last line is there. Says what is wrong.
    func isWhole(_ context: Context) -> Bool {
        guard let endCount else {
            context.warn("the dump ends without its last line: it was cut short; what it has was taken")
            return false
        }
        if endCount != recordCount {
            context.warn(
                "the dump says it has \(Formats.count(endCount, "record")), \(Formats.count(recordCount)) were there")
            return false
        }
        return true
    }

    private var counts: ImportCounts {
        var counts = batch.counts
        counts.refused += refusedHere
        counts.duplicate += duplicateHere
        counts.read += refusedHere + duplicateHere
        var sum = Accounting(counts: counts)
        sum.add(decidedHere)
        return sum.counts
    }

    // MARK: Lines

    private func readAll(_ end: inout End) throws {
        var splitter = LineSplitter(limit: DumpForm.lineByteCountMax)
        var room: [UInt8] = []
        do {
            while try source.read(into: &room, { chunk in try splitter.feed(chunk) { try take($0, $1) } }) {
                report.progress(
                    doneByteCount: source.readByteCount, totalByteCount: source.byteCount, rowCount: recordCount)
                if Interrupt.isPending {
                    end = .cancelled
                    return
                }
            }
            try splitter.finish { try take($0, $1) }
        } catch is Stop { end = .stopped }
    }

    /// Thrown where `--strict` ends the load.
    private struct Stop: Error {}

    private func take(_ number: Int, _ line: LineSplitter.Line) throws {
        guard case .text(let text) = line else {
            return try refuse(
                number, DumpFault("too-large", "", "a line has at most \(DumpForm.lineByteCountMax) bytes"))
        }
        let read: DumpLine
        do throws(DumpFault) { read = try reader.read(text) } catch {
            if !hasHead, error.code != "bad-json", error.code != "bad-version" { throw headless(number) }
            guard error.code != "bad-version" else { throw Failure("loading \(source.shownName)", error.reason) }
            return try refuse(number, error)
        }
        switch read {
        case .head(let epoch, let kinds):
            isOwnDump = epoch == DumpForm.epochText(session.client.welcome.epoch)
            hasHead = true
            try declare(kinds, number)
        case .end(let count):
            let (sum, isOver) = (endCount ?? 0).addingReportingOverflow(count)
            endCount = isOver ? .max : sum
        case .record(let dumped): try take(dumped, number)
        }
    }

    private func headless(_ line: Int) -> Failure {
        Failure(
            "loading \(source.shownName)", "the dump's first line is missing before line \(line)",
            "larder import reads JSON lines that are no dump")
    }

    private func take(_ dumped: DumpedRecord, _ number: Int) throws {
        guard hasHead else { throw headless(number) }
        recordCount += 1
        var dumped = dumped
        // Elsewhere it names another log's entry.
        if !isOwnDump { dumped.firstSeq = nil }
        if options.isDryRun {
            let name = Array(dumped.kind.name.utf8)
            guard seen.insert(name + [0] + reader.key(dumped)).inserted else {
                duplicateHere += 1
                return
            }
            if absentKinds.contains(dumped.kind.name) || grownKinds.contains(dumped.kind.name) {
                return try decide(dumped)
            }
        }
        if pendingByteCount + dumped.record.count > LoadRun.batchByteCount || pending.count >= LoadRun.batchCount
            || pending.last.map({ $0.dumped.origin != dumped.origin }) ?? false
        {
            try flush()
        }
        pendingByteCount += dumped.record.count
        pending.append(LoadItem(dumped: dumped, line: number, mustAsk: !wasEmpty))
    }

    /// Decides what a dry run can't ask for.
    private func decide(_ dumped: DumpedRecord) throws {
        let isAbsent = absentKinds.contains(dumped.kind.name)
        let stored = try attempt("looking for a record") {
            isAbsent ? nil : try session.client.get(kind: dumped.kind.number, key: reader.key(dumped))
        }
        decidedHere.read += 1
        switch stored {
        case nil: decidedHere.created += 1
        case let stored? where stored.record == dumped.record: decidedHere.unchanged += 1
        case _ where options.mode == .insert: decidedHere.alreadySaved += 1
        case _: decidedHere.updated += 1
        }
    }

    private func flush() throws {
        guard !pending.isEmpty else { return }
        let items = pending
        pending.removeAll(keepingCapacity: true)
        pendingByteCount = 0
        try attempt("loading \(source.shownName)") { try batch.write(items) }
    }

    private func refuse(_ line: Int, _ fault: DumpFault) throws {
        recordCount += 1
        refusedHere += 1
        report.refused(
            Refusal(
                file: source.name, at: "\(line)", line: line, field: fault.field, reason: fault.code,
                message: fault.reason))
        if options.isStrict { throw Stop() }
    }

    // MARK: Kinds

    /// Declares what the library lacks of the dump's kinds.
    private func declare(_ kinds: [JSONValue], _ line: Int) throws {
        for json in kinds {
            let name = json.object?["kind"]?.string ?? ""
            let what = "the kind \(name.isEmpty ? "?" : name) of the dump's first line"
            let known = try session.kinds().all.first { $0.name == name }
            let wanted: Kind
            do throws(KindFileError) { wanted = try KindFill(existing: known, renumbers: true).kind(json) } catch {
                throw Failure(what, error.description, "nothing of it was loaded")
            }
            var here = wanted
            if wanted != known.map({ KindFill.versioned($0, as: wanted) }) {
                if let known,
                    let why = wanted.conflict(with: known, ownFieldNumberMin: KindFill.ownFieldNumberMin(known))
                {
                    throw Failure(what, "it can't be joined with the library's: \(why)", "nothing of it was loaded")
                }
                if options.isDryRun {
                    if known == nil { absentKinds.insert(name) } else { grownKinds.insert(name) }
                    report.note(known == nil ? "would declare the kind \(name)" : "would add to the kind \(name)")
                } else {
                    let draft = KindDraft(wanted, number: known?.number ?? 0, version: 0)
                    let defined = try attempt("declaring the kind \(name)") { try session.client.define(draft) }
                    here = (try? wanted.numbered(defined)) ?? wanted
                    report.note(known == nil ? "declared the kind \(name)" : "added to the kind \(name)")
                }
            }
            reader.set(here, isAlike: LoadRun.isAlike(json, here))
        }
    }

    /// Whether the fields have the same numbers there and here, so that encoded records mean the same.
    private static func isAlike(_ json: JSONValue, _ kind: Kind) -> Bool {
        (json.object?["fields"]?.array ?? []).allSatisfy { field in
            guard let object = field.object, let name = object["name"]?.string else { return false }
            return object["number"]?.int64 == kind.field(named: name).map { Int64($0.number) }
        }
    }
}

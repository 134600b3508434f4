// JSON lines into the library: the importer that is built in.

import Glibc
import LarderClient
import LarderFormat
import LarderWire

/// One import of one or more files of JSON lines. One thread, one pass, nothing kept but what is unanswered.
final class LineImport {
    enum End {
        case complete
        case cancelled
    }

    private let session: Session
    private let sources: [ImportSource]
    private let options: ImportOptions
    private let report: ImportReport
    private let kinds: Kinds
    private let writer: BulkWriter
    private var encoder: LineEncoder
    private var splitter = LineSplitter()
    /// Highest field number by kind number.
    private let known: [Int: Int]

    /// Where the operations that are unanswered come from: source and line, by position less `placesBase`.
    private var places: [(source: Int32, line: Int32)] = []
    private var placesBase = 0
    private var sourceIndex = 0
    private var refusedHere = 0
    private var rowCount = 0
    /// Keys of a dry run so far, where nothing is staged that a later row could meet.
    private var seen: Set<[UInt8]> = []
    private var duplicateHere = 0
    private let schemas: [Int: RecordSchema]

    init(
        _ session: Session, _ sources: [ImportSource], _ options: ImportOptions, _ report: ImportReport
    ) throws {
        self.session = session
        self.sources = sources
        self.options = options
        self.report = report
        kinds = try session.kinds()
        if let kind = options.kind { _ = try kinds.named(kind) }
        known = Dictionary(uniqueKeysWithValues: kinds.all.map { ($0.number, $0.highestFieldNumber) })
        schemas =
            options.isDryRun ? Dictionary(uniqueKeysWithValues: kinds.all.map { ($0.number, RecordSchema($0)) }) : [:]
        do throws(RecordTextError) {
            encoder = try LineEncoder(kinds: kinds.all, defaultKind: options.kind, presets: options.presets)
        } catch {
            throw Failure.usage("--set", "\(error)", "larder kinds KIND lists the fields")
        }
        let names = sources.map(\.shownName).joined(separator: ", ")
        writer = try attempt("beginning the import") {
            try BulkWriter(
                session.client, source: String(names.prefix(1_000)), token: UUIDBytes.random().text,
                options: BulkWriter.Options(refusalCountMax: 0, isDryRun: options.isDryRun))
        }
        writer.reconnect = { [session] (loss) throws(ClientError) in try session.reconnect(after: loss) }
        writer.onRefusal = { [unowned self] in take($0) }
    }

    /// Reads everything and ends the import.
    func run() throws -> (counts: ImportCounts, end: End) {
        var end = End.complete
        do {
            try readAll(&end)
        } catch let failure as Failure {
            // A file that can't be read on: what came before it is told, and stays.
            report.note("what was read before that:")
            report.finish(Accounting(counts: try finish(.failed)), isDryRun: options.isDryRun, isCancelled: false)
            throw failure
        }
        return (try finish(end == .complete ? .complete : .cancelled), end)
    }

    private func readAll(_ end: inout End) throws {
        var room: [UInt8] = []
        let total = sources.contains { $0.byteCount == nil } ? nil : sources.reduce(0) { $0 + ($1.byteCount ?? 0) }
        var doneByteCount = 0
        for (index, source) in sources.enumerated() {
            sourceIndex = index
            splitter = LineSplitter()
            while try source.read(into: &room, { try take(chunk: $0) }) {
                report.progress(
                    doneByteCount: doneByteCount + source.readByteCount, totalByteCount: total, rowCount: rowCount)
                if Interrupt.isPending {
                    end = .cancelled
                    return
                }
            }
            try splitter.finish { (number, line) in try take(number, line) }
            doneByteCount += source.readByteCount
        }
    }

    private func take(chunk: UnsafeRawBufferPointer) throws {
        try splitter.feed(chunk) { (number, line) in try take(number, line) }
        forgetPlaces()
    }

    private func take(_ number: Int, _ line: LineSplitter.Line) throws {
        rowCount += 1
        guard case .text(let text) = line else {
            return refuse(number, LineRefusal("too-large", "a line has at most \(LineSplitter.lineByteCountMax) bytes"))
        }
        switch encoder.encode(text) {
        case .blank: rowCount -= 1
        case .refused(let refusal): refuse(number, refusal)
        case .record(let kind):
            for warning in encoder.warnings {
                report.warned(
                    file: sources[sourceIndex].name, at: "\(number)", field: warning.field, warning.reason)
            }
            if options.isDryRun, isRepeated(kind) { return }
            places.append((Int32(sourceIndex), Int32(truncatingIfNeeded: number)))
            let known = known[kind] ?? 0
            do {
                try encoder.withRecord {
                    try writer.save(
                        $0, kind: kind, known: known, mode: options.mode, options: options.isPersonal ? .personal : [])
                }
            } catch let error as ClientError {
                throw ImportBroken(error)
            }
        }
    }

    private func isRepeated(_ kind: Int) -> Bool {
        let key = encoder.withRecord { record -> [UInt8]? in
            guard let range = try? schemas[kind]?.keyRange(ofChecked: record) else { return nil }
            return [UInt8(truncatingIfNeeded: kind), UInt8(truncatingIfNeeded: kind >> 8)] + record[range]
        }
        guard let key, !seen.insert(key).inserted else { return false }
        duplicateHere += 1
        return true
    }

    private func refuse(_ line: Int, _ refusal: LineRefusal) {
        refusedHere += 1
        report.refused(
            Refusal(
                file: sources[sourceIndex].name, at: "\(line)", line: line, field: refusal.field, reason: refusal.code,
                message: refusal.message))
    }

    /// A refusal by the host.
    private func take(_ refusal: Written.Refusal) {
        let at = refusal.position - placesBase
        let place = places.indices.contains(at) ? places[at] : (source: 0, line: 0)
        let name = refusal.number?.name ?? "error \(refusal.rawNumber)"
        report.refused(
            Refusal(
                file: sources[Int(place.source)].name, at: place.line > 0 ? "\(place.line)" : "", line: Int(place.line),
                reason: name, message: refusal.reason))
    }

    private func forgetPlaces() {
        let answered = writer.unansweredPosition - placesBase
        guard answered > 262_144 else { return }
        places.removeFirst(answered)
        placesBase += answered
    }

    private func finish(_ outcome: ImportOutcome) throws -> ImportCounts {
        for (name, count) in encoder.unknownMembers { report.unknownField(name, count: count) }
        if encoder.otherUnknownCount > 0 { report.unknownField("(other names)", count: encoder.otherUnknownCount) }
        writer.refusedBeforeCount = refusedHere
        writer.duplicateBeforeCount = duplicateHere
        let counts: ImportCounts
        do { counts = try writer.finish(outcome).counts } catch { throw ImportBroken(error) }
        if writer.resumptionCount > 0 {
            report.note(
                "the connection was lost \(Formats.count(writer.resumptionCount, "time")): "
                    + "\(Formats.count(writer.resentBatchCount, "unanswered batch", "unanswered batches")) sent again, "
                    + "\(Formats.count(writer.settledBatchCount)) found durable in the log; nothing is doubled")
        }
        return counts
    }
}

/// The import can't go on: the host is gone for good, or refuses.
struct ImportBroken: Error {
    let error: ClientError
    init(_ error: ClientError) { self.error = error }
}

// `larder join`.

import LarderFormat
import LarderWire

enum JoinCommand: Command {
    static let name = "join"
    static let purpose = "make one record of two"
    static let synopsis = ["join KEY KEY [--dry-run]"]
    static let options = [OptionSpec("dry-run", "show what would become of it, change nothing"), Confirmation.needless]
    static let details = """
        The first record stays, under its key. What it lacks is taken from the second, which is deleted; tags of both are
        kept, notes are put one below the other. The second's key goes into the field also, so that get, show, edit,
        delete, tag, rate, watched and note find the record under it too.
        Both happen or none, and the undo that takes it back is printed. larder duplicates shows what may be joined.
        """
    static let examples = [
        (
            line: "larder join title:tmdb/movie/603 title:imdb/movie/tt0133093",
            does: "keeps the first, fills it from the second"
        ),
        (
            line: "larder join book:isbn/9788937460449 book:kakao/123 --dry-run",
            does: "shows the record that would result"
        ),
    ]

    static func run(_ context: Context) throws -> Int32 {
        let session = try context.session()
        let kinds = try session.kinds()
        guard context.options.arguments.count == 2 else { throw misused("takes two keys") }
        let asked = try context.options.arguments.map { try kinds.key($0) }
        let kind = asked[0].kind
        guard asked[1].kind.number == kind.number else {
            throw misused("joins records of one kind, not a \(kind.name) and a \(asked[1].kind.name)")
        }
        guard let also = JoinedKeys.field(kind) else {
            throw Failure(
                "join", "the kind \(kind.name) has no field also to hold the other key",
                "declare it: a list, indexed")
        }
        let (firstKey, first) = try found(asked[0], context)
        let (secondKey, second) = try found(asked[1], context)
        if firstKey.bytes == secondKey.bytes {
            context.warn("\(DisplayText.visible(firstKey.text)): both keys are of this record already")
            return asked[0].bytes == asked[1].bytes ? 1 : 0
        }
        let join = RecordJoin(
            try record(first, firstKey), firstKey, try record(second, secondKey), secondKey, also: also)
        let bytes: [UInt8]
        do throws(FieldFault) { bytes = try RecordDemands.encode(join.record, kind) } catch {
            throw Failure("joining \(firstKey.text)", error.description)
        }
        let isDryRun = context.options.has("dry-run")
        let writes = RecordWrites(session: session, isDryRun: isDryRun, isAtomic: true)
        let outcomes = try writes.perform(
            [
                RecordWrite(firstKey, .save(record: bytes, mode: .replace), ifSeq: first.header.seq),
                RecordWrite(secondKey, .delete, ifSeq: second.header.seq),
            ], "joining \(firstKey.text) and \(secondKey.text)")
        if isDryRun {
            try showResult(StoredRecord(first.header, record: bytes), firstKey, context)
        } else {
            report(outcomes, join, firstKey, secondKey, context)
        }
        return 0
    }

    private static func found(_ key: RecordKey, _ context: Context) throws -> (RecordKey, StoredRecord) {
        guard let found = try context.stored(key) else {
            throw Failure("join", "\(DisplayText.visible(key.text)) is not there", "larder list --keys shows keys")
        }
        return found
    }

    private static func record(_ stored: StoredRecord, _ key: RecordKey) throws -> Record {
        guard let record = try? Record(decoding: stored.record, key.kind) else {
            throw Failure("joining \(key.text)", "it has fields that this version does not know", "use a newer larder")
        }
        return record
    }

    private static func showResult(_ result: StoredRecord, _ key: RecordKey, _ context: Context) throws {
        let session = try context.session()
        guard context.isJSON else {
            try RecordView(context: context, origins: OriginNames(session)).print(result, key, showsAbsent: false)
            return
        }
        let kinds = try session.kinds()
        result.record.withUnsafeBytes { bytes in
            context.output.json {
                $0.member("dry_run", true)
                RecordJSON.write(result.header, bytes, kinds, into: &$0)
            }
        }
    }

    private static func report(
        _ outcomes: [RecordOutcome], _ join: RecordJoin, _ first: RecordKey, _ second: RecordKey, _ context: Context
    ) {
        let seqs = outcomes.filter { $0.outcome != .unchanged }.map(\.seq).sorted()
        let from = seqs.first ?? 0
        let through = seqs.last ?? 0
        let span = from == through ? "\(from)" : "\(from)..\(through)"
        let fields = join.filled.compactMap { first.kind.field($0)?.name }
        if context.isJSON {
            context.output.json { json in
                json.member("key", first.text)
                json.member("outcome", "joined")
                json.member("joined", second.text)
                json.name("fields")
                json.beginArray()
                for field in fields { json.string(field) }
                json.endArray()
                json.member("seq", through)
                json.member("undo", span)
            }
            return
        }
        let taken = fields.isEmpty ? "" : ", which gave it \(fields.joined(separator: ", "))"
        context.output.line(DisplayText.visible("\(first.text): joined with \(second.text)") + taken)
        context.output.flush()
        context.note("larder undo \(span) takes this back")
    }
}

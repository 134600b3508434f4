// `larder save`.

import LarderFormat
import LarderWire

enum SaveCommand: Command {
    static let name = "save"
    static let purpose = "save one record by hand"
    static let synopsis = ["save KIND FIELD=VALUE… [--mode MODE] [--dry-run]", "save KIND [FIELD=VALUE…] --edit"]
    static let options = [
        OptionSpec("edit", short: "e", "write it in $VISUAL or $EDITOR, on a form of all fields"),
        OptionSpec(
            "mode", "MODE",
            "how it meets a record with the same key:\nmerge (unless said): its fields overwrite, the others stay\n"
                + "replace: it becomes what is given\ninsert: it stays as it is\nfill: only what is missing is set"),
        OptionSpec("unless-exists", "FIELD", "not if another record has the same value in this indexed field"),
        PersonalEdit.dryRun, Confirmation.needless,
    ]
    static let details = """
        Each field is checked by its type before anything is sent; larder kinds KIND lists the fields. All that is given
        is the owner's word, so fields that imports leave alone (rating, watched, tags, note) can be set here too.
        A list is given by naming its field once for each text: genres=Drama genres=Crime. A comma is part of a text.
        FIELD= without a value makes the field absent, where the kind allows that.
        A date may be known to the year or the month, and today is one; yes and no are true and false.
        A key that is one uuid, as a joke's, is made here where none is given.
        """
    static let examples = [
        (
            line: "larder save title source=own media_type=movie id=1 title=\"Home Movie\" tags=family tags=summer",
            does: "saves a film of one's own with two tags"
        ),
        (line: "larder save joke body=\"…\" category=아재개그", does: "saves a joke and prints its key"),
        (line: "larder save book source=isbn id=9788937460449 --edit", does: "opens the form of a book in the editor"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        let options = context.options
        guard let kindName = options.arguments.first else { throw misused("needs a KIND, such as title") }
        let mode = try mode(options)
        let session = try context.session()
        let kind = try session.kinds().named(kindName)
        var edits: FieldEdits
        var unlessExists: Int?
        do throws(FieldFault) {
            edits = try FieldEdits(Array(options.arguments.dropFirst()), kind)
            unlessExists = try options.value("unless-exists").map { name throws(FieldFault) in
                let field = try FieldEdits.field(name, kind)
                guard field.constraints.contains(.indexed) else { throw FieldFault(name, "is not an indexed field") }
                return field.number
            }
        } catch {
            throw refused(error, kind)
        }
        edits.makeKey(kind)
        let isDryRun = options.has("dry-run")
        if options.has("edit") {
            let editing = RecordEditing(session, kind, context)
            return try editing.create(edits.record, mode: mode, unlessExists: unlessExists, isDryRun: isDryRun)
        }
        if options.arguments.count == 1 { throw misused("needs fields as FIELD=VALUE, or --edit") }
        let write: RecordWrite
        do { write = try RecordSaving.write(edits, kind, mode, unlessExists, session) } catch let fault as FieldFault {
            throw refused(fault, kind)
        }
        let outcome = try RecordWrites(session: session, isDryRun: isDryRun).perform([write], "saving")[0]
        OutcomeReport.print(outcome, isDryRun: isDryRun, context)
        return outcome.isDone ? 0 : 1
    }

    private static func mode(_ options: Options) throws(Failure) -> SaveMode {
        guard let text = options.value("mode") else { return .merge }
        guard let found = ImportOptions.modes.first(where: { $0.name == text }) else {
            throw misused("--mode is insert, replace, merge or fill, not “\(text)”")
        }
        return found.mode
    }

    static func refused(_ fault: FieldFault, _ kind: Kind) -> Failure {
        Failure(fault.description, "", "nothing was saved; larder kinds \(kind.name) lists the fields")
    }
}

/// Makes the operation of a save.
enum RecordSaving {
    /// - Throws: FieldFault for what the record lacks.
    static func write(
        _ edits: FieldEdits, _ kind: Kind, _ mode: SaveMode, _ unlessExists: Int? = nil, _ session: Session
    ) throws -> RecordWrite {
        // The key first: without one nothing can be looked up.
        if let fault = RecordDemands.faults(edits.record, kind).first(where: { isOfKey($0, kind) }) { throw fault }
        let key: RecordKey
        do throws(FormatError) { key = try RecordKey(of: edits.record, kind) } catch {
            throw FieldFault(kind.field(error.field)?.name ?? "", "\(FormatError(error.code, at: error.offset))")
        }
        var sent = edits.record
        var ifSeq: UInt64?
        if mode == .merge || mode == .fill {
            let found = try attempt("getting \(key.text)") {
                try session.client.get(kind: kind.number, key: key.bytes)
            }
            let stored = found.flatMap { try? Record(decoding: $0.record, kind) }
            if let fault = RecordDemands.faults(edits.applied(to: stored ?? Record()), kind).first { throw fault }
            // What a record has to have goes with what is merged into one that has it.
            for field in kind.fields where field.constraints.contains(.required) && sent[field.number] == nil {
                sent[field.number] = stored?[field.number]
                ifSeq = found?.header.seq
            }
        } else if let fault = RecordDemands.faults(sent, kind).first {
            throw fault
        }
        return RecordWrite(
            key, .save(record: try RecordDemands.encode(sent, kind), mode: mode), ifSeq: ifSeq,
            unlessExists: unlessExists, unset: edits.removed)
    }

    private static func isOfKey(_ fault: FieldFault, _ kind: Kind) -> Bool {
        kind.keyFields.contains { $0.name == fault.field }
    }
}

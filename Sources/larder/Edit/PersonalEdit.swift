// One field of some records changed by its owner: tags, rating, watched, note.

import LarderFormat
import LarderWire

/// Changes one field of each of some records, each bound to the entry that was seen; where another came between it is
/// looked at again.
struct PersonalEdit {
    static let dryRun = OptionSpec("dry-run", "say what would become of it, change nothing")
    private static let attemptCountMax = 5

    /// Name of the field.
    let name: String
    let type: FieldType
    let session: Session
    let context: Context

    init(_ name: String, _ type: FieldType, _ context: Context) throws {
        self.name = name
        self.type = type
        self.context = context
        session = try context.session()
    }

    /// The field in a kind.
    func field(_ kind: Kind) throws(Failure) -> Field {
        guard let field = kind.field(named: name), field.type == type else {
            throw Failure(
                "the kind \(kind.name) has no field \(name)", "", "larder kinds \(kind.name) lists its fields")
        }
        return field
    }

    /// Sets the field of each key to what `change` makes of it.
    ///
    /// - Returns: the exit code.
    func run(_ keys: [RecordKey], _ change: (Value?, Field) -> Value?) throws -> Int32 {
        for key in keys { _ = try field(key.kind) }
        let isDryRun = context.options.has("dry-run")
        let writes = RecordWrites(session: session, isDryRun: isDryRun)
        var isComplete = true
        for key in keys {
            var key = key
            if let found = try context.stored(key) { key = found.key }
            var outcome = RecordOutcome(key: key, outcome: .notFound, seq: 0)
            for _ in 0..<PersonalEdit.attemptCountMax {
                guard let write = try write(key, try field(key.kind), change) else { break }
                outcome = try writes.perform([write], "changing \(key.text)")[0]
                if !outcome.isConflict { break }
            }
            if !outcome.isDone { isComplete = false }
            OutcomeReport.print(outcome, isDryRun: isDryRun, context)
        }
        return isComplete ? 0 : 1
    }

    /// nil where there is no such record.
    private func write(_ key: RecordKey, _ field: Field, _ change: (Value?, Field) -> Value?) throws -> RecordWrite? {
        let found = try attempt("getting \(key.text)") { try session.client.get(kind: key.kind.number, key: key.bytes) }
        guard let found else { return nil }
        guard let stored = try? Record(decoding: found.record, key.kind) else {
            throw Failure("changing \(key.text)", "it has fields that this version does not know", "use a newer larder")
        }
        // What a record has to have, and the field: the rest is not this command's to send.
        var sent = Record()
        for other in key.kind.fields where other.constraints.contains(.required) {
            sent[other.number] = stored[other.number]
        }
        let value = change(stored[field.number], field)
        sent[field.number] = value
        let record: [UInt8]
        do throws(FieldFault) { record = try RecordDemands.encode(sent, key.kind) } catch {
            throw Failure("changing \(key.text)", error.description)
        }
        return RecordWrite(
            key, .save(record: record, mode: .merge), ifSeq: found.header.seq, unset: value == nil ? [field.number] : []
        )
    }
}

// A record in the editor, until it can be saved or the person gives up.

import LarderClient
import LarderFormat
import LarderWire

/// Edits a new record or a stored one. What was written is never lost: where it can't be saved, the form comes back with
/// the reason at its top, and where the person gives up its file stays.
struct RecordEditing {
    let session: Session
    let kind: Kind
    let context: Context

    init(_ session: Session, _ kind: Kind, _ context: Context) {
        self.session = session
        self.kind = kind
        self.context = context
    }

    /// What a form's first lines say.
    private func heading(_ what: String) -> [String] { [what, ""] + EditForm.howTo }

    // MARK: A new record

    /// - Returns: the exit code.
    func create(_ start: Record, mode: SaveMode, unlessExists: Int?, isDryRun: Bool) throws -> Int32 {
        let editor = try Editor()
        let heading = heading("A new record of kind \(kind.name).")
        var text = EditForm.text(start, kind, heading: heading)
        var isFresh = true
        while true {
            let (record, written) = try edited(
                editor, &text, givesUpUnchanged: true, isFresh: isFresh, { faults($0) })
            isFresh = false
            guard let record else { return giveUp(editor) }
            let key: RecordKey
            do throws(FormatError) { key = try RecordKey(of: record, kind) } catch {
                text = reopened(written, ["\(kind.field(error.field)?.name ?? "the key"): \(error)"])
                continue
            }
            let write = RecordWrite(
                key, .save(record: try RecordDemands.encode(record, kind), mode: mode), unlessExists: unlessExists)
            let outcome = try keeping(editor) {
                try RecordWrites(session: session, isDryRun: isDryRun).perform([write], "saving")[0]
            }
            if outcome.outcome == .refused {
                text = reopened(written, [outcome.reason])
                continue
            }
            OutcomeReport.print(outcome, isDryRun: isDryRun, context)
            if outcome.isDone { editor.remove() } else { note(kept: editor) }
            return outcome.isDone ? 0 : 1
        }
    }

    // MARK: A stored record

    /// - Returns: the exit code.
    func change(_ key: RecordKey, isDryRun: Bool) throws -> Int32 {
        guard var base = try stored(key) else {
            context.warn("\(DisplayText.visible(key.text)): not found")
            return 1
        }
        let editor = try Editor()
        let heading = heading("\(DisplayText.visible(key.text)), entry \(base.seq).")
        var text = EditForm.text(base.record, kind, heading: heading)
        var mayStand = false
        var isFresh = true
        while true {
            let (record, written) = try edited(
                editor, &text, givesUpUnchanged: !mayStand, isFresh: isFresh
            ) { record in
                faults(record) + keyFaults(record, key)
            }
            guard let record else { return giveUp(editor) }
            if record == base.record {
                editor.remove()
                context.note("nothing was changed")
                return 0
            }
            let write = RecordWrite(
                key, .save(record: try RecordDemands.encode(record, kind), mode: .replace), ifSeq: base.seq)
            let outcome = try keeping(editor) {
                try RecordWrites(session: session, isDryRun: isDryRun).perform([write], "saving")[0]
            }
            mayStand = false
            isFresh = false
            if outcome.isConflict {
                guard let current = try keeping(editor, { try stored(key) }) else {
                    context.warn("\(DisplayText.visible(key.text)) was deleted while it was edited")
                    note(kept: editor)
                    return 1
                }
                let merged = Merge(base: base.record, mine: record, theirs: current.record, kind)
                text = EditForm.text(merged.record, kind, heading: heading, notes: merged.notes(kind))
                base = current
                mayStand = true
                continue
            }
            if outcome.outcome == .refused {
                text = reopened(written, [outcome.reason])
                continue
            }
            OutcomeReport.print(outcome, isDryRun: isDryRun, context)
            editor.remove()
            return 0
        }
    }

    private func stored(_ key: RecordKey) throws -> (record: Record, seq: UInt64)? {
        let found = try attempt("getting \(key.text)") { try session.client.get(kind: kind.number, key: key.bytes) }
        guard let found else { return nil }
        do throws(FormatError) { return (try Record(decoding: found.record, kind), found.header.seq) } catch {
            throw Failure("editing \(key.text)", "it has fields that this version does not know", "use a newer larder")
        }
    }

    private func faults(_ record: Record) -> [String] { RecordDemands.faults(record, kind).map(\.description) }

    private func keyFaults(_ record: Record, _ key: RecordKey) -> [String] {
        zip(kind.keyFields, key.values).filter { record[$0.number] != nil && record[$0.number] != $1 }.map {
            "\($0.name): a part of the key, \($1.plainText($0)), which edit does not change"
        }
    }

    // MARK: The editor

    /// Opens the form until it can be read and `check` has nothing to say.
    ///
    /// - Parameters:
    ///   - text: the form; at return the one that was opened last.
    ///   - isFresh: nothing in it was written by the person.
    /// - Returns: nil where the person gave up; and the form as it was written.
    private func edited(
        _ editor: Editor, _ text: inout String, givesUpUnchanged: Bool, isFresh: Bool,
        _ check: (Record) -> [String]
    ) throws -> (Record?, String) {
        var givesUpUnchanged = givesUpUnchanged
        var isFresh = isFresh
        while true {
            let written = try editor.edit(text)
            let reading = EditForm.read(written, kind)
            if reading.isEmpty { return (nil, written) }
            var notes = reading.faults.map(\.text)
            if notes.isEmpty { notes = check(reading.record) }
            if notes.isEmpty { return (reading.record, written) }
            if written == text, givesUpUnchanged {
                // Nobody wrote anything yet.
                if isFresh { return (nil, written) }
                context.warn(notes.map { DisplayText.visible($0) }.joined(separator: "; "))
                note(kept: editor)
                throw Failure.silent(1)
            }
            givesUpUnchanged = true
            isFresh = false
            text = reopened(written, notes)
        }
    }

    /// The form as it was written, with these notes at its top instead of the former ones.
    private func reopened(_ written: String, _ notes: [String]) -> String {
        var lines = written.utf8.split(separator: 0x0A, omittingEmptySubsequences: false)[...]
        while let first = lines.first, first.starts(with: "#!".utf8) { lines = lines.dropFirst() }
        let body = lines.map { String(Substring($0)) }.joined(separator: "\n")
        let told = notes.flatMap { $0.split(whereSeparator: \.isNewline) }.map { "#! \($0)\n" }
        return told.joined() + body
    }

    private func giveUp(_ editor: Editor) -> Int32 {
        editor.remove()
        context.note("nothing was saved")
        return 1
    }

    private func note(kept editor: Editor) { context.note("what was written is in \(editor.path)") }

    /// Says where the form is when `body` fails.
    private func keeping<R>(_ editor: Editor, _ body: () throws -> R) throws -> R {
        do { return try body() } catch {
            note(kept: editor)
            throw error
        }
    }
}

/// Two changes of one record.
struct Merge {
    /// Theirs, with what was changed here.
    let record: Record
    /// Fields that both changed, with their value.
    let both: [(field: Int, theirs: Value?)]
    /// Fields that only they changed.
    let others: [Int]

    init(base: Record, mine: Record, theirs: Record, _ kind: Kind) {
        var record = theirs
        var both: [(Int, Value?)] = []
        var others: [Int] = []
        for number in kind.fields.map(\.number) {
            let isTheirs = theirs[number] != base[number]
            if mine[number] != base[number] {
                if isTheirs, theirs[number] != mine[number] { both.append((number, theirs[number])) }
                record[number] = mine[number]
            } else if isTheirs {
                others.append(number)
            }
        }
        self.record = record
        self.both = both
        self.others = others
    }

    func notes(_ kind: Kind) -> [String] {
        var notes = ["It was changed while you wrote. Nothing is saved yet; save and close to store what stands here."]
        if !others.isEmpty {
            let names = others.compactMap { kind.field($0)?.name }.joined(separator: ", ")
            notes.append("taken over from there: \(names)")
        }
        for (number, theirs) in both {
            guard let field = kind.field(number) else { continue }
            let value = theirs.map { FieldInput.quoted($0.plainText(field)) } ?? "absent"
            notes.append("\(field.name): there it is \(value) now; yours stands below")
        }
        return notes
    }
}

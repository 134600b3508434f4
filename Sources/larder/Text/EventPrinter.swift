// Events as lines.

import LarderClient
import LarderFormat
import LarderWire

/// Prints events, and has each frame's out before the next is waited for.
final class EventPrinter {
    private let context: Context
    private let kinds: Kinds
    private let epoch: UInt64

    init(_ context: Context, _ kinds: Kinds, epoch: UInt64) {
        self.context = context
        self.kinds = kinds
        self.epoch = epoch
    }

    func take(_ event: SubscriptionEvent) {
        switch event {
        case .entry(let entry):
            guard let view = try? entry.view() else { return }
            let cursor = Cursor(epoch: epoch, seq: view.seq)
            if context.isJSON {
                context.output.json {
                    RecordJSON.writeEvent(view, commitTime: entry.commitTime, cursor, kinds, into: &$0)
                }
            } else {
                context.output.line(line(view, entry.commitTime, cursor))
            }
        case .covered: context.output.flush()
        case .snapshotEnd(let s1): say("snapshot_end", Cursor(epoch: epoch, seq: s1), "— the whole library as of ")
        case .lost(let after, let through): sayLost(after, through)
        }
    }

    /// The cursor of where it ended.
    func finish(_ cursor: Cursor) { say("end", cursor, "— cursor ") }

    private func say(_ name: String, _ cursor: Cursor, _ words: String) {
        if context.isJSON {
            context.output.json { $0.member(name, "\(cursor)") }
        } else {
            context.output.line(context.output.styled(words + "\(cursor)", .dim))
        }
        context.output.flush()
    }

    private func sayLost(_ after: UInt64, _ through: UInt64) {
        if context.isJSON {
            context.output.json {
                $0.name("lost")
                $0.beginObject()
                $0.member("after", after)
                $0.member("through", through)
                $0.endObject()
            }
        } else {
            context.output.line("— damaged in the log and lost: seq \(after + 1) to \(through)")
        }
        context.output.flush()
    }

    /// `2026-01-31 17:00:00  ‘The Matrix’ saved  title:tmdb/movie/603  9b1f00c2a4d3e5f6-44`
    private func line(_ entry: EntryView, _ time: Int64, _ cursor: Cursor) -> String {
        let kind = kinds[entry.kind]
        var label = RecordCells.unknownLabel
        var key = ""
        var did = "deleted"
        if entry.isSave {
            let cells = kind.map { RecordCells(try? Record(decoding: entry.payload, $0), entry.payload, $0) }
            label = cells?.label ?? label
            key = cells?.key ?? ""
            did = entry.isNewToLibrary ? "saved" : "changed"
            let names = entry.changed.names(kind)
            if !entry.isNewToLibrary, !names.isEmpty { did += " (\(names.joined(separator: ", ")))" }
        } else if let kind, let found = try? RecordKey(decoding: entry.payload, kind) {
            // A tombstone has no label; its key says which it was.
            label = found.text
        }
        let style: Output.Style = entry.isSave ? (entry.isNewToLibrary ? .green : .yellow) : .red
        let output = context.output
        return Formats.localTime(milliseconds: time, withSeconds: true) + "  ‘" + DisplayText.visible(label) + "’ "
            + output.styled(did, style) + (key.isEmpty ? "" : "  " + DisplayText.visible(key)) + "  "
            + output.styled("\(cursor)", .dim)
    }
}

extension FieldSet {
    /// Names of the fields, ascending by number.
    func names(_ kind: Kind?) -> [String] {
        var rest = self
        var names: [String] = []
        while let number = rest.popFirst() { names.append(kind?.field(number)?.name ?? "\(number)") }
        return names
    }
}

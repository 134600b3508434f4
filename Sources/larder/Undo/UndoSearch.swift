// Finding what is to be undone: the imports of a log, and where they lie.

import LarderClient
import LarderFormat
import LarderWire

/// Finds targets.
struct UndoSearch {
    let session: Session

    private struct Import {
        let origin: UInt64
        let source: String
        let from: UInt64
        var through: UInt64?
    }

    func target(_ text: String) throws -> UndoTarget {
        guard let word = UndoWord(text) else {
            throw Failure.usage("undo \(text)", "a span goes from the lower seq to the higher", "larder log shows seqs")
        }
        let last = session.client.welcome.lastSeq
        switch word {
        case .seqs(let from, let through):
            guard from <= last else {
                throw Failure("undo \(text)", "the log ends at seq \(last)", "larder log shows what there is")
            }
            return UndoTarget(from: from, through: min(through, last), name: text)
        case .origin(let number):
            guard let origin = try OriginNames(session).origin(number) else {
                throw Failure("undo \(text)", "there is no such import", "larder log shows them")
            }
            if origin.token.isEmpty {
                throw Failure(
                    "undo \(text)", "that is \(origin.name), which wrote at many times, not one import",
                    "name the seqs that larder log shows")
            }
            return try target(number, text)
        case .text(let name):
            if let number = try origins().last(where: { $0.token == name })?.number { return try target(number, text) }
            guard let found = try imports().last(where: { $0.source == name }) else {
                throw Failure(
                    "undo \(DisplayText.visible(text))", "no import has this name",
                    "name a seq, a span such as 120..135, or an import as larder log shows it, such as import:5")
            }
            return target(found)
        }
    }

    private func target(_ origin: UInt64, _ text: String) throws -> UndoTarget {
        guard let found = try imports().last(where: { $0.origin == origin }) else {
            throw Failure(
                "undo \(text)", "its beginning is not in the log any more", "name the seqs that larder log shows")
        }
        return target(found)
    }

    private func target(_ found: Import) -> UndoTarget {
        UndoTarget(
            from: found.from, through: found.through ?? session.client.welcome.lastSeq, origin: found.origin,
            name: "import:\(found.origin)")
    }

    private func origins() throws -> [OriginList.Origin] {
        var all: [OriginList.Origin] = []
        while true {
            let page = try attempt("asking who wrote") {
                try session.client.origins(after: all.last?.number ?? 0, limit: 10_000)
            }
            all += page
            if page.count < 10_000 { return all }
        }
    }

    /// All imports that the log holds, in its order.
    private func imports() throws -> [Import] {
        var found: [Import] = []
        let reading = LogReading(session.client, types: .imports)
        try reading.forEach(after: reading.floor, through: session.client.welcome.lastSeq) { entry, _ in
            var reader = ByteReader(entry.payload)
            guard let origin = try? reader.varint() else { return true }
            if entry.type == EntryType.importBegan {
                found.append(Import(origin: origin, source: (try? reader.text()) ?? "", from: entry.seq, through: nil))
            } else if entry.type == EntryType.importEnded, let at = found.lastIndex(where: { $0.origin == origin }) {
                found[at].through = entry.seq
            }
            return true
        }
        return found
    }
}

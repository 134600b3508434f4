// What a part of the log did to each record, and what takes it back.

import LarderFormat

/// What became of one record, from before its first entry of the part to its last.
struct RecordPassage: Equatable {
    /// The entry that was current before; 0: the record was not there.
    var beforeSeq: UInt64
    /// The record's last entry of the part.
    var lastSeq: UInt64
    /// That one deleted it.
    var isGone: Bool
    /// Entries that are not of the part lie between those that are.
    var isMixed = false
}

/// What takes a passage back.
enum UndoAction: String, CaseIterable {
    /// It was not there before.
    case remove
    case changeBack
    /// It had another key.
    case moveBack
    case bringBack

    var words: String {
        switch self {
        case .remove: "delete"
        case .changeBack: "change back"
        case .moveBack: "give the old key back"
        case .bringBack: "bring back"
        }
    }

    /// The outcome as JSON has it.
    var outcome: String {
        switch self {
        case .remove: "deleted"
        case .changeBack: "changed_back"
        case .moveBack: "moved_back"
        case .bringBack: "brought_back"
        }
    }
}

/// Passages of records, each known by its first seq, which stays with it whatever its key becomes. Takes the part's entries
/// in the order of the log. Some 50 bytes a record.
struct UndoPlan {
    private(set) var passages: [UInt64: RecordPassage] = [:]

    /// Takes an entry of a record: type, seq, first seq, previous seq, and whether it brings one that was not there.
    mutating func take(isDelete: Bool, isNew: Bool, seq: UInt64, firstSeq: UInt64, previousSeq: UInt64) {
        guard var passage = passages[firstSeq] else {
            let before = isDelete || !isNew ? previousSeq : 0
            passages[firstSeq] = RecordPassage(
                beforeSeq: before, lastSeq: seq, isGone: isDelete, isMixed: before == 0 && (isDelete || !isNew))
            return
        }
        // What brings a record back supersedes no entry; all others supersede the last one.
        let follows = isNew ? passage.isGone : !passage.isGone && previousSeq == passage.lastSeq
        if !follows { passage.isMixed = true }
        passage.lastSeq = seq
        passage.isGone = isDelete
        passages[firstSeq] = passage
    }

    mutating func take(_ entry: EntryView) {
        guard entry.isSave || entry.type == EntryType.deleted else { return }
        take(
            isDelete: !entry.isSave, isNew: entry.isNewToLibrary, seq: entry.seq, firstSeq: entry.firstSeq,
            previousSeq: entry.previousSeq)
    }

    /// What is to be done, by first seqs in the order of saving: what makes room for other records first.
    func steps(bringingBack: Bool) -> [RecordPassage] {
        passages.filter { _, passage in
            guard passage.beforeSeq > 0 || !passage.isGone else { return false }
            return (passage.beforeSeq > 0 && passage.isGone) == bringingBack
        }.sorted { $0.key < $1.key }.map(\.value)
    }
}

/// What is undone.
struct UndoTarget: Equatable {
    /// Seqs of the first and the last entry.
    var from: UInt64
    var through: UInt64
    /// Only entries of this import; 0: all.
    var origin: UInt64 = 0
    /// As a person wrote it, or would.
    var name: String

    func contains(_ entry: EntryView) -> Bool {
        entry.seq >= from && entry.seq <= through && (origin == 0 || entry.origin == origin)
    }
}

/// A target as it stands on the command line.
enum UndoWord: Equatable {
    case seqs(UInt64, UInt64)
    case origin(UInt64)
    /// An import's token or source.
    case text(String)

    /// Reads `12`, `12..40`, `import:5` and whatever an import was called. nil for a span that goes back.
    init?(_ word: String) {
        if let seq = UndoWord.number(word) {
            self = .seqs(seq, seq)
            return
        }
        let bytes = Array(word.utf8)
        if let dots = bytes.indices.first(where: { $0 + 1 < bytes.count && bytes[$0] == 0x2E && bytes[$0 + 1] == 0x2E }
        ),
            let from = UndoWord.number(String(decoding: bytes[..<dots], as: UTF8.self)),
            let through = UndoWord.number(String(decoding: bytes[(dots + 2)...], as: UTF8.self))
        {
            guard from <= through else { return nil }
            self = .seqs(from, through)
            return
        }
        if word.hasPrefix("import:"), let number = UndoWord.number(String(word.dropFirst("import:".count))) {
            self = .origin(number)
            return
        }
        self = .text(word)
    }

    /// Digits alone, above 0.
    private static func number(_ text: String) -> UInt64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt64(text), number > 0
        else { return nil }
        return number
    }
}

// Search (SPEC.md, 1C SEARCH): records with all the words of a query, and how good a match each is.

import CLarder

/// A search text, split into folded words. It has memory of its own for each record: one thread at a time.
public final class SearchQuery {
    private let memory: ConditionMemory
    private let wanted: SearchWords
    private var run = SearchRun()

    /// - Parameter query: what white space parts are its words; without any nothing is found.
    public init(_ query: String) {
        let found = folded(query).withUnsafeBytes { words(of: $0) }
        let memory = ConditionMemory()
        wanted = SearchWords(
            words: memory.copy(found.sorted { $0.count > $1.count }.map { memory.needle($0) }),
            phrase: memory.needle(Array(found.joined(separator: [0x20]))))
        self.memory = memory
    }

    /// How well a checked record of the kind matches, or nil where some word is in none of its texts, identifiers and
    /// lists: 0 the label is the query, 1 it begins with it, 2 a word of it does, 3 it contains it, 4 it has all the
    /// words, 5 other fields have them. White space counts as one space. About 0.6 microseconds for 400 bytes.
    public func rank(of record: UnsafeRawBufferPointer, schema: RecordSchema) -> Int? {
        guard wanted.words.count > 0, let bytes = FieldBytes(record) else { return nil }
        return run.rank(of: bytes, schema, wanted)
    }
}

/// What is looked for, folded; in the query's memory.
private struct SearchWords {
    /// The longest first.
    let words: UnsafeBufferPointer<larder_needle>
    /// The words as they stood, with a space between them.
    let phrase: larder_needle

    /// Whether every word is part of a folded text.
    @inline(__always)
    func areIn(_ text: borrowing FoldBuffer) -> Bool {
        for index in 0..<words.count {
            var word = words[index]
            if larder_find(text.base, text.count, &word) < 0 { return false }
        }
        return true
    }
}

/// The memory that searching needs, used again from record to record. Owned by one query.
private struct SearchRun: ~Copyable {
    private var texts = FoldBuffer()
    private var label = FoldBuffer()
    private var offsets = FieldOffsets()

    /// A byte that no text has: what stands between two texts is found in neither.
    private static let end: UInt8 = 0xFF

    init() {}

    mutating func rank(of record: FieldBytes, _ schema: RecordSchema, _ wanted: SearchWords) -> Int? {
        guard foldTexts(of: record, schema.ruleTable), wanted.areIn(texts) else { return nil }
        guard foldLabel(of: record, schema) else { return 5 }
        var phrase = wanted.phrase
        let first = larder_find(label.base, label.count, &phrase)
        if first == 0 { return label.count == phrase.count ? 0 : 1 }
        if first > 0 { return isAtWord(from: first, &phrase) ? 2 : 3 }
        return wanted.areIn(label) ? 4 : 5
    }

    /// Folds all that is searched. False: the record is broken.
    @inline(__always)
    private mutating func foldTexts(of record: FieldBytes, _ rules: UnsafePointer<UInt16>) -> Bool {
        texts.removeAll()
        var present = FieldSet()
        var at = 0
        guard record.present(&present, &at) else { return false }
        while let field = present.popFirst() {
            let type = UInt8(truncatingIfNeeded: rules[field])
            switch type {
            case FieldType.text.rawValue:
                guard let text = record.string(&at) else { return false }
                texts.append(folding: text)
            case FieldType.identifier.rawValue:
                guard record.fold(identifierAt: at, into: &texts), record.skip(type, &at) else { return false }
            case FieldType.list.rawValue:
                guard record.fold(listAt: &at, separator: SearchRun.end, into: &texts) else { return false }
            default:
                guard record.skip(type, &at) else { return false }
                continue
            }
            texts.append(SearchRun.end)
        }
        return true
    }

    /// Whether the needle, which stands at `first` in the label, stands there or further behind at the beginning of a
    /// word.
    private func isAtWord(from first: Int, _ needle: inout larder_needle) -> Bool {
        var at = first
        while at > 0 {
            if label.base[at - 1] == 0x20 { return true }
            let next = larder_find(label.base + at + 1, label.count - at - 1, &needle)
            if next < 0 { return false }
            at += 1 + next
        }
        return false
    }

    /// Folds the label, its white space made single spaces. False where the record has none.
    private mutating func foldLabel(of record: FieldBytes, _ schema: RecordSchema) -> Bool {
        let labelFields = schema.kind.labelFields
        guard offsets.locate(record, upTo: labelFields.max() ?? 0, schema.ruleTable) else { return false }
        for number in labelFields where offsets.present.contains(number) {
            label.removeAll()
            let at = offsets.offset(number)
            switch UInt8(truncatingIfNeeded: schema.rule(number)) {
            case FieldType.text.rawValue: _ = record.fold(textAt: at, into: &label)
            case FieldType.identifier.rawValue: _ = record.fold(identifierAt: at, into: &label)
            default: foldPlainText(of: record, at, number, schema.kind)
            }
            label.collapseWhiteSpace()
            if label.count > 0 { return true }
        }
        return false
    }

    /// Labels are texts nearly always; the other types have one way to text only.
    private mutating func foldPlainText(of record: FieldBytes, _ at: Int, _ number: Int, _ kind: Kind) {
        var reader = ByteReader(base: record.base, offset: at, end: record.count)
        guard let field = kind.field(number), let value = try? Value(from: &reader, field) else { return }
        Array(value.plainText(field).utf8).withUnsafeBytes { label.append(folding: $0) }
    }
}

extension FieldBytes {
    /// Folds the texts of the list at `at`, which moves behind it, with a byte between them. False where they are cut.
    func fold(listAt at: inout Int, separator: UInt8, into buffer: inout FoldBuffer) -> Bool {
        var count: UInt64 = 0
        guard varint(&at, &count) else { return false }
        while count > 0 {
            guard let text = string(&at) else { return false }
            buffer.append(folding: text)
            count &-= 1
            if count > 0 { buffer.append(separator) }
        }
        return true
    }
}

extension FoldBuffer {
    /// Leaves one space between words, and none before and behind them.
    mutating func collapseWhiteSpace() {
        var read = 0
        var written = 0
        var isPending = false
        while read < count {
            let spaces = whiteSpaceByteCount(bytes, at: read)
            if spaces > 0 {
                isPending = written > 0
                read += spaces
                continue
            }
            if isPending {
                base[written] = 0x20
                written += 1
                isPending = false
            }
            base[written] = base[read]
            written += 1
            read += 1
        }
        truncate(to: written)
    }
}

// Search (SPEC.md, 1C SEARCH): records with all the words of a query, and how good a match each is.

import CLarder

/// A search text, split into folded words. It has memory of its own for each record: one thread at a time.
public final class SearchQuery {
    private let memory = ConditionMemory()
    /// The words, the longest first.
    private let words: UnsafeBufferPointer<larder_needle>
    /// The words as they stood, with a space between them.
    private let phrase: larder_needle
    private var texts = FoldBuffer()
    private var label = FoldBuffer()
    private var offsets = FieldOffsets()

    /// A byte that no text has: what stands between two texts is found in neither.
    private static let end: UInt8 = 0xFF

    /// - Parameter query: what white space parts are its words; without any nothing is found.
    public init(_ query: String) {
        let found = folded(query).withUnsafeBytes { LarderFormat.words(of: $0) }
        let memory = memory
        phrase = memory.needle(Array(found.joined(separator: [0x20])))
        words = memory.copy(found.sorted { $0.count > $1.count }.map { memory.needle($0) })
    }

    /// How well a checked record of the kind matches, or nil where some word is in none of its texts, identifiers and
    /// lists: 0 the label is the query, 1 it begins with it, 2 a word of it does, 3 it contains it, 4 it has all the
    /// words, 5 other fields have them. White space counts as one space. About 0.4 microseconds for 400 bytes.
    public func rank(of record: UnsafeRawBufferPointer, schema: RecordSchema) -> Int? {
        guard words.count > 0, let bytes = FieldBytes(record), foldTexts(of: bytes, schema) else { return nil }
        for index in 0..<words.count {
            var word = words[index]
            if larder_find(texts.base, texts.count, &word) < 0 { return nil }
        }
        return rankOfLabel(bytes, schema)
    }

    /// Folds all that is searched. False: the record is broken.
    @inline(__always)
    private func foldTexts(of record: FieldBytes, _ schema: RecordSchema) -> Bool {
        texts.removeAll()
        var present = FieldSet()
        var at = 0
        guard record.present(&present, &at) else { return false }
        while let field = present.popFirst() {
            let type = UInt8(truncatingIfNeeded: schema.rule(field))
            let start = at
            guard record.skip(type, &at) else { return false }
            switch type {
            case FieldType.text.rawValue:
                _ = record.fold(textAt: start, into: &texts)
            case FieldType.identifier.rawValue:
                _ = record.fold(identifierAt: start, into: &texts)
            case FieldType.list.rawValue:
                _ = record.fold(listAt: start, separator: SearchQuery.end, into: &texts)
            default: continue
            }
            texts.append(SearchQuery.end)
        }
        return true
    }

    private func rankOfLabel(_ record: FieldBytes, _ schema: RecordSchema) -> Int {
        guard foldLabel(of: record, schema) else { return 5 }
        var phrase = phrase
        let first = larder_find(label.base, label.count, &phrase)
        if first == 0 { return label.count == phrase.count ? 0 : 1 }
        if first > 0 { return isAtWord(from: first, &phrase) ? 2 : 3 }
        for index in 0..<words.count {
            var word = words[index]
            if larder_find(label.base, label.count, &word) < 0 { return 5 }
        }
        return 4
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
    private func foldLabel(of record: FieldBytes, _ schema: RecordSchema) -> Bool {
        guard offsets.locate(record, upTo: 256, schema.ruleTable) else { return false }
        for number in schema.kind.labelFields where offsets.present.contains(number) {
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
    private func foldPlainText(of record: FieldBytes, _ at: Int, _ number: Int, _ kind: Kind) {
        var reader = ByteReader(base: record.base, offset: at, end: record.count)
        guard let field = kind.field(number), let value = try? Value(from: &reader, field) else { return }
        Array(value.plainText(field).utf8).withUnsafeBytes { label.append(folding: $0) }
    }
}

extension FieldBytes {
    /// Folds a list's texts, with a byte between them. False where they are cut.
    func fold(listAt start: Int, separator: UInt8, into buffer: inout FoldBuffer) -> Bool {
        var at = start
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

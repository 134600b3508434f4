// Records that may be of the same thing.

import LarderFormat

/// Why two records may be the same.
enum DuplicateReason: Hashable {
    /// Equal when folded in an indexed field.
    case value(field: Int)
    /// The same label, from the same year where the kind has a date.
    case label
}

/// Values by which a record is compared with others of its kind.
enum DuplicateMarks {
    /// The first date field of a kind.
    static func dateField(_ kind: Kind) -> Field? {
        kind.fields.first { $0.type == .date && !$0.constraints.contains(.personal) }
    }

    /// Each with the value as it is compared. What is absent or blank is compared with nothing.
    static func all(_ record: Record, _ kind: Kind) -> [(reason: DuplicateReason, value: [UInt8])] {
        var marks: [(DuplicateReason, [UInt8])] = []
        for field in kind.fields.dropFirst(kind.keyFieldCount) where isTelling(field, kind) {
            let texts: [String]
            switch record[field.number] {
            case nil: continue
            case .list(let list)?: texts = list
            case let value?: texts = [value.plainText(field)]
            }
            for text in texts where !FieldInput.isBlank(text) {
                marks.append((.value(field: field.number), folded(text)))
            }
        }
        if let label = labelMark(record, kind) { marks.append((.label, label)) }
        return marks
    }

    /// A name is no identity, and a joined key is one already.
    private static func isTelling(_ field: Field, _ kind: Kind) -> Bool {
        field.constraints.contains(.indexed) && !kind.labelFields.contains(field.number)
            && field.name != JoinedKeys.fieldName
    }

    private static func labelMark(_ record: Record, _ kind: Kind) -> [UInt8]? {
        guard let label = record.label(kind), !FieldInput.isBlank(label) else { return nil }
        var mark: [UInt8] = []
        // A film and a series of one name and year are two things.
        for field in kind.keyFields {
            if case .choice(let number)? = record[field.number] { mark += Array("\(number) ".utf8) }
        }
        if let field = dateField(kind) {
            guard let year = year(record, field) else { return nil }
            mark += Array("\(year) ".utf8)
        }
        return mark + folded(label)
    }

    static func year(_ record: Record, _ field: Field) -> Int? {
        guard case .date(let date)? = record[field.number] else { return nil }
        return date.year
    }
}

/// Two entries whose records have a mark in common, the older one first.
struct DuplicatePair: Hashable, Comparable {
    let first: UInt64
    let second: UInt64

    static func < (a: DuplicatePair, b: DuplicatePair) -> Bool { (a.first, a.second) < (b.first, b.second) }
}

/// Collects marks in one walk: 16 bytes each. What has equal hashes is a candidate; the records tell.
struct DuplicateSearch {
    private var marks: [(hash: UInt64, seq: UInt64)] = []

    /// Takes a record and the seq of its current entry.
    mutating func take(_ record: Record, _ kind: Kind, seq: UInt64) {
        for mark in DuplicateMarks.all(record, kind) {
            var hasher = Hasher()
            hasher.combine(kind.number)
            hasher.combine(mark.reason)
            hasher.combine(mark.value)
            marks.append((UInt64(bitPattern: Int64(hasher.finalize())), seq))
        }
    }

    /// Every record with the oldest one that it has a mark in common with; each pair once. Ends the search.
    mutating func takePairs() -> [DuplicatePair] {
        marks.sort { ($0.hash, $0.seq) < ($1.hash, $1.seq) }
        var pairs = Set<DuplicatePair>()
        var start = 0
        for at in marks.indices.dropFirst() {
            if marks[at].hash != marks[start].hash {
                start = at
            } else if marks[at].seq != marks[start].seq {
                pairs.insert(DuplicatePair(first: marks[start].seq, second: marks[at].seq))
            }
        }
        marks = []
        return pairs.sorted()
    }
}

/// A pair of records that was looked at.
struct Duplicate {
    let first: (key: RecordKey, record: Record)
    let second: (key: RecordKey, record: Record)
    let reasons: [DuplicateReason]

    /// nil where they have nothing in common, are one record, or were joined.
    init?(_ first: (key: RecordKey, record: Record), _ second: (key: RecordKey, record: Record)) {
        let kind = first.key.kind
        guard kind.number == second.key.kind.number, first.key.bytes != second.key.bytes else { return nil }
        guard !JoinedKeys.texts(first.record, kind).contains(second.key.text),
            !JoinedKeys.texts(second.record, kind).contains(first.key.text)
        else { return nil }
        let others = DuplicateMarks.all(second.record, kind)
        var reasons: [DuplicateReason] = []
        for mark in DuplicateMarks.all(first.record, kind) where !reasons.contains(mark.reason) {
            if others.contains(where: { $0.reason == mark.reason && $0.value == mark.value }) {
                reasons.append(mark.reason)
            }
        }
        guard !reasons.isEmpty else { return nil }
        self.first = first
        self.second = second
        self.reasons = reasons
    }

    /// `same imdb_id tt0133093`.
    func words(_ reason: DuplicateReason) -> String {
        let kind = first.key.kind
        switch reason {
        case .value(let number):
            guard let field = kind.field(number), let value = first.record[number] else { return "" }
            return "same \(field.name) \(value.plainText(field))"
        case .label:
            guard let field = DuplicateMarks.dateField(kind), let year = DuplicateMarks.year(first.record, field) else {
                return "same label"
            }
            return "same label and year \(year)"
        }
    }
}

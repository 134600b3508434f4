// `field=value` words: what a command line sets and takes away.

import LarderFormat

/// Fields that get a value, and fields that become absent.
struct FieldEdits {
    private(set) var record = Record()
    /// Fields that were given without a value, ascending.
    private(set) var removed: [Int] = []

    var isEmpty: Bool { record.values.isEmpty && removed.isEmpty }

    /// Reads `title=The Matrix`, `genres=Drama`, `note=`. A list is given by naming its field once for each text.
    init(_ words: [String], _ kind: Kind) throws(FieldFault) {
        for word in words {
            // By bytes: as characters, = and a combining mark behind it are one.
            guard let equals = word.utf8.firstIndex(of: 0x3D), equals != word.utf8.startIndex else {
                throw FieldFault("", "a field is given as field=value, not “\(DisplayText.visible(word))”")
            }
            let field = try FieldEdits.field(String(word[..<equals]), kind)
            try take(String(word[word.utf8.index(after: equals)...]), field, kind)
        }
        let set = record
        removed = removed.filter { set[$0] == nil }
    }

    static func field(_ name: String, _ kind: Kind) throws(FieldFault) -> Field {
        if let field = kind.field(named: name) { return field }
        let near = Suggestion.nearest(to: name, in: kind.fields.map(\.name))
        throw FieldFault(
            DisplayText.visible(name),
            "the kind \(kind.name) has no such field" + (near.map { "; did you mean \($0)?" } ?? ""))
    }

    private mutating func take(_ text: String, _ field: Field, _ kind: Kind) throws(FieldFault) {
        if text.isEmpty {
            guard !field.constraints.contains(.required) else { throw FieldFault(field.name, "must not be blank") }
            record[field.number] = nil
            if !removed.contains(field.number) { removed = (removed + [field.number]).sorted() }
            return
        }
        let value = try FieldInput.value(text, field, isKey: field.number <= kind.keyFieldCount)
        switch (value, record[field.number]) {
        case (.list(let texts), .list(let before)?): record[field.number] = .list(before + texts)
        case (_, nil): record[field.number] = value
        default: throw FieldFault(field.name, "given twice; only a list is")
        }
    }

    /// The record with these edits.
    func applied(to record: Record) -> Record {
        var result = record
        for number in removed { result[number] = nil }
        for (number, value) in self.record.values { result[number] = value }
        return result
    }

    /// Gives a joke its uuid before it is sent, so that a repeated request doubles nothing.
    mutating func makeKey(_ kind: Kind) {
        if kind.keyIsOneUUID, record[1] == nil { record[1] = .uuid(UUIDBytes.random()) }
    }
}

/// What makes a record complete.
enum RecordDemands {
    /// Everything that a record of the kind lacks, by field; empty where it can be saved.
    static func faults(_ record: Record, _ kind: Kind) -> [FieldFault] {
        var faults: [FieldFault] = []
        for field in kind.fields {
            let isNeeded = field.constraints.contains(.required)
            guard let value = record[field.number] else {
                if isNeeded {
                    let type = field.type == .text ? "" : ", expected \(FieldInput.wanted(field))"
                    faults.append(FieldFault(field.name, "missing" + type))
                }
                continue
            }
            do throws(FieldFault) {
                try FieldInput.check(value, field)
                if case .text(let text) = value, isNeeded || kind.labelFields.contains(field.number),
                    FieldInput.isBlank(text)
                {
                    throw FieldFault(field.name, "must not be blank")
                }
            } catch { faults.append(error) }
        }
        if faults.isEmpty, !kind.labelFields.isEmpty, record.label(kind) == nil {
            let names = kind.labelFields.compactMap { kind.field($0)?.name }
            faults.append(FieldFault(names[0], "missing: nothing to call it; one of \(names.joined(separator: ", "))"))
        }
        return faults
    }

    /// The record's bytes.
    static func encode(_ record: Record, _ kind: Kind) throws(FieldFault) -> [UInt8] {
        do throws(FormatError) { return try record.encode(kind) } catch {
            let field = kind.field(error.field)?.name ?? ""
            throw FieldFault(field, "\(FormatError(error.code, at: error.offset))")
        }
    }
}

// What a later declaration of a kind may change: it only adds.

extension Kind {
    /// Why this declaration cannot follow `current`, in a sentence that says both sides; nil if it can.
    ///
    /// - Parameter ownFieldNumberMin: fields that are new have at least this number.
    public func conflict(with current: Kind, ownFieldNumberMin: Int) -> String? {
        if name != current.name { return "the kind is named \(current.name), not \(name)" }
        if keyFieldCount != current.keyFieldCount {
            return "its key has \(current.keyFieldCount) fields, not \(keyFieldCount)"
        }
        for old in current.fields {
            guard let new = field(old.number) else { return "field \(old.number), \(old.name), is missing" }
            if let why = new.conflict(with: old) { return "field \(old.number), \(old.name): \(why)" }
        }
        for new in fields where current.field(new.number) == nil {
            if new.constraints.contains(.required) {
                return "field \(new.number), \(new.name), is new and required: records that are there lack it"
            }
            if new.number < ownFieldNumberMin {
                return
                    "field \(new.number), \(new.name), is new: fields added to this kind have numbers from \(ownFieldNumberMin) on"
            }
        }
        guard labelFields.starts(with: current.labelFields) else {
            return "its label is made of fields \(current.labelFields); others come behind them"
        }
        return nil
    }
}

extension Kind {
    /// This declaration with what `other` has and it lacks: fields, indexes, values of a choice, label fields; nil where
    /// it lacks nothing. What contradicts it stays out: what is there goes before.
    ///
    /// Its version is one above this one, or `other`'s where that is higher.
    public func grown(toHold other: Kind) -> Kind? {
        guard number == other.number, name == other.name, keyFieldCount == other.keyFieldCount else { return nil }
        var fields = fields
        for new in other.fields {
            if let at = fields.firstIndex(where: { $0.number == new.number }) {
                fields[at] = fields[at].grown(toHold: new)
            } else if !fields.contains(where: { $0.name == new.name }), !new.constraints.contains(.required) {
                fields.append(new)
            }
        }
        fields.sort { $0.number < $1.number }
        let labels =
            labelFields
            + other.labelFields.filter { label in
                !labelFields.contains(label) && fields.contains { $0.number == label }
            }
        guard fields != self.fields || labels != labelFields, version < Kind.numberRange.upperBound else { return nil }
        return try? Kind(
            number: number, name: name, version: max(version + 1, other.version), keyFieldCount: keyFieldCount,
            fields: fields, labelFields: labels)
    }
}

extension Field {
    fileprivate func conflict(with old: Field) -> String? {
        if name != old.name { return "it is named \(old.name), not \(name)" }
        if type != old.type { return "its type is \(old.type.name), not \(type.name)" }
        if constraints.subtracting(.indexed) != old.constraints.subtracting(.indexed) {
            return "what must hold of it has changed"
        }
        if old.constraints.contains(.indexed) && !constraints.contains(.indexed) { return "it is indexed" }
        for choice in old.choices where choiceName(choice.number) != choice.name {
            return "its value \(choice.number) is \(choice.name), not \(choiceName(choice.number) ?? "missing")"
        }
        return nil
    }

    /// With the index and the values of a choice that `other` has.
    fileprivate func grown(toHold other: Field) -> Field {
        guard name == other.name, type == other.type else { return self }
        var choices = choices
        for new in other.choices where !choices.contains(where: { $0.number == new.number || $0.name == new.name }) {
            choices.append(new)
        }
        choices.sort { $0.number < $1.number }
        return Field(number, name, type, constraints.union(other.constraints.intersection(.indexed)), choices: choices)
    }
}

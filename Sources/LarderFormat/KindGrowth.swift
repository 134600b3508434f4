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
                return "field \(new.number), \(new.name), is new: fields added to this kind have numbers from \(ownFieldNumberMin) on"
            }
        }
        guard labelFields.starts(with: current.labelFields) else {
            return "its label is made of fields \(current.labelFields); others come behind them"
        }
        return nil
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
}

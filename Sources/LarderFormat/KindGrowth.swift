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
    /// This kind with what a later version of the program ships for it: fields, values of choices, indexes and label
    /// fields that it lacks. What is here stays, fields of the library's own too; a shipped field whose name is taken is
    /// left out. Nil if there is nothing to learn.
    public func learning(_ shipped: Kind) -> Kind? {
        var learnt = fields.map { field in shipped.field(field.number).map { field.learning($0) } ?? field }
        learnt += shipped.fields.filter { field($0.number) == nil && field(named: $0.name) == nil }
        learnt.sort { $0.number < $1.number }
        let numbers = Set(learnt.map(\.number))
        let labels = labelFields + shipped.labelFields.filter { !labelFields.contains($0) && numbers.contains($0) }
        guard learnt != fields || labels != labelFields else { return nil }
        return try? Kind(
            number: number, name: name, version: max(version + 1, shipped.version), keyFieldCount: keyFieldCount,
            fields: learnt, labelFields: labels)
    }
}

extension Field {
    fileprivate func learning(_ shipped: Field) -> Field {
        guard name == shipped.name, type == shipped.type else { return self }
        let added = shipped.choices.filter { choiceName($0.number) == nil && choice(named: $0.name) == nil }
        return Field(
            number, name, type, constraints.union(shipped.constraints.intersection(.indexed)),
            choices: (choices + added).sorted { $0.number < $1.number })
    }

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

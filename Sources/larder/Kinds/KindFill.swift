// A kind's file that says only what is new: the rest comes from the kind as the library has it.

import LarderFormat
import LarderWire

/// Completes declarations. What is there may never go, so what a file leaves out can only mean what is there.
struct KindFill {
    /// Users' fields of shipped kinds, so that they never meet those of a later version.
    static let ownFieldNumberMin = 129
    static let shippedNumbers = 1...63

    /// The kind as the library has it; nil: none of that name.
    let existing: Kind?
    /// Fields are matched by name alone and get the library's numbers: for declarations that come from another library.
    var renumbers = false

    /// The lowest number that a new field may have.
    static func ownFieldNumberMin(_ kind: Kind?) -> Int {
        kind.map { shippedNumbers.contains($0.number) } == true ? ownFieldNumberMin : 1
    }

    /// The whole kind that a file declares.
    ///
    /// - Throws: with the place in the file and the reason.
    func kind(_ json: JSONValue) throws(KindFileError) -> Kind {
        guard let object = json.object else { return try Kind(json: json) }
        var members = object.members
        if renumbers { members.removeAll { $0.name == "number" || $0.name == "version" } }
        if let existing {
            if object["key"] == nil {
                members.append(("key", KindFill.names(existing.keyFields.map(\.number), existing)))
            }
            let labels = KindFill.names(existing.labelFields, existing)
            if let index = members.firstIndex(where: { $0.name == "label" }) {
                members[index].value = KindFill.joined(labels, members[index].value)
            } else {
                members.append(("label", labels))
            }
        }
        if let index = members.firstIndex(where: { $0.name == "fields" }), let fields = members[index].value.array {
            members[index].value = .array(completed(fields, keyNames(members)))
        } else if existing != nil, object["fields"] == nil {
            members.append(("fields", .array(completed([], []))))
        }
        return try Kind(json: .object(JSONObject(members: members)), number: existing?.number ?? 1)
    }

    private func keyNames(_ members: [(name: String, value: JSONValue)]) -> [String] {
        members.first { $0.name == "key" }?.value.array?.compactMap(\.string) ?? []
    }

    private static func names(_ numbers: [Int], _ kind: Kind) -> JSONValue {
        .array(numbers.compactMap { kind.field($0).map { .string($0.name) } })
    }

    /// The library's first, then those that are new.
    private static func joined(_ first: JSONValue, _ second: JSONValue) -> JSONValue {
        guard let old = first.array, let new = second.array else { return second }
        let known = Set(old.compactMap(\.string))
        return .array(old + new.filter { $0.string.map { !known.contains($0) } ?? true })
    }

    // MARK: Fields

    /// The file's fields with what they leave out, then those that it leaves out, by number.
    private func completed(_ fields: [JSONValue], _ keys: [String]) -> [JSONValue] {
        var fields = fields.map { field in
            guard let object = field.object, let name = object["name"]?.string else { return field }
            return .object(completed(object, existing?.field(named: name)))
        }
        let named = Set(fields.compactMap { $0.object?["name"]?.string })
        for field in existing?.fields ?? [] where !named.contains(field.name) {
            fields.append(.object(KindFill.object(field)))
        }
        return numbered(fields, keys)
    }

    private func completed(_ object: JSONObject, _ old: Field?) -> JSONObject {
        guard let old else { return object }
        var members = object.members
        if renumbers { members.removeAll { $0.name == "number" } }
        for (name, value) in KindFill.object(old).members {
            if let index = members.firstIndex(where: { $0.name == name }) {
                if name == "values" { members[index].value = KindFill.union(value, members[index].value) }
            } else {
                members.append((name, value))
            }
        }
        return JSONObject(members: members)
    }

    private static func object(_ field: Field) -> JSONObject {
        var members: [(name: String, value: JSONValue)] = [
            ("number", .integer(Int64(field.number))), ("name", .string(field.name)),
            ("type", .string(field.type.name)),
        ]
        for name in KindJSON.constraintNames(field) { members.append((name, .bool(true))) }
        if !field.choices.isEmpty {
            let values = field.choices.map { (name: String($0.number), value: JSONValue.string($0.name)) }
            members.append(("values", .object(JSONObject(members: values))))
        }
        return JSONObject(members: members)
    }

    /// A choice's values: the file's, and those that it leaves out.
    private static func union(_ old: JSONValue, _ new: JSONValue) -> JSONValue {
        guard let old = old.object, let new = new.object else { return new }
        let missing = old.members.filter { new[$0.name] == nil }
        return .object(JSONObject(members: new.members + missing))
    }

    // MARK: Numbers

    /// Gives a number to each field without one, and puts the fields in the order of their numbers.
    private func numbered(_ fields: [JSONValue], _ keys: [String]) -> [JSONValue] {
        let fixed = Set((existing?.fields ?? []).map(\.name))
        var fields = fields
        if renumbers {
            // Of two fields with one number the library's keeps it.
            let taken = Set((existing?.fields ?? []).map(\.number))
            fields = fields.map { field in
                guard let object = field.object, let name = object["name"]?.string, !fixed.contains(name),
                    let number = object["number"]?.int64, taken.contains(Int(clamping: number)) || isBelowOwn(number)
                else { return field }
                return .object(JSONObject(members: object.members.filter { $0.name != "number" }))
            }
        }
        guard fields.contains(where: { $0.object.map { $0["number"] == nil } ?? false }) else {
            return renumbers || existing != nil ? KindFill.sorted(fields) : fields
        }
        let used = fields.compactMap { $0.object?["number"]?.int64 }.filter { (1...256).contains($0) }.map { Int($0) }
        var next = max(used.max() ?? 0, KindFill.ownFieldNumberMin(existing) - 1)
        // A new kind's key comes first, in the order of the key.
        if existing == nil, used.isEmpty {
            for (index, key) in keys.enumerated() { fields = KindFill.given(fields, key, index + 1) }
            next = keys.count
        }
        fields = fields.map { field in
            guard let object = field.object, object["number"] == nil else { return field }
            next += 1
            return .object(KindFill.withNumber(object, next))
        }
        return KindFill.sorted(fields)
    }

    /// A field of a newer larder: under that number this library may not declare it.
    private func isBelowOwn(_ number: Int64) -> Bool {
        existing != nil && number < Int64(KindFill.ownFieldNumberMin(existing))
    }

    private static func given(_ fields: [JSONValue], _ name: String, _ number: Int) -> [JSONValue] {
        fields.map { field in
            guard let object = field.object, object["name"]?.string == name else { return field }
            return .object(withNumber(object, number))
        }
    }

    private static func withNumber(_ object: JSONObject, _ number: Int) -> JSONObject {
        JSONObject(members: [("number", .integer(Int64(number)))] + object.members)
    }

    private static func sorted(_ fields: [JSONValue]) -> [JSONValue] {
        fields.enumerated().sorted { a, b in
            let (x, y) = (a.element.object?["number"]?.int64 ?? .max, b.element.object?["number"]?.int64 ?? .max)
            return x == y ? a.offset < b.offset : x < y
        }.map(\.element)
    }
}

extension KindFill {
    /// The same kind under another's number and version, so that the two can be compared.
    static func versioned(_ kind: Kind, as other: Kind) -> Kind {
        (try? KindDraft(kind).kind(number: other.number, version: other.version)) ?? kind
    }
}

extension Kind {
    /// The kind under the number and version that the library gave it.
    func numbered(_ defined: Defined) throws(FormatError) -> Kind {
        try KindDraft(self).kind(number: defined.number, version: defined.version)
    }
}

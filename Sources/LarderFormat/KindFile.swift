// Kinds as files declare them (Protocol/kinds/*.json).

/// A kind's file that declares none, with the place inside it.
public struct KindFileError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Such as `fields[3].type`; "" for the file as a whole.
    public let place: String
    public let reason: String

    init(_ place: String, _ reason: String) {
        self.place = place
        self.reason = reason
    }

    public var description: String { place.isEmpty ? reason : "\(place): \(reason)" }
}

extension Kind {
    /// Reads a kind's file. Members that this version does not know are refused; `about` is for people and passed over.
    ///
    /// - Parameter number: the kind's number, for a file that leaves it to the library.
    public init(file text: [UInt8], number assigned: Int? = nil) throws(KindFileError) {
        let json: JSONValue
        do throws(JSONError) { json = try JSONValue(parsing: text) } catch { throw KindFileError("", "\(error)") }
        try self.init(json: json, number: assigned)
    }

    /// As `init(file:number:)`, for a declaration inside another file.
    public init(json: JSONValue, number assigned: Int? = nil) throws(KindFileError) {
        let file = try KindFilePart(json, at: "")
        try file.allow(["kind", "number", "version", "about", "key", "label", "fields"])
        let name = try file.string("kind")
        guard Kind.isName(name) else { throw KindFileError("kind", KindFilePart.nameRule) }
        guard let number = try file.integer("number") ?? assigned else {
            throw KindFileError("number", "missing, and none was given")
        }
        let version = try file.integer("version") ?? 1
        let fields = try file.array("fields").enumerated().map { index, json throws(KindFileError) in
            try Field(json, at: "fields[\(index)]")
        }
        func numbers(_ member: String) throws(KindFileError) -> [Int] {
            try file.array(member).enumerated().map { index, json throws(KindFileError) in
                guard let name = json.string, let field = fields.first(where: { $0.name == name }) else {
                    throw KindFileError("\(member)[\(index)]", "not the name of a field of this kind")
                }
                return field.number
            }
        }
        let key = try numbers("key")
        guard !key.isEmpty, key == Array(1...key.count) else {
            throw KindFileError("key", "the key is the fields numbered 1, 2, … in that order")
        }
        let labels = try numbers("label")
        guard Set(labels).count == labels.count else { throw KindFileError("label", "a field is named twice") }
        do throws(FormatError) {
            try self.init(
                number: number, name: name, version: version, keyFieldCount: key.count, fields: fields,
                labelFields: labels)
        } catch {
            let place = fields.lastIndex { $0.number == error.field }.map { "fields[\($0)]" } ?? ""
            throw KindFileError(place, Kind.fault(error.field, fields, keyFieldCount: key.count, number, version))
        }
    }

    /// Words for a declaration that `Kind` refused.
    private static func fault(
        _ number: Int, _ fields: [Field], keyFieldCount: Int, _ kindNumber: Int, _ version: Int
    ) -> String {
        guard let index = fields.lastIndex(where: { $0.number == number }) else {
            return kindNumber < 1 || version < 1
                ? "number and version count from 1" : "a declaration that contradicts itself"
        }
        let field = fields[index]
        if !Field.numberRange.contains(number) { return "a field's number is 1 to 256" }
        if index > 0 && fields[index - 1].number >= number { return "fields stand in ascending order of number" }
        if fields[..<index].contains(where: { $0.name == field.name }) { return "this name is there already" }
        if !field.constraints.suit(field.type) {
            return "not_blank is for a text, not_zero for an identifier or an int"
        }
        if index < keyFieldCount { return "a key field is required, not personal, and neither list nor bytes" }
        return "its values need ascending numbers from 1 and different names"
    }
}

extension Field {
    fileprivate init(_ json: JSONValue, at place: String) throws(KindFileError) {
        let part = try KindFilePart(json, at: place)
        try part.allow([
            "number", "name", "type", "about", "values", "required", "not_blank", "not_zero", "indexed", "personal",
        ])
        let name = try part.string("name")
        guard Kind.isName(name) else { throw KindFileError(place + ".name", KindFilePart.nameRule) }
        guard let number = try part.integer("number") else { throw KindFileError(place + ".number", "missing") }
        guard let type = FieldType(name: try part.string("type")) else {
            let types = FieldType.allCases.map(\.name).joined(separator: ", ")
            throw KindFileError(place + ".type", "expected one of \(types)")
        }
        var constraints: FieldConstraints = []
        let flags: [(String, FieldConstraints)] = [
            ("required", .required), ("not_blank", .notBlank), ("not_zero", .notZero), ("indexed", .indexed),
            ("personal", .personal),
        ]
        for (flag, constraint) in flags where try part.flag(flag) { constraints.insert(constraint) }
        var choices: [Choice] = []
        if let values = part.object["values"] {
            let values = try KindFilePart(values, at: place + ".values")
            guard type == .choice else { throw KindFileError(place + ".values", "only a choice has values") }
            for member in values.object.members {
                guard let number = Int(member.name), String(number) == member.name, let name = member.value.string
                else { throw KindFileError(place + ".values", "expected \"number\": \"name\"") }
                choices.append(Choice(number: number, name: name))
            }
            choices.sort { $0.number < $1.number }
        } else if type == .choice {
            throw KindFileError(place + ".values", "missing: a choice needs values")
        }
        self.init(number, name, type, constraints, choices: choices)
    }
}

/// An object of the file, and where it is.
private struct KindFilePart {
    static let nameRule = "a name is 1 to 64 of a to z, 0 to 9 and _, a letter first"

    let object: JSONObject
    let place: String

    init(_ json: JSONValue, at place: String) throws(KindFileError) {
        guard let object = json.object else { throw KindFileError(place, "expected an object, not \(json.typeName)") }
        self.object = object
        self.place = place.isEmpty ? "" : place + "."
    }

    func allow(_ names: Set<String>) throws(KindFileError) {
        for name in object.names where !names.contains(name) {
            throw KindFileError(place + name, "no such member is known")
        }
    }

    func string(_ name: String) throws(KindFileError) -> String {
        guard let value = object[name] else { throw KindFileError(place + name, "missing") }
        guard let text = value.string else {
            throw KindFileError(place + name, "expected a string, not \(value.typeName)")
        }
        return text
    }

    /// Nil when it is not there.
    func integer(_ name: String) throws(KindFileError) -> Int? {
        guard let value = object[name] else { return nil }
        guard let number = value.int64, number >= 1, number <= Int64(Int32.max) else {
            throw KindFileError(place + name, "expected a whole number from 1")
        }
        return Int(number)
    }

    func array(_ name: String) throws(KindFileError) -> [JSONValue] {
        guard let value = object[name] else { throw KindFileError(place + name, "missing") }
        guard let array = value.array else {
            throw KindFileError(place + name, "expected an array, not \(value.typeName)")
        }
        return array
    }

    func flag(_ name: String) throws(KindFileError) -> Bool {
        guard let value = object[name] else { return false }
        guard let flag = value.bool else {
            throw KindFileError(place + name, "expected true or false, not \(value.typeName)")
        }
        return flag
    }
}

// Makes records of lines of JSON: what an import does with each line of a file.

/// Turns JSON objects into encoded records of declared kinds, forgiving where sources are sloppy and nothing is lost by
/// it, and refusing a line alone where something would be.
///
/// - Absent: null, and "" of any field, and []. A preset fills what is absent, never what is there.
/// - A bad value in an optional field is left out with a warning; in a key, required or label field it refuses the line.
/// - Numbers may come as strings, dates in several forms, a list as one text or as objects with a name, a text as a
///   number (its digits, as they were written). U+0000 is taken out with a warning.
/// - Members that the kind does not have are counted by name.
/// - An ISBN is stored as its thirteen digits however it is written, and is the key of a book that has no other.
///
/// Keeps its memory from line to line; one thread. What it holds of a line is valid until the next.
public struct LineEncoder: ~Copyable {
    /// Names that no kind has are told apart up to this many; the rest is counted together.
    public static let unknownNamesMax = 1024

    private struct Schema {
        let kind: Kind
        let rules: [LineRule]
        /// Index + 1 in `rules` by the number of the name; 0 where the kind has no such field.
        var ruleOfName: [Int32] = []
        /// Encoded, by index in `rules`.
        var presets: [(rule: Int, encoded: [UInt8])] = []
        let hasFieldNamedKind: Bool
        let required: FieldSet
        let labels: FieldSet
        let isbn: ISBNRules?

        init(_ kind: Kind) {
            self.kind = kind
            rules = kind.fields.map { LineRule($0, kind) }
            hasFieldNamedKind = kind.field(named: "kind") != nil
            required = FieldSet(rules.filter(\.isRequired).map(\.number))
            labels = FieldSet(kind.labelFields)
            isbn = ISBNRules(kind, rules)
        }
    }

    /// What the members of a line came to.
    private enum Reading {
        case done
        case otherKind(Int)
        case refused(LineRefusal)
    }

    private var schemas: [Schema]
    private let defaultSchema: Int?
    private var names = NameTable()
    private let nameOfKind: Int
    private var reader = JSONReader(UnsafeRawBufferPointer(start: nil, count: 0))
    private var fields = LineFields()
    private var output = ByteWriter(reserving: 4096)
    private var decoded: [UInt8] = []
    /// Numbers of the names of this line's unknown members.
    private var strangers: [Int] = []
    /// By number of name.
    private var strangerCounts: [Int] = []
    private var knownNameCount = 0

    /// What was left out of the last line's record.
    public private(set) var warnings: [LineWarning] = []
    /// Lines that gave a record.
    public private(set) var recordCount = 0
    /// Unknown members beyond the names that are told apart.
    public private(set) var otherUnknownCount = 0

    /// - Parameters:
    ///   - kinds: all that a line may name by "kind".
    ///   - defaultKind: name of the kind of lines that name none; nil refuses those.
    ///   - presets: values, as text, for fields that a line leaves absent. A kind without such a field ignores it.
    /// - Throws: for a default kind that is not among `kinds`, for a preset that no kind (with a default kind: that
    ///   kind) has a field for, and for one whose text is no value of its field.
    public init(
        kinds: [Kind], defaultKind: String? = nil, presets: [(field: String, text: String)] = []
    ) throws(RecordTextError) {
        schemas = kinds.map { Schema($0) }
        defaultSchema = defaultKind.flatMap { name in kinds.firstIndex { $0.name == name } }
        nameOfKind = names.add("kind")
        if let defaultKind, defaultSchema == nil { throw RecordTextError("", "no kind is named \(defaultKind)") }
        for index in schemas.indices {
            for (rule, field) in kinds[index].fields.enumerated() {
                let name = names.add(field.name)
                while schemas[index].ruleOfName.count <= name { schemas[index].ruleOfName.append(0) }
                schemas[index].ruleOfName[name] = Int32(rule + 1)
            }
        }
        knownNameCount = names.names.count
        strangerCounts = [Int](repeating: 0, count: knownNameCount)
        for (field, text) in presets { try preset(field, text) }
    }

    private mutating func preset(_ field: String, _ text: String) throws(RecordTextError) {
        var isUsed = false
        for index in schemas.indices {
            guard let rule = schemas[index].rules.firstIndex(where: { $0.name == field }) else { continue }
            if defaultSchema == nil || index == defaultSchema { isUsed = true }
            fields.removeAll()
            let taken = Array(text.utf8).withUnsafeBytes {
                fields.take($0, isLasting: false, schemas[index].rules[rule])
            }
            switch taken {
            case .stored:
                let number = schemas[index].rules[rule].number
                schemas[index].presets.append((rule, fields.encoded(number)))
            case .absent, .blank: throw RecordTextError(field, "the text given for every line is blank")
            case .bad(let wanted): throw RecordTextError(field, "expected \(wanted), not \"\(text)\"")
            }
        }
        if !isUsed {
            guard let defaultSchema else { throw RecordTextError(field, "no kind has such a field") }
            throw RecordTextError(field, "the kind \(schemas[defaultSchema].kind.name) has no such field")
        }
    }

    /// The encoded record of the last line that gave one.
    public var record: [UInt8] { output.bytes }

    /// Lends the encoded record of the last line that gave one, without copying it.
    public func withRecord<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try output.bytes.withUnsafeBytes(body)
    }

    /// Names of members that the line's kind does not have, with the number of lines that had them; most frequent first.
    public var unknownMembers: [(name: String, count: Int)] {
        strangerCounts.indices.filter { strangerCounts[$0] > 0 }
            .map { (String(decoding: names.names[$0], as: UTF8.self), strangerCounts[$0]) }
            .sorted { ($1.1, $0.0) < ($0.1, $1.0) }
    }

    /// Makes a record of one line (or of any JSON text that is one object).
    public mutating func encode(_ line: UnsafeRawBufferPointer) -> LineOutcome {
        guard line.contains(where: { $0 != 0x20 && ($0 < 0x09 || $0 > 0x0D) }) else { return .blank }
        do throws(JSONError) {
            return try read(line)
        } catch {
            let code = error.code == .badUnicode ? "bad-unicode" : "bad-json"
            // The line's own number is the caller's to add.
            return .refused(LineRefusal(code, "\(error.reason), at column \(error.column)"))
        }
    }

    private mutating func read(_ line: UnsafeRawBufferPointer) throws(JSONError) -> LineOutcome {
        var schema = defaultSchema
        for isSecond in [false, true] {
            reader.restart(line)
            guard try reader.next() == .beginObject else {
                while try reader.next() != .end {}
                return .refused(LineRefusal("not-an-object", "a line is one JSON object, {…}"))
            }
            fields.removeAll()
            warnings.removeAll(keepingCapacity: true)
            strangers.removeAll(keepingCapacity: true)
            switch try members(of: schema, mayNameKind: !isSecond) {
            case .done: return finish(schema)
            case .refused(let refusal): return .refused(refusal)
            case .otherKind(let other): schema = other
            }
        }
        return finish(schema)
    }

    /// Reads the members and the line's end.
    private mutating func members(of schema: Int?, mayNameKind: Bool) throws(JSONError) -> Reading {
        var refusal: LineRefusal?
        let hasFieldNamedKind = schema.map { schemas[$0].hasFieldNamedKind } ?? false
        while try reader.next() == .name {
            let name = try number(ofName: reader.text)
            if name == nameOfKind && (!mayNameKind || !hasFieldNamedKind) {
                let named = try kindNamed()
                guard mayNameKind else { continue }
                switch named {
                case .success(let found?) where found != schema: return .otherKind(found)
                case .success: break
                case .failure(let fault): refusal = refusal ?? fault
                }
                continue
            }
            let rule =
                schema.flatMap { name < schemas[$0].ruleOfName.count ? Int(schemas[$0].ruleOfName[name]) : 0 } ?? 0
            guard rule > 0, let schema else {
                strangers.append(name)
                try reader.skipValue()
                continue
            }
            if let fault = try member(schema, rule - 1) { refusal = refusal ?? fault }
        }
        try reader.finish()
        return refusal.map(Reading.refused) ?? .done
    }

    /// The number of a member's name; names that no kind has get one as long as there are few.
    @inline(__always)
    private mutating func number(ofName name: JSONText) throws(JSONError) -> Int {
        if name.hasEscapes { return name.decoded.withUnsafeBytes { number(ofName: $0) } }
        return number(ofName: name.bytes)
    }

    @inline(__always)
    private mutating func number(ofName name: UnsafeRawBufferPointer) -> Int {
        if let number = names.number(of: name) { return number }
        return numberOfNew(name)
    }

    private mutating func numberOfNew(_ name: UnsafeRawBufferPointer) -> Int {
        guard names.names.count < knownNameCount + LineEncoder.unknownNamesMax, name.count <= 256 else {
            return Int.max
        }
        let number = names.add(name)
        while strangerCounts.count <= number { strangerCounts.append(0) }
        return number
    }

    /// Reads the value of "kind": nil where it is absent.
    private mutating func kindNamed() throws(JSONError) -> Result<Int?, LineRefusal> {
        switch try reader.next() {
        case .null: return .success(nil)
        case .string:
            let name = reader.text.string
            if name.isEmpty { return .success(nil) }
            if let found = schemas.firstIndex(where: { $0.kind.name == name }) { return .success(found) }
            return .failure(LineRefusal("unknown-kind", field: "kind", "no kind is named \"\(name.prefix(64))\""))
        default:
            try reader.skip(toDepth: 1)
            return .failure(LineRefusal("bad-kind", field: "kind", "the kind's name is a string"))
        }
    }

    /// Reads a member's value into its field; what refuses the line, or nil.
    private mutating func member(_ schema: Int, _ rule: Int) throws(JSONError) -> LineRefusal? {
        let taken: LineTaken
        switch try reader.next() {
        case .string: taken = string(schema, rule)
        case .number: taken = fields.take(reader.number, schemas[schema].rules[rule])
        case .true: taken = fields.take(true, schemas[schema].rules[rule])
        case .false: taken = fields.take(false, schemas[schema].rules[rule])
        case .beginArray where schemas[schema].rules[rule].type == .list: taken = try list(schema, rule)
        case .beginArray, .beginObject:
            try reader.skip(toDepth: 1)
            taken = .bad(LineFields.wanted(schemas[schema].rules[rule].type))
        case .null, .endObject, .endArray, .name, .end: taken = .absent
        }
        switch taken {
        case .stored, .absent: return nil
        case .blank:
            warnings.append(LineWarning(field: schemas[schema].rules[rule].name, reason: "left out: only white space"))
            return nil
        case .bad(let wanted): return bad(schemas[schema].rules[rule], wanted)
        }
    }

    private mutating func bad(_ rule: LineRule, _ wanted: StaticString) -> LineRefusal? {
        if rule.isKey || rule.isRequired || rule.isLabel {
            return LineRefusal("bad-" + rule.name, field: rule.name, "\(rule.name): expected \(wanted)")
        }
        warnings.append(LineWarning(field: rule.name, reason: "left out: expected \(wanted)"))
        return nil
    }

    private mutating func string(_ schema: Int, _ rule: Int) -> LineTaken {
        guard reader.text.hasEscapes else {
            return fields.take(reader.text.bytes, isLasting: true, schemas[schema].rules[rule])
        }
        decode(schemas[schema].rules[rule].name)
        return decoded.withUnsafeBytes { fields.take($0, isLasting: false, schemas[schema].rules[rule]) }
    }

    /// Decodes the reader's string, without U+0000.
    private mutating func decode(_ name: String) {
        decoded.removeAll(keepingCapacity: true)
        reader.text.append(to: &decoded, removingNUL: true)
        if reader.text.hasNUL { warnings.append(LineWarning(field: name, reason: "U+0000 was taken out of the text")) }
    }

    /// Reads an array of texts, or of objects with a name.
    private mutating func list(_ schema: Int, _ rule: Int) throws(JSONError) -> LineTaken {
        let depth = reader.depth
        let name = schemas[schema].rules[rule].name
        fields.beginList()
        while true {
            switch try reader.next() {
            case .endArray: return fields.endList(schemas[schema].rules[rule])
            case .string: element(name)
            case .number: fields.append(reader.number.text)
            case .null: break
            case .beginObject:
                guard try elementName(name) else {
                    try reader.skip(toDepth: depth - 1)
                    return .bad("texts, or objects with a name")
                }
            default:
                try reader.skip(toDepth: depth - 1)
                return .bad("an array of texts")
            }
        }
    }

    private mutating func element(_ name: String) {
        guard reader.text.hasEscapes else { return fields.append(reader.text.bytes) }
        decode(name)
        decoded.withUnsafeBytes { fields.append($0) }
    }

    /// Takes the "name" of an object that was begun, and reads to its end; whether it has one.
    private mutating func elementName(_ field: String) throws(JSONError) -> Bool {
        var isFound = false
        let depth = reader.depth
        while try reader.next() == .name {
            guard reader.text.equals("name") else {
                try reader.skipValue()
                continue
            }
            if try reader.next() == .string {
                element(field)
                isFound = true
            }
            try reader.skip(toDepth: depth)
        }
        return isFound
    }

    // MARK: The record

    private mutating func finish(_ schema: Int?) -> LineOutcome {
        guard let schema else {
            return .refused(LineRefusal("missing-kind", field: "kind", "the line names no kind and none was given"))
        }
        for name in strangers {
            if name == Int.max { otherUnknownCount += 1 } else { strangerCounts[name] += 1 }
        }
        for (rule, encoded) in schemas[schema].presets {
            let number = schemas[schema].rules[rule].number
            if !fields.present.contains(number) { fields.fill(encoded, number) }
        }
        if let rules = schemas[schema].isbn, let warning = fields.takeISBN(rules) { warnings.append(warning) }
        if let refusal = missing(schema) { return .refused(refusal) }
        output.bytes.removeAll(keepingCapacity: true)
        fields.write(into: &output)
        guard output.count <= recordByteCountMax else {
            let message = "a record has at most \(recordByteCountMax) bytes, this one \(output.count)"
            return .refused(LineRefusal("too-large", message))
        }
        recordCount += 1
        return .record(kind: schemas[schema].kind.number)
    }

    /// Why the line has too little for a record, or nil.
    private mutating func missing(_ schema: Int) -> LineRefusal? {
        let lacksRequired = !schemas[schema].required.subtracting(fields.present).isEmpty
        let hasLabel = schemas[schema].labels.isEmpty || !schemas[schema].labels.intersection(fields.present).isEmpty
        if !lacksRequired && hasLabel { return nil }
        let kind = schemas[schema].kind
        if kind.keyIsOneUUID && !fields.present.contains(1) {
            var writer = ByteWriter()
            Value.uuid(UUIDBytes.random()).encode(into: &writer)
            fields.fill(writer.bytes, 1)
        }
        for rule in schemas[schema].rules where rule.isRequired && !fields.present.contains(rule.number) {
            // An id that is absent is as bad as one that is 0.
            let isBad = rule.isKey && rule.type == .identifier
            return LineRefusal((isBad ? "bad-" : "missing-") + rule.name, field: rule.name, "\(rule.name) is missing")
        }
        guard !hasLabel, let name = kind.labelFields.first.flatMap(kind.field)?.name else { return nil }
        return LineRefusal("missing-" + name, field: name, "nothing to call it: \(name) and the like are missing")
    }
}

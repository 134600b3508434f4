// A type of record, declared.

/// What must hold of a field; bits of the declaration.
public struct FieldConstraints: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let required = FieldConstraints(rawValue: 1)
    /// Text has some character that is not white space.
    public static let notBlank = FieldConstraints(rawValue: 2)
    /// An identifier or int is not 0.
    public static let notZero = FieldConstraints(rawValue: 4)
    /// Found by equality.
    public static let indexed = FieldConstraints(rawValue: 8)
    /// Written only by operations marked personal.
    public static let personal = FieldConstraints(rawValue: 16)
    static let all = FieldConstraints(rawValue: 31)

    /// Not blank is for texts, not zero for identifiers and ints.
    func suit(_ type: FieldType) -> Bool {
        guard isSubset(of: .all) else { return false }
        return (!contains(.notBlank) || type == .text) && (!contains(.notZero) || type == .identifier || type == .int)
    }
}

/// A numbered field of a kind.
public struct Field: Hashable, Sendable {
    /// A named value of a choice.
    public struct Choice: Hashable, Sendable {
        public let number: Int
        public let name: String
        public init(number: Int, name: String) {
            self.number = number
            self.name = name
        }

        /// Whether its number is above those before it and its name is there, and not yet taken.
        fileprivate func follows(_ before: ArraySlice<Choice>) -> Bool {
            Kind.numberRange.contains(number) && number > before.last?.number ?? 0 && !name.isEmpty
                && !before.contains { $0.name.utf8.elementsEqual(name.utf8) }
        }
    }

    public static let numberRange = 1...256

    public let number: Int
    public let name: String
    public let type: FieldType
    public let constraints: FieldConstraints
    /// Ascending by number; empty unless the type is choice.
    public let choices: [Choice]

    public init(
        _ number: Int, _ name: String, _ type: FieldType, _ constraints: FieldConstraints = [], choices: [Choice] = []
    ) {
        self.number = number
        self.name = name
        self.type = type
        self.constraints = constraints
        self.choices = choices
    }

    /// What FORMAT.md section 3 asks of a field alone.
    fileprivate var isSound: Bool {
        guard Field.numberRange.contains(number), Kind.isName(name), constraints.suit(type) else { return false }
        guard choices.isEmpty == (type != .choice) else { return false }
        return choices.indices.allSatisfy { choices[$0].follows(choices[..<$0]) }
    }

    public func choice(named name: String) -> Int? { choices.first { $0.name == name }?.number }
    public func choiceName(_ number: Int) -> String? { choices.first { $0.number == number }?.name }
}

/// A declared type of record. Valid by construction: both initializers check FORMAT.md section 3.
public struct Kind: Hashable, Sendable {
    public static let nameByteCountMax = 64
    /// Of a kind's number, of its version and of the values of a choice.
    public static let numberRange = 1...Int(Int32.max)

    public let number: Int
    public let name: String
    public let version: Int
    /// Fields 1 … this are the key.
    public let keyFieldCount: Int
    /// Ascending by number.
    public let fields: [Field]
    /// What to call a record: the first of these fields that is present and not blank.
    public let labelFields: [Int]

    /// - Throws: `badDeclaration`, with the offset 0 and the field that is at fault.
    public init(
        number: Int, name: String, version: Int, keyFieldCount: Int, fields: [Field], labelFields: [Int]
    ) throws(FormatError) {
        self.number = number
        self.name = name
        self.version = version
        self.keyFieldCount = keyFieldCount
        self.fields = fields
        self.labelFields = labelFields
        try check()
    }

    /// The same declaration under numbers that are in range.
    init(_ other: Kind, number: Int, version: Int) {
        precondition(Kind.numberRange.contains(number) && Kind.numberRange.contains(version))
        self.number = number
        name = other.name
        self.version = version
        keyFieldCount = other.keyFieldCount
        fields = other.fields
        labelFields = other.labelFields
    }

    public func field(named name: String) -> Field? { fields.first { $0.name == name } }
    public func field(_ number: Int) -> Field? { fields.first { $0.number == number } }
    public var keyFields: ArraySlice<Field> { fields.prefix(keyFieldCount) }
    public var highestFieldNumber: Int { fields.last?.number ?? 0 }
    /// The key is one uuid, which the host makes where a record lacks it.
    public var keyIsOneUUID: Bool { keyFieldCount == 1 && fields[0].type == .uuid }

    private func check() throws(FormatError) {
        func fault(_ field: Int = 0) -> FormatError { FormatError(.badDeclaration, at: 0, field: field) }
        guard Kind.numberRange.contains(number), Kind.isName(name), Kind.numberRange.contains(version) else {
            throw fault()
        }
        guard keyFieldCount >= 1, fields.count >= keyFieldCount else { throw fault() }
        var names = Set<String>()
        for (index, field) in fields.enumerated() {
            guard field.isSound, Kind.follows(field, fields[..<index], keyFieldCount: keyFieldCount) else {
                throw fault(field.number)
            }
            guard names.insert(field.name).inserted else { throw fault(field.number) }
        }
        var labels = Set<Int>()
        for label in labelFields {
            guard field(label) != nil, labels.insert(label).inserted else { throw fault(label) }
        }
    }

    /// Whether the field's number is above those before it and, in the key, what a key needs.
    fileprivate static func follows(_ field: Field, _ before: ArraySlice<Field>, keyFieldCount: Int) -> Bool {
        guard field.number > before.last?.number ?? 0 else { return false }
        guard before.count < keyFieldCount else { return true }
        return field.number == before.count + 1 && field.constraints.contains(.required)
            && !field.constraints.contains(.personal) && field.type != .list && field.type != .bytes
    }

    static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, (0x61...0x7A).contains(first), text.utf8.count <= nameByteCountMax else {
            return false
        }
        return text.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
    }
}

extension Kind {
    public func encode(into writer: inout ByteWriter) { encode(into: &writer, number: number, version: version) }

    func encode(into writer: inout ByteWriter, number: Int, version: Int) {
        writer.varint(number)
        writer.text(name)
        writer.varint(version)
        writer.varint(keyFieldCount)
        writer.varint(fields.count)
        for field in fields {
            writer.varint(field.number)
            writer.text(field.name)
            writer.u8(field.type.rawValue)
            writer.varint(Int(field.constraints.rawValue))
            guard field.type == .choice else { continue }
            writer.varint(field.choices.count)
            for choice in field.choices {
                writer.varint(choice.number)
                writer.text(choice.name)
            }
        }
        writer.varint(labelFields.count)
        for label in labelFields { writer.varint(label) }
    }

    public var encoded: [UInt8] {
        var writer = ByteWriter(reserving: 512)
        encode(into: &writer)
        return writer.bytes
    }

    /// - Throws: what the primitives throw; `badDeclaration` for the rest, where the offending primitive begins, or the
    ///   field where it does not go with those before it.
    public init(from reader: inout ByteReader) throws(FormatError) {
        self = try KindDraft(from: &reader, numbers: Kind.numberRange).shape
    }
}

extension KindDraft {
    init(from reader: inout ByteReader, numbers: ClosedRange<Int>) throws(FormatError) {
        number = try reader.declared { numbers.contains($0) }
        let name = try reader.declaredName()
        version = try reader.declared { numbers.contains($0) }
        let keyFieldCount = try reader.declared { $0 >= 1 }
        let countAt = reader.offset
        let fieldCount = try reader.count(ofAtLeast: 1)
        guard fieldCount >= keyFieldCount else { throw FormatError(.badDeclaration, at: countAt) }
        var fields: [Field] = []
        var names = Set<String>()
        for _ in 0..<fieldCount {
            let start = reader.offset
            let field = try Field(from: &reader)
            guard Kind.follows(field, fields[...], keyFieldCount: keyFieldCount), names.insert(field.name).inserted
            else {
                throw FormatError(.badDeclaration, at: start, field: field.number)
            }
            fields.append(field)
        }
        var labels: [Int] = []
        for _ in 0..<(try reader.count(ofAtLeast: 1)) {
            labels.append(
                try reader.declared { label in
                    fields.contains { $0.number == label } && !labels.contains(label)
                })
        }
        shape = try Kind(
            number: max(number, 1), name: name, version: max(version, 1), keyFieldCount: keyFieldCount, fields: fields,
            labelFields: labels)
    }
}

extension Field {
    fileprivate init(from reader: inout ByteReader) throws(FormatError) {
        let number = try reader.declared { Field.numberRange.contains($0) }
        let name = try reader.declaredName()
        let typeAt = reader.offset
        guard let type = FieldType(rawValue: try reader.u8()) else { throw FormatError(.badDeclaration, at: typeAt) }
        let bits = try reader.declared { bits in
            UInt8(exactly: bits).map { FieldConstraints(rawValue: $0).suit(type) } ?? false
        }
        var choices: [Choice] = []
        if type == .choice {
            let countAt = reader.offset
            let count = try reader.count(ofAtLeast: 1)
            guard count >= 1 else { throw FormatError(.badDeclaration, at: countAt) }
            for _ in 0..<count {
                let start = reader.offset
                // Its number is judged before its name is read, since the name may be cut.
                let last = choices.last?.number ?? 0
                let number = try reader.declared { Kind.numberRange.contains($0) && $0 > last }
                let choice = Choice(number: number, name: try reader.text())
                guard choice.follows(choices[...]) else { throw FormatError(.badDeclaration, at: start) }
                choices.append(choice)
            }
        }
        self.init(number, name, type, FieldConstraints(rawValue: UInt8(bits)), choices: choices)
    }
}

extension ByteReader {
    /// A varint that `holds`, else `badDeclaration` where it begins.
    fileprivate mutating func declared(_ holds: (Int) -> Bool) throws(FormatError) -> Int {
        let start = offset
        let value = Int(clamping: try varint())
        guard holds(value) else {
            offset = start
            throw FormatError(.badDeclaration, at: start)
        }
        return value
    }

    fileprivate mutating func declaredName() throws(FormatError) -> String {
        let start = offset
        let name = try text()
        guard Kind.isName(name) else { throw FormatError(.badDeclaration, at: start) }
        return name
    }
}

extension Kind {
    /// The highest field number that is required, or 0.
    public var highestRequired: Int { fields.last { $0.constraints.contains(.required) }?.number ?? 0 }
}

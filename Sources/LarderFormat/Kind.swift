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

    public func choice(named name: String) -> Int? { choices.first { $0.name == name }?.number }
    public func choiceName(_ number: Int) -> String? { choices.first { $0.number == number }?.name }
}

/// A declared type of record. Valid by construction: both initializers check FORMAT.md section 3.
public struct Kind: Hashable, Sendable {
    public static let nameByteCountMax = 64

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

    public func field(named name: String) -> Field? { fields.first { $0.name == name } }
    public func field(_ number: Int) -> Field? { fields.first { $0.number == number } }
    public var keyFields: ArraySlice<Field> { fields.prefix(keyFieldCount) }
    public var highestFieldNumber: Int { fields.last?.number ?? 0 }
    /// The key is one uuid, which the host makes where a record lacks it.
    public var keyIsOneUUID: Bool { keyFieldCount == 1 && fields[0].type == .uuid }

    private func check() throws(FormatError) {
        func fault(_ field: Int = 0) -> FormatError { FormatError(.badDeclaration, at: 0, field: field) }
        guard number >= 1, number <= Int(Int32.max), Kind.isName(name), version >= 1 else { throw fault() }
        guard keyFieldCount >= 1, fields.count >= keyFieldCount else { throw fault() }
        var last = 0
        var names = Set<String>()
        for field in fields {
            guard field.number > last, Field.numberRange.contains(field.number) else { throw fault(field.number) }
            guard Kind.isName(field.name), names.insert(field.name).inserted else { throw fault(field.number) }
            guard field.choices.isEmpty == (field.type != .choice) else { throw fault(field.number) }
            var lastChoice = 0
            var choiceNames = Set<String>()
            for choice in field.choices {
                guard choice.number > lastChoice, choice.number <= Int(Int32.max), !choice.name.isEmpty,
                    choiceNames.insert(choice.name).inserted
                else { throw fault(field.number) }
                lastChoice = choice.number
            }
            last = field.number
        }
        for (index, field) in fields.prefix(keyFieldCount).enumerated() {
            guard field.number == index + 1, field.constraints.contains(.required),
                !field.constraints.contains(.personal), field.type != .list, field.type != .bytes
            else { throw fault(field.number) }
        }
        for label in labelFields where field(label) == nil { throw fault(label) }
    }

    static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, (0x61...0x7A).contains(first), text.utf8.count <= nameByteCountMax else {
            return false
        }
        return text.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
    }
}

extension Kind {
    public func encode(into writer: inout ByteWriter) {
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

    /// - Throws: what the primitives throw; `badDeclaration` at the start of the declaration for the rest.
    public init(from reader: inout ByteReader) throws(FormatError) {
        let start = reader.offset
        let number = try reader.varint(atMost: Int(Int32.max))
        let name = try reader.text()
        let version = try reader.varint(atMost: Int(Int32.max))
        let keyFieldCount = try reader.varint(atMost: Field.numberRange.upperBound)
        var fields: [Field] = []
        for _ in 0..<(try reader.count(ofAtLeast: 4)) {
            let fieldNumber = try reader.varint(atMost: Field.numberRange.upperBound)
            let fieldName = try reader.text()
            let typeAt = reader.offset
            guard let type = FieldType(rawValue: try reader.u8()) else { throw FormatError(.outOfRange, at: typeAt) }
            let constraints = try reader.varint(atMost: Int(FieldConstraints.all.rawValue))
            var choices: [Field.Choice] = []
            if type == .choice {
                for _ in 0..<(try reader.count(ofAtLeast: 2)) {
                    let choiceNumber = try reader.varint(atMost: Int(Int32.max))
                    choices.append(Field.Choice(number: choiceNumber, name: try reader.text()))
                }
            }
            fields.append(
                Field(fieldNumber, fieldName, type, FieldConstraints(rawValue: UInt8(constraints)), choices: choices))
        }
        var labels: [Int] = []
        for _ in 0..<(try reader.count(ofAtLeast: 1)) {
            labels.append(try reader.varint(atMost: Field.numberRange.upperBound))
        }
        do {
            try self.init(
                number: number, name: name, version: version, keyFieldCount: keyFieldCount, fields: fields,
                labelFields: labels)
        } catch {
            throw FormatError(error.code, at: start, field: error.field)
        }
    }
}

extension Kind {
    /// The highest field number that is required, or 0.
    public var highestRequired: Int { fields.last { $0.constraints.contains(.required) }?.number ?? 0 }
}

// The shared vectors of Protocol/vectors, read strictly: what is missing or of another form is an error.

import Glibc
import LarderFormat

/// A vector, or a file of them, that is not what Protocol/vectors/README.md describes.
struct VectorFormError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Bytes of a file of the repository, whose root is three levels above this file.
func repositoryFile(_ path: String, from here: String = #filePath) throws -> [UInt8] {
    let root = here.split(separator: "/").dropLast(3).map { "/" + $0 }.joined()
    let descriptor = open(root + "/" + path, O_RDONLY)
    guard descriptor >= 0 else { throw VectorFormError("\(path) can't be opened") }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
        let count = read(descriptor, &chunk, chunk.count)
        guard count >= 0 else { throw VectorFormError("\(path) can't be read") }
        if count == 0 { return bytes }
        bytes += chunk[..<count]
    }
}

/// A file of vectors.
struct VectorFile {
    let kinds: [String: Kind]
    let valid: [Vector]
    let invalid: [Vector]

    /// - Parameters:
    ///   - members: those that a vector must have beside its name, bytes and outcome.
    ///   - optional: those that it may have.
    init(_ name: String, members: Set<String>, optional: Set<String> = []) throws {
        let json = try JSONValue(parsing: try repositoryFile("Protocol/vectors/\(name).json"))
        guard let object = json.object else { throw VectorFormError("\(name).json is no object") }
        guard Set(object.names).isSubset(of: ["about", "kinds", "valid", "invalid"]) else {
            throw VectorFormError("\(name).json has members that are not known: \(object.names)")
        }
        var kinds: [String: Kind] = [:]
        for form in json["kinds"]?.array ?? [] {
            let kind = try Kind(json: form)
            kinds[kind.name] = kind
        }
        self.kinds = kinds
        func list(_ group: String, _ outcome: Set<String>) throws -> [Vector] {
            guard let list = json[group]?.array, !list.isEmpty else {
                throw VectorFormError("\(name).json has no \(group) vectors")
            }
            return try list.map { item in
                let vector = try Vector(item, of: name)
                let needed = members.union(outcome).union(["name", "hex"])
                let names = Set(item.object?.names ?? [])
                guard names.isSuperset(of: needed), names.isSubset(of: needed.union(optional)) else {
                    throw VectorFormError("\(vector) has the members \(names.sorted()), not \(needed.sorted())")
                }
                return vector
            }
        }
        valid = try list("valid", ["value"])
        invalid = try list("invalid", ["error", "offset"])
        let names = (valid + invalid).map(\.name)
        guard Set(names).count == names.count else { throw VectorFormError("\(name).json gives a name twice") }
    }

    /// The kind that a vector names.
    func kind(_ vector: Vector) throws -> Kind {
        let name = try vector.text("kind")
        guard let kind = kinds[name] else { throw VectorFormError("\(vector): the kind \(name) is not declared") }
        return kind
    }
}

/// An object of a file of vectors, with members that must be there.
struct Vector: CustomStringConvertible {
    let file: String
    let json: JSONValue
    let name: String

    init(_ json: JSONValue, of file: String) throws {
        guard let name = json["name"]?.string else { throw VectorFormError("\(file).json: a vector without a name") }
        self.file = file
        self.json = json
        self.name = name
    }

    private init(_ json: JSONValue, inside vector: Vector, _ member: String) {
        file = vector.file
        self.json = json
        name = vector.name + ", " + member
    }

    var description: String { "\(file): \(name)" }

    func has(_ member: String) -> Bool { json[member] != nil }

    func value(_ member: String) throws -> JSONValue {
        guard let value = json[member] else { throw VectorFormError("\(self): no \(member)") }
        return value
    }

    func object(_ member: String) throws -> Vector {
        let value = try value(member)
        guard value.object != nil else { throw VectorFormError("\(self): \(member) is no object") }
        return Vector(value, inside: self, member)
    }

    func objects(_ member: String) throws -> [Vector] {
        guard let array = try value(member).array else { throw VectorFormError("\(self): \(member) is no array") }
        return array.map { Vector($0, inside: self, member) }
    }

    func text(_ member: String) throws -> String {
        guard let text = try value(member).string else { throw VectorFormError("\(self): \(member) is no string") }
        return text
    }

    func integer<T: FixedWidthInteger>(_ member: String, as: T.Type = T.self) throws -> T {
        let value: T? =
            switch try value(member) {
            case .integer(let integer): T(exactly: integer)
            case .unsigned(let integer): T(exactly: integer)
            default: nil
            }
        guard let value else { throw VectorFormError("\(self): \(member) is no \(T.self)") }
        return value
    }

    func hex(_ member: String) throws -> [UInt8] {
        let digits = Array(try text(member).utf8)
        guard digits.count % 2 == 0 else { throw VectorFormError("\(self): \(member) has half a byte") }
        return try stride(from: 0, to: digits.count, by: 2).map { at in
            guard let byte = UInt8(String(decoding: digits[at..<(at + 2)], as: UTF8.self), radix: 16) else {
                throw VectorFormError("\(self): \(member) is not hexadecimal")
            }
            return byte
        }
    }

    /// The vector's bytes, with the zeros behind them.
    func bytes() throws -> [UInt8] {
        try hex("hex") + (has("zeros") ? Array(repeating: 0, count: integer("zeros")) : [])
    }
}

/// What holds the bytes that are wrong: it names what has no name of its own.
enum VectorContext: String {
    case alone
    case record = "bad_record"
    case key = "bad_key"
    case declaration = "bad_message"
    case log = "corrupt"

    /// The name that the vectors give to a fault.
    func name(_ code: FormatError.Code) -> String {
        switch code {
        case .notCanonical: "not_canonical"
        case .badText: "bad_text"
        case .missingField: "missing_field"
        case .blankField: "blank_field"
        case .zeroField: "zero_field"
        case .unknownField: "unknown_field"
        case .unknownChoice: "unknown_choice"
        case .keyNotNormalised: "key_not_normalised"
        case .tooLarge where self == .record: "record_too_large"
        case .truncated where self == .alone: "truncated"
        case .outOfRange where self == .alone: "out_of_range"
        case .trailing where self == .alone: "trailing"
        case .truncated, .outOfRange, .trailing, .tooLarge, .badDeclaration, .badChecksum, .badStructure: rawValue
        }
    }
}

/// What became of bytes, to be compared: `bad_text at 3`, with the field where the vector names one.
func outcome<T>(_ vector: Vector, _ context: VectorContext, _ decode: () throws -> T) throws -> String {
    do {
        return "taken: \(try decode())"
    } catch let error as FormatError {
        let field = vector.has("field") ? ", field \(error.field)" : ""
        return "\(context.name(error.code)) at \(error.offset)\(field)"
    }
}

/// What the vector says must become of its bytes.
func expectedOutcome(_ vector: Vector) throws -> String {
    let field = vector.has("field") ? ", field \(try vector.integer("field", as: Int.self))" : ""
    return "\(try vector.text("error")) at \(try vector.integer("offset", as: Int.self))\(field)"
}

/// The value or the fault of bytes; rethrows whatever else went wrong.
func attempt<T>(_ decode: () throws -> T) throws -> Result<T, FormatError> {
    do { return .success(try decode()) } catch let error as FormatError { return .failure(error) }
}

extension [UInt8] {
    /// The bytes with each of their bits changed in turn.
    func eachFlip(_ body: ([UInt8], Int) throws -> Void) rethrows {
        var bytes = self
        for bit in 0..<(count * 8) {
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            try body(bytes, bit)
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
        }
    }

    /// A reader of memory that has no byte more than these, so that a sanitizer sees reads behind the end.
    func reading<T>(_ body: (inout ByteReader) throws -> T) rethrows -> T {
        try withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            return try body(&reader)
        }
    }
}

// JSON text as a tree, for manifests and other small files.

/// A value of JSON text.
public enum JSONValue: Sendable {
    case null
    case bool(Bool)
    /// Written without point and exponent, and within 64 bits.
    case integer(Int64)
    /// An integer above `Int64.max`.
    case unsigned(UInt64)
    /// Any other number, as it was written.
    case decimal(String)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)
}

/// An object: its members in the order of the text, no name twice.
public struct JSONObject: Sendable {
    public private(set) var members: [(name: String, value: JSONValue)]

    /// For members whose names are known to differ.
    public init(members: [(name: String, value: JSONValue)]) { self.members = members }

    /// The member of that name, compared by code units; O(n).
    public subscript(_ name: String) -> JSONValue? {
        members.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
    }

    public var names: [String] { members.map(\.name) }
}

extension JSONValue {
    /// Reads one value and nothing else. A byte order mark at the start is passed over.
    public init(parsing text: UnsafeRawBufferPointer) throws(JSONError) {
        let hasMark = text.starts(with: [0xEF, 0xBB, 0xBF])
        var reader = JSONReader(hasMark ? UnsafeRawBufferPointer(rebasing: text[3...]) : text)
        self = try JSONValue(from: &reader)
        try reader.finish()
    }

    public init(parsing text: [UInt8]) throws(JSONError) {
        self = try text.withUnsafeBufferPointer { bytes throws(JSONError) in
            try JSONValue(parsing: UnsafeRawBufferPointer(bytes))
        }
    }

    public init(parsing text: String) throws(JSONError) { try self.init(parsing: Array(text.utf8)) }

    /// Reads the value that comes next.
    public init(from reader: inout JSONReader) throws(JSONError) {
        self = try JSONValue(try reader.next(), &reader)
    }

    /// The value that begins with `token`, the reader's last. Recursion ends at `JSONReader.depthMax`.
    init(_ token: JSONToken, _ reader: inout JSONReader) throws(JSONError) {
        switch token {
        case .null: self = .null
        case .true: self = .bool(true)
        case .false: self = .bool(false)
        case .string: self = .string(reader.text.string)
        case .number:
            if let value = reader.number.int64 {
                self = .integer(value)
            } else if let value = reader.number.uint64 {
                self = .unsigned(value)
            } else {
                self = .decimal(reader.number.string)
            }
        case .beginArray:
            var elements: [JSONValue] = []
            while true {
                let next = try reader.next()
                if next == .endArray { break }
                elements.append(try JSONValue(next, &reader))
            }
            self = .array(elements)
        case .beginObject:
            var members: [(name: String, value: JSONValue)] = []
            while try reader.next() == .name {
                let name = reader.text.string
                members.append((name, try JSONValue(from: &reader)))
            }
            self = .object(JSONObject(members: members))
        case .endObject, .endArray, .name, .end:
            throw reader.wrongType(expected: "a value")
        }
    }

    public var string: String? { if case .string(let value) = self { value } else { nil } }
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    public var int64: Int64? { if case .integer(let value) = self { value } else { nil } }
    public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
    public var object: JSONObject? { if case .object(let value) = self { value } else { nil } }
    public var isNull: Bool { if case .null = self { true } else { false } }

    /// The nearest double of any number.
    public var double: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .unsigned(let value): Double(value)
        case .decimal(let text): Double(text)
        default: nil
        }
    }

    /// As sentences name it: "a string", "null", …
    public var typeName: String {
        switch self {
        case .null: "null"
        case .bool: "true or false"
        case .integer, .unsigned, .decimal: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }

    public subscript(_ name: String) -> JSONValue? { object?[name] }
}

extension JSONValue: Equatable {
    /// Strings by code units, numbers by how they are kept, objects whatever the order of their members.
    public static func == (a: JSONValue, b: JSONValue) -> Bool {
        switch (a, b) {
        case (.null, .null): true
        case (.bool(let x), .bool(let y)): x == y
        case (.integer(let x), .integer(let y)): x == y
        case (.unsigned(let x), .unsigned(let y)): x == y
        case (.decimal(let x), .decimal(let y)), (.string(let x), .string(let y)): x.utf8.elementsEqual(y.utf8)
        case (.array(let x), .array(let y)): x == y
        case (.object(let x), .object(let y)):
            x.members.count == y.members.count && x.members.allSatisfy { $0.value == y[$0.name] }
        default: false
        }
    }
}

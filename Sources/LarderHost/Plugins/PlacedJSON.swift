// JSON of a small file with the place of every value kept, so that errors can name the line.

import LarderFormat

/// A file's text and what it says. Any thread.
struct PlacedFile: Sendable {
    let path: String
    let bytes: [UInt8]
    let root: PlacedJSON

    init(path: String, bytes: [UInt8]) throws(PluginError) {
        self.path = path
        self.bytes = bytes
        do throws(JSONError) {
            root = try bytes.withUnsafeBufferPointer { bytes throws(JSONError) in
                var reader = JSONReader(UnsafeRawBufferPointer(bytes))
                let root = try PlacedJSON(try reader.next(), &reader)
                try reader.finish()
                return root
            }
        } catch {
            throw .badJSON(path: path, fault: error)
        }
    }

    /// From 1.
    func line(of value: PlacedJSON) -> Int { line(at: value.range.lowerBound) }

    func line(at offset: Int) -> Int { 1 + bytes.prefix(offset).count { $0 == 0x0A } }

    /// The value without its place.
    func value(of placed: PlacedJSON) throws(PluginError) -> JSONValue {
        do throws(JSONError) {
            return try JSONValue(parsing: Array(bytes[placed.range]))
        } catch {
            throw .badJSON(path: path, fault: error)
        }
    }

    // MARK: Typed access; `key` is the path that errors name.

    func wrong(_ value: PlacedJSON, _ key: String, allowed: String) -> PluginError {
        .badValue(path: path, line: line(of: value), key: key, found: value.shown, allowed: allowed)
    }

    /// The members of an object that has no other names than `allowed`; nil allows any.
    func members(
        _ value: PlacedJSON, _ key: String, allowed: [String]?
    ) throws(PluginError) -> [PlacedJSON.Member] {
        guard case .object(let members) = value.content else { throw wrong(value, key, allowed: "an object") }
        if let allowed {
            for member in members where !allowed.contains(member.name) {
                throw .unknownKey(
                    path: path, line: line(at: member.offset), key: member.name, place: key, allowed: allowed)
            }
        }
        return members
    }

    func string(_ value: PlacedJSON, _ key: String) throws(PluginError) -> String {
        guard case .string(let text) = value.content else { throw wrong(value, key, allowed: "a string") }
        // It ends up in argv, in a path, or in a message: none of them can hold U+0000.
        if text.utf8.contains(0) { throw wrong(value, key, allowed: "a string without U+0000") }
        return text
    }

    func bool(_ value: PlacedJSON, _ key: String) throws(PluginError) -> Bool {
        guard case .bool(let flag) = value.content else { throw wrong(value, key, allowed: "true or false") }
        return flag
    }

    func elements(_ value: PlacedJSON, _ key: String) throws(PluginError) -> [PlacedJSON] {
        guard case .array(let elements) = value.content else { throw wrong(value, key, allowed: "an array") }
        return elements
    }

    /// Strings that `isAllowed` takes, none of them twice.
    func strings(
        _ value: PlacedJSON, _ key: String, allowed: String, where isAllowed: (String) -> Bool
    ) throws(PluginError) -> [String] {
        var strings: [String] = []
        for element in try elements(value, key) {
            guard case .string(let text) = element.content, isAllowed(text) else {
                throw wrong(element, "\(key)[\(strings.count)]", allowed: allowed)
            }
            if strings.contains(text) {
                throw wrong(element, "\(key)[\(strings.count)]", allowed: "named once in the list")
            }
            strings.append(text)
        }
        return strings
    }
}

/// A value, and where it stands in the text.
struct PlacedJSON: Sendable {
    struct Member: Sendable {
        let name: String
        /// Of the name's quote.
        let offset: Int
        let value: PlacedJSON
    }

    indirect enum Content: Sendable {
        case object([Member])
        case array([PlacedJSON])
        case string(String)
        case bool(Bool)
        case number(String)
        case null
    }

    let content: Content
    /// In bytes.
    let range: Range<Int>

    /// The value that begins with `token`, the reader's last; the reader bounds the depth.
    init(_ token: JSONToken, _ reader: inout JSONReader) throws(JSONError) {
        let start = reader.tokenOffset
        switch token {
        case .null: content = .null
        case .true: content = .bool(true)
        case .false: content = .bool(false)
        case .string: content = .string(reader.text.string)
        case .number: content = .number(reader.number.string)
        case .beginArray:
            var elements: [PlacedJSON] = []
            while true {
                let next = try reader.next()
                if next == .endArray { break }
                elements.append(try PlacedJSON(next, &reader))
            }
            content = .array(elements)
        case .beginObject:
            var members: [Member] = []
            while try reader.next() == .name {
                let name = reader.text.string
                let offset = reader.tokenOffset
                members.append(Member(name: name, offset: offset, value: try PlacedJSON(try reader.next(), &reader)))
            }
            content = .object(members)
        case .endObject, .endArray, .name, .end:
            throw reader.wrongType(expected: "a value")
        }
        range = start..<reader.offset
    }

    /// What it is, for an error: strings, short, are quoted.
    var shown: String {
        switch content {
        case .object: "an object"
        case .array(let elements): elements.isEmpty ? "an empty array" : "an array"
        case .string(let text): "\"" + String(text.prefix(60)) + (text.count > 60 ? "…\"" : "\"")
        case .bool(let flag): flag ? "true" : "false"
        case .number(let text): "the number " + text.prefix(60)
        case .null: "null"
        }
    }
}

// Keys as commands take them.

import LarderFormat

enum KeyArguments {
    static func expectSome(_ words: [String], command: String) throws(Failure) {
        if words.isEmpty {
            throw .usage(
                command, "needs a key, such as title:tmdb/movie/603", "larder list --keys shows keys")
        }
    }

    /// `kind:value/value` each, or one kind and its values as words.
    static func read(_ words: [String], _ kinds: Kinds, command: String) throws(Failure) -> [RecordKey] {
        try expectSome(words, command: command)
        guard let first = words.first, !first.utf8.contains(0x3A) else {
            var keys: [RecordKey] = []
            for word in words { keys.append(try kinds.key(word)) }
            return keys
        }
        let kind = try kinds.named(first)
        let values = words.dropFirst().map(escaped)
        guard values.count == kind.keyFieldCount else {
            let form = kind.keyFields.map { $0.name.uppercased() }.joined(separator: " ")
            throw .usage(
                command, "a key of \(first) has \(kind.keyFieldCount) values, not \(values.count)",
                "write larder \(command) \(first) \(form)")
        }
        return [try kinds.key(first + ":" + values.joined(separator: "/"))]
    }

    /// A value as it stands in a key's text.
    private static func escaped(_ value: String) -> String {
        var out: [UInt8] = []
        for byte in value.utf8 {
            switch byte {
            case 0x25: out += Array("%25".utf8)
            case 0x2F: out += Array("%2F".utf8)
            default: out.append(byte)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }
}

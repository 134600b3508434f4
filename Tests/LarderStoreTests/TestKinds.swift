// The kinds of the tests, and records as a test sees them: field number → encoded value.

import LarderFormat

@testable import LarderStore

enum TestKinds {
    static let title = kind(
        1, "title", keys: 3,
        [
            Field(1, "source", .text, [.required, .notBlank]),
            Field(
                2, "media_type", .choice, .required,
                choices: [Field.Choice(number: 1, name: "movie"), Field.Choice(number: 2, name: "tv")]),
            Field(3, "id", .identifier, [.required, .notZero]), Field(4, "title", .text), Field(5, "overview", .text),
            Field(6, "rating", .number, .personal), Field(7, "genres", .list, .indexed),
            Field(8, "tags", .list, .personal), Field(9, "imdb_id", .identifier, .indexed),
        ])
    static let book = kind(
        2, "book", keys: 2,
        [
            Field(1, "source", .text, [.required, .notBlank]), Field(2, "id", .identifier, [.required, .notZero]),
            Field(3, "title", .text, .indexed), Field(4, "note", .text, .personal), Field(5, "price", .int, .indexed),
        ])
    static let joke = kind(
        3, "joke", keys: 1,
        [
            Field(1, "id", .uuid, .required), Field(2, "body", .text, [.required, .notBlank]),
            Field(
                3, "category", .choice,
                choices: [Field.Choice(number: 1, name: "a"), Field.Choice(number: 2, name: "b")]),
        ])
    /// Small and odd: a key of bool, date and int, a required field far behind it, and the last field number there is.
    static let odd = kind(
        200, "odd", keys: 3,
        [
            Field(1, "flag", .bool, .required), Field(2, "day", .date, .required), Field(3, "n", .int, .required),
            Field(100, "must", .text, .required), Field(256, "blob", .bytes),
        ])
    static let all = [title, book, joke, odd]

    private static func kind(_ number: Int, _ name: String, keys: Int, _ fields: [Field]) -> Kind {
        do {
            return try Kind(
                number: number, name: name, version: 1, keyFieldCount: keys, fields: fields,
                labelFields: [fields[keys].number])
        } catch { preconditionFailure("\(error)") }
    }
}

typealias Fields = [Int: [UInt8]]

enum Encode {
    private static func bytes(_ body: (inout ByteWriter) -> Void) -> [UInt8] {
        var writer = ByteWriter()
        body(&writer)
        return writer.bytes
    }
    static func text(_ text: String) -> [UInt8] { bytes { $0.text(text) } }
    static func blob(_ count: Int, _ fill: UInt8) -> [UInt8] {
        bytes { $0.byteString([UInt8](repeating: fill, count: count)) }
    }
    static func int(_ value: Int64) -> [UInt8] { bytes { $0.svarint(value) } }
    static func choice(_ value: Int) -> [UInt8] { bytes { $0.varint(value) } }
    static func identifier(_ value: Int) -> [UInt8] { bytes { $0.varint(value * 2) } }
    static func identifier(_ text: String) -> [UInt8] {
        bytes { writer in
            writer.varint(text.utf8.count << 1 | 1)
            writer.raw(Array(text.utf8))
        }
    }
    static func uuid(_ value: UInt64) -> [UInt8] {
        [UInt8](repeating: 7, count: 8) + withUnsafeBytes(of: value.bigEndian, Array.init)
    }
    static func list(_ texts: [String]) -> [UInt8] {
        bytes { writer in
            writer.varint(texts.count)
            for text in texts { writer.text(text) }
        }
    }
    static func number(_ mantissa: Int64, _ exponent: Int64) -> [UInt8] {
        bytes {
            $0.svarint(mantissa)
            $0.svarint(exponent)
        }
    }
    static func date(_ year: Int, _ month: Int, _ day: Int) -> [UInt8] {
        int(PartialDate(year: year, month: month, day: day)?.packed ?? 0)
    }

    static func record(_ fields: Fields) -> [UInt8] {
        bytes { writer in
            FieldSet(fields.keys).encode(into: &writer)
            for field in fields.keys.sorted() { writer.raw(fields[field] ?? []) }
        }
    }

    static func key(_ fields: Fields, _ kind: Kind) -> [UInt8] {
        (1...kind.keyFieldCount).reduce(into: []) { $0 += fields[$1] ?? [] }
    }
}

/// A key with its kind.
struct RecordKey: Hashable, CustomStringConvertible {
    var kind: Int
    var bytes: [UInt8]
    var description: String { "\(kind):\(bytes.prefix(24))" }
}

/// An operation of a test.
struct TestOp {
    var kind: Int
    var action = WriteOperation.Action.save
    var mode = SaveMode.merge
    var isPersonal = false
    var ifSeq: UInt64?
    var unset: Set<Int> = []
    var known = 256
    /// Of a save, or the key fields of a delete.
    var fields: Fields = [:]
    /// Sent in place of the fields: must be refused.
    var bad: [UInt8]?
    var unlessExists = 0
    /// Of a move: the key fields of the record that is there.
    var oldFields: Fields = [:]
    /// Of a restore.
    var firstSeq: UInt64 = 0
    var savedAt: Int64 = 1

    var isDelete: Bool { action == .delete }
    var key: RecordKey { RecordKey(kind: kind, bytes: Encode.key(fields, schema)) }
    var oldKey: RecordKey { RecordKey(kind: kind, bytes: Encode.key(oldFields, schema)) }
    var schema: Kind { TestKinds.all.first { $0.number == kind } ?? TestKinds.title }
    var payload: [UInt8] {
        if let bad { return bad }
        return isDelete ? Encode.key(fields, schema) : Encode.record(fields)
    }

    static func save(_ kind: Kind, _ fields: Fields, _ mode: SaveMode = .merge) -> TestOp {
        TestOp(kind: kind.number, mode: mode, fields: fields)
    }
    static func delete(_ kind: Kind, _ fields: Fields) -> TestOp {
        TestOp(kind: kind.number, action: .delete, fields: fields)
    }
    /// The record gets the key that its fields say.
    static func move(_ kind: Kind, from oldFields: Fields, _ fields: Fields) -> TestOp {
        TestOp(kind: kind.number, action: .move, fields: fields, oldFields: oldFields)
    }
    static func restore(_ kind: Kind, _ fields: Fields, firstSeq: UInt64, savedAt: Int64) -> TestOp {
        TestOp(kind: kind.number, action: .restore, fields: fields, firstSeq: firstSeq, savedAt: savedAt)
    }
    /// The same, not where another record has the same value in this field.
    func unlessExists(_ field: Int) -> TestOp {
        var op = self
        op.unlessExists = field
        return op
    }
    func ifSeq(_ seq: UInt64) -> TestOp {
        var op = self
        op.ifSeq = seq
        return op
    }
    /// A book, the kind that most tests use.
    static func book(_ id: Int, _ title: String, _ mode: SaveMode = .replace) -> TestOp {
        .save(TestKinds.book, [1: Encode.text("isbn"), 2: Encode.identifier(id), 3: Encode.text(title)], mode)
    }
    static func deleteBook(_ id: Int) -> TestOp {
        .delete(TestKinds.book, [1: Encode.text("isbn"), 2: Encode.identifier(id)])
    }
}

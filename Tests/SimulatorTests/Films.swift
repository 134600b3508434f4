// The records of the simulator: two kinds of one shape, small contents, and a mark in each that says who saved it.

import LarderFormat

/// What names a record.
struct Key: Hashable, Comparable, CustomStringConvertible {
    var kind: Int
    var id: Int

    var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.text("s")
        writer.varint(id * 2)
        return writer.bytes
    }

    static func < (a: Key, b: Key) -> Bool { (a.kind, a.id) < (b.kind, b.id) }
    var description: String { "\(kind)/\(id)" }

    /// From the bytes of a delete.
    init?(kind: Int, bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        guard let source = try? reader.text(), source == "s", let id = try? reader.varint(), id % 2 == 0,
            (try? reader.expectEnd()) != nil
        else { return nil }
        self.init(kind: kind, id: Int(id / 2))
    }

    init(kind: Int, id: Int) {
        self.kind = kind
        self.id = id
    }
}

/// What a record holds behind its key. A save's mark is like no other's.
struct Content: Equatable {
    var title: String?
    var mark: Int?
    var price: Int?

    static func == (a: Content, b: Content) -> Bool { a.mark == b.mark && a.price == b.price && a.title == b.title }

    func record(_ key: Key) -> [UInt8] {
        var fields: [Int] = [1, 2]
        if title != nil { fields.append(3) }
        if mark != nil { fields.append(4) }
        if price != nil { fields.append(5) }
        var writer = ByteWriter()
        FieldSet(fields).encode(into: &writer)
        writer.raw(key.bytes)
        if let title { writer.text(title) }
        if let mark { writer.svarint(Int64(mark)) }
        if let price { writer.svarint(Int64(price)) }
        return writer.bytes
    }

    /// Splits a record into key and content; nil where it is none of this shape.
    static func read(_ record: UnsafeRawBufferPointer, kind: Int) -> (Key, Content)? {
        var reader = ByteReader(record)
        guard var fields = try? FieldSet(from: &reader), fields.popFirst() == 1, fields.popFirst() == 2,
            let source = try? reader.text(), source == "s", let id = try? reader.varint()
        else { return nil }
        var content = Content()
        while let field = fields.popFirst() {
            switch field {
            case 3: content.title = try? reader.text()
            case 4: content.mark = (try? reader.svarint()).map { Int($0) }
            case 5: content.price = (try? reader.svarint()).map { Int($0) }
            default: return nil
            }
        }
        guard (try? reader.expectEnd()) != nil else { return nil }
        return (Key(kind: kind, id: Int(id / 2)), content)
    }
}

enum Films {
    static let kinds = [kind(1, "film"), kind(2, "book")]
    static let priceField = 5
    static let knownFields = 5

    private static func kind(_ number: Int, _ name: String) -> Kind {
        do {
            return try Kind(
                number: number, name: name, version: 1, keyFieldCount: 2,
                fields: [
                    Field(1, "source", .text, [.required, .notBlank]),
                    Field(2, "id", .identifier, [.required, .notZero]),
                    Field(3, "title", .text), Field(4, "mark", .int), Field(5, "price", .int, .indexed),
                ], labelFields: [3])
        } catch { preconditionFailure("\(error)") }
    }
}

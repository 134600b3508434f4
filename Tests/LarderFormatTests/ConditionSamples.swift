// A kind with a field of every type, and what tests of conditions, search, order and groups share.

import Testing

@testable import LarderFormat

enum Samples {
    /// Every type once, and texts beside it. Its label is name, then code, then genres.
    static let kind: Kind = {
        do {
            return try Kind(
                number: 7, name: "sample", version: 1, keyFieldCount: 1,
                fields: [
                    Field(1, "code", .identifier, .required),
                    Field(2, "name", .text),
                    Field(3, "flag", .bool),
                    Field(4, "count", .int),
                    Field(5, "score", .number),
                    Field(6, "data", .bytes),
                    Field(7, "day", .date),
                    Field(8, "moment", .time),
                    Field(9, "token", .uuid),
                    Field(
                        10, "form", .choice,
                        choices: [
                            Field.Choice(number: 1, name: "Film"), Field.Choice(number: 2, name: "Serie"),
                            Field.Choice(number: 63, name: "Kurz"), Field.Choice(number: 64, name: "Ｗide"),
                            Field.Choice(number: 900, name: " "),
                        ]),
                    Field(11, "genres", .list),
                    Field(200, "note", .text),
                ], labelFields: [2, 1, 11])
        } catch { preconditionFailure("\(error)") }
    }()

    /// A kind that shares some names, with other types.
    static let other: Kind = {
        do {
            return try Kind(
                number: 8, name: "other", version: 1, keyFieldCount: 1,
                fields: [
                    Field(1, "code", .identifier, .required), Field(2, "name", .text), Field(3, "day", .bool),
                    Field(4, "only", .int), Field(5, "kind", .int),
                ], labelFields: [2])
        } catch { preconditionFailure("\(error)") }
    }()

    static let schema = RecordSchema(kind)
    static let otherSchema = RecordSchema(other)

    static func encode(_ record: Record, _ kind: Kind = kind) -> [UInt8] {
        do { return try record.encode(kind) } catch {
            Issue.record("a sample does not encode: \(error)")
            return []
        }
    }

    /// A record by its fields' names.
    static func record(_ values: [String: Value], _ kind: Kind = kind) -> Record {
        var record = Record([(1, .identifier(.number(1)))])
        for (name, value) in values {
            guard let field = kind.field(named: name) else {
                Issue.record("no field \(name)")
                continue
            }
            record[field.number] = value
        }
        return record
    }

    /// A record as the log knows it.
    struct Stored {
        var kind = Samples.kind.number
        var seq: UInt64 = 44
        var savedAt: Int64 = 1_793_491_200_000
        var changedAt: Int64 = 1_793_577_600_000
        var origin: UInt64 = 3
        var bytes: [UInt8]

        func matches(_ condition: Condition) -> Bool {
            bytes.withUnsafeBytes {
                condition.matches(
                    ConditionSubject(
                        kind: kind, seq: seq, firstSeq: seq, savedAt: savedAt, changedAt: changedAt, origin: origin,
                        record: $0))
            }
        }
    }

    static func date(_ text: String) -> Value {
        guard let date = PartialDate(text: text) else {
            Issue.record("no date: \(text)")
            return .bool(false)
        }
        return .date(date)
    }

    static func time(_ text: String) -> Value {
        guard let time = TimeText.milliseconds(text) else {
            Issue.record("no time: \(text)")
            return .bool(false)
        }
        return .time(time)
    }

    static func number(_ text: String) -> Value {
        guard let number = Number(exactly: text) else {
            Issue.record("no number: \(text)")
            return .bool(false)
        }
        return .number(number)
    }
}

// 9F ERROR: why a request, or the connection, failed.

import LarderFormat

/// The final reply of a request that failed; with request id 0 it is about the connection.
public struct ErrorReply: WireMessage {
    public static var type: MessageType { .error }

    public struct Flags: OptionSet, Hashable, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The connection ends.
        public static let fatal = Flags(rawValue: 1)
        /// The same request may work later.
        public static let retry = Flags(rawValue: 2)
        static let all: UInt8 = 3
    }

    /// Something that a program may want to act on, by name.
    public struct Fact: Hashable, Sendable {
        public var name: String
        public var value: String
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// As it was sent: a number that this version does not know is kept.
    public var rawNumber: Int
    public var flags: Flags
    /// 1 + the position in the batch or the offset in the body; 0: none.
    public var place: Int
    /// Name of the record's field, or empty.
    public var field: String
    public var message: String
    public var facts: [Fact]

    public init(
        _ number: ErrorNumber, place: Int = 0, field: String = "", message: String = "", facts: [Fact] = []
    ) {
        rawNumber = Int(number.rawValue)
        var flags: Flags = []
        if number.isFatal { flags.insert(.fatal) }
        if number.retry == .yes { flags.insert(.retry) }
        self.flags = flags
        self.place = place
        self.field = field
        self.message = message
        self.facts = facts
    }

    /// The answer to a body that does not parse.
    public init(badMessage error: FormatError, in name: String) {
        self.init(.badMessage, place: error.offset &+ 1, message: "\(name): \(error)")
    }

    /// Nil for a number that this version does not know.
    public var number: ErrorNumber? { UInt16(exactly: rawNumber).flatMap(ErrorNumber.init(rawValue:)) }
    public var isFatal: Bool { flags.contains(.fatal) }

    public func fact(_ name: String) -> String? { facts.first { $0.name == name }?.value }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(rawNumber)
        writer.u8(flags.rawValue)
        writer.varint(place)
        writer.text(field)
        writer.text(message)
        writer.varint(facts.count)
        for fact in facts {
            writer.text(fact.name)
            writer.text(fact.value)
        }
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        rawNumber = try reader.number()
        flags = Flags(rawValue: try reader.flags(Flags.all))
        place = try reader.number()
        field = try reader.text()
        message = try reader.text()
        facts = try reader.list(ofAtLeast: 2) { (reader: inout ByteReader) throws(FormatError) in
            Fact(try reader.text(), try reader.text())
        }
        try reader.expectEnd()
    }
}

extension ErrorReply: CustomStringConvertible {
    public var description: String {
        var line = number?.name ?? "error \(rawNumber)"
        if !message.isEmpty { line += ": \(message)" }
        if !field.isEmpty { line += " (field \(field))" }
        return line
    }
}

// Standard output has JSON lines, standard error is for people.

import Glibc
import LarderFormat

/// A member's value.
enum LineValue {
    case text(String)
    case integer(Int)
    /// Printed with at most this many decimals.
    case number(Double, places: Int)
    case bool(Bool)
    case null
}

/// One JSON object on a line, its members in the order in which they were set.
struct ResultLine {
    private(set) var members: [(name: String, value: LineValue)] = []

    init(_ figure: String) { self["figure"] = .text(figure) }
    init() {}

    subscript(_ name: String) -> LineValue? {
        get { members.first { $0.name == name }?.value }
        set {
            let at = members.firstIndex { $0.name == name }
            switch (at, newValue) {
            case (let at?, let value?): members[at].value = value
            case (let at?, nil): members.remove(at: at)
            case (nil, let value?): members.append((name, value))
            case (nil, nil): break
            }
        }
    }

    mutating func set(_ name: String, _ value: Int) { self[name] = .integer(value) }
    mutating func set(_ name: String, _ value: String) { self[name] = .text(value) }
    mutating func set(_ name: String, _ value: Bool) { self[name] = .bool(value) }
    mutating func set(_ name: String, _ value: Double, places: Int = 4) { self[name] = .number(value, places: places) }

    /// The line, with its line feed.
    var text: String {
        var writer = JSONWriter()
        writer.beginObject()
        for (name, value) in members {
            writer.name(name)
            switch value {
            case .text(let text): writer.string(text)
            case .integer(let integer): writer.integer(integer)
            case .number(let number, let places):
                let scale = pow(10, Double(places))
                writer.double((number * scale).rounded() / scale)
            case .bool(let isTrue): writer.bool(isTrue)
            case .null: writer.null()
            }
        }
        writer.endObject()
        writer.newline()
        return writer.text
    }

    func print() { writeAll(1, text) }
}

/// Writes text to a descriptor; what cannot be written is dropped.
func writeAll(_ descriptor: Int32, _ text: String) {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
        let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        if count > 0 { bytes = bytes.dropFirst(count) } else if errno != EINTR { return }
    }
}

/// A line about how far the run is.
func progress(_ text: String) { writeAll(2, text + "\n") }

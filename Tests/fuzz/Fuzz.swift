// libFuzzer's entry: one program, its target named by LARDER_FUZZ. `.ci/fuzz` builds and runs it.

import Glibc
import LarderFormat

/// What is done with every input. A trap, a sanitizer's finding or a failed `must` is a finding.
typealias Target = (UnsafeRawBufferPointer) -> Void

enum Targets {
    nonisolated(unsafe) static let all: [String: Target] = [
        "frame": fuzzFrame, "message": fuzzMessage, "record": fuzzRecord, "entry": fuzzEntry, "block": fuzzBlock,
        "segment": fuzzSegment, "index": fuzzIndex, "condition": fuzzCondition, "kind": fuzzKind, "json": fuzzJSON,
        "line": fuzzLine,
        "token": fuzzToken, "text": fuzzText,
    ]

    nonisolated(unsafe) static let chosen: Target = {
        let name = getenv("LARDER_FUZZ").map { String(cString: $0) } ?? ""
        guard let target = all[name] else {
            print("LARDER_FUZZ is one of: \(all.keys.sorted().joined(separator: " "))")
            exit(2)
        }
        return target
    }()
}

/// Ends the run where something that must hold does not.
func must(_ condition: Bool, _ what: @autoclosure () -> String) {
    guard !condition else { return }
    print("must hold: \(what())")
    fflush(nil)
    abort()
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // Past the end of a copy of its own the sanitizer sees every read.
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
    defer { copy.deallocate() }
    if let bytes, count > 0 { copy.copyMemory(from: UnsafeRawBufferPointer(start: bytes, count: count)) }
    Targets.chosen(UnsafeRawBufferPointer(copy))
    return 0
}

/// The kinds that come with Larder, and one with a field of every type.
enum FuzzKinds {
    static let everyType: Kind = {
        do {
            return try Kind(
                number: 64, name: "thing", version: 1, keyFieldCount: 2,
                fields: [
                    Field(1, "id", .identifier, [.required, .notZero]), Field(2, "part", .text, .required),
                    Field(3, "flag", .bool), Field(4, "count", .int, [.notZero, .indexed]),
                    Field(5, "price", .number), Field(6, "name", .text, [.notBlank, .indexed]),
                    Field(7, "other", .identifier), Field(8, "blob", .bytes), Field(9, "day", .date),
                    Field(10, "at", .time), Field(11, "uuid", .uuid),
                    Field(
                        12, "colour", .choice,
                        choices: [Field.Choice(number: 1, name: "red"), Field.Choice(number: 3, name: "blue")]),
                    Field(13, "tags", .list, [.personal, .indexed]), Field(256, "last", .text),
                ], labelFields: [6, 2])
        } catch { fatalError("\(error)") }
    }()
    static let all = [Kind.title, Kind.book, Kind.joke, everyType]
    static let schemas = all.map { RecordSchema($0) }
}

extension UnsafeRawBufferPointer {
    /// The first bytes, and what is left behind them.
    func split(_ count: Int) -> (UnsafeRawBufferPointer, UnsafeRawBufferPointer) {
        let at = Swift.min(count, self.count)
        return (UnsafeRawBufferPointer(rebasing: self[..<at]), UnsafeRawBufferPointer(rebasing: self[at...]))
    }

    var string: String { String(decoding: self, as: UTF8.self) }
}

// The tables and vectors of Protocol/, as the tests read them.

import Foundation
import LarderWire
import Testing

enum SharedFiles {
    struct Missing: Error { let path: String }

    /// The repository's root, three levels above this file.
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func json(_ path: String) throws -> [String: Any] {
        let data = try Data(contentsOf: root.appendingPathComponent("Protocol/" + path))
        guard let object = try JSONSerialization.jsonObject(with: data) as? [String: Any] else {
            throw Missing(path: path)
        }
        return object
    }

    static func list(_ path: String, _ name: String) throws -> [[String: Any]] {
        guard let list = try json(path)[name] as? [[String: Any]], !list.isEmpty else { throw Missing(path: path) }
        return list
    }

    /// The valid vectors of one message; there is at least one.
    static func eachMessage(_ type: MessageType, _ check: ([UInt8], [String: Any]) throws -> Void) throws {
        var count = 0
        for vector in try list("vectors/messages.json", "valid") where vector.int("type") == Int(type.rawValue) {
            try check(vector.hex("hex"), vector.object("value"))
            count += 1
        }
        #expect(count > 0, "no vector of \(type.name)")
    }
}

extension [String: Any] {
    func text(_ name: String) -> String { self[name] as? String ?? "" }
    func int(_ name: String) -> Int { (self[name] as? NSNumber)?.intValue ?? -1 }
    func u64(_ name: String) -> UInt64 { (self[name] as? NSNumber)?.uint64Value ?? 0xDEAD_BEEF }
    func object(_ name: String) -> [String: Any] { self[name] as? [String: Any] ?? [:] }
    func objects(_ name: String) -> [[String: Any]] { self[name] as? [[String: Any]] ?? [] }
    func texts(_ name: String) -> [String] { self[name] as? [String] ?? ["?"] }
    func hex(_ name: String) -> [UInt8] {
        let digits = Array(text(name).utf8)
        return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(decoding: digits[$0..<($0 + 2)], as: UTF8.self), radix: 16)
        }
    }
}

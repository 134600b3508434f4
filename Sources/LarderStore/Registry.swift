// The kinds and origins of a library, as its log declares them.

import LarderFormat

/// The kinds of a library. A kind's *index* (0 …) is its number within this process; places hold it in one byte.
struct KindTable {
    private(set) var schemas: [RecordSchema] = []
    private var indexes: [Int: UInt8] = [:]
    /// The same for small numbers, which is nearly all of them.
    private var smallIndexes = [UInt8](repeating: UInt8.max, count: 128)

    static let countMax = 255

    /// The index of a kind number, or nil.
    @inline(__always)
    func index(_ number: Int) -> UInt8? {
        if number >= 0 && number < 128 {
            let index = smallIndexes[number]
            return index == UInt8.max ? nil : index
        }
        return indexes[number]
    }

    @inline(__always)
    subscript(_ index: UInt8) -> RecordSchema { schemas[Int(index)] }

    /// Uses a schema without counting references; the table keeps it alive meanwhile.
    @inline(__always)
    func with<R>(_ index: UInt8, _ body: (RecordSchema) throws(FormatError) -> R) throws(FormatError) -> R {
        let result: Result<R, FormatError> = Unmanaged.passUnretained(schemas[Int(index)])._withUnsafeGuaranteedRef {
            schema in
            do throws(FormatError) { return .success(try body(schema)) } catch { return .failure(error) }
        }
        return try result.get()
    }

    /// Adds a kind, or puts a later declaration in the place of the earlier; false when there is no room.
    mutating func declare(_ kind: Kind) -> Bool {
        if let index = index(kind.number) {
            if kind.version > schemas[Int(index)].kind.version { schemas[Int(index)] = RecordSchema(kind) }
            return true
        }
        guard schemas.count < KindTable.countMax else { return false }
        let index = UInt8(schemas.count)
        schemas.append(RecordSchema(kind))
        indexes[kind.number] = index
        if kind.number < 128 { smallIndexes[kind.number] = index }
        return true
    }
}

/// Who made changes, in which import.
public struct Origin: Equatable, Sendable {
    /// 1 and up.
    public let number: UInt64
    /// The program's name, as its HELLO said it.
    public let name: String
    /// What names the import, or empty.
    public let token: String
    /// When it was first seen, ms since 1970.
    public let time: Int64

    public init(number: UInt64, name: String, token: String, time: Int64) {
        self.number = number
        self.name = name
        self.token = token
        self.time = time
    }

    var body: [UInt8] {
        var writer = ByteWriter()
        writer.varint(number)
        writer.text(name)
        writer.text(token)
        return writer.bytes
    }

    init(body: UnsafeRawBufferPointer, time: Int64) throws(FormatError) {
        var reader = ByteReader(body)
        number = try reader.varint()
        name = try reader.text()
        token = try reader.text()
        self.time = time
        try reader.expectEnd()
    }
}

/// The origins of a library, and where their imports stand.
struct OriginTable {
    private(set) var origins: [Origin] = []
    private var byNumber: [UInt64: Int] = [:]
    private var byName: [String: UInt64] = [:]
    /// Highest durable batch number of each import.
    var lastBatch: [UInt64: UInt64] = [:]
    /// Imports that have begun and not ended.
    var openImports: Set<UInt64> = []

    /// The highest number that any entry names: the declaration of an origin can be lost, its number is not given again.
    private var highestSeen: UInt64 = 0
    /// A number above this is no host's.
    private static let numberMax: UInt64 = 1 << 62

    var next: UInt64 { max(origins.last?.number ?? 0, highestSeen) + 1 }

    /// The declaration of the origin with the highest number is lost.
    var hasLostLast: Bool { highestSeen > origins.last?.number ?? 0 }

    /// Notes that an entry names this origin.
    @inline(__always)
    mutating func note(_ number: UInt64) {
        if number > highestSeen && number <= OriginTable.numberMax { highestSeen = number }
    }

    private static func nameKey(_ name: String, _ token: String) -> String {
        token.isEmpty ? name : name + "\u{0}" + token
    }

    func number(name: String, token: String) -> UInt64? { byName[OriginTable.nameKey(name, token)] }
    func origin(_ number: UInt64) -> Origin? { byNumber[number].map { origins[$0] } }

    /// Takes back those that were declared last.
    mutating func truncate(to count: Int) {
        while origins.count > count {
            let last = origins.removeLast()
            byNumber[last.number] = nil
            byName[OriginTable.nameKey(last.name, last.token)] = nil
        }
    }

    mutating func declare(_ origin: Origin) {
        guard byNumber[origin.number] == nil, origin.number <= OriginTable.numberMax else { return }
        byNumber[origin.number] = origins.count
        origins.append(origin)
        byName[OriginTable.nameKey(origin.name, origin.token)] = origin.number
    }
}

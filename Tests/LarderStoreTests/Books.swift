// Books as the direct tests of operations write them.

import LarderFormat
import Testing

@testable import LarderStore

enum Books {
    static func keyFields(_ id: Int) -> Fields { [1: Encode.text("isbn"), 2: Encode.identifier(id)] }

    static func fields(_ id: Int, _ title: String, _ more: Fields = [:]) -> Fields {
        keyFields(id).merging([3: Encode.text(title)]) { $1 }.merging(more) { $1 }
    }

    static func key(_ id: Int) -> RecordKey { RecordKey(kind: 2, bytes: Encode.key(keyFields(id), TestKinds.book)) }

    static func move(_ from: Int, _ to: Int, _ title: String, _ more: Fields = [:]) -> TestOp {
        .move(TestKinds.book, from: keyFields(from), fields(to, title, more))
    }

    static func restore(_ id: Int, _ title: String, firstSeq: UInt64, savedAt: Int64 = 77) -> TestOp {
        .restore(TestKinds.book, fields(id, title), firstSeq: firstSeq, savedAt: savedAt)
    }

    /// A library with these books, durable.
    static func library(_ titles: [(Int, String)], options: StoreOptions = StoreDriver.options()) throws -> StoreDriver
    {
        let driver = try StoreDriver(SimulatedFiles(seed: 1), options: options)
        if !titles.isEmpty { try driver.write(titles.map { .book($0.0, $0.1) }) }
        try driver.commitAll()
        return driver
    }
}

extension StoreDriver {
    /// Ids of the durable books in saved order.
    func bookOrder() throws -> [Int] {
        try list(kind: 2, isReverse: false, pageLimit: 3).map { record in
            (1...99).first { record.fields[2] == Encode.identifier($0) } ?? 0
        }
    }

    /// Commits, and compares all with the model before and after a restart.
    func settle() throws {
        try commitAll()
        for _ in 0..<2 {
            try compareAll([])
            for kind in TestKinds.all { try compareFinds(kind) }
            try compareWalks(slice: 2)
            var reader = Subscriber(store, after: 0)
            try reader.readToEnd(self)
            try reader.compare(model, isAtEnd: true)
            var snapshot = Subscriber(store, after: 0, snapshotSeq: store.lastSeq)
            try snapshot.readToEnd(self)
            try snapshot.compare(model, isAtEnd: true)
            try reopen()
        }
    }
}

// Lookups by value and walks, held against the model.

import LarderFormat

@testable import LarderStore

extension StoreDriver {
    /// The keys with a value, in saved order.
    func find(_ kind: Int, _ field: Int, _ value: [UInt8], limit: Int = 1000) throws -> [RecordKey] {
        let begun = value.withUnsafeBytes { store.search(kind: kind, field: field, value: $0) }
        guard var search = begun else { throw Mismatch("field \(field) of kind \(kind) is not indexed") }
        for _ in 0..<100_000 {
            switch try store.keys(&search, limit: limit) {
            case .more: continue
            case .cold(let cold): try read(cold)
            case .keys(let keys, let isEnd):
                if isEnd != (keys.count <= limit), keys.count != limit { throw Mismatch("a lookup ends at no limit") }
                return keys.map { RecordKey(kind: kind, bytes: $0) }
            }
        }
        throw Mismatch("a lookup does not end")
    }

    /// Looks up every value that a record of the kind has in its indexed fields, as the record has it.
    func compareFinds(_ kind: Kind) throws {
        for field in kind.fields where field.constraints.contains(.indexed) {
            var asked: Set<ModelValue> = []
            for record in model.visible where record.key.kind == kind.number {
                guard let value = record.value.fields[field.number] else { continue }
                let values = model.values(of: field.number, record.value.fields, kind)
                for (at, wanted) in values.enumerated() where asked.insert(wanted).inserted {
                    let sent =
                        field.type == .list
                        ? Encode.text(ModelText.texts(value, isList: true)[at]) : value
                    let expected = model.holders(kind.number, field.number, wanted, in: model.visible).map(\.0)
                    let found = try find(kind.number, field.number, sent)
                    guard found == expected else {
                        throw Mismatch(
                            "\(wanted) in field \(field.number) of kind \(kind.number): \(found), not \(expected)")
                    }
                }
            }
        }
    }

    /// Walks over a kind (0: all) in slices, stopping before some records on the way.
    func walk(kind: Int, isReverse: Bool, slice: Int) throws -> [ModelRecord] {
        var walk = RecordWalk(kind: kind, isReverse: isReverse)
        var seen: [ModelRecord] = []
        var isRefusing = false
        for _ in 0..<1_000_000 {
            isRefusing.toggle()
            let step = try store.walk(&walk, slice: slice) { record in
                if isRefusing && seen.count % 5 == 3 { return false }
                seen.append(StoreDriver.modelRecord(record))
                return true
            }
            switch step {
            case .end: return seen
            case .more, .stopped: continue
            case .cold(let cold): try read(cold)
            }
        }
        throw Mismatch("a walk does not end")
    }

    func compareWalks(slice: Int) throws {
        for kind in [0] + TestKinds.all.map(\.number) {
            for isReverse in [false, true] {
                let seen = try walk(kind: kind, isReverse: isReverse, slice: slice)
                let expected = model.visible(kind: kind).map(\.1)
                guard seen == (isReverse ? expected.reversed() : expected) else {
                    throw Mismatch(
                        "a walk over kind \(kind), reverse \(isReverse), saw \(seen.count) of \(expected.count), or others"
                    )
                }
            }
        }
    }
}

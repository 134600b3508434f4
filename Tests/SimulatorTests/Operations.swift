// What peers ask for, as they remember it: requests, and what the answers said.

import LarderFormat
import LarderWire

/// One operation of a batch.
struct Operation: CustomStringConvertible {
    enum Action: Equatable {
        case save(SaveMode)
        case delete
        case move(from: Key)
        case restore(firstSeq: UInt64, savedAt: Int64)
    }
    var action: Action
    var key: Key
    var content = Content()
    var ifSeq: UInt64?
    var unlessExists = false

    var isDelete: Bool { action == .delete }

    var description: String {
        var text: String
        switch action {
        case .save(let mode): text = "\(mode) \(key)"
        case .delete: text = "delete \(key)"
        case .move(let from): text = "move \(from) to \(key)"
        case .restore(let first, _): text = "restore \(key) to \(first)"
        }
        if let mark = content.mark, !isDelete { text += " mark \(mark)" }
        if let ifSeq { text += " if \(ifSeq)" }
        if unlessExists { text += " unless \(content.price ?? 0)" }
        return text
    }
}

/// How a request ended, as its peer knows.
enum Ending {
    /// No answer came, or one that leaves it open.
    case unknown
    case written(Written)
    /// Nothing was done.
    case refused(ErrorReply)
    /// Of a clear.
    case cleared(deleted: Int, seq: UInt64)
}

/// A batch that was sent.
final class Batch: CustomStringConvertible {
    let number: Int
    let operations: [Operation]
    let flags: WriteFlags
    let origin: UInt64
    /// In its import, or 0.
    let batchNumber: UInt64
    /// The last seq that was known to be durable when it was made up.
    let knownSeq: UInt64
    /// The name of the peer that sent it: its origin in the log, but for an import.
    var sender = ""
    var ending = Ending.unknown
    /// Takes back what came before it.
    var isUndo = false
    var isInLog = false

    init(
        number: Int, _ operations: [Operation], flags: WriteFlags, origin: UInt64, batchNumber: UInt64,
        knownSeq: UInt64
    ) {
        self.number = number
        self.operations = operations
        self.flags = flags
        self.origin = origin
        self.batchNumber = batchNumber
        self.knownSeq = knownSeq
    }

    var isDryRun: Bool { flags.contains(.dryRun) }
    var isAtomic: Bool { flags.contains(.atomic) }

    func frame(id: UInt32) -> [UInt8] {
        var builder = WriteBuilder(targetByteCount: 4_000_000)
        for operation in operations {
            let key = operation.key
            let record = operation.content.record(key)
            let unless = operation.unlessExists ? Films.priceField : nil
            _ = record.withUnsafeBytes { record in
                key.bytes.withUnsafeBytes { keyBytes in
                    switch operation.action {
                    case .save(let mode):
                        builder.save(
                            record, kind: key.kind, known: Films.knownFields, mode: mode, ifSeq: operation.ifSeq,
                            unlessExists: unless)
                    case .delete: builder.delete(keyBytes, kind: key.kind, ifSeq: operation.ifSeq)
                    case .move(let from):
                        from.bytes.withUnsafeBytes {
                            builder.move(
                                from: $0, to: record, kind: key.kind, known: Films.knownFields,
                                ifSeq: operation.ifSeq, unlessExists: unless)
                        }
                    case .restore(let firstSeq, let savedAt):
                        builder.restore(
                            record, kind: key.kind, firstSeq: firstSeq, savedAt: savedAt, ifSeq: operation.ifSeq,
                            unlessExists: unless)
                    }
                }
            }
        }
        return Array(builder.finish(id: id, flags: flags, origin: origin, batch: batchNumber))
    }

    var description: String {
        var text = "batch \(number)"
        if batchNumber != 0 { text += " (import \(origin), \(batchNumber))" }
        if isAtomic { text += " atomic" }
        if isDryRun { text += " dry" }
        return text + ": " + operations.map { "\($0)" }.joined(separator: ", ")
    }
}

/// A clear that was sent.
final class ClearRequest {
    let kind: Int
    let knownSeq: UInt64
    let sender: String
    /// How many batches were sent before it.
    let batchCount: Int
    var ending = Ending.unknown
    var isInLog = false

    init(kind: Int, knownSeq: UInt64, sender: String, batchCount: Int) {
        self.kind = kind
        self.knownSeq = knownSeq
        self.sender = sender
        self.batchCount = batchCount
    }
}

/// What does not fit the model.
struct Difference: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

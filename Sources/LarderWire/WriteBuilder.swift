// Makes whole WRITE frames, one after the other, in the same memory.

import LarderFormat

/// Collects operations of one WRITE.
///
/// Operations are appended behind room for the longest head; `finish` writes the frame's header and the WRITE's right
/// before the first of them, so that nothing is moved. Owns its memory; one thread.
public struct WriteBuilder: ~Copyable {
    public enum Outcome: Equatable, Sendable {
        case appended
        /// It fits no more: send what is there, `reset`, and append it again.
        case isFull
        /// It fits into no frame.
        case isTooLarge
    }

    /// Bytes before the first operation.
    private static let headRoom = FrameHeader.byteCount + WriteHeader.byteCountMax
    /// The most an operation has beside its payload, unset fields and old key: three bytes, kind, known, if_seq, two
    /// field numbers, first seq and saved at or the old key's length, the payload's length.
    private static let operationHeadByteCountMax = 3 + 8 * 10

    /// What a batch should have: one operation that is larger gets a frame of its own.
    public let targetByteCount: Int
    /// What a batch's operations may have.
    public let byteCountMax: Int
    public private(set) var operationCount = 0

    private var memory: UnsafeMutableRawPointer
    private var capacity: Int
    private var end = WriteBuilder.headRoom

    /// - Parameters:
    ///   - targetByteCount: of operations; 256 KiB is best on a Unix socket.
    ///   - byteCountMax: the batch limit of WELCOME.
    public init(targetByteCount: Int = 262_144, byteCountMax: Int = Limits().batchByteCountMax) {
        self.byteCountMax = min(max(byteCountMax, 0), FrameHeader.bodyByteCountMax - WriteHeader.byteCountMax)
        self.targetByteCount = min(max(targetByteCount, 0), self.byteCountMax)
        capacity = WriteBuilder.headRoom + self.targetByteCount
        memory = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 64)
    }

    deinit { memory.deallocate() }

    public var isEmpty: Bool { operationCount == 0 }
    /// Bytes of the operations so far.
    public var byteCount: Int { end - WriteBuilder.headRoom }

    /// Forgets all operations; the memory stays.
    public mutating func reset() {
        operationCount = 0
        end = WriteBuilder.headRoom
    }

    /// Appends a save of an encoded record.
    ///
    /// - Parameter known: the highest field number that the caller knows of the kind.
    @inline(__always)
    public mutating func save(
        _ record: UnsafeRawBufferPointer, kind: Int, known: Int, mode: SaveMode = .merge,
        options: OperationOptions = []
    ) -> Outcome {
        append(.save, mode.rawValue, options, kind: kind, known: known, payload: record)
    }

    /// Appends a save with conditions. The options follow from the arguments.
    ///
    /// - Parameters:
    ///   - isPersonal: fields marked personal change too.
    ///   - ifSeq: the current entry's seq, 0 for "must not exist".
    ///   - unlessExists: an indexed field.
    ///   - unset: fields that become absent (merge only).
    public mutating func save(
        _ record: UnsafeRawBufferPointer, kind: Int, known: Int, mode: SaveMode, isPersonal: Bool = false,
        ifSeq: UInt64? = nil, unlessExists: Int? = nil, unset: [Int] = []
    ) -> Outcome {
        var options = WriteBuilder.options(isPersonal, ifSeq, unlessExists)
        if !unset.isEmpty { options.insert(.unset) }
        return append(
            .save, mode.rawValue, options, kind: kind, known: known, ifSeq: ifSeq ?? 0, unlessExists: unlessExists ?? 0,
            unset: unset, payload: record)
    }

    /// Appends a delete.
    public mutating func delete(_ key: UnsafeRawBufferPointer, kind: Int, ifSeq: UInt64? = nil) -> Outcome {
        append(
            .delete, 0, WriteBuilder.options(false, ifSeq, nil), kind: kind, known: 0, ifSeq: ifSeq ?? 0, payload: key)
    }

    /// Appends a move: the record leaves the old key and is saved under its own.
    ///
    /// - Parameters:
    ///   - known: the highest field number that the caller knows of the kind; fields above it are kept.
    ///   - ifSeq: the seq of the current entry at the old key.
    public mutating func move(
        from oldKey: UnsafeRawBufferPointer, to record: UnsafeRawBufferPointer, kind: Int, known: Int,
        isPersonal: Bool = false, ifSeq: UInt64? = nil, unlessExists: Int? = nil
    ) -> Outcome {
        append(
            .move, 0, WriteBuilder.options(isPersonal, ifSeq, unlessExists), kind: kind, known: known,
            ifSeq: ifSeq ?? 0, unlessExists: unlessExists ?? 0, oldKey: oldKey, payload: record)
    }

    /// Appends a restore: the record comes back to the place in the order of saving that it had.
    ///
    /// - Parameters:
    ///   - firstSeq: of the entry that first saved it, 1 or more.
    ///   - savedAt: when it was first saved, ms.
    ///   - isPersonal: its fields marked personal come back too.
    public mutating func restore(
        _ record: UnsafeRawBufferPointer, kind: Int, firstSeq: UInt64, savedAt: Int64, isPersonal: Bool = false,
        ifSeq: UInt64? = nil, unlessExists: Int? = nil
    ) -> Outcome {
        append(
            .restore, 0, WriteBuilder.options(isPersonal, ifSeq, unlessExists), kind: kind, known: 0,
            ifSeq: ifSeq ?? 0, unlessExists: unlessExists ?? 0, firstSeq: firstSeq, savedAt: savedAt, payload: record)
    }

    private static func options(_ isPersonal: Bool, _ ifSeq: UInt64?, _ unlessExists: Int?) -> OperationOptions {
        var options: OperationOptions = isPersonal ? [.personal] : []
        if ifSeq != nil { options.insert(.ifSeq) }
        if unlessExists != nil { options.insert(.unlessExists) }
        return options
    }

    @inline(__always)
    private mutating func append(
        _ action: OperationAction, _ mode: UInt8, _ options: OperationOptions, kind: Int, known: Int,
        ifSeq: UInt64 = 0, unlessExists: Int = 0, unset: [Int] = [],
        oldKey: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0), firstSeq: UInt64 = 0,
        savedAt: Int64 = 0, payload: UnsafeRawBufferPointer
    ) -> Outcome {
        let needed = WriteBuilder.operationHeadByteCountMax + unset.count * 10 + oldKey.count + payload.count
        if byteCount + needed > targetByteCount {
            if !isEmpty { return .isFull }
            if needed > byteCountMax { return .isTooLarge }
            grow(toHold: end + needed)
        }
        var writer = RawWriter(memory + end)
        writer.u8(action.rawValue)
        writer.u8(mode)
        writer.u8(options.rawValue)
        writer.varint(UInt64(kind))
        writer.varint(UInt64(known))
        if options.contains(.ifSeq) { writer.varint(ifSeq) }
        if options.contains(.unlessExists) { writer.varint(UInt64(unlessExists)) }
        if options.contains(.unset) {
            writer.varint(UInt64(unset.count))
            for field in unset { writer.varint(UInt64(field)) }
        }
        if action == .move {
            writer.varint(UInt64(oldKey.count))
            writer.raw(oldKey)
        }
        if action == .restore {
            writer.varint(firstSeq)
            writer.varint(zigzag(savedAt))
        }
        writer.varint(UInt64(payload.count))
        writer.raw(payload)
        end = writer.at - memory
        operationCount += 1
        return .appended
    }

    private mutating func grow(toHold needed: Int) {
        guard needed > capacity else { return }
        let larger = UnsafeMutableRawPointer.allocate(byteCount: needed, alignment: 64)
        larger.copyMemory(from: memory, byteCount: end)
        memory.deallocate()
        memory = larger
        capacity = needed
    }

    /// Writes the heads and gives the whole frame, which is the builder's until the next call to it.
    ///
    /// There is at least one operation.
    public mutating func finish(
        id: UInt32, flags: WriteFlags = [], origin: UInt64 = 0, batch: UInt64 = 0
    ) -> UnsafeRawBufferPointer {
        precondition(operationCount > 0, "a WRITE has one operation or more")
        let head = 1 + varintByteCount(origin) + varintByteCount(batch) + varintByteCount(UInt64(operationCount))
        let start = WriteBuilder.headRoom - head - FrameHeader.byteCount
        var writer = RawWriter(memory + start)
        FrameHeader(bodyByteCount: head + byteCount, type: MessageType.write.rawValue, id: id).encode(into: &writer)
        writer.u8(flags.rawValue)
        writer.varint(origin)
        writer.varint(batch)
        writer.varint(UInt64(operationCount))
        return UnsafeRawBufferPointer(start: memory + start, count: end - start)
    }
}

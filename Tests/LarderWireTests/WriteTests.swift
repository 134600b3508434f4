// WRITE's operations, the builder, and the records of RECORD.

import LarderFormat
import LarderWire
import Testing

@Suite("WRITE")
struct WriteTests {
    private func fault(_ operation: [UInt8]) -> FormatError? {
        do {
            _ = try ([0, 0, 0, 1] + operation).withUnsafeBytes { try WriteSample.recode($0) }
            return nil
        } catch { return error as? FormatError }
    }

    @Test("operations read as they were written")
    func fields() throws {
        try WriteSample.all.withUnsafeBytes { body in
            var operations = try OperationReader(body: body)
            #expect(
                operations.header
                    == WriteHeader(flags: [.atomic, .results], origin: 300, batch: 70_000, operationCount: 9))
            let insert = try #require(try operations.next())
            #expect(
                insert.mode == .insert && insert.kind == 1 && insert.known == 24 && Array(insert.payload) == [9, 8, 7])
            #expect(operations.position == 1 && operations.remainingCount == 8)
            let replace = try #require(try operations.next())
            #expect(replace.options == [.personal, .ifSeq, .unlessExists])
            #expect(replace.kind == 128 && replace.ifSeq == 300 && replace.unlessExists == 5)
            let merge = try #require(try operations.next())
            #expect(merge.unsetFieldNumbers == [3, 256] && merge.payload.isEmpty)
            _ = try operations.next()
            let delete = try #require(try operations.next())
            #expect(delete.isDelete && delete.mode == nil && Array(delete.payload) == Array("ab".utf8))
            let move = try #require(try operations.next())
            #expect(move.action == .move && move.mode == nil && !move.isDelete && move.known == 33)
            #expect(Array(move.oldKey) == Array("ab".utf8) && Array(move.payload) == [9, 8, 7])
            let checkedMove = try #require(try operations.next())
            #expect(checkedMove.ifSeq == 300 && checkedMove.unlessExists == 4 && Array(checkedMove.payload) == [9])
            let restore = try #require(try operations.next())
            #expect(restore.action == .restore && restore.firstSeq == 44 && restore.savedAt == -2)
            #expect(Array(restore.payload) == [9, 8] && restore.oldKey.isEmpty)
            let checkedRestore = try #require(try operations.next())
            #expect(checkedRestore.unlessExists == 6 && checkedRestore.firstSeq == 128)
            #expect(try operations.next() == nil)
            #expect(try operations.next() == nil)
        }
    }

    @Test("an operation that contradicts itself is refused at the field at fault")
    func contradictions() {
        #expect(fault([1, 1, 0, 1, 24, 0]) == nil)
        #expect(fault([0, 1, 0, 1, 24, 0]) == FormatError(.outOfRange, at: 4))
        #expect(fault([5, 0, 0, 1, 24, 0]) == FormatError(.outOfRange, at: 4))
        #expect(fault([3, 1, 0, 1, 24, 0, 0]) == FormatError(.badStructure, at: 4), "a move has no mode")
        #expect(fault([3, 0, 8, 1, 24, 0, 0, 0]) == FormatError(.badStructure, at: 4), "unset is for merge")
        #expect(fault([4, 0, 0, 1, 24, 1, 0, 0]) == FormatError(.outOfRange, at: 8), "known of a restore")
        #expect(fault([4, 0, 0, 1, 0, 0, 0, 0]) == FormatError(.outOfRange, at: 9), "first seq 0")
        #expect(fault([1, 0, 0, 1, 24, 0]) == FormatError(.badStructure, at: 4))
        #expect(fault([1, 5, 0, 1, 24, 0]) == FormatError(.outOfRange, at: 5))
        #expect(fault([2, 1, 0, 1, 0, 0]) == FormatError(.badStructure, at: 4))
        #expect(fault([1, 1, 16, 1, 24, 0]) == FormatError(.badStructure, at: 6))
        #expect(fault([1, 1, 8, 1, 24, 0, 0]) == FormatError(.badStructure, at: 4), "unset is for merge")
        #expect(fault([2, 0, 4, 1, 0, 1, 0]) == FormatError(.badStructure, at: 4), "unless_exists is for saves")
        #expect(fault([2, 0, 0, 1, 1, 0]) == FormatError(.outOfRange, at: 8), "known of a delete")
    }

    @Test("a batch without operations, or with bytes behind them, is refused")
    func counts() {
        #expect(throws: FormatError(.outOfRange, at: 3)) {
            try [UInt8]([0, 0, 0, 0]).withUnsafeBytes { try OperationReader(body: $0) }
        }
        #expect(throws: FormatError(.badStructure, at: 0)) {
            try [UInt8]([8, 0, 0, 1, 1, 1, 0, 1, 1, 0]).withUnsafeBytes { try OperationReader(body: $0) }
        }
        #expect(fault([1, 1, 0, 1, 24, 0, 0]) == FormatError(.trailing, at: 10))
    }

    @Test("the builder makes the frame that the reader reads", arguments: [1, 2, 127, 128, 300])
    func builder(_ count: Int) throws {
        var builder = WriteBuilder()
        for round in 0..<2 {
            for index in 0..<count {
                let record = [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: index % 200)
                record.withUnsafeBytes { #expect(builder.save($0, kind: 1, known: 24) == .appended) }
            }
            let frame = builder.finish(id: 77, flags: .results, origin: 1 << 40, batch: 3)
            let step = try FrameDecoder.next(frame, limit: FrameHeader.bodyByteCountMax)
            guard case .frame(let header, let body) = step else {
                Issue.record("no frame in round \(round)")
                return
            }
            #expect(header.messageType == .write && header.id == 77 && body.upperBound == frame.count)
            var operations = try OperationReader(body: UnsafeRawBufferPointer(rebasing: frame[body]))
            #expect(operations.header == WriteHeader(flags: .results, origin: 1 << 40, batch: 3, operationCount: count))
            var index = 0
            while let operation = try operations.next() {
                #expect(operation.payload.count == index % 200 && operation.mode == .merge)
                index += 1
            }
            #expect(index == count)
            builder.reset()
        }
    }

    @Test("the builder writes every option and deletes")
    func builderOptions() throws {
        var builder = WriteBuilder()
        let bytes: [UInt8] = [1, 2, 3]
        bytes.withUnsafeBytes { payload in
            _ = builder.save(
                payload, kind: 2, known: 9, mode: .merge, isPersonal: true, ifSeq: 5, unlessExists: 4, unset: [1, 256])
            _ = builder.delete(payload, kind: 3)
            _ = builder.delete(payload, kind: 3, ifSeq: 0)
            _ = builder.move(from: payload, to: payload, kind: 4, known: 7, isPersonal: true, ifSeq: 8)
            _ = builder.restore(payload, kind: 4, firstSeq: 300, savedAt: -1_000, unlessExists: 2)
            _ = builder.save(payload, kind: 2, known: 9, mode: .fill, isPersonal: true)
        }
        let frame = builder.finish(id: 1)
        var operations = try OperationReader(body: UnsafeRawBufferPointer(rebasing: frame[12...]))
        let save = try #require(try operations.next())
        #expect(save.options == [.personal, .ifSeq, .unlessExists, .unset] && save.ifSeq == 5)
        #expect(save.unlessExists == 4 && save.unsetFieldNumbers == [1, 256])
        let delete = try #require(try operations.next())
        #expect(delete.isDelete && delete.options.isEmpty && delete.known == 0)
        #expect(try #require(try operations.next()).options == .ifSeq)
        let move = try #require(try operations.next())
        #expect(move.action == .move && move.options == [.personal, .ifSeq] && move.ifSeq == 8 && move.known == 7)
        #expect(Array(move.oldKey) == bytes && Array(move.payload) == bytes)
        let restore = try #require(try operations.next())
        #expect(restore.action == .restore && restore.options == .unlessExists && restore.unlessExists == 2)
        #expect(restore.firstSeq == 300 && restore.savedAt == -1_000 && Array(restore.payload) == bytes)
        let fill = try #require(try operations.next())
        #expect(fill.mode == .fill && fill.options == .personal)
        #expect(try operations.next() == nil)
    }

    @Test("the builder is full at its target, gives a large record a frame of its own, and refuses one over the limit")
    func builderLimits() throws {
        var builder = WriteBuilder(targetByteCount: 1_000, byteCountMax: 10_000)
        let small = [UInt8](repeating: 1, count: 400)
        let large = [UInt8](repeating: 2, count: 9_000)
        let huge = [UInt8](repeating: 3, count: 10_000)
        small.withUnsafeBytes { #expect(builder.save($0, kind: 1, known: 1) == .appended) }
        small.withUnsafeBytes { #expect(builder.save($0, kind: 1, known: 1) == .appended) }
        small.withUnsafeBytes { #expect(builder.save($0, kind: 1, known: 1) == .isFull) }
        builder.reset()
        huge.withUnsafeBytes { #expect(builder.save($0, kind: 1, known: 1) == .isTooLarge) }
        large.withUnsafeBytes { #expect(builder.save($0, kind: 1, known: 1) == .appended) }
        small.withUnsafeBytes { #expect(builder.save($0, kind: 1, known: 1) == .isFull) }
        #expect(builder.finish(id: 1).count > 9_000)
        builder.reset()
        small.withUnsafeBytes { #expect(builder.save($0, kind: 1, known: 1) == .appended) }
    }

    @Test("a RECORD frame written in place is the frame of the message")
    func recordFrame() {
        for count in [0, 1, 127, 128, 20_000] {
            let stored = StoredRecord(Samples.stored.header, record: [UInt8](repeating: 5, count: count))
            let expected = RecordReply(stored).framed(id: 12)
            let room = FrameHeader.byteCount + StoredRecordHeader.byteCountMax + count
            var bytes = [UInt8](repeating: 0, count: room)
            let written = bytes.withUnsafeMutableBytes { room in
                stored.record.withUnsafeBytes {
                    stored.header.encodeFrame($0, id: 12, into: room.baseAddress!)
                }
            }
            #expect(Array(bytes[..<written]) == expected)
        }
    }
}

// Entries and blocks of Protocol/vectors.

import Testing

@testable import LarderFormat

@Suite("Vectors of entries and blocks")
struct VectorTestsOfTheLog {
    // MARK: Entries

    private static let typeNames: [String: UInt8] = [
        "created": EntryType.created, "updated": EntryType.updated, "deleted": EntryType.deleted,
        "kind": EntryType.kind, "origin": EntryType.origin, "import_began": EntryType.importBegan,
        "import_ended": EntryType.importEnded, "token": EntryType.token, "recovered": EntryType.recovered,
    ]
    private static let endedCounts = [
        "read", "created", "updated", "unchanged", "duplicate", "already_saved", "skipped", "refused",
    ]
    private static let writtenCounts = [
        "created", "updated", "unchanged", "duplicate", "already_saved", "not_found", "deleted", "refused",
    ]

    private func entryFile() throws -> VectorFile { try VectorFile("entries", members: ["first_seq", "time"]) }

    private func entryType(_ value: Vector) throws -> UInt8 {
        guard try value.value("type").string != nil else { return try value.integer("type") }
        let name = try value.text("type")
        guard let type = VectorTestsOfTheLog.typeNames[name] else { throw VectorFormError("\(value): type \(name)") }
        return type
    }

    /// One entry and nothing behind it; `body` gets it with a reader at its payload.
    private func withEntry<T>(
        _ bytes: [UInt8], _ vector: Vector, isVerified: Bool = true, _ body: (EntryView, inout ByteReader) throws -> T
    ) throws -> T {
        let firstSeq = try vector.integer("first_seq", as: UInt64.self)
        let time = try vector.integer("time", as: Int64.self)
        return try bytes.reading { reader in
            let entry = try readEntry(
                base: reader.base, offset: 0, end: reader.end, commitFirstSeq: firstSeq, commitTime: time,
                isVerified: isVerified)
            guard entry.byteCount == bytes.count else { throw FormatError(.trailing, at: entry.byteCount) }
            let start = try #require(entry.payload.baseAddress) - reader.base
            #expect(start + entry.payload.count + 4 == bytes.count, "\(vector): the payload ends before the CRC")
            var payload = ByteReader(base: reader.base, offset: start, end: bytes.count - 4)
            return try body(entry, &payload)
        }
    }

    /// The body of the types that `readEntry` leaves alone, encoded again from what was read.
    private func recodedBody(_ type: UInt8, _ reader: inout ByteReader) throws -> [UInt8] {
        var writer = ByteWriter()
        switch type {
        case EntryType.kind: try Kind(from: &reader).encode(into: &writer)
        case EntryType.origin:
            writer.varint(try reader.varint())
            writer.text(try reader.text())
            writer.text(try reader.text())
        case EntryType.importBegan:
            writer.varint(try reader.varint())
            writer.text(try reader.text())
        case EntryType.importEnded:
            writer.varint(try reader.varint())
            let start = reader.offset
            let outcome = try reader.u8()
            guard (1...3).contains(outcome) else { throw FormatError(.outOfRange, at: start) }
            writer.u8(outcome)
            for _ in VectorTestsOfTheLog.endedCounts { writer.varint(try reader.varint()) }
        case EntryType.token:
            for _ in 0..<(2 + VectorTestsOfTheLog.writtenCounts.count) { writer.varint(try reader.varint()) }
        case EntryType.recovered:
            for _ in 0..<2 { writer.varint(try reader.varint()) }
        default: writer.raw(try reader.slice(reader.remaining))
        }
        try reader.expectEnd()
        return writer.bytes
    }

    /// The same body from a vector's value.
    private func body(_ type: UInt8, _ value: Vector) throws -> [UInt8] {
        var writer = ByteWriter()
        func numbers(_ names: [String], in vector: Vector) throws {
            for name in names { writer.varint(try vector.integer(name, as: UInt64.self)) }
        }
        switch type {
        case EntryType.kind: try Kind(json: value.value("kind")).encode(into: &writer)
        case EntryType.origin:
            try numbers(["number"], in: value)
            writer.text(try value.text("name"))
            writer.text(try value.text("token"))
        case EntryType.importBegan:
            try numbers(["origin"], in: value)
            writer.text(try value.text("source"))
        case EntryType.importEnded:
            try numbers(["origin"], in: value)
            writer.u8(try value.integer("outcome"))
            try numbers(VectorTestsOfTheLog.endedCounts, in: value.object("counts"))
        case EntryType.token:
            try numbers(["origin", "batch"], in: value)
            try numbers(VectorTestsOfTheLog.writtenCounts, in: value.object("counts"))
        case EntryType.recovered: try numbers(["from", "to"], in: value)
        default: writer.raw(try value.hex("body"))
        }
        return writer.bytes
    }

    /// What `EntryWriter` makes of an entry.
    private func encoded(
        _ entry: EntryView, _ payload: [UInt8], commitFirstSeq: UInt64, commitTime: Int64
    ) -> [UInt8] {
        let room = payload.count + EntryWriter.headByteCountMax
        return [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
            guard let base = UnsafeMutableRawPointer(buffer.baseAddress) else { return }
            count = payload.withUnsafeBytes { payload in
                switch entry.type {
                case EntryType.created:
                    EntryWriter.created(
                        at: base, seq: entry.seq, commitFirstSeq: commitFirstSeq, kind: entry.kind,
                        origin: entry.origin, record: payload)
                case EntryType.updated:
                    EntryWriter.updated(
                        at: base, seq: entry.seq, commitFirstSeq: commitFirstSeq, commitTime: commitTime,
                        flags: entry.flags, kind: entry.kind, origin: entry.origin, firstSeq: entry.firstSeq,
                        savedAt: entry.savedAt, previousSeq: entry.previousSeq, changed: entry.changed,
                        record: payload)
                case EntryType.deleted:
                    EntryWriter.deleted(
                        at: base, seq: entry.seq, commitFirstSeq: commitFirstSeq, kind: entry.kind,
                        origin: entry.origin, firstSeq: entry.firstSeq, previousSeq: entry.previousSeq, key: payload)
                default:
                    EntryWriter.other(
                        at: base, type: entry.type, seq: entry.seq, commitFirstSeq: commitFirstSeq, body: payload)
                }
            }
        }
    }

    /// The entry that a vector's value describes, with its payload.
    private func expectedEntry(_ vector: Vector) throws -> (EntryView, payload: [UInt8]) {
        let value = try vector.object("value")
        var entry = EntryView()
        entry.type = try entryType(value)
        entry.seq = try value.integer("seq")
        guard (EntryType.created...EntryType.deleted).contains(entry.type) else {
            entry.savedAt = try vector.integer("time")
            return (entry, try body(entry.type, value))
        }
        entry.kind = try value.integer("kind")
        entry.origin = try value.integer("origin")
        entry.firstSeq = try value.integer("first_seq")
        let isDeleted = entry.type == EntryType.deleted
        entry.savedAt = try isDeleted ? vector.integer("time") : value.integer("saved_at")
        if entry.type != EntryType.created {
            entry.flags = try value.integer("flags")
            entry.previousSeq = try value.integer("previous_seq")
        }
        if entry.type == EntryType.updated {
            entry.changed = FieldSet(
                try (value.value("changed").array ?? []).map { number in
                    guard let number = number.int64 else { throw VectorFormError("\(vector): changed") }
                    return Int(number)
                })
        }
        return (entry, try value.hex(isDeleted ? "key" : "record"))
    }

    @Test("valid entries")
    func validEntries() throws {
        for vector in try entryFile().valid {
            let bytes = try vector.bytes()
            let (expected, payload) = try expectedEntry(vector)
            try withEntry(bytes, vector) { entry, reader in
                #expect(entry.type == expected.type && entry.seq == expected.seq, "\(vector)")
                #expect(entry.kind == expected.kind && entry.origin == expected.origin, "\(vector)")
                #expect(entry.firstSeq == expected.firstSeq && entry.savedAt == expected.savedAt, "\(vector)")
                #expect(entry.flags == expected.flags && entry.previousSeq == expected.previousSeq, "\(vector)")
                #expect(entry.changed == expected.changed && Array(entry.payload) == payload, "\(vector)")
                let recoded = try recodedBody(entry.type, &reader)
                #expect(recoded == payload, "\(vector)")
            }
            let made = try encoded(
                expected, payload, commitFirstSeq: vector.integer("first_seq"), commitTime: vector.integer("time"))
            #expect(made == bytes, "\(vector)")
        }
    }

    @Test("invalid entries")
    func invalidEntries() throws {
        for vector in try entryFile().invalid {
            let found = try outcome(vector, .log) {
                try withEntry(vector.bytes(), vector) { entry, reader in try recodedBody(entry.type, &reader) }
            }
            #expect(try found == expectedOutcome(vector), "\(vector)")
        }
    }

    @Test("an entry that is cut or has a flipped bit is refused; without its CRC it is its own encoding")
    func entryFlips() throws {
        for vector in try entryFile().valid {
            let bytes = try vector.bytes()
            let firstSeq = try vector.integer("first_seq", as: UInt64.self)
            let time = try vector.integer("time", as: Int64.self)
            for count in bytes.indices {
                for isVerified in [true, false] {
                    let found = try attempt {
                        try withEntry(Array(bytes[..<count]), vector, isVerified: isVerified) { entry, _ in entry.seq }
                    }
                    #expect(throws: FormatError.self, "\(vector), \(count) bytes") { try found.get() }
                }
            }
            try bytes.eachFlip { changed, bit in
                #expect(throws: FormatError.self, "\(vector), bit \(bit)") {
                    try withEntry(changed, vector) { entry, _ in entry.seq }
                }
                let read = try attempt {
                    try withEntry(changed, vector, isVerified: false) { entry, reader in
                        (entry, Array(entry.payload), try attempt { try recodedBody(entry.type, &reader) })
                    }
                }
                guard case .success(let (entry, payload, body)) = read else { return }
                let made = encoded(entry, payload, commitFirstSeq: firstSeq, commitTime: time)
                #expect(made.dropLast(4) == changed.dropLast(4), "\(vector), bit \(bit)")
                if case .success(let body) = body { #expect(body == payload, "\(vector), bit \(bit)") }
            }
        }
    }

    // MARK: Blocks

    private struct ListedEntry: Equatable {
        var type: UInt8
        var seq: UInt64
        var offset: Int
        var byteCount: Int
    }

    private func blockFile() throws -> VectorFile {
        try VectorFile("blocks", members: ["epoch", "segment", "at", "zeros"], optional: ["unpacked"])
    }

    private func place(_ vector: Vector) throws -> (epoch: UInt64, position: LogPosition) {
        let position = try LogPosition(segment: vector.integer("segment"), offset: vector.integer("at"))
        return (try vector.integer("epoch"), position)
    }

    /// A whole block: its header, and its entries unless it is compressed.
    private func readBlock(
        _ bytes: UnsafeRawBufferPointer, epoch: UInt64, position: LogPosition
    ) throws -> (BlockHeader, [ListedEntry]) {
        let header = try BlockHeader(bytes, epoch: epoch, position: position)
        let start = header.byteCount
        guard bytes.count >= Int(header.blockByteCount) else { throw FormatError(.truncated, at: start) }
        let stored = UnsafeRawBufferPointer(rebasing: bytes[start..<(start + Int(header.storedByteCount))])
        guard header.flags & BlockHeader.compressed == 0 else {
            guard crc32c(stored) == header.storedCRC else { throw FormatError(.badChecksum, at: start) }
            do throws(FormatError) {
                _ = try PayloadPieces(stored, plainByteCount: Int(header.plainByteCount))
            } catch { throw FormatError(error.code, at: start + error.offset) }
            return (header, [])
        }
        return (header, try entries(of: header, in: bytes))
    }

    /// - Parameter bytes: the header and the plain payload.
    private func entries(of header: BlockHeader, in bytes: UnsafeRawBufferPointer) throws -> [ListedEntry] {
        let base = try #require(bytes.baseAddress)
        var entries: [ListedEntry] = []
        var at = header.byteCount
        for commit in header.commits {
            let end = at + Int(commit.plainByteCount)
            for _ in 0..<commit.entryCount {
                let entry = try readEntry(
                    base: base, offset: at, end: end, commitFirstSeq: commit.firstSeq, commitTime: commit.time)
                guard entry.seq > entries.last?.seq ?? 0 else { throw FormatError(.outOfRange, at: at) }
                entries.append(
                    ListedEntry(type: entry.type, seq: entry.seq, offset: at, byteCount: entry.byteCount))
                at += entry.byteCount
            }
            guard at == end else { throw FormatError(.trailing, at: at) }
        }
        return entries
    }

    /// The entries of a compressed block.
    private func unpackedEntries(of header: BlockHeader, _ stored: [UInt8]) throws -> [ListedEntry] {
        try stored.withUnsafeBytes { stored in
            let plainByteCount = Int(header.plainByteCount)
            let pieces = try PayloadPieces(stored, plainByteCount: plainByteCount)
            var block = [UInt8](repeating: 0, count: header.byteCount + plainByteCount)
            try block.withUnsafeMutableBytes { block in
                let base = try #require(block.baseAddress)
                for piece in 0..<pieces.count {
                    let plain = pieces.plain(piece)
                    let isUnpacked = PayloadPieces.unpack(
                        UnsafeRawBufferPointer(rebasing: stored[pieces.stored(piece)]),
                        into: base + header.byteCount + plain.lowerBound, count: plain.count)
                    #expect(isUnpacked, "piece \(piece)")
                }
            }
            return try block.withUnsafeBytes { try entries(of: header, in: $0) }
        }
    }

    private func readBlock(_ bytes: [UInt8], _ vector: Vector) throws -> (BlockHeader, [ListedEntry]) {
        let (epoch, position) = try place(vector)
        return try bytes.withUnsafeBytes { try readBlock($0, epoch: epoch, position: position) }
    }

    private func expectedHeader(_ vector: Vector) throws -> BlockHeader {
        let value = try vector.object("value")
        let (epoch, position) = try place(vector)
        var header = BlockHeader(
            epoch: epoch, position: position,
            synced: LogPosition(
                segment: try value.integer("synced_segment"), offset: try value.integer("synced_offset")))
        header.flags = try value.integer("flags")
        header.blockByteCount = try value.integer("block_bytes")
        header.storedByteCount = try value.integer("stored_bytes")
        header.plainByteCount = try value.integer("plain_bytes")
        header.commits = try value.objects("commits").map { row in
            CommitHeader(
                firstSeq: try row.integer("first_seq"), time: try row.integer("time"),
                entryCount: try row.integer("entry_count"), plainByteCount: try row.integer("plain_bytes"))
        }
        header.entryCount = header.commits.reduce(0) { $0 + $1.entryCount }
        return header
    }

    private func listed(_ entries: [Vector]) throws -> [ListedEntry] {
        try entries.map { entry in
            ListedEntry(
                type: try entry.integer("type"), seq: try entry.integer("seq"),
                offset: try entry.integer("offset"), byteCount: try entry.integer("bytes"))
        }
    }

    @Test("valid blocks")
    func validBlocks() throws {
        for vector in try blockFile().valid {
            let bytes = try vector.bytes()
            let (header, entries) = try readBlock(bytes, vector)
            var expected = try expectedHeader(vector)
            let stored = bytes[expected.byteCount...].prefix(Int(expected.storedByteCount))
            if expected.flags & BlockHeader.compressed != 0 {
                expected.storedCRC = Array(stored).withUnsafeBytes { crc32c($0) }
            }
            #expect(header == expected, "\(vector)")
            let listed = try self.listed(vector.object("value").objects("entries"))
            #expect(entries == listed, "\(vector)")
            if expected.isCompressed, Zstandard.isInstalled {
                let unpacked = try unpackedEntries(of: header, Array(stored))
                #expect(try unpacked == self.listed(vector.objects("unpacked")), "\(vector)")
            }
            var made = [UInt8](repeating: 0, count: expected.byteCount)
            made.withUnsafeMutableBytes { buffer in
                if let base = buffer.baseAddress { expected.write(at: base) }
            }
            made += stored
            made += [UInt8](repeating: 0, count: Int(expected.blockByteCount) - made.count)
            #expect(made == bytes, "\(vector)")
        }
    }

    @Test("invalid blocks")
    func invalidBlocks() throws {
        for vector in try blockFile().invalid {
            let found = try outcome(vector, .log) { try readBlock(vector.bytes(), vector).0 }
            #expect(try found == expectedOutcome(vector), "\(vector)")
        }
    }

    @Test("a block that is cut, or has a bit flipped before its padding, is refused")
    func blockFlips() throws {
        for vector in try blockFile().valid {
            var bytes = try vector.bytes()
            let (epoch, position) = try place(vector)
            let header = try readBlock(bytes, vector).0
            let used = header.byteCount + Int(header.storedByteCount)
            var wrong: [String] = []
            bytes.withUnsafeMutableBytes { buffer in
                func isTaken(_ count: Int) -> Bool {
                    let bytes = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count])
                    return (try? readBlock(bytes, epoch: epoch, position: position)) != nil
                }
                for count in buffer.indices where isTaken(count) { wrong.append("\(count) bytes") }
                for bit in 0..<(buffer.count * 8) {
                    buffer[bit / 8] ^= 1 << UInt8(bit % 8)
                    if isTaken(buffer.count) != (bit / 8 >= used) { wrong.append("bit \(bit)") }
                    buffer[bit / 8] ^= 1 << UInt8(bit % 8)
                }
            }
            #expect(wrong.isEmpty, "\(vector)")
        }
    }
}

// Targets of the file format: records, entries, blocks, kinds.

import LarderFormat

/// A kind, a mode, two records: scanned, decoded, printed, and the one merged into the other.
func fuzzRecord(_ bytes: UnsafeRawBufferPointer) {
    let (head, rest) = bytes.split(4)
    guard head.count == 4 else { return }
    let schema = FuzzKinds.schemas[Int(head[0]) % FuzzKinds.schemas.count]
    let (first, second) = rest.split(Int(head[1]) * 4)
    let isSound = decode(first, schema)
    let isOtherSound = decode(second, schema)
    var ranges: [Range<Int>] = []
    // Records that a log holds need not be of this version of the kind.
    for record in [first, second] {
        _ = try? schema.keyRange(ofChecked: record)
        _ = try? schema.fieldRanges(ofChecked: record, into: &ranges)
        _ = try? schema.range(of: Int(head[2]) + 1, inChecked: record)
        _ = try? schema.checkKey(record)
        _ = try? RecordKey(decoding: record, schema.kind)
        _ = SearchQuery("matrix 한국").rank(of: record, schema: schema)
    }
    guard isOtherSound else { return }
    var merger = RecordMerger()
    let modes: [SaveMode] = [.insert, .replace, .merge, .fill]
    let changes = try? merger.merge(
        old: isSound ? first : nil, new: second, schema: schema, mode: modes[Int(head[3]) % 4],
        known: Int(head[2]), personal: head[3] & 4 != 0, unset: FieldSet([Int(head[2]) % 14 + 1]))
    must(changes != nil, "two sound records do not merge")
    if !isSound, head[3] & 4 != 0 {
        must(changes == true && merger.result.bytes.elementsEqual(second), "a new record is not what was sent")
    }
}

/// Whether it is a record of the kind; what is decoded must encode to the same bytes.
private func decode(_ record: UnsafeRawBufferPointer, _ schema: RecordSchema) -> Bool {
    let scan = try? schema.scan(record)
    let decoded = try? Record(decoding: Array(record), schema.kind)
    must((scan != nil) == (decoded != nil), "scan and decode differ on \(Array(record))")
    guard let decoded else { return false }
    let again = try? decoded.encode(schema.kind)
    must(again.map { $0.elementsEqual(record) } ?? false, "a record is written with other bytes: \(Array(record))")
    let json = decoded.json(schema.kind)
    guard let value = try? JSONValue(parsing: json), let read = try? Record(json: value, schema.kind) else {
        must(false, "a record's JSON is not read: \(json)")
        return false
    }
    // A number of more digits than a double has is read from JSON as a double.
    let isExact = decoded.values.allSatisfy { field in
        guard case .number(let number) = field.value else { return true }
        return Number(double: number.doubleValue) == number
    }
    must(read == decoded || !isExact, "a record's JSON is another record: \(json)")
    return true
}

/// A commit's first seq and time, then an entry; read as it is, and with a CRC that holds.
func fuzzEntry(_ bytes: UnsafeRawBufferPointer) {
    let (head, entry) = bytes.split(12)
    guard head.count == 12 else { return }
    let firstSeq = head.loadUnaligned(as: UInt64.self)
    let time = Int64(head.loadUnaligned(fromByteOffset: 8, as: Int32.self)) << Int64(head[0] & 31)
    read(entry, firstSeq, time)
    var signed = Array(entry)
    _ = signed.withUnsafeMutableBytes { sign(entryAt: 0, $0, end: $0.count, firstSeq: firstSeq) }
    signed.withUnsafeBytes { read($0, firstSeq, time) }
}

private func read(_ bytes: UnsafeRawBufferPointer, _ firstSeq: UInt64, _ time: Int64) {
    guard let base = bytes.baseAddress,
        let entry = try? readEntry(
            base: base, offset: 0, end: bytes.count, commitFirstSeq: firstSeq, commitTime: time)
    else { return }
    must(entry.byteCount <= bytes.count, "an entry reaches past its bytes")
    must(entry.seq >= firstSeq && entry.firstSeq <= entry.seq, "an entry's seqs cannot be: \(entry)")
    for schema in FuzzKinds.schemas where schema.kind.number == entry.kind {
        _ = try? schema.keyRange(ofChecked: entry.payload)
    }
}

/// A block's header, read as it is and with a CRC that holds, at the place that it names.
func fuzzBlock(_ bytes: UnsafeRawBufferPointer) {
    var block = Array(bytes)
    for isSigned in [false, true] {
        if isSigned { block.withUnsafeMutableBytes { sign(headerAt: 0, $0) } }
        block.withUnsafeBytes { block in
            _ = BlockHeader.peekByteCount(block)
            guard block.count >= 64 else { return }
            let position = LogPosition(
                segment: block.loadUnaligned(fromByteOffset: 16, as: UInt32.self),
                offset: block.loadUnaligned(fromByteOffset: 20, as: UInt32.self))
            guard
                let header = try? BlockHeader(
                    block, epoch: block.loadUnaligned(fromByteOffset: 8, as: UInt64.self), position: position)
            else { return }
            must(
                header.byteCount + Int(header.storedByteCount) <= Int(header.blockByteCount),
                "a payload reaches past its block")
            var written = [UInt8](repeating: 0, count: header.byteCount)
            written.withUnsafeMutableBytes { if let base = $0.baseAddress { header.write(at: base) } }
            must(written.elementsEqual(block[..<header.byteCount]), "a header is written with other bytes")
            if header.isCompressed { unpack(header, block) }
        }
    }
}

/// The pieces of a compressed payload, by its table or found one behind the other.
private func unpack(_ header: BlockHeader, _ block: UnsafeRawBufferPointer) {
    let start = min(header.byteCount, block.count)
    let stored = UnsafeRawBufferPointer(rebasing: block[start..<min(start + Int(header.storedByteCount), block.count)])
    let plainByteCount = Int(header.plainByteCount)
    for pieces in [
        try? PayloadPieces(stored, plainByteCount: plainByteCount),
        PayloadPieces(damaged: stored, plainByteCount: plainByteCount),
    ] {
        guard let pieces else { continue }
        var plain = [UInt8](repeating: 0, count: plainByteCount)
        plain.withUnsafeMutableBytes { plain in
            guard let base = plain.baseAddress else { return }
            for piece in 0..<pieces.count {
                let range = pieces.plain(piece)
                _ = PayloadPieces.unpack(
                    UnsafeRawBufferPointer(rebasing: stored[pieces.stored(piece)]), into: base + range.lowerBound,
                    count: range.count)
            }
        }
    }
}

/// A declaration, as bytes and as a file.
func fuzzKind(_ bytes: UnsafeRawBufferPointer) {
    var reader = ByteReader(bytes)
    if let kind = try? Kind(from: &reader) {
        must(kind.encoded.elementsEqual(bytes[..<reader.offset]), "a kind is written with other bytes")
        _ = RecordSchema(kind)
        for known in FuzzKinds.all {
            _ = kind.conflict(with: known, ownFieldNumberMin: 129)
            _ = known.grown(toHold: kind)
        }
    }
    var draftReader = ByteReader(bytes)
    if let draft = try? KindDraft(from: &draftReader) { _ = try? draft.kind(number: 64, version: 1) }
    if let kind = try? Kind(file: Array(bytes), number: 64) {
        var again = ByteReader(UnsafeRawBufferPointer(start: nil, count: 0))
        kind.encoded.withUnsafeBytes { bytes in
            again = ByteReader(bytes)
            must((try? Kind(from: &again)) == kind, "a kind of a file is not what it is as bytes")
        }
    }
}

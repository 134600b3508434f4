// Where the blocks of a log lie whose headers check, and how far the log was known to be durable.

import LarderFormat

/// A first look at a log: headers only. FORMAT.md section 10.
struct LogMap {
    struct Block {
        let offset: Int
        let byteCount: Int
        let flags: UInt8
        let firstSeq: UInt64

        var continues: Bool { flags & BlockHeader.continues != 0 }
        var isContinued: Bool { flags & BlockHeader.continued != 0 }
        var end: Int { offset + byteCount }
    }

    struct Part {
        let file: LogSource.File
        /// Ascending; what lies between them is no block.
        let blocks: [Block]
        var number: UInt32 { file.number }

        var repackedEnd: RepackedEnd {
            var end = RepackedEnd()
            for block in blocks { end.pass(flags: block.flags) }
            return end
        }
    }

    private(set) var parts: [Part] = []
    /// The highest position that a header names as synced.
    private(set) var synced = LogPosition(segment: 0, offset: 0)
    /// The highest offset of each segment that a header names as synced.
    private(set) var syncedOffsets: [UInt32: UInt32] = [:]

    init(_ source: LogSource) throws(StoreError) {
        for file in source.files {
            let scanner = try source.scanner(file)
            defer { scanner.close() }
            var blocks: [Block] = []
            var offset = 0
            while offset < scanner.size {
                // What lies inside a block may look like one: it is passed over.
                guard let header = try scanner.header(offset, epoch: source.epoch),
                    let firstSeq = header.commits.first?.firstSeq
                else {
                    offset += BlockHeader.alignment
                    continue
                }
                let block = Block(
                    offset: offset, byteCount: Int(header.blockByteCount), flags: header.flags, firstSeq: firstSeq)
                blocks.append(block)
                synced = max(synced, header.synced)
                syncedOffsets[header.synced.segment] = max(
                    syncedOffsets[header.synced.segment] ?? 0, header.synced.offset)
                offset = block.end
            }
            parts.append(Part(file: file, blocks: blocks))
        }
    }

    /// The first seq of the first block at or behind a place, or nil.
    func firstSeq(from part: Int, block: Int) -> UInt64? {
        guard parts.indices.contains(part) else { return nil }
        if parts[part].blocks.indices.contains(block) { return parts[part].blocks[block].firstSeq }
        return parts[(part + 1)...].lazy.compactMap { $0.blocks.first?.firstSeq }.first
    }
}

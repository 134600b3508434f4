// What lies in a segment: read once by a compaction's job, then judged by the store.

import LarderFormat

/// An entry of a record, as a listing has it.
struct ListedEntry {
    var seq: UInt64
    var firstSeq: UInt64
    /// Of the entry in the image of the old file.
    var offset: UInt32
    /// 21 bits of bytes, then flags.
    private var packed: UInt32

    init(_ entry: EntryView, offset: Int, isPurged: Bool) {
        seq = entry.seq
        firstSeq = entry.firstSeq
        self.offset = UInt32(truncatingIfNeeded: offset)
        packed = UInt32(truncatingIfNeeded: entry.byteCount) | (entry.isSave ? 1 << 30 : 0) | (isPurged ? 1 << 31 : 0)
    }

    var byteCount: Int { Int(packed & 0x1F_FFFF) }
    var isSave: Bool { packed & 1 << 30 != 0 }
    /// Its key is one of those that are purged.
    var isPurged: Bool { packed & 1 << 31 != 0 }
}

/// The entries of one segment.
struct SegmentListing {
    let number: UInt32
    let path: String
    /// Of the file, all of it whole blocks.
    let byteCount: Int
    /// Of its plain image.
    private(set) var imageByteCount = 0
    /// Saves and deletes, in order.
    private(set) var entries: ContiguousArray<ListedEntry> = []
    /// Bytes of the entries of no record that stay, and how many go.
    private(set) var otherByteCount = 0
    private(set) var droppedOtherCount = 0
    private(set) var commitCount = 0
    private(set) var lastSeq: UInt64 = 0
    private(set) var lastTime: Int64 = 0

    init(
        _ context: CompactionContext, _ number: UInt32, _ byteCount: Int, _ pace: inout Pace
    ) throws(CompactionFailure) {
        self.number = number
        path = context.logPath + "/" + Segment.name(number)
        self.byteCount = byteCount
        try context.eachBlock(path, number, byteCount, &pace) { block, start throws(CompactionFailure) in
            commitCount += block.header.commits.count
            lastTime = block.header.commits.last?.time ?? lastTime
            imageByteCount = start + block.header.plainBlockByteCount
            try context.eachEntry(block) { entry, _, offset in
                lastSeq = entry.seq
                if entry.type <= EntryType.deleted {
                    entries.append(
                        ListedEntry(entry, offset: start + offset, isPurged: context.isPurged(entry)))
                } else if context.keeps(entry) {
                    otherByteCount += entry.byteCount
                } else {
                    droppedOtherCount += 1
                }
            }
        }
    }
}

extension CompactionContext {
    /// Whether an entry of a record is of a key that is purged.
    func isPurged(_ entry: EntryView) -> Bool {
        guard !purged.isEmpty, entry.seq <= purgeSeq else { return false }
        if entry.type == EntryType.deleted {
            return purged.contains(PurgedKey(kind: entry.kind, key: Array(entry.payload)))
        }
        guard let range = try? schemas[entry.kind]?.keyRange(ofChecked: entry.payload) else { return false }
        return purged.contains(PurgedKey(kind: entry.kind, key: Array(entry.payload[range])))
    }
}

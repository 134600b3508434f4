// Whether a block is whole: its header checks, and every entry's framing, seq and CRC. FORMAT.md section 10.

import LarderFormat

/// The judgement that opening makes of every block, on bytes in memory.
enum BlockCheck {
    /// Whether a whole block begins at the first byte.
    ///
    /// - Parameter bytes: from the block's first byte; what lies behind the block does not matter.
    static func isWhole(_ bytes: UnsafeRawBufferPointer, epoch: UInt64, position: LogPosition) -> Bool {
        guard let header = try? BlockHeader(bytes, epoch: epoch, position: position) else { return false }
        if header.isCompressed {
            let window = Window(capacity: 0)
            return withExtendedLifetime(window) { ScannedBlock(header, packed: bytes, in: window).isWhole }
        }
        return hasWholeEntries(bytes, header)
    }

    /// Whether all entries of a block whose header checks are as the header says.
    ///
    /// - Parameter block: the block, or, of a compressed one, the header and the plain payload.
    static func hasWholeEntries(_ block: UnsafeRawBufferPointer, _ header: BlockHeader) -> Bool {
        let needed = header.isCompressed ? header.byteCount + Int(header.plainByteCount) : Int(header.blockByteCount)
        guard block.count >= needed, let base = block.baseAddress else { return false }
        var at = header.byteCount
        var lastSeq: UInt64 = 0
        for commit in header.commits {
            let end = at + Int(commit.plainByteCount)
            var count: UInt32 = 0
            while at < end {
                guard
                    let entry = try? readEntry(
                        base: base, offset: at, end: end, commitFirstSeq: commit.firstSeq, commitTime: commit.time),
                    entry.seq > lastSeq, entry.seq - commit.firstSeq <= UInt64(UInt32.max)
                else { return false }
                lastSeq = entry.seq
                at += entry.byteCount
                count &+= 1
            }
            guard count == commit.entryCount else { return false }
        }
        return true
    }
}

// A block as a scanner gives it: plain, whatever lies in the file.

import LarderFormat

/// A block whose header checks. Valid until the scanner's next call.
struct ScannedBlock {
    let header: BlockHeader
    /// As it lies in the file. May end before the block does.
    let stored: UnsafeRawBufferPointer
    /// The header and the plain payload; of a frame that does not unpack, zeros.
    let bytes: UnsafeRawBufferPointer
    /// Nil where the block is not compressed, or its frames can't be found.
    let pieces: PayloadPieces?
    /// The payload's CRC checks, where it has one, and all of it could be unpacked.
    let isUnpacked: Bool

    /// A block that is not compressed.
    init(_ header: BlockHeader, plain bytes: UnsafeRawBufferPointer) {
        self.header = header
        stored = UnsafeRawBufferPointer(rebasing: bytes[..<min(Int(header.blockByteCount), bytes.count)])
        self.bytes = stored
        pieces = nil
        isUnpacked = true
    }

    /// A compressed block.
    ///
    /// - Parameter window: for the plain bytes.
    init(_ header: BlockHeader, packed bytes: UnsafeRawBufferPointer, in window: Window) {
        self.header = header
        stored = UnsafeRawBufferPointer(rebasing: bytes[..<min(Int(header.blockByteCount), bytes.count)])
        let head = header.byteCount
        let plainByteCount = Int(header.plainByteCount)
        let target = window.buffer(head + plainByteCount)
        self.bytes = UnsafeRawBufferPointer(target)
        let payload = UnsafeRawBufferPointer(
            rebasing: stored[min(head, stored.count)..<min(head + Int(header.storedByteCount), stored.count)])
        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: stored[..<min(head, stored.count)]))
        var isGood = payload.count == Int(header.storedByteCount) && crc32c(payload) == header.storedCRC
        var found: PayloadPieces?
        do throws(FormatError) {
            if isGood { found = try PayloadPieces(payload, plainByteCount: plainByteCount) }
        } catch { isGood = false }
        pieces = found ?? PayloadPieces(damaged: payload, plainByteCount: plainByteCount)
        if let pieces, let base = target.baseAddress {
            for piece in 0..<pieces.count {
                let plain = pieces.plain(piece)
                let frame = UnsafeRawBufferPointer(rebasing: payload[pieces.stored(piece)])
                let at = base + head + plain.lowerBound
                if PayloadPieces.unpack(frame, into: at, count: plain.count) { continue }
                isGood = false
                at.initializeMemory(as: UInt8.self, repeating: 0, count: plain.count)
            }
        } else {
            isGood = false
            UnsafeMutableRawBufferPointer(rebasing: target[head...]).initializeMemory(as: UInt8.self, repeating: 0)
        }
        isUnpacked = isGood
    }

    /// Whether the block is whole: all entries are as the header says.
    var isWhole: Bool { isUnpacked && BlockCheck.hasWholeEntries(bytes, header) }
}

extension SegmentScanner {
    /// The block that begins at `offset` and has this header.
    ///
    /// - Throws: `needsZstd` for a compressed one where the library is not there; `system`.
    func block(_ header: BlockHeader, _ offset: Int) throws(StoreError) -> ScannedBlock {
        let bytes = try bytes(offset, Int(header.blockByteCount))
        guard header.isCompressed else { return ScannedBlock(header, plain: bytes) }
        guard Zstandard.isInstalled else { throw .needsZstd(path: path) }
        return ScannedBlock(header, packed: bytes, in: unpacked)
    }
}

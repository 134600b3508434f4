// Gives changed bytes the checksums that a writer would: else no input would come past them.

import LarderFormat

/// Sets an entry's CRC, if its framing allows one; the bytes that it takes, or nil.
@discardableResult
func sign(
    entryAt offset: Int, _ bytes: UnsafeMutableRawBufferPointer, end: Int, firstSeq: UInt64
) -> Int? {
    guard let base = bytes.baseAddress, offset < end else { return nil }
    var reader = ByteReader(base: UnsafeRawPointer(base), offset: offset, end: end)
    guard let length = try? reader.varint(), length >= 6, length <= UInt64(reader.remaining) else { return nil }
    let crcOffset = reader.offset + Int(length) - 4
    guard (try? reader.u8()) != nil, let difference = try? reader.varint() else { return nil }
    let entry = UnsafeRawBufferPointer(rebasing: bytes[offset..<crcOffset])
    bytes.storeBytes(
        of: entryCRC(seq: firstSeq &+ difference, entry).littleEndian, toByteOffset: crcOffset, as: UInt32.self)
    return crcOffset + 4 - offset
}

/// Sets the CRC of a block's header.
func sign(headerAt offset: Int, _ bytes: UnsafeMutableRawBufferPointer) {
    let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
    guard let count = BlockHeader.peekByteCount(rest), count <= rest.count else { return }
    let fixed = crc32c(UnsafeRawBufferPointer(rebasing: rest[0..<60]))
    let crc = crc32c(UnsafeRawBufferPointer(rebasing: rest[64..<count]), seed: fixed)
    bytes.storeBytes(of: crc.littleEndian, toByteOffset: offset + 60, as: UInt32.self)
}

/// Makes the blocks of a segment ones of this library: epoch, place and CRC of each header that has a magic number, and
/// the CRCs of its entries.
///
/// - Parameter how: bit 2: lengths and counts are made to fit too; bit 4: entries keep their CRCs.
func sign(blocksOf bytes: UnsafeMutableRawBufferPointer, epoch: UInt64, segment: UInt32, _ how: UInt8) {
    for offset in stride(from: 0, to: bytes.count - 63, by: BlockHeader.alignment) {
        let block = UnsafeMutableRawBufferPointer(rebasing: bytes[offset...])
        guard let count = BlockHeader.peekByteCount(UnsafeRawBufferPointer(block)), count <= block.count else {
            continue
        }
        block.storeBytes(of: epoch.littleEndian, toByteOffset: 8, as: UInt64.self)
        block.storeBytes(of: segment.littleEndian, toByteOffset: 16, as: UInt32.self)
        block.storeBytes(of: UInt32(offset).littleEndian, toByteOffset: 20, as: UInt32.self)
        if how & 4 == 0 { signEntries(block, headerByteCount: count, fits: how & 2 != 0) }
        sign(headerAt: offset, bytes)
    }
}

private func signEntries(_ block: UnsafeMutableRawBufferPointer, headerByteCount: Int, fits: Bool) {
    var at = headerByteCount
    var entries: UInt32 = 0
    for row in stride(from: BlockHeader.fixedByteCount, to: headerByteCount, by: CommitHeader.byteCount) {
        let firstSeq = block.loadUnaligned(fromByteOffset: row, as: UInt64.self)
        let start = at
        let wanted = Int(block.loadUnaligned(fromByteOffset: row + 20, as: UInt32.self))
        let end = min(block.count, at + wanted)
        var count: UInt32 = 0
        while at < end, let byteCount = sign(entryAt: at, block, end: end, firstSeq: firstSeq) {
            at += byteCount
            count += 1
        }
        entries += count
        guard fits else {
            at = end
            continue
        }
        block.storeBytes(of: count, toByteOffset: row + 16, as: UInt32.self)
        block.storeBytes(of: UInt32(at - start), toByteOffset: row + 20, as: UInt32.self)
    }
    guard fits else { return }
    for (field, value) in [(28, UInt32(at - headerByteCount)), (32, UInt32(at - headerByteCount)), (36, entries)] {
        block.storeBytes(of: value, toByteOffset: field, as: UInt32.self)
    }
}

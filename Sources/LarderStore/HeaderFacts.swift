// What a block header says of itself, whether or not it belongs where it lies.

import LarderFormat

/// A header read without knowing the epoch or the place.
struct HeaderFacts {
    /// The header, where its own bytes check.
    let whole: BlockHeader?
    /// Why they do not.
    let fault: FormatError?
    /// Its format, where the magic is there; above ours only if its CRC checks too.
    let format: Int

    /// Nil where no magic is.
    ///
    /// - Parameter bytes: from where the header begins; as much as may be of it.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= BlockHeader.fixedByteCount,
            bytes.loadUnaligned(as: UInt32.self) == BlockHeader.magic.littleEndian
        else { return nil }
        format = Int(bytes[4])
        var reader = ByteReader(bytes)
        reader.offset = 8
        do throws(FormatError) {
            let epoch = try reader.u64()
            let position = LogPosition(segment: try reader.u32(), offset: try reader.u32())
            whole = try BlockHeader(bytes, epoch: epoch, position: position)
            fault = nil
        } catch {
            whole = nil
            fault = error
        }
    }
}

/// Sixteen digits.
public func hexadecimal(_ value: UInt64) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
}

extension SegmentScanner {
    /// What lies where a header of this epoch should be and none checks.
    func whyNoBlock(
        at place: LogPosition, epoch: UInt64
    ) throws(StoreError) -> (cause: LogDamage.Cause, reason: String) {
        let bytes = try bytes(Int(place.offset), BlockHeader.byteCountMax)
        guard let facts = HeaderFacts(bytes) else {
            return (.badHeader, bytes.prefix(64).allSatisfy { $0 == 0 } ? "zeros" : "no block begins here")
        }
        if let own = facts.whole {
            if own.epoch != epoch { return (.misplaced, "a block of epoch \(hexadecimal(own.epoch))") }
            if own.position != place {
                return (.misplaced, "the block of segment \(own.position.segment), offset \(own.position.offset)")
            }
            return (.badHeader, "the block reaches past the end of its file")
        }
        return (.badHeader, "the header does not check: \(facts.fault.map { "\($0)" } ?? "")")
    }
}

// Where a page of a scan ended: the next one begins behind it.

import LarderFormat

/// A page token of LIST with a condition or an order, or of SEARCH. Opaque to clients; bytes that are none give nil.
struct ScanToken: Equatable {
    /// Says what was asked: a token of another request is none of this one.
    var asked: UInt32
    var epoch: UInt64
    var place: Ranked

    /// The first byte, which the plain pages' tokens have otherwise.
    private static let form: UInt8 = 2

    var encoded: [UInt8] {
        var writer = ByteWriter(reserving: 32 + (place.key?.count ?? 0))
        writer.u8(ScanToken.form)
        writer.u8(place.key == nil ? 0 : 1)
        writer.u32(asked)
        writer.u64(epoch)
        writer.u64(place.firstSeq)
        writer.raw(place.key ?? [])
        return writer.bytes
    }

    init(asked: UInt32, epoch: UInt64, place: Ranked) {
        self.asked = asked
        self.epoch = epoch
        self.place = place
    }

    init?(_ bytes: [UInt8]) {
        guard bytes.count <= 22 + 256 else { return nil }
        let read = bytes.borrowed { bytes -> (ScanToken)? in
            var reader = ByteReader(bytes)
            do throws(FormatError) {
                guard try reader.u8() == ScanToken.form else { return nil }
                let hasKey = try reader.u8()
                let asked = try reader.u32()
                let epoch = try reader.u64()
                let firstSeq = try reader.u64()
                let key = Array(try reader.slice(reader.remaining))
                guard hasKey <= 1, hasKey == 1 || key.isEmpty else { return nil }
                return ScanToken(
                    asked: asked, epoch: epoch, place: Ranked(key: hasKey == 1 ? key : nil, firstSeq: firstSeq))
            } catch { return nil }
        }
        guard let read else { return nil }
        self = read
    }

    /// A check sum of what is asked.
    static func sum(_ parts: [UInt8]...) -> UInt32 {
        var sum: UInt32 = 0
        for part in parts {
            var bytes = ByteWriter(reserving: part.count + 4)
            bytes.byteString(part)
            sum = bytes.bytes.borrowed { crc32c($0, seed: sum) }
        }
        return sum
    }
}

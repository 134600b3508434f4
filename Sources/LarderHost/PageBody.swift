// The records of a page, as they are written into it.

import LarderFormat
import LarderStore
import LarderWire

/// Stored records one behind the other, up to a number and to bytes. Loop thread only.
struct PageBody {
    private(set) var records = ByteWriter()
    private(set) var count = 0
    private let limit: Int
    private var bytesLeft: Int

    init(limit: Int, byteCountMax: Int) {
        self.limit = limit
        bytesLeft = byteCountMax
    }

    /// What LIST and SEARCH let a page have.
    static func byteCount(wanted: Int) -> Int {
        wanted == 0 ? Host.pageByteCount : min(wanted, Host.pageByteCountMax)
    }

    /// Whether another record of that size has room. The first always has.
    func hasRoom(_ byteCount: Int) -> Bool {
        count < limit && (count == 0 || byteCount <= bytesLeft)
    }

    /// - Parameter rank: of a match of SEARCH.
    mutating func add(_ stored: LarderStore.StoredRecord, rank: UInt8? = nil) {
        if let rank { records.u8(rank) }
        let header = StoredRecordHeader(stored)
        withUnsafeTemporaryAllocation(byteCount: StoredRecordHeader.byteCountMax, alignment: 1) { room in
            guard let base = room.baseAddress else { return }
            var writer = RawWriter(base)
            header.encode(into: &writer, recordByteCount: stored.record.count)
            records.raw(UnsafeRawBufferPointer(start: base, count: writer.at - base))
        }
        records.raw(stored.record)
        bytesLeft -= stored.record.count
        count += 1
    }

    /// The whole frame; PAGE and MATCHES begin alike.
    func frame(_ type: MessageType, id: UInt32, token: [UInt8]?) -> [UInt8] {
        var frame = ByteWriter(reserving: records.count + (token?.count ?? 0) + 64)
        frame.frame(type, id: id) { writer in
            Page.encodeStart(isEnd: token == nil, token: token ?? [], recordCount: count, into: &writer)
            writer.raw(records.bytes)
        }
        return frame.bytes
    }
}

// Room in the files of the log: laid out before a byte is promised, so that a full disk refuses a batch and no more.
// FORMAT.md section 5, design/full-disk.md.

import Glibc
import LarderFormat

extension SystemError {
    /// The disk, or the owner's share of it, is full.
    var isFull: Bool { code == ENOSPC || code == EDQUOT }
    /// The file system cannot lay out room.
    var isUnsupported: Bool { code == EOPNOTSUPP || code == ENOSYS || code == EINVAL }
}

/// Room that was laid out behind the end of the segment that is written.
struct LaidOutRoom {
    /// Of a file system that cannot lay out room: nothing can be said ahead.
    static let unknown = Int.max / 2
    /// A block that is opened has this much ahead of it, where the disk has, so that commits keep their size.
    static let aheadByteCount = Slab.byteCount
    /// Room is laid out in steps of this; of the first in a small library.
    static let stepByteCount = 8_388_608
    static let firstStepByteCount = 1_048_576

    /// Offset in the segment up to which a write cannot fail for want of room.
    var end = 0
    /// Why saves are refused, or nil.
    var fullReason: String?
    /// What is being staged may use the reserve: it gives room back, or ends what was begun.
    var mayUseReserve = false
    /// What opening had to write and found no room for: it goes in front of the next block.
    var owed: [(type: UInt8, body: [UInt8])] = []
    var owedKinds: [Kind] = []
}

extension StoreCore {
    private var reserve: Int { options.reserveByteCount }

    /// Whether a block that ends at this offset of the written segment leaves what must be left.
    @inline(__always)
    func hasRoom(through end: Int) -> Bool {
        room.end >= end &+ (room.mayUseReserve ? 0 : options.reserveByteCount)
    }

    /// Lays out room for blocks up to an offset of the file, and behind it the reserve.
    ///
    /// - Parameter laidOut: what is laid out of it already.
    /// - Returns: up to where there is room now.
    /// - Throws: `full`, where even what is asked for is not to be had; `system`.
    mutating func layOut(_ file: FileHandle, through end: Int, laidOut: Int) throws(StoreError) -> Int {
        let isSmall = position.segment == segments.first?.number && end < LaidOutRoom.aheadByteCount
        let ahead = isSmall ? LaidOutRoom.firstStepByteCount : LaidOutRoom.aheadByteCount
        if laidOut >= end + reserve + ahead { return laidOut }
        let step = isSmall ? LaidOutRoom.firstStepByteCount : LaidOutRoom.stepByteCount
        // No more than the segment will take.
        let useful = max(end, min(end + ahead + step, options.segmentByteCountMax))
        if laidOut >= useful + reserve { return laidOut }
        var wanted = room.fullReason == nil ? [useful + reserve, end + reserve] : [end + reserve]
        if room.mayUseReserve { wanted.append(end) }
        var refusal: SystemError?
        for wanted in wanted {
            if laidOut >= wanted { return laidOut }
            do throws(SystemError) {
                try files.layOut(file, from: laidOut, to: wanted)
                return wanted
            } catch {
                if error.isUnsupported { return LaidOutRoom.unknown }
                guard error.isFull else { throw .system(error) }
                refusal = error
                if wanted == end + reserve { room.fullReason = "\(error)" }
            }
        }
        throw .full(reason: refusal?.description ?? "no room")
    }

    /// Whether saves are refused for want of room. Looks again if they were.
    mutating func fullReason(now: Int64) -> String? {
        guard room.fullReason != nil, failure == nil, clear == nil else { return room.fullReason }
        if writeHandle == nil { try? openSegment() }
        guard let file = writeHandle else { return room.fullReason }
        room.mayUseReserve = false
        // Enough for any record.
        let end = Int(position.offset) + open.byteCount + 2 * recordByteCountMax
        guard let found = try? layOut(file, through: end, laidOut: room.end) else { return room.fullReason }
        room.end = found
        room.fullReason = nil
        if !room.owed.isEmpty { _ = try? makeRoom(BlockHeader.alignment, isRun: false, now: now) }
        return nil
    }

    /// Stages what is owed; the block that was opened has room for it.
    mutating func stageOwed() throws(StoreError) {
        let (owed, kinds) = (room.owed, room.owedKinds)
        (room.owed, room.owedKinds) = ([], [])
        for (type, body) in owed { try stageOther(type, body) }
        staged.kinds += kinds
    }

    var owedByteCount: Int { room.owed.reduce(0) { $0 + $1.body.count + EntryWriter.headByteCountMax } }

    /// Lays out the reserve of a library that was opened. Where there is no room, saves are refused until there is.
    mutating func layOutReserve() throws(StoreError) {
        guard position.offset > 0 else { return }
        if writeHandle == nil { try openSegment() }
        guard let file = writeHandle else { return }
        do throws(StoreError) {
            room.end = try layOut(file, through: Int(position.offset) + BlockHeader.alignment, laidOut: room.end)
        } catch {
            guard case .full = error else { throw error }
        }
    }

    /// Gives back, at closing, what is laid out beyond the reserve. A disk that is full is left as it is.
    func giveBackRoom() {
        guard let file = writeHandle, failure == nil, inFlight == nil, durable == position, room.fullReason == nil,
            room.end != LaidOutRoom.unknown, room.end > Int(position.offset) + reserve
        else { return }
        // Nothing depends on either.
        try? files.truncate(file, to: Int(position.offset))
        try? files.layOut(file, from: Int(position.offset), to: Int(position.offset) + reserve)
    }
}

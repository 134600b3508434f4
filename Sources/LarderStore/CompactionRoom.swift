// A compaction on a full disk: a segment is rewritten in the room of the reserve, which is lent to it for as long as that
// takes. design/full-disk.md.

import LarderFormat

extension StoreCore {
    /// What is not lent: deletes go on meanwhile.
    private var keptReserve: Int { (options.reserveByteCount / 16 + 4095) & ~4095 }

    /// Whether a rewrite that found no room fits into the reserve.
    func canLend(_ marks: Marks) -> Bool {
        guard room.end != LaidOutRoom.unknown, writeHandle != nil else { return false }
        let lent = room.end - Int(position.offset) - keptReserve
        // Blocks end at pages, and hold no more than about a megabyte.
        return marks.fileByteCount + (marks.fileByteCount / 1_048_576 + 2) * BlockHeader.alignment <= lent
    }

    /// Gives the room behind the log's end away for as long as a rewrite takes. Nothing is staged or under way.
    mutating func lendReserve() { shrinkReserve(to: keptReserve) }

    /// Gives back what is laid out behind the log's end beyond so many bytes. Nothing is staged or under way.
    mutating func shrinkReserve(to byteCount: Int) {
        guard let file = writeHandle, durable == position, room.end != LaidOutRoom.unknown else { return }
        let end = Int(position.offset)
        do throws(SystemError) {
            try files.truncate(file, to: end)
            room.end = end
            guard byteCount > 0 else { return }
            try files.layOut(file, from: end, to: end + byteCount)
            room.end = end + byteCount
        } catch {
            // What is not laid out is asked for when it is needed.
        }
    }

    /// - Parameter phase: which was over with the job.
    mutating func returnReserve(_ phase: CompactionRun.Phase) {
        guard case .lending = phase else { return }
        layOutReserveAgain()
    }

    /// Lays out the reserve, or as much of it as there is room for. Refused saves tell that it is not whole.
    mutating func layOutReserveAgain() {
        try? layOutReserve()
        guard let file = writeHandle, room.end != LaidOutRoom.unknown else { return }
        for part in [15, 14, 12, 8] {
            let wanted = Int(position.offset) + options.reserveByteCount / 16 * part
            guard room.end < wanted else { return }
            do throws(SystemError) {
                try files.layOut(file, from: room.end, to: wanted)
                room.end = wanted
            } catch { continue }
        }
    }
}

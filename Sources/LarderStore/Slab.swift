// The tail of the log in memory: where blocks are staged, written from, and read by subscribers that keep up.

import CLarder
import LarderFormat

/// An image of a stretch of one segment. The loop thread fills it front to back; a commit job reads what was filled
/// before the job was made. Never moved; freed with its last reference.
final class Slab: @unchecked Sendable {
    static let byteCount = 4_194_304

    let base: UnsafeMutableRawPointer
    var segment: UInt32 = 0
    /// Where the slab's first byte lies in its segment.
    var fileOffset = 0
    /// Bytes staged, a multiple of 4,096 between blocks.
    var used = 0

    init?() {
        guard let memory = larder_memory_map(Slab.byteCount) else { return nil }
        base = memory
    }

    deinit { larder_memory_unmap(base, Slab.byteCount) }

    func reset(segment: UInt32, fileOffset: Int) {
        self.segment = segment
        self.fileOffset = fileOffset
        used = 0
    }

    /// It is the image of nothing any more.
    func forget() { reset(segment: 0, fileOffset: 0) }

    /// The bytes from an offset of the segment on, if they are here.
    @inline(__always)
    func bytes(segment: UInt32, offset: Int) -> UnsafeRawBufferPointer? {
        guard segment == self.segment, offset >= fileOffset, offset < fileOffset &+ used else { return nil }
        let from = offset &- fileOffset
        return UnsafeRawBufferPointer(start: base + from, count: used &- from)
    }
}

/// The slabs in use: one being filled, those before it kept as the cache of the log's tail. Bounded.
struct SlabRing {
    /// Slabs kept, the one being filled included: 24 MiB.
    static let countMax = 6
    private(set) var slabs: [Slab] = []

    /// The slab that is being filled.
    var current: Slab? { slabs.last }

    /// Puts an empty slab in front, reusing the oldest where no commit needs it any more.
    mutating func advance(segment: UInt32, fileOffset: Int, isBusy: (Slab) -> Bool) -> Slab? {
        let slab: Slab
        if slabs.count >= SlabRing.countMax, let at = slabs.firstIndex(where: { !isBusy($0) }) {
            slab = slabs.remove(at: at)
        } else {
            guard let fresh = Slab() else { return nil }
            slab = fresh
        }
        slab.reset(segment: segment, fileOffset: fileOffset)
        slabs.append(slab)
        return slab
    }

    @inline(__always)
    func bytes(segment: UInt32, offset: Int) -> UnsafeRawBufferPointer? {
        for slab in slabs.reversed() {
            if let found = slab.bytes(segment: segment, offset: offset) { return found }
        }
        return nil
    }

    /// Forgets the images, for instance of a run that failed.
    mutating func removeAll() { slabs.removeAll() }
}

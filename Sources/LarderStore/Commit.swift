// Blocks that are being filled or written, and the commit that they are of.

import LarderFormat

/// A block that is being filled. Its pointers lie in its slab; `cursor` never passes `limit`.
struct OpenBlock {
    /// Nil: none is open.
    var slab: Slab?
    /// The block's first byte.
    var start: UnsafeMutableRawPointer
    /// Behind the last staged entry.
    var cursor: UnsafeMutableRawPointer
    var limit: UnsafeMutableRawPointer
    var firstSeq: UInt64 = 0
    var lastSeq: UInt64 = 0
    var entryCount = 0
    var isPlain = true
    var isContinued = false

    static var none: OpenBlock {
        OpenBlock(slab: nil, at: UnsafeMutableRawPointer(bitPattern: 64).unsafelyUnwrapped, room: 0)
    }

    init(slab: Slab?, at start: UnsafeMutableRawPointer, room: Int) {
        self.slab = slab
        self.start = start
        cursor = start
        limit = start + room
    }

    var isOpen: Bool { slab != nil }
    /// With its header, without padding.
    var byteCount: Int { cursor - start }
    @inline(__always)
    var room: Int { limit - cursor }
}

/// A closed block that waits for its commit.
struct ClosedBlock {
    var slab: Slab
    var slabOffset: Int
    var byteCount: Int
    /// The file that it goes into; open until its commit is finished.
    var file: FileHandle
    var segment: UInt32
    var place: CommitPlace
}

/// A commit that is being staged or written.
struct Commit {
    /// Its number, from 1; answers wait for it.
    var number: UInt64
    var time: Int64
    var blocks: [ClosedBlock] = []
    /// A block of a CLEAR's run: nothing is published until the run's end.
    var isPartOfClear = false
    var kinds: [Kind] = []
    var tokens: [(origin: UInt64, batch: UInt64)] = []
    /// Its entries that are of no record, for the segment's sidecar.
    var others: [OtherEntry] = []
    var writesSidecars = false
    /// Files that the log has moved on from, and where they end: what is laid out behind that is given back.
    var sealed: [(file: FileHandle, end: Int)] = []
}

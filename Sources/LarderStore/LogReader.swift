// Reads the log: from the slabs of its tail, from windows read before, or from the file without waiting for the disk.
// What would wait is handed out as a ColdRead for another thread.

import Glibc
import LarderFormat

enum LogBytes {
    /// From the offset asked for; valid until the next call.
    case bytes(UnsafeRawBufferPointer)
    case cold(ColdRead)
}

/// The windows and how they are filled. One thread.
struct LogReader {
    static let windowByteCount = 262_144
    private static let windowCount = 10
    /// Entries that can be looked for while what was found before stays where it is: each may take two windows.
    static let borrowedReadsMax = windowCount / 2
    /// Read where the size of an entry is not known, which is a large one's.
    private static let spotByteCount = 4_096
    /// Reads that come this close behind one another are a walk; a block's padding and header lie between.
    private static let walkByteCount = 8_192

    let files: any StoreFiles
    private var windows: [Window] = []
    private let spot = Window(capacity: 16_384)
    /// What single reads have unpacked, and what frames are read into.
    private var unpacked: [Window] = []
    private static let unpackedCount = 8
    private let stored = Window(capacity: 16_384)
    private var clock = 0
    /// Those with an open file, a ring once it is full.
    private var openSegments: [Segment] = []
    private var nextToClose = 0
    /// The last spot read, and how many came close behind one another.
    private var lastSpot = LogPosition(segment: 0, offset: 0)
    private var spotsInOrder = 0
    /// A cold read that did not bring all: told to the one who asks again, who would ask for ever.
    private var failed: (fileID: UInt64, offset: Int, failure: SystemError)?

    init(files: any StoreFiles) { self.files = files }

    /// Bytes of a segment from `offset`, at least `needed` of them.
    ///
    /// - Parameter end: no byte at or behind it is asked for; `offset + needed` is at most this.
    /// - Parameter isSequential: the bytes behind will be wanted next.
    mutating func bytes(
        _ segment: Segment, offset: Int, needed: Int, end: Int, isSequential: Bool
    ) throws(SystemError) -> LogBytes {
        clock &+= 1
        var follows = isSequential
        for window in windows where window.fileID == segment.fileID && window.segment != 0 {
            if let found = window.bytes(segment: segment.number, offset: offset, needed: needed) {
                window.lastUse = clock
                return .bytes(found)
            }
            if offset >= window.offset && offset < window.offset &+ window.count &+ Self.walkByteCount {
                follows = true
            }
        }
        if segment.image != nil {
            for window in unpacked where window.fileID == segment.fileID && window.segment != 0 {
                if let found = window.bytes(segment: segment.number, offset: offset, needed: needed) {
                    window.lastUse = clock
                    return .bytes(found)
                }
            }
        }
        if let failed, failed.fileID == segment.fileID, failed.offset == offset {
            self.failed = nil
            throw failed.failure
        }
        if !follows {
            let ahead = offset &- Int(lastSpot.offset)
            let isWalk = lastSpot.segment == segment.number && ahead >= 0 && ahead < Self.walkByteCount
            spotsInOrder = isWalk ? spotsInOrder &+ 1 : 0
            lastSpot = LogPosition(segment: segment.number, offset: UInt32(truncatingIfNeeded: offset))
            follows = spotsInOrder >= 4
        }
        let file = try handle(segment)
        if let image = segment.image {
            return try unpack(segment, image, file, offset, needed, wanted: follows ? Self.windowByteCount : needed)
        }
        if !follows {
            let count = min(needed > 16 ? needed : Self.spotByteCount, end - offset)
            if case .bytes(let n) = try files.readQuickly(file.handle, at: offset, into: spot.buffer(count)),
                n >= needed
            {
                return .bytes(UnsafeRawBufferPointer(start: spot.memory, count: n))
            }
            // From the disk a page costs what an entry costs.
            return .cold(cold(segment, file, offset, min(max(needed, 4096), end - offset)))
        }
        let count = min(max(needed, Self.windowByteCount), end - offset)
        let window = recycled()
        window.segment = 0
        if case .bytes(let n) = try files.readQuickly(file.handle, at: offset, into: window.buffer(count)), n >= needed
        {
            window.segment = segment.number
            window.fileID = segment.fileID
            window.offset = offset
            window.count = n
            window.lastUse = clock
            return .bytes(UnsafeRawBufferPointer(start: window.memory, count: n))
        }
        files.willRead(file.handle, at: offset, count: min(count * 8, segment.byteCount - offset))
        return .cold(cold(segment, file, offset, count))
    }

    /// Reads and unpacks what holds these bytes of a segment with compressed blocks.
    private mutating func unpack(
        _ segment: Segment, _ image: PlainImage, _ file: ReadFile, _ offset: Int, _ needed: Int, wanted: Int
    ) throws(SystemError) -> LogBytes {
        guard let stretch = image.stretch(from: offset, needed: needed, wanted: wanted) else {
            return .bytes(UnsafeRawBufferPointer(start: nil, count: 0))
        }
        let buffer = stored.buffer(stretch.fileByteCount)
        guard case .bytes(let n) = try files.readQuickly(file.handle, at: stretch.fileOffset, into: buffer),
            n == stretch.fileByteCount
        else {
            if wanted > needed {
                let behind = segment.byteCount - stretch.fileOffset
                files.willRead(file.handle, at: stretch.fileOffset, count: min(stretch.fileByteCount * 8, behind))
            }
            return .cold(cold(segment, file, offset, needed, packed: stretch))
        }
        let window = wanted > needed ? recycled() : recycledUnpacked()
        window.fill(stretch, segment.number, segment.fileID, from: UnsafeRawBufferPointer(buffer))
        window.lastUse = clock
        return .bytes(
            UnsafeRawBufferPointer(
                start: window.memory + (offset - window.offset), count: window.count - (offset - window.offset)))
    }

    /// The window that holds these bytes, if one does: valid until the next read.
    func window(segment: UInt32, offset: Int) -> Window? {
        windows.first { $0.bytes(segment: segment, offset: offset, needed: 1) != nil }
            ?? unpacked.first { $0.bytes(segment: segment, offset: offset, needed: 1) != nil }
    }

    /// Takes in what a cold read brought. What it failed with is thrown when these bytes are asked for next.
    mutating func supply(_ result: ColdResult) {
        failed = nil
        if let failure = result.failure ?? result.shortfall {
            failed = (result.fileID, result.offset, failure)
        }
        guard result.failure == nil else { return }
        clock &+= 1
        result.window.lastUse = clock
        if windows.count >= Self.windowCount {
            _ = recycled()
            windows.removeLast()
        }
        windows.append(result.window)
    }

    /// Forgets what was read of a segment.
    mutating func forget(segment: UInt32) {
        for window in windows + unpacked where window.segment == segment { window.segment = 0 }
    }

    private func cold(
        _ segment: Segment, _ file: ReadFile, _ offset: Int, _ count: Int, packed: PackedStretch? = nil
    ) -> ColdRead {
        ColdRead(
            files: files, file: file, path: segment.path, segment: segment.number, fileID: segment.fileID,
            offset: offset, count: count, packed: packed)
    }

    /// Segments that are open for reading at a time; a library can have more than a process may have files.
    static let openFileCountMax = 128

    @inline(__always)
    private mutating func handle(_ segment: Segment) throws(SystemError) -> ReadFile {
        if let file = segment.readFile ?? segment.pinnedFile { return file }
        return try open(segment)
    }

    private mutating func open(_ segment: Segment) throws(SystemError) -> ReadFile {
        let file = try ReadFile(files, segment.path)
        // In the order of opening: a segment that is still wanted is opened again, which costs microseconds.
        if openSegments.count < Self.openFileCountMax {
            openSegments.append(segment)
        } else {
            openSegments[nextToClose].readFile = nil
            openSegments[nextToClose] = segment
            nextToClose = (nextToClose + 1) % Self.openFileCountMax
        }
        segment.readFile = file
        return file
    }

    mutating func closeFiles() {
        for segment in openSegments { segment.readFile = nil }
        openSegments = []
        nextToClose = 0
    }

    /// As `recycled`, of those that single reads unpack into.
    private mutating func recycledUnpacked() -> Window {
        if unpacked.count < Self.unpackedCount {
            unpacked.append(Window(capacity: PayloadPieces.byteCount))
            return unpacked[unpacked.count - 1]
        }
        return unpacked[Self.oldest(unpacked)]
    }

    /// The window used longest ago, moved to the end of the list.
    private mutating func recycled() -> Window {
        if windows.count < Self.windowCount {
            windows.append(Window(capacity: Self.windowByteCount))
        } else {
            windows.swapAt(Self.oldest(windows), windows.count - 1)
        }
        return windows[windows.count - 1]
    }

    private static func oldest(_ windows: [Window]) -> Int {
        var oldest = 0
        for at in windows.indices where windows[at].lastUse < windows[oldest].lastUse { oldest = at }
        return oldest
    }
}

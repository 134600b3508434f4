// The records in the order of saving: ordinal → place, and the first seq of each.
//
//   chunk of 4,096 ordinals:  u64 first seq of its first ordinal
//                             u64 × 4,096 places     u32 × 4,096 first seqs, as differences to the chunk's
//   place, u64:  segment (20 bits) | offset in the segment (32 bits) | size class (4 bits) | kind's index (8 bits);
//                0 is a hole. Size class c < 15: the entry has at most 128 (c + 1) bytes; 15: any.

import CLarder
import LarderFormat

/// Where a record's current entry lies, and of which kind it is.
struct Place: Equatable {
    var raw: UInt64

    @inline(__always)
    init(raw: UInt64) { self.raw = raw }
    @inline(__always)
    init(segment: UInt32, offset: UInt32, kindIndex: UInt8, entryByteCount: Int = .max) {
        let sizeClass = UInt64(truncatingIfNeeded: min(entryByteCount &- 1, 15 * 128) >> 7)
        raw = UInt64(segment) &<< 44 | UInt64(offset) &<< 12 | sizeClass &<< 8 | UInt64(kindIndex)
    }

    static let hole = Place(raw: 0)
    var isHole: Bool { raw == 0 }
    var segment: UInt32 { UInt32(truncatingIfNeeded: raw &>> 44) }
    var offset: UInt32 { UInt32(truncatingIfNeeded: raw &>> 12) }
    /// Bytes that hold the whole entry, or 16, which hold its length.
    var likelyByteCount: Int {
        let sizeClass = Int(truncatingIfNeeded: raw &>> 8) & 15
        return sizeClass == 15 ? 16 : (sizeClass &+ 1) &* 128
    }
    var kindIndex: UInt8 { UInt8(truncatingIfNeeded: raw) }
    /// The same entry at another offset of its segment.
    func moved(to offset: UInt32) -> Place { Place(raw: raw & ~(0xFFFF_FFFF &<< 12) | UInt64(offset) &<< 12) }
}

/// The ordinal part of the index. Owned by one thread.
struct RecordTable: ~Copyable {
    static let chunkCount = 4096
    private static let placesOffset = 8
    private static let seqsOffset = placesOffset + 8 * chunkCount
    static let chunkByteCount = seqsOffset + 4 * chunkCount

    /// Ordinals given out, holes included.
    private(set) var count = 0
    /// Ordinals that are holes.
    private(set) var holeCount = 0
    private var chunks: [UnsafeMutableRawPointer] = []

    init() {}

    deinit {
        for chunk in chunks { chunk.deallocate() }
    }

    mutating func removeAll() {
        for chunk in chunks { chunk.deallocate() }
        chunks = []
        count = 0
        holeCount = 0
    }

    @inline(__always)
    private func slot(_ ordinal: UInt32) -> (chunk: UnsafeMutableRawPointer, index: Int) {
        (chunks[Int(ordinal) &>> 12], Int(ordinal) & 4095)
    }

    @inline(__always)
    subscript(_ ordinal: UInt32) -> Place {
        let (chunk, index) = slot(ordinal)
        return Place(raw: chunk.load(fromByteOffset: Self.placesOffset &+ index &* 8, as: UInt64.self))
    }

    @inline(__always)
    func prefetch(_ ordinal: UInt32) {
        let (chunk, index) = slot(ordinal)
        larder_prefetch(UnsafeRawPointer(chunk + Self.placesOffset + index * 8))
    }

    func firstSeq(_ ordinal: UInt32) -> UInt64 {
        let (chunk, index) = slot(ordinal)
        let difference = chunk.load(fromByteOffset: Self.seqsOffset &+ index &* 4, as: UInt32.self)
        return chunk.load(as: UInt64.self) &+ UInt64(difference)
    }

    /// Adds a record behind all others. `firstSeq` is above every one that was added.
    mutating func append(_ place: Place, firstSeq: UInt64) -> UInt32 {
        if let last = chunks.last, count & 4095 != 0, firstSeq &- last.load(as: UInt64.self) > UInt64(UInt32.max) {
            // A gap too wide for the chunk's differences: its rest becomes holes.
            while count & 4095 != 0 { store(.hole, difference: UInt32.max) }
        }
        if count & 4095 == 0 {
            let chunk = addChunk()
            chunk.initializeMemory(as: UInt8.self, repeating: 0, count: Self.chunkByteCount)
            chunk.storeBytes(of: firstSeq, as: UInt64.self)
        }
        let base = chunks[chunks.count &- 1].load(as: UInt64.self)
        let ordinal = UInt32(truncatingIfNeeded: count)
        store(place, difference: UInt32(truncatingIfNeeded: firstSeq &- base))
        return ordinal
    }

    private mutating func addChunk() -> UnsafeMutableRawPointer {
        let chunk = UnsafeMutableRawPointer.allocate(byteCount: Self.chunkByteCount, alignment: 8)
        chunks.append(chunk)
        return chunk
    }

    private mutating func store(_ place: Place, difference: UInt32) {
        let (chunk, index) = slot(UInt32(truncatingIfNeeded: count))
        chunk.storeBytes(of: place.raw, toByteOffset: Self.placesOffset &+ index &* 8, as: UInt64.self)
        chunk.storeBytes(of: difference, toByteOffset: Self.seqsOffset &+ index &* 4, as: UInt32.self)
        count &+= 1
        if place.isHole { holeCount &+= 1 }
    }

    mutating func set(_ ordinal: UInt32, _ place: Place) {
        let (chunk, index) = slot(ordinal)
        let at = Self.placesOffset &+ index &* 8
        let old = Place(raw: chunk.load(fromByteOffset: at, as: UInt64.self))
        if old.isHole != place.isHole { holeCount &+= place.isHole ? 1 : -1 }
        chunk.storeBytes(of: place.raw, toByteOffset: at, as: UInt64.self)
    }

    /// The first ordinal whose first seq is `seq` or more; `count` when there is none.
    func firstOrdinal(atOrAfter seq: UInt64) -> Int { firstOrdinal(atOrAfter: seq, 0, count) }

    /// - Parameter low: it is not before this, and not behind `high`.
    private func firstOrdinal(atOrAfter seq: UInt64, _ low: Int, _ high: Int) -> Int {
        var (low, high) = (low, high)
        while low < high {
            let middle = (low &+ high) / 2
            if firstSeq(UInt32(truncatingIfNeeded: middle)) < seq { low = middle &+ 1 } else { high = middle }
        }
        return low
    }

    /// The ordinal that was given for this first seq, hole or not.
    func ordinal(firstSeq seq: UInt64) -> UInt32? {
        let at = firstOrdinal(atOrAfter: seq)
        guard at < count, firstSeq(UInt32(truncatingIfNeeded: at)) == seq else { return nil }
        return UInt32(truncatingIfNeeded: at)
    }

    /// The same, cheaper where it lies at `hint` or a little behind.
    func ordinal(firstSeq seq: UInt64, near hint: UInt32) -> UInt32? {
        var low = Int(hint)
        guard low < count, firstSeq(hint) <= seq else { return ordinal(firstSeq: seq) }
        var step = 1
        while low + step < count, firstSeq(UInt32(truncatingIfNeeded: low + step)) < seq {
            low += step
            step *= 2
        }
        let at = firstOrdinal(atOrAfter: seq, low, min(low + step, count))
        guard at < count, firstSeq(UInt32(truncatingIfNeeded: at)) == seq else { return nil }
        return UInt32(truncatingIfNeeded: at)
    }

    /// Whether so many are holes that numbering anew is worth it.
    var isWorthRenumbering: Bool { holeCount > 65_536 && holeCount > count / 4 }

    /// Closes the holes. Returns the table from old ordinals to new ones; what it has for holes means nothing.
    mutating func renumber() -> [UInt32] {
        var map = [UInt32](repeating: 0, count: count)
        let old = chunks
        let oldCount = count
        chunks = []
        count = 0
        holeCount = 0
        for ordinal in 0..<oldCount {
            let chunk = old[ordinal &>> 12]
            let index = ordinal & 4095
            let place = Place(raw: chunk.load(fromByteOffset: Self.placesOffset &+ index &* 8, as: UInt64.self))
            if !place.isHole {
                let difference = chunk.load(fromByteOffset: Self.seqsOffset &+ index &* 4, as: UInt32.self)
                map[ordinal] = append(place, firstSeq: chunk.load(as: UInt64.self) &+ UInt64(difference))
            }
            if index == 4095 { chunk.deallocate() }
        }
        if oldCount & 4095 != 0, let last = old.last { last.deallocate() }
        return map
    }

    // MARK: As bytes

    /// Shows every chunk as it lies; the last one's unused ordinals are zeros.
    func eachChunk<E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> Void) throws(E) {
        for chunk in chunks { try body(UnsafeRawBufferPointer(start: chunk, count: Self.chunkByteCount)) }
    }

    /// A table of so many ordinals whose chunks `fill` reads in, one after the other.
    ///
    /// - Returns: nil when a place is of a kind at or above `kindCount`, or when `fill` says no.
    static func filled(
        count: Int, kindCount: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Bool
    ) -> RecordTable? {
        var table = RecordTable()
        while table.count < count {
            let chunk = table.addChunk()
            guard fill(UnsafeMutableRawBufferPointer(start: chunk, count: chunkByteCount)) else { return nil }
            let used = min(chunkCount, count - table.count)
            let places = chunk + placesOffset
            var highestKind: UInt64 = 0
            for at in 0..<used {
                let raw = places.load(fromByteOffset: at &* 8, as: UInt64.self)
                highestKind = max(highestKind, raw & 0xFF)
                table.holeCount &+= raw == 0 ? 1 : 0
            }
            guard highestKind < max(kindCount, 1) else { return nil }
            table.count += used
        }
        return table
    }
}

// The dataset as encoded records, one behind the other, as an importer has them ready.

import Glibc
import LarderFormat

/// Encoded records in the order in which they are sent.
final class EncodedTitles {
    struct Shape {
        /// In random order; the same one every time.
        var isShuffled = false
        /// Added to the vote count of one record in `changedStride`; 0: none is changed.
        var changedBy = 0
        var changedStride = EncodedTitles.changedStride
        /// Records of another copy have ids of their own.
        var copy = 0
    }

    private let memory: UnsafeMutableRawPointer
    private var offsets: ContiguousArray<Int> = [0]
    private var keyByteCounts: ContiguousArray<UInt8> = []
    static let keyOffset = 3
    var count: Int { keyByteCounts.count }
    /// Bytes of all records.
    var byteCount: Int { offsets[count] }
    /// Of so many records one is changed, unless it is said otherwise.
    static let changedStride = 10

    init(_ titles: PackedTitles, _ shape: Shape = Shape()) throws(BenchError) {
        memory = UnsafeMutableRawPointer.allocate(
            byteCount: titles.byteCount + titles.count * PackedTitle.encodedByteCountMax, alignment: 64)
        var order = ContiguousArray((0..<titles.count))
        if shape.isShuffled {
            var random = SplitMix(seed: 2)
            order.shuffle(using: &random)
        }
        offsets.reserveCapacity(titles.count + 1)
        keyByteCounts.reserveCapacity(titles.count)
        var writer = RawWriter(memory)
        for index in order {
            let votes = index % shape.changedStride == 0 ? shape.changedBy : 0
            keyByteCounts.append(UInt8(titles[index].of(copy: shape.copy).encode(into: &writer, votes: votes)))
            offsets.append(writer.at - memory)
        }
        for position in 0..<min(100, titles.count) {
            let index = order[position]
            let votes = index % shape.changedStride == 0 ? shape.changedBy : 0
            let record = titles[index].of(copy: shape.copy).record(votes: votes)
            let plain = try told { () throws(FormatError) in try record.encode(Kind.title) }
            try expect(plain.elementsEqual(self[position]), "record \(index) has two encodings")
        }
    }

    deinit { memory.deallocate() }

    /// How many of `count` records a shape changes.
    static func changedCount(of count: Int) -> Int { (count + changedStride - 1) / changedStride }

    subscript(_ position: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: memory + offsets[position], count: offsets[position + 1] - offsets[position])
    }

    func key(_ position: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            start: memory + offsets[position] + EncodedTitles.keyOffset, count: Int(keyByteCounts[position]))
    }

    /// The sum of the records' CRCs, which is the same in any order.
    var checksum: UInt64 { (0..<count).reduce(0) { $0 &+ UInt64(crc32c(self[$1])) } }
}

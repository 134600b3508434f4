// The dataset's file, mapped and read.

import Glibc

/// One record of the file; its strings lie in the mapping.
struct PackedTitle {
    var id: Int64
    let isSeries: Bool
    /// yyyymmdd
    let date: Int32
    let voteCount: Int32
    let voteAverage: Double
    let originalTitle: UnsafeRawBufferPointer
    let originalName: UnsafeRawBufferPointer?
    let overview: UnsafeRawBufferPointer
    let posterPath: UnsafeRawBufferPointer

    /// The same with an id that no other copy has.
    func of(copy: Int) -> PackedTitle {
        var title = self
        title.id = id + Int64(copy) << 32
        return title
    }
}

/// The first records of a file of `Dataset`'s layout. Mapped for as long as this lives.
final class PackedTitles {
    private let mapping: UnsafeRawBufferPointer
    /// Where each record's body begins and ends.
    private var bodies: ContiguousArray<Range<Int>> = []
    var count: Int { bodies.count }
    /// Bytes of all bodies.
    private(set) var byteCount = 0

    init(path: String, recordCount: Int) throws(BenchError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system("open \(path)", code: errno) }
        defer { close(descriptor) }
        let size = Int(lseek(descriptor, 0, SEEK_END))
        guard size > 0, let memory = mmap(nil, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, descriptor, 0),
            memory != MAP_FAILED
        else { throw .system("mmap \(path)", code: errno) }
        mapping = UnsafeRawBufferPointer(start: memory, count: size)
        bodies.reserveCapacity(recordCount)
        var offset = 0
        while bodies.count < recordCount {
            guard offset + 4 <= size else {
                throw .usage("\(path) holds \(bodies.count) records; \(recordCount) were asked for")
            }
            let end =
                offset + 4 + Int(UInt32(littleEndian: mapping.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
            guard end <= size, end - offset >= 4 + 33 else { throw .usage("\(path) is no dataset: offset \(offset)") }
            bodies.append(offset + 4..<end)
            byteCount += end - offset - 4
            offset = end
        }
    }

    deinit { munmap(UnsafeMutableRawPointer(mutating: mapping.baseAddress), mapping.count) }

    subscript(_ index: Int) -> PackedTitle {
        let body = UnsafeRawBufferPointer(rebasing: mapping[bodies[index]])
        var offset = 25
        func text() -> UnsafeRawBufferPointer? {
            let count = UInt16(littleEndian: body.loadUnaligned(fromByteOffset: offset, as: UInt16.self))
            offset += 2
            guard count != UInt16.max else { return nil }
            offset += Int(count)
            return UnsafeRawBufferPointer(rebasing: body[offset - Int(count)..<offset])
        }
        let empty = UnsafeRawBufferPointer(start: nil, count: 0)
        return PackedTitle(
            id: Int64(littleEndian: body.loadUnaligned(fromByteOffset: 0, as: Int64.self)), isSeries: body[8] != 0,
            date: Int32(littleEndian: body.loadUnaligned(fromByteOffset: 9, as: Int32.self)),
            voteCount: Int32(littleEndian: body.loadUnaligned(fromByteOffset: 13, as: Int32.self)),
            voteAverage: Double(
                bitPattern: UInt64(littleEndian: body.loadUnaligned(fromByteOffset: 17, as: UInt64.self))),
            originalTitle: text() ?? empty, originalName: text(), overview: text() ?? empty, posterPath: text() ?? empty
        )
    }
}

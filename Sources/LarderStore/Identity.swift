// The file `larder` of a library: who it is. FORMAT.md section 6.

import LarderFormat

/// What stays the same for as long as a library, or its present history, lives.
public struct Identity: Equatable, Sendable {
    public static let byteCount = 128
    public static let formatVersion = 1
    static let magic: [UInt8] = Array("LARDERLB".utf8)

    /// Stays with the library through restores.
    public var library: UUIDBytes
    /// Identity of one history. Not 0.
    public var epoch: UInt64
    /// Key of the index's fingerprints.
    public var fingerprintKey: (UInt64, UInt64)
    /// Milliseconds since 1970.
    public var createdAt: Int64

    public static func == (a: Identity, b: Identity) -> Bool {
        a.library == b.library && a.epoch == b.epoch && a.fingerprintKey == b.fingerprintKey
            && a.createdAt == b.createdAt
    }

    /// A new one, from the generator.
    public init(now: Int64, using generator: inout some RandomNumberGenerator) {
        library = UUIDBytes(high: generator.next(), low: generator.next())
        epoch = UInt64.random(in: 1...UInt64.max, using: &generator)
        fingerprintKey = (generator.next(), generator.next())
        createdAt = now
    }

    /// A new one; from a seed for a test that is to be repeated, else random.
    init(now: Int64, seed: UInt64?) {
        if let seed {
            var generator = SplitMix64(seed: seed)
            self.init(now: now, using: &generator)
        } else {
            var generator = SystemRandomNumberGenerator()
            self.init(now: now, using: &generator)
        }
    }

    public var encoded: [UInt8] {
        var writer = ByteWriter(reserving: Identity.byteCount)
        writer.raw(Identity.magic)
        writer.u32(UInt32(Identity.formatVersion))
        writer.u32(0)
        for word in [library.high, library.low] {
            withUnsafeBytes(of: word.bigEndian) { writer.raw($0) }
        }
        writer.u64(epoch)
        writer.u64(fingerprintKey.0)
        writer.u64(fingerprintKey.1)
        writer.i64(createdAt)
        writer.raw([UInt8](repeating: 0, count: 60))
        let crc = writer.bytes.withUnsafeBytes { crc32c($0) }
        writer.u32(crc)
        return writer.bytes
    }

    /// - Throws: `newerFormat`, `notALibrary`, `damaged`.
    public init(_ bytes: [UInt8], path: String) throws(StoreError) {
        guard bytes.count >= 16, Array(bytes[0..<8]) == Identity.magic else {
            throw .notALibrary(path: path, reason: "its file `larder` does not begin with LARDERLB")
        }
        let version = bytes.withUnsafeBytes {
            Int(UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt32.self)))
        }
        guard version <= Identity.formatVersion else {
            throw .newerFormat(path: path, found: version, supported: Identity.formatVersion)
        }
        guard bytes.count == Identity.byteCount else {
            throw .damaged(path: path, offset: bytes.count, fault: FormatError(.truncated, at: bytes.count))
        }
        func word(_ offset: Int) -> UInt64 {
            bytes.withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) }
        }
        let crc = bytes.withUnsafeBytes { crc32c(UnsafeRawBufferPointer(rebasing: $0[0..<124])) }
        guard UInt32(truncatingIfNeeded: word(120) >> 32) == crc, version == Identity.formatVersion, word(32) != 0
        else {
            throw .damaged(path: path, offset: 124, fault: FormatError(.badChecksum, at: 124))
        }
        library = UUIDBytes(high: word(16).byteSwapped, low: word(24).byteSwapped)
        epoch = word(32)
        fingerprintKey = (word(40), word(48))
        createdAt = Int64(bitPattern: word(56))
    }
}

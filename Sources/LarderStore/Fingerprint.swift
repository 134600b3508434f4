// The keyed hash of kind and key: SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF"), so that
// nobody who picks ids can make the index slow. Keyed per library.

/// Makes fingerprints. A value; any thread.
@frozen
public struct FingerprintHasher: Sendable {
    @usableFromInline let k0: UInt64
    @usableFromInline let k1: UInt64

    @inlinable
    public init(key: (UInt64, UInt64)) {
        k0 = key.0
        k1 = key.1
    }

    /// The 64-bit hash; its upper half is the fingerprint that the index keeps.
    @inlinable
    public func hash(kind: Int, key: UnsafeRawBufferPointer) -> UInt64 {
        var v0 = k0 ^ 0x736f_6d65_7073_6575
        var v1 = k1 ^ 0x646f_7261_6e64_6f6d
        var v2 = k0 ^ 0x6c79_6765_6e65_7261
        var v3 = k1 ^ 0x7465_6462_7974_6573

        @inline(__always)
        func round() {
            v0 &+= v1
            v1 = (v1 << 13) | (v1 >> 51)
            v1 ^= v0
            v0 = (v0 << 32) | (v0 >> 32)
            v2 &+= v3
            v3 = (v3 << 16) | (v3 >> 48)
            v3 ^= v2
            v0 &+= v3
            v3 = (v3 << 21) | (v3 >> 43)
            v3 ^= v0
            v2 &+= v1
            v1 = (v1 << 17) | (v1 >> 47)
            v1 ^= v2
            v2 = (v2 << 32) | (v2 >> 32)
        }
        @inline(__always)
        func absorb(_ word: UInt64) {
            v3 ^= word
            round()
            v0 ^= word
        }

        absorb(UInt64(truncatingIfNeeded: kind))
        var offset = 0
        if let base = key.baseAddress {
            while offset &+ 8 <= key.count {
                absorb(UInt64(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
                offset &+= 8
            }
            var last = UInt64(truncatingIfNeeded: key.count &+ 8) << 56
            var shift: UInt64 = 0
            while offset < key.count {
                last |= UInt64(base.load(fromByteOffset: offset, as: UInt8.self)) << shift
                shift &+= 8
                offset &+= 1
            }
            absorb(last)
        }
        v2 ^= 0xFF
        round()
        round()
        round()
        return v0 ^ v1 ^ v2 ^ v3
    }

    @inlinable
    public func fingerprint(kind: Int, key: UnsafeRawBufferPointer) -> UInt32 {
        UInt32(truncatingIfNeeded: hash(kind: kind, key: key) >> 32)
    }
}

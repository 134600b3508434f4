// Names: the hash by which fields are found, and the memory that finds one repeated in an object.

/// A quick hash of a short name. Not keyed: whoever uses it must stay fast when many names share a hash.
@inline(__always)
func nameHash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    let count = bytes.count
    guard let base = bytes.baseAddress, count > 0 else { return 0 }
    var first: UInt64 = 0
    var last: UInt64 = 0
    if count >= 8 {
        first = base.loadUnaligned(as: UInt64.self)
        last = base.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
    } else if count >= 4 {
        first = UInt64(base.loadUnaligned(as: UInt32.self))
        last = UInt64(base.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
    } else {
        first = UInt64(base.load(as: UInt8.self))
        last = UInt64(base.load(fromByteOffset: count &- 1, as: UInt8.self))
        first |= UInt64(base.load(fromByteOffset: count >> 1, as: UInt8.self)) << 8
    }
    var hash = (first &* 0x9E37_79B9_7F4A_7C15) ^ ((last &+ UInt64(count)) &* 0xC2B2_AE3D_27D4_EB4F)
    hash ^= hash >> 29
    hash &*= 0xBF58_476D_1CE4_E5B9
    return hash ^ (hash >> 32)
}

/// The names of the objects that are open, to find one that an object has twice.
///
/// An object of up to 24 names is checked by comparing hashes pairwise, a larger one by sorting: n log n whatever the
/// names are.
struct JSONNames {
    private struct Entry {
        var hash: UInt64
        /// Of the bytes, in the text or, when the name had escapes, in `decoded`.
        var start: Int
        var count: Int
        var isDecoded: Bool
        /// Where the name's opening quote is.
        var quoteAt: Int
    }

    private var entries: [Entry] = []
    /// Bytes of names that had escapes.
    private var decoded: [UInt8] = []
    /// Where the names of each open object begin in `entries`.
    private var frames: [Int] = []

    mutating func removeAll() {
        entries.removeAll(keepingCapacity: true)
        decoded.removeAll(keepingCapacity: true)
        frames.removeAll(keepingCapacity: true)
    }

    mutating func open() { frames.append(entries.count) }

    @inline(__always)
    mutating func append(_ name: JSONText, quoteAt: Int) {
        if name.hasEscapes { return appendDecoded(name, quoteAt) }
        entries.append(
            Entry(
                hash: nameHash(name.bytes), start: quoteAt + 1, count: name.bytes.count, isDecoded: false,
                quoteAt: quoteAt))
    }

    private mutating func appendDecoded(_ name: JSONText, _ quoteAt: Int) {
        let start = decoded.count
        name.append(to: &decoded)
        let hash = decoded.withUnsafeBytes { nameHash(UnsafeRawBufferPointer(rebasing: $0[start...])) }
        entries.append(
            Entry(hash: hash, start: start, count: decoded.count - start, isDecoded: true, quoteAt: quoteAt))
    }

    /// Forgets the innermost object's names.
    ///
    /// - Returns: where the first of those that were there before stands, or nil.
    mutating func close(in base: UnsafePointer<UInt8>) -> Int? {
        guard let from = frames.popLast() else { return nil }
        defer { entries.removeSubrange(from...) }
        let count = entries.count - from
        return count <= 24 ? repeatedOfFew(from, base) : repeatedOfMany(from, base)
    }

    private func repeatedOfFew(_ from: Int, _ base: UnsafePointer<UInt8>) -> Int? {
        entries.withUnsafeBufferPointer { entries in
            var later = from + 1
            while later < entries.count {
                let hash = entries[later].hash
                var earlier = from
                while earlier < later {
                    if entries[earlier].hash == hash, order(entries[earlier], entries[later], base) == 0 {
                        return entries[later].quoteAt
                    }
                    earlier &+= 1
                }
                later &+= 1
            }
            return nil
        }
    }

    private func repeatedOfMany(_ from: Int, _ base: UnsafePointer<UInt8>) -> Int? {
        let sorted = entries[from...].sorted { a, b in
            let order = order(a, b, base)
            return order != 0 ? order < 0 : a.quoteAt < b.quoteAt
        }
        var first: Int?
        for (a, b) in zip(sorted, sorted.dropFirst()) where order(a, b, base) == 0 {
            first = min(first ?? b.quoteAt, b.quoteAt)
        }
        return first
    }

    /// By hash, then length, then bytes: negative, 0 or positive.
    private func order(_ a: Entry, _ b: Entry, _ base: UnsafePointer<UInt8>) -> Int {
        if a.hash != b.hash { return a.hash < b.hash ? -1 : 1 }
        if a.count != b.count { return a.count - b.count }
        return decoded.withUnsafeBufferPointer { decoded in
            for index in 0..<a.count {
                let x = a.isDecoded ? decoded[a.start + index] : base[a.start + index]
                let y = b.isDecoded ? decoded[b.start + index] : base[b.start + index]
                if x != y { return Int(x) - Int(y) }
            }
            return 0
        }
    }
}

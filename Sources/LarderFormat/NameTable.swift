// Numbers names, so that a member of a line finds its field by one look-up.

/// Distinct names, numbered from 0 in the order in which they came.
struct NameTable: Sendable {
    private(set) var names: [[UInt8]] = []
    private var hashes: [UInt64] = []
    /// Open addressing by `nameHash`: number + 1, or 0. At most half full; its count is a power of two.
    private var buckets = [Int32](repeating: 0, count: 128)

    @inline(__always)
    func number(of name: UnsafeRawBufferPointer) -> Int? {
        let hash = nameHash(name)
        let mask = buckets.count &- 1
        var at = Int(truncatingIfNeeded: hash) & mask
        while buckets[at] != 0 {
            let number = Int(buckets[at] &- 1)
            if hashes[number] == hash && isEqual(names[number], name) { return number }
            at = (at &+ 1) & mask
        }
        return nil
    }

    /// The name's number, a new one if it has none yet. Names that share a hash cost a walk over one another: callers
    /// bound how many they bring.
    mutating func add(_ name: UnsafeRawBufferPointer) -> Int {
        if let number = number(of: name) { return number }
        if names.count * 2 >= buckets.count { grow() }
        names.append(Array(name))
        hashes.append(nameHash(name))
        place(names.count - 1)
        return names.count - 1
    }

    mutating func add(_ name: String) -> Int { Array(name.utf8).withUnsafeBytes { add($0) } }

    private mutating func grow() {
        buckets = [Int32](repeating: 0, count: buckets.count * 2)
        for number in names.indices { place(number) }
    }

    private mutating func place(_ number: Int) {
        let mask = buckets.count - 1
        var at = Int(truncatingIfNeeded: hashes[number]) & mask
        while buckets[at] != 0 { at = (at + 1) & mask }
        buckets[at] = Int32(number + 1)
    }

    @inline(__always)
    private func isEqual(_ name: [UInt8], _ other: UnsafeRawBufferPointer) -> Bool {
        guard name.count == other.count else { return false }
        for index in 0..<name.count where name[index] != other[index] { return false }
        return true
    }
}

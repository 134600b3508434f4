// What a simulated disk holds: for every file and directory what is durable, and apart from it what is not yet.

/// A change of a file that no sync has made durable.
enum PendingChange {
    case write(offset: Int, bytes: [UInt8])
    case truncate(size: Int)
}

/// A change of a directory that no sync of it has made durable. Nil takes the name out.
struct PendingName {
    var name: String
    var node: SimulatedNode?
    /// Of a rename between directories: it comes true with its twin or not at all.
    var rename: Int?
}

/// A file or directory. Guarded by the lock of the `SimulatedFiles` that it belongs to.
final class SimulatedNode {
    let isDirectory: Bool
    /// Content as callers see it, and as a power cut would leave it at worst.
    var content: [UInt8] = []
    var durable: [UInt8] = []
    var changes: [PendingChange] = []
    /// The same for the names of a directory.
    var entries: [String: SimulatedNode] = [:]
    var durableEntries: [String: SimulatedNode] = [:]
    var nameChanges: [PendingName] = []
    /// Room laid out for it, from its beginning, in bytes; a power cut takes what lies behind its end.
    var laidOut = 0
    /// The handle that locks it, or nil.
    var lockedBy: Int32?

    init(isDirectory: Bool) { self.isDirectory = isDirectory }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        let change = PendingChange.write(offset: offset, bytes: Array(bytes))
        SimulatedNode.apply(change, to: &content)
        changes.append(change)
    }

    func truncate(to size: Int) {
        SimulatedNode.apply(.truncate(size: size), to: &content)
        laidOut = min(laidOut, size)
        changes.append(.truncate(size: size))
    }

    /// Bytes that it takes on the disk, in pages; of a directory with what is in it.
    var usedByteCount: Int {
        if isDirectory { return entries.values.reduce(0) { $0 + $1.usedByteCount } }
        return (max(content.count, laidOut) + 4095) & ~4095
    }

    func sync() {
        for change in changes { SimulatedNode.apply(change, to: &durable) }
        changes = []
    }

    func setName(_ name: String, _ node: SimulatedNode?, rename: Int? = nil) {
        entries[name] = node
        nameChanges.append(PendingName(name: name, node: node, rename: rename))
    }

    static func apply(_ change: PendingChange, to content: inout [UInt8]) {
        switch change {
        case .truncate(let size):
            if size <= content.count {
                content.removeLast(content.count - size)
            } else {
                content += [UInt8](repeating: 0, count: size - content.count)
            }
        case .write(let offset, let bytes):
            let end = offset + bytes.count
            if end > content.count { content += [UInt8](repeating: 0, count: end - content.count) }
            content.withUnsafeMutableBytes { target in
                bytes.withUnsafeBytes { source in
                    UnsafeMutableRawBufferPointer(rebasing: target[offset..<end]).copyMemory(from: source)
                }
            }
        }
    }
}

/// How much of what was not durable a power cut leaves.
public enum PowerCutMode: CaseIterable, Sendable {
    /// Nothing of it.
    case losesAll
    /// All of it, as if only the answers were lost.
    case keepsAll
    /// Some changes and not others, whatever their order.
    case keepsSome
    /// Some changes, and of a write any subset of its sectors of 512 bytes.
    case tearsSectors
}

/// Builds the disk as it is found after a power cut.
struct PowerCut {
    static let sectorByteCount = 512

    let mode: PowerCutMode
    /// Renames between directories that came true, by number; decided once for both of their halves.
    private var renames: [Int: Bool] = [:]
    private var copies: [ObjectIdentifier: SimulatedNode] = [:]

    init(mode: PowerCutMode) { self.mode = mode }

    /// The node as the disk has it, with everything below it.
    mutating func survivor(of node: SimulatedNode, using generator: inout some RandomNumberGenerator) -> SimulatedNode {
        if let copy = copies[ObjectIdentifier(node)] { return copy }
        let copy = SimulatedNode(isDirectory: node.isDirectory)
        copies[ObjectIdentifier(node)] = copy
        if node.isDirectory {
            var names = node.durableEntries
            for change in node.nameChanges where keeps(change, &generator) { names[change.name] = change.node }
            // In the order of names, so that a seed always gives the same disk.
            for name in names.keys.sorted() {
                if let child = names[name] { copy.entries[name] = survivor(of: child, using: &generator) }
            }
            copy.durableEntries = copy.entries
        } else {
            copy.durable = content(of: node, &generator)
            copy.content = copy.durable
        }
        return copy
    }

    private mutating func keeps(_ change: PendingName, _ generator: inout some RandomNumberGenerator) -> Bool {
        if let rename = change.rename, let decided = renames[rename] { return decided }
        let decided = keepsChange(&generator)
        if let rename = change.rename { renames[rename] = decided }
        return decided
    }

    private func keepsChange(_ generator: inout some RandomNumberGenerator) -> Bool {
        switch mode {
        case .losesAll: false
        case .keepsAll: true
        case .keepsSome, .tearsSectors: Bool.random(using: &generator)
        }
    }

    private func content(of node: SimulatedNode, _ generator: inout some RandomNumberGenerator) -> [UInt8] {
        var content = node.durable
        for change in node.changes {
            switch change {
            case .truncate:
                if keepsChange(&generator) { SimulatedNode.apply(change, to: &content) }
            case .write(let offset, let bytes):
                if mode == .tearsSectors {
                    tear(offset, bytes, &content, &generator)
                } else if keepsChange(&generator) {
                    SimulatedNode.apply(change, to: &content)
                }
            }
        }
        return content
    }

    private func tear(
        _ offset: Int, _ bytes: [UInt8], _ content: inout [UInt8], _ generator: inout some RandomNumberGenerator
    ) {
        // The size can reach the disk without the bytes: the rest reads as zeros.
        let hasSize = Bool.random(using: &generator)
        if hasSize, content.count < offset + bytes.count {
            SimulatedNode.apply(.truncate(size: offset + bytes.count), to: &content)
        }
        // Now nearly all sectors arrive, now nearly none: both ends are where bugs are.
        let chance = [2, 50, 90, 99].randomElement(using: &generator) ?? 50
        var at = 0
        while at < bytes.count {
            let end = min(at + PowerCut.sectorByteCount, bytes.count)
            if Int.random(in: 0..<100, using: &generator) < chance {
                SimulatedNode.apply(.write(offset: offset + at, bytes: Array(bytes[at..<end])), to: &content)
            }
            at = end
        }
    }
}

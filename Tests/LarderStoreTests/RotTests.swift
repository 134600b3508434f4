// Rot: every flipped bit is seen by the check of its block, and what opening serves is what it says.

import LarderFormat
import Testing

@testable import LarderStore

@Suite(.serialized) struct RotTests {
    private func library(_ form: RotLibrary.Form = .log) throws -> RotLibrary { try RotLibrary.made(form) }

    /// A count of the environment's, for longer runs; 0 means all.
    private func count(_ name: String, _ usual: Int) -> Int { Setting.number(name).map { Int($0) } ?? usual }

    @Test("the library has every kind of entry, runs across segments, and commits that wait for one another")
    func shape() throws {
        let library = try library()
        let types = Set(library.blocks.flatMap { $0.entries.map(\.type) })
        #expect(types == [1, 2, 3, 16, 17, 18, 19, 20, 21, 77])
        #expect(library.segments.count >= 8 && library.segments.reduce(0) { $0 + $1.count } >= 1_048_576)
        let runs = library.blocks.filter { $0.header.flags == BlockHeader.continues | BlockHeader.continued }
        #expect(!runs.isEmpty)
        #expect(try library.check(library.disk { _ in }, hit: []).lostSpans.isEmpty)
    }

    @Test("the compacted library has rewritten segments, some of which nothing stays, a run's border, and a floor")
    func compactedShape() throws {
        let library = try library(.compacted)
        let repacked = library.blocks.filter { $0.header.flags & BlockHeader.repacked != 0 }
        #expect(repacked.count >= 8 && repacked.count < library.blocks.count)
        #expect(repacked.contains { $0.entries.count == 1 && $0.entries[0].type == EntryType.floor })
        #expect(repacked.contains { $0.header.flags & (BlockHeader.continues | BlockHeader.continued) != 0 })
        #expect(
            library.blocks.contains {
                $0.header.flags & BlockHeader.repacked == 0 && $0.entries.contains { $0.type == 22 }
            })
        #expect(try library.check(library.disk { _ in }, hit: []).lostSpans.isEmpty)
    }

    @Test("the compressed library has compressed blocks", .enabled(if: Zstandard.isInstalled))
    func compressedShape() throws {
        let library = try library(.compressed)
        let compressed = library.blocks.filter(\.header.isCompressed)
        #expect(compressed.count >= 3 && compressed.contains { $0.header.plainByteCount > 32_768 })
        #expect(try library.check(library.disk { _ in }, hit: []).lostSpans.isEmpty)
    }

    /// Flips bits and says of each whether the block check sees it; those that it does not see must be padding.
    private func checkFlip(_ block: RotLibrary.Block, _ bytes: inout [UInt8], _ epoch: UInt64, bit: Int) {
        let byte = bit / 8
        bytes[byte] ^= 1 << UInt8(bit % 8)
        let isWhole = bytes.withUnsafeBytes { BlockCheck.isWhole($0, epoch: epoch, position: block.position) }
        bytes[byte] ^= 1 << UInt8(bit % 8)
        let isPadding = byte >= block.payloadEnd - Int(block.position.offset)
        if isWhole != isPadding {
            Issue.record("bit \(bit) of the block at \(block.position): whole \(isWhole), padding \(isPadding)")
        }
    }

    @Test(
        "a flipped bit is seen by the check of the block that it hits, unless it is padding",
        arguments: RotLibrary.Form.made)
    func flips(form: RotLibrary.Form) throws {
        let library = try library(form)
        let wanted = count("LARDER_ROT_FLIPS", 50_000)
        var random = SplitMix64(seed: Setting.number("LARDER_SEED") ?? 5)
        var left = wanted
        let byteCount = library.blocks.reduce(0) { $0 + $1.range.count }
        for block in library.blocks {
            var bytes = Array(library.segments[Int(block.position.segment) - 1][block.range])
            if wanted == 0 {
                for bit in 0..<bytes.count * 8 { checkFlip(block, &bytes, library.epoch, bit: bit) }
                continue
            }
            let share = min(left, wanted * bytes.count / byteCount + 1)
            left -= share
            for _ in 0..<share {
                checkFlip(
                    block, &bytes, library.epoch, bit: Int.random(in: 0..<bytes.count * 8, using: &random))
            }
        }
    }

    @Test(
        "after any flipped bit the store serves all but what it names, and names no more than the entry or block",
        arguments: RotLibrary.Form.made)
    func flipsAndReopens(form: RotLibrary.Form) throws {
        let library = try library(form)
        let seed = Setting.number("LARDER_SEED") ?? 6
        var random = SplitMix64(seed: seed)
        for round in 0..<count("LARDER_ROT_REOPENS", form == .log ? 80 : 20) {
            guard let block = library.blocks.randomElement(using: &random) else { return }
            // Half in headers and first entries, which are a small part of the bytes.
            let used =
                Bool.random(using: &random) ? block.usedRange : block.range.lowerBound..<block.range.lowerBound + 160
            let byte = Int.random(in: used, using: &random)
            let bit = UInt8(1) << UInt8.random(in: 0..<8, using: &random)
            let disk = library.disk { $0[Int(block.position.segment) - 1]?[byte] ^= bit }
            do {
                let report = try library.check(disk, hit: [block], thorough: round % 10 == 0)
                // All entries of a compressed block can be had though its CRC does not fit.
                if byte < block.payloadEnd, !block.header.isCompressed {
                    #expect(!report.lostSpans.isEmpty || report.cutByteCount > 0, "nothing is said")
                }
                try expectOneEntry(block, byte, report, library)
            } catch {
                Issue.record(
                    "seed \(seed), round \(round), byte \(byte) of segment \(block.position.segment), bit \(bit): \(error)"
                )
                return
            }
        }
    }

    /// In a block whose header checks a flipped bit costs one entry.
    private func expectOneEntry(
        _ block: RotLibrary.Block, _ byte: Int, _ report: RecoveryReport, _ library: RotLibrary
    ) throws {
        guard let entry = block.entries.first(where: { ($0.offset..<$0.offset + $0.byteCount).contains(byte) }),
            report.cutByteCount == 0
        else { return }
        let lost = report.lostSpans.filter { $0.through > $0.after }
        guard lost.allSatisfy({ $0.after < entry.seq && entry.seq <= $0.through }), lost.count == 1 else {
            throw Mismatch("an entry of seq \(entry.seq) was hit; \(report.lostSpans)")
        }
        let others = block.entries.filter { $0.seq > lost[0].after && $0.seq <= lost[0].through }
        if others.count != 1 { throw Mismatch("\(others.count) entries are lost for one that was hit") }
    }

    // MARK: Whole blocks

    /// Runs a damage of one block for some blocks, and checks each.
    private func damage(
        _ what: String, _ form: RotLibrary.Form = .log, count usual: Int,
        _ change: (RotLibrary, RotLibrary.Block, inout [[UInt8]?], inout SplitMix64) -> [RotLibrary.Block]
    ) throws {
        let library = try library(form)
        let seed = Setting.number("LARDER_SEED") ?? 7
        var random = SplitMix64(seed: seed)
        for round in 0..<max(form == .log ? usual : usual / 3, count("LARDER_ROT_REOPENS", 0) / 10) {
            guard let block = library.blocks.randomElement(using: &random) else { return }
            var hit: [RotLibrary.Block] = []
            let disk = library.disk { hit = change(library, block, &$0, &random) }
            do {
                let report = try library.check(disk, hit: hit, thorough: round % 4 == 0)
                let mayBeHarmless = hit.allSatisfy(\.header.isCompressed)
                #expect(!report.lostSpans.isEmpty || report.cutByteCount > 0 || mayBeHarmless, "nothing is said")
            } catch {
                Issue.record("\(what): seed \(seed), round \(round), block \(block.position): \(error)")
                return
            }
        }
    }

    private func put(_ bytes: [UInt8], at block: RotLibrary.Block, _ content: inout [[UInt8]?]) {
        let segment = Int(block.position.segment) - 1
        for (at, byte) in bytes.enumerated() where block.range.lowerBound + at < content[segment]?.count ?? 0 {
            content[segment]?[block.range.lowerBound + at] = byte
        }
    }

    /// The blocks that lie where so many bytes from the block's beginning are changed.
    private func under(_ library: RotLibrary, _ block: RotLibrary.Block, _ byteCount: Int) -> [RotLibrary.Block] {
        let range = block.range.lowerBound..<block.range.lowerBound + byteCount
        return library.blocks.filter { $0.position.segment == block.position.segment && $0.range.overlaps(range) }
    }

    @Test("a block of zeros, or of random bytes, costs that block", arguments: RotLibrary.Form.made)
    func overwritten(form: RotLibrary.Form) throws {
        try damage("overwritten", form, count: 12) { library, block, content, random in
            // Zeros at the end of the log are room that was laid out: FORMAT.md section 10.
            let isZero = Bool.random(using: &random) && block.position != library.blocks.last?.position
            put(block.range.map { _ in isZero ? 0 : UInt8.random(in: 0...255, using: &random) }, at: block, &content)
            return [block]
        }
    }

    @Test("the end of a segment and the beginning of the next cost what they held", arguments: RotLibrary.Form.made)
    func border(form: RotLibrary.Form) throws {
        try damage("border", form, count: 12) { library, block, content, random in
            let blocks = library.blocks.filter { $0.position.segment == block.position.segment }
            let next = library.blocks.first { $0.position.segment == block.position.segment + 1 }
            let hit = [blocks.last, next].compactMap { $0 }
            for block in hit {
                put(block.range.map { _ in UInt8.random(in: 0...255, using: &random) }, at: block, &content)
            }
            return hit
        }
    }

    @Test("two blocks that changed places cost both")
    func swapped() throws {
        try damage("swapped", count: 8) { library, block, content, random in
            let same = library.blocks.filter {
                $0.range.count == block.range.count && $0.position != block.position
            }
            guard let other = same.randomElement(using: &random) else { return [] }
            put(Array(library.segments[Int(other.position.segment) - 1][other.range]), at: block, &content)
            put(Array(library.segments[Int(block.position.segment) - 1][block.range]), at: other, &content)
            return [block, other]
        }
    }

    @Test(
        "a block that was written to another's place, of this segment or another, costs what it covers",
        arguments: RotLibrary.Form.made)
    func misdirected(form: RotLibrary.Form) throws {
        try damage("misdirected", form, count: 12) { library, block, content, random in
            guard let other = library.blocks.randomElement(using: &random), other.position != block.position else {
                return []
            }
            let bytes = Array(library.segments[Int(other.position.segment) - 1][other.range])
            put(bytes, at: block, &content)
            return under(library, block, bytes.count)
        }
    }

    @Test("a block of another epoch costs the one that it covers")
    func foreign() throws {
        try damage("foreign", count: 12) { library, block, content, _ in
            var bytes = Array(library.segments[Int(block.position.segment) - 1][block.range])
            bytes.withUnsafeMutableBytes { raw in
                var header = block.header
                header.epoch ^= 1
                if let base = raw.baseAddress { header.write(at: base) }
            }
            put(bytes, at: block, &content)
            return [block]
        }
    }

    @Test("a block of an earlier state of its place costs that block", arguments: RotLibrary.Form.made)
    func halfOld(form: RotLibrary.Form) throws {
        try damage("half old", form, count: 12) { library, block, content, random in
            // Some of its sectors never reached the disk.
            let sectors = block.usedRange.count / 512 + 1
            let sector = Int.random(in: 0..<sectors, using: &random)
            let start = block.range.lowerBound + sector * 512
            let end = min(start + 512, block.range.upperBound)
            for at in start..<end { content[Int(block.position.segment) - 1]?[at] = 0x5A }
            return start < block.payloadEnd ? [block] : []
        }
    }
}

// Rot of whole segments: cut short, missing, changed about.

import LarderFormat
import Testing

@testable import LarderStore

@Suite(.serialized) struct RotSegmentTests {
    private func check(
        _ what: String, hit: (RotLibrary) -> [RotLibrary.Block], _ change: (inout [[UInt8]?]) -> Void
    ) throws {
        let library = try RotLibrary.made.get()
        do {
            let report = try library.check(library.disk(change), hit: hit(library))
            #expect(!report.lostSpans.isEmpty || report.cutByteCount > 0, "\(what): nothing is said")
        } catch { Issue.record("\(what): \(error)") }
    }

    @Test("a segment that ends early, within a block or between two, costs what is missing")
    func cutShort() throws {
        let library = try RotLibrary.made.get()
        var random = SplitMix64(seed: 9)
        for segment in 1...library.segments.count {
            let blocks = library.blocks.filter { $0.position.segment == UInt32(segment) }
            for round in 0..<2 {
                guard let block = blocks.randomElement(using: &random) else { continue }
                let isBetween = round % 2 == 0
                let size = isBetween ? block.range.lowerBound : Int.random(in: block.usedRange, using: &random)
                // A log that ends earlier, at a block's end, looks like one that was never longer.
                if isBetween && segment == library.segments.count { continue }
                if size == 0 && segment == library.segments.count { continue }
                try check("segment \(segment) cut to \(size)") { library in
                    library.blocks.filter { $0.position.segment == UInt32(segment) && $0.range.upperBound > size }
                } _: { content in
                    content[segment - 1].map { content[segment - 1] = Array($0[..<size]) }
                }
            }
        }
    }

    @Test("a segment that is missing is named, whichever it is; only the last cannot be missed")
    func missing() throws {
        let library = try RotLibrary.made.get()
        for segment in 1..<library.segments.count {
            try check("segment \(segment) missing") { library in
                library.blocks.filter { $0.position.segment == UInt32(segment) }
            } _: {
                $0[segment - 1] = nil
            }
        }
    }

    @Test("segments that changed places cost both, and nothing of them is served")
    func swapped() throws {
        let library = try RotLibrary.made.get()
        for segment in 1..<library.segments.count - 1 {
            try check("segments \(segment) and \(segment + 1) swapped") { library in
                library.blocks.filter { [UInt32(segment), UInt32(segment + 1)].contains($0.position.segment) }
            } _: {
                $0.swapAt(segment - 1, segment)
            }
        }
    }

    @Test("a segment copied over another costs the one that it covers")
    func copied() throws {
        let library = try RotLibrary.made.get()
        for segment in 1..<library.segments.count - 1 {
            try check("segment \(segment) is a copy of the next") { library in
                library.blocks.filter { $0.position.segment == UInt32(segment) }
            } _: {
                $0[segment - 1] = $0[segment]
            }
        }
    }
}

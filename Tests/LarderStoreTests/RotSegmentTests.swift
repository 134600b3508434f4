// Rot of whole segments: cut short, missing, changed about.

import LarderFormat
import Testing

@testable import LarderStore

@Suite(.serialized) struct RotSegmentTests {
    private func check(
        _ what: String, _ form: RotLibrary.Form, hit: (RotLibrary) -> [RotLibrary.Block],
        _ change: (inout [[UInt8]?]) -> Void
    ) throws {
        let library = try RotLibrary.made(form)
        do {
            let report = try library.check(library.disk(change), hit: hit(library))
            #expect(!report.lostSpans.isEmpty || report.cutByteCount > 0, "\(what): nothing is said")
        } catch { Issue.record("\(what): \(error)") }
    }

    @Test(
        "a segment that ends early, within a block or between two, costs what is missing",
        arguments: RotLibrary.Form.plain)
    func cutShort(form: RotLibrary.Form) throws {
        let library = try RotLibrary.made(form)
        var random = SplitMix64(seed: 9)
        for segment in RotLibrary.some(1...library.segments.count) {
            let blocks = library.blocks.filter { $0.position.segment == UInt32(segment) }
            for round in 0..<2 {
                guard let block = blocks.randomElement(using: &random) else { continue }
                let isBetween = round % 2 == 0
                let size = isBetween ? block.range.lowerBound : Int.random(in: block.usedRange, using: &random)
                // A log that ends earlier, at a block's end, looks like one that was never longer.
                if isBetween && segment == library.segments.count { continue }
                if size == 0 && segment == library.segments.count { continue }
                try check("segment \(segment) cut to \(size)", form) { library in
                    library.blocks.filter { $0.position.segment == UInt32(segment) && $0.range.upperBound > size }
                } _: { content in
                    content[segment - 1].map { content[segment - 1] = Array($0[..<size]) }
                }
            }
        }
    }

    @Test(
        "a segment that is missing is named, whichever it is; only the last cannot be missed",
        arguments: RotLibrary.Form.plain)
    func missing(form: RotLibrary.Form) throws {
        let library = try RotLibrary.made(form)
        for segment in RotLibrary.some(1...library.segments.count - 1) {
            try check("segment \(segment) missing", form) { library in
                library.blocks.filter { $0.position.segment == UInt32(segment) }
            } _: {
                $0[segment - 1] = nil
            }
        }
    }

    @Test("segments that changed places cost both, and nothing of them is served", arguments: RotLibrary.Form.plain)
    func swapped(form: RotLibrary.Form) throws {
        let library = try RotLibrary.made(form)
        for segment in RotLibrary.some(1...library.segments.count - 2) {
            try check("segments \(segment) and \(segment + 1) swapped", form) { library in
                library.blocks.filter { [UInt32(segment), UInt32(segment + 1)].contains($0.position.segment) }
            } _: {
                $0.swapAt(segment - 1, segment)
            }
        }
    }

    @Test("a segment copied over another costs the one that it covers", arguments: RotLibrary.Form.plain)
    func copied(form: RotLibrary.Form) throws {
        let library = try RotLibrary.made(form)
        for segment in RotLibrary.some(1...library.segments.count - 2) {
            try check("segment \(segment) is a copy of the next", form) { library in
                library.blocks.filter { $0.position.segment == UInt32(segment) }
            } _: {
                $0[segment - 1] = $0[segment]
            }
        }
    }

    // MARK: Segments of different times

    @Test("rewritten segments in front of ones as they were are what a crash in a compaction leaves: the same records")
    func rewrittenUpTo() throws {
        let library = try RotLibrary.made(.compacted)
        for count in RotLibrary.some(0...library.earlierSegments.count) {
            let mixed = library.segments.enumerated().map { at, bytes in
                at >= count && at < library.earlierSegments.count ? library.earlierSegments[at] : bytes
            }
            let expected = library.model.visible.values.sorted { $0.firstSeq < $1.firstSeq }
            #expect(try library.checkMixed(mixed) == expected, "\(count) rewritten")
        }
    }

    /// What a tombstone that is gone had ended comes back then: no reader can tell.
    @Test("one segment of another time, older or newer, is taken as it is: nothing is served that never was there")
    func copyOfAnotherTime() throws {
        let library = try RotLibrary.made(.compacted)
        var risenCount = 0
        for at in library.earlierSegments.indices {
            var older = library.segments
            older[at] = library.earlierSegments[at]
            risenCount += try library.checkMixed(older).count - library.model.visible.count
            var newer = library.earlierSegments + library.segments[library.earlierSegments.count...]
            newer[at] = library.segments[at]
            try library.checkMixed(newer)
        }
        // Otherwise this says nothing.
        #expect(risenCount > 0)
    }

    @Test("a checkpoint is of the log as it was: beside an older copy of a segment the log is read")
    func checkpointOfOthers() throws {
        let library = try RotLibrary.made(.compacted)
        let files = library.disk { _ in }
        let driver = try StoreDriver(files, options: RotLibrary.options, model: library.model, now: 90_000_000)
        driver.store.close()
        let checkpoint = try #require(files.content("library/checkpoint"))
        for (at, bytes) in library.earlierSegments.enumerated() where bytes != library.segments[at] {
            files.setContent("library/checkpoint", checkpoint)
            files.setContent(RotLibrary.name(at + 1), bytes)
            var options = RotLibrary.options
            options.isReadOnly = true
            let store = try Store(path: "library", options: options, files: files, now: 90_000_000)
            #expect(store.report.entryCount > library.model.events.count, "segment \(at + 1)")
            files.setContent(RotLibrary.name(at + 1), library.segments[at])
        }
    }
}

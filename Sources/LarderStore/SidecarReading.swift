// Opening from sidecars: whether one is of its segment as it is, and applying its changes. FORMAT.md section 11.

import LarderFormat

extension StoreCore {
    /// Lays the index out for the records that the sidecars of these segments create, so that it does not grow over and
    /// over while they are applied.
    mutating func reserveIndex(_ numbers: some Sequence<UInt32>) {
        guard !options.readsWholeLog else { return }
        var count = 0
        for number in numbers {
            guard let input = try? IndexFileInput(.sidecar, files: files, path: sidecarPath(number)) else { continue }
            defer { input.close() }
            guard let head = input.head, head.isOf(identity), head.position.segment == number else { continue }
            // No more than its file has.
            count += min(head.recordCount, head.byteCount(.records) / IndexChange.byteCount)
        }
        index.reserve(count)
    }

    /// Applies the changes of a segment that is to be read from an offset on, if a sidecar has them.
    ///
    /// - Returns: where the segment ends, or nil: it has to be read.
    mutating func restoreSidecar(_ segment: Segment, from offset: Int) -> Int? {
        guard !options.readsWholeLog, report.isWhole,
            let input = try? IndexFileInput(.sidecar, files: files, path: sidecarPath(segment.number))
        else { return nil }
        defer { input.close() }
        guard let head = input.head, head.isOf(identity), head.position.segment == segment.number,
            Int(head.position.offset) == offset, head.lastSeq > publishedSeq,
            let small = input.bytes(.small), let part = small.withUnsafeBytes({ SidecarSmallPart($0) }),
            part.named.number == segment.number, part.named.lastBlock != nil, isThere(part.named, withMore: false),
            let commits = input.readCommits(of: [part.named])?.first, let first = commits.first,
            Int(first.start) >= offset, let changes = input.bytes(.records), isGood(changes, part, segment.number)
        else { return nil }
        // Whoever reads the segment says what is missing.
        guard part.named.image == nil || Zstandard.isInstalled else { return nil }
        for entry in part.others { apply(entry) }
        // Places name kinds by the order in which the log declared them.
        guard part.fits(kinds, isAfter: true) else { return nil }
        changes.withUnsafeBytes { apply($0, segment) }
        segment.image = part.named.image
        segment.commits.append(contentsOf: commits)
        segment.byteCount = part.named.byteCount
        segment.lastBlockOffset = part.named.lastBlock?.offset
        publishedSeq = head.lastSeq
        return segment.byteCount
    }

    private func isGood(_ changes: [UInt8], _ part: SidecarSmallPart, _ number: UInt32) -> Bool {
        guard changes.count % IndexChange.byteCount == 0, part.fits(kinds, isAfter: false) else { return false }
        return changes.withUnsafeBytes { bytes in
            stride(from: 0, to: bytes.count, by: IndexChange.byteCount).allSatisfy { at in
                let place = StoreCore.change(bytes, at).place
                return place.isHole || place.segment == number && Int(place.kindIndex) < part.kinds.count
            }
        }
    }

    private mutating func apply(_ entry: OtherEntry) {
        entry.body.withUnsafeBytes { body in
            var view = EntryView()
            view.type = entry.type
            view.seq = entry.seq
            view.payload = body
            applyOther(view, entry.time)
        }
    }

    private mutating func apply(_ changes: UnsafeRawBufferPointer, _ segment: Segment) {
        let ahead = 24 * IndexChange.byteCount
        for at in stride(from: 0, to: changes.count, by: IndexChange.byteCount) {
            if at &+ ahead < changes.count { index.prefetch(StoreCore.change(changes, at &+ ahead).fingerprint) }
            apply(StoreCore.change(changes, at), segment)
        }
    }

    @inline(__always)
    private static func change(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> IndexChange {
        func word(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        let rest = word(at &+ 16)
        return IndexChange(
            place: Place(raw: word(at)), firstSeq: word(at &+ 8), fingerprint: UInt32(truncatingIfNeeded: rest),
            isCreated: rest &>> 32 & 1 == 1)
    }
}
